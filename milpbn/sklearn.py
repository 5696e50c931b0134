"""The estimators of `milpbn.estimators` under the name of the library that they are for."""

from __future__ import annotations

from milpbn.estimators import (
    DifferentiableTANClassifier,
    MaxMarginBNClassifier,
    MDLPDiscretizer,
    NaiveBayesClassifier,
    TANClassifier,
)

__all__ = [
    "DifferentiableTANClassifier",
    "MDLPDiscretizer",
    "MaxMarginBNClassifier",
    "NaiveBayesClassifier",
    "TANClassifier",
]
