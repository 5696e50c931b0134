"""The estimators of `milpbn.estimators` under the name of the library that they are for."""

from __future__ import annotations

from milpbn.estimators import (
    BayesianNetworkStructure,
    DifferentiableTANClassifier,
    MaxMarginBNClassifier,
    MDLPDiscretizer,
    NaiveBayesClassifier,
    TANClassifier,
)

__all__ = [
    "BayesianNetworkStructure",
    "DifferentiableTANClassifier",
    "MDLPDiscretizer",
    "MaxMarginBNClassifier",
    "NaiveBayesClassifier",
    "TANClassifier",
]
