"""scikit-learn estimators: the exact classifier, classical Bayesian network classifiers, and a discretiser."""

from __future__ import annotations

from milpbn.estimators.differentiable_tan import DifferentiableTANClassifier
from milpbn.estimators.max_margin import MaxMarginBNClassifier
from milpbn.estimators.mdlp_discretizer import MDLPDiscretizer
from milpbn.estimators.naive_bayes import NaiveBayesClassifier
from milpbn.estimators.tan import TANClassifier

__all__ = [
    "DifferentiableTANClassifier",
    "MDLPDiscretizer",
    "MaxMarginBNClassifier",
    "NaiveBayesClassifier",
    "TANClassifier",
]
