"""scikit-learn estimators: exact and classical classifiers, networks without a class, and a discretiser."""

from __future__ import annotations

from milpbn.estimators.differentiable_tan import DifferentiableTANClassifier
from milpbn.estimators.max_margin import MaxMarginBNClassifier
from milpbn.estimators.mdlp_discretizer import MDLPDiscretizer
from milpbn.estimators.naive_bayes import NaiveBayesClassifier
from milpbn.estimators.structure import BayesianNetworkStructure
from milpbn.estimators.tan import TANClassifier

__all__ = [
    "BayesianNetworkStructure",
    "DifferentiableTANClassifier",
    "MDLPDiscretizer",
    "MaxMarginBNClassifier",
    "NaiveBayesClassifier",
    "TANClassifier",
]
