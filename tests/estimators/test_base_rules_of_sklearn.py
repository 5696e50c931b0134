"""scikit-learn's own checks of every estimator."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from milpbn.sklearn import (
    BayesianNetworkStructure,
    DifferentiableTANClassifier,
    MaxMarginBNClassifier,
    MDLPDiscretizer,
    NaiveBayesClassifier,
    TANClassifier,
)


class Integers:
    """Makes scikit-learn's checks give integers, which have few values here and so are nominal.

    They do so only for estimators that refuse NaN; others get floats.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.categorical = True
        return tags


class TANOfIntegers(Integers, TANClassifier):
    __doc__ = TANClassifier.__doc__
    __init__ = TANClassifier.__init__


ESTIMATORS = [
    MaxMarginBNClassifier(),
    DifferentiableTANClassifier(),
    MDLPDiscretizer(),
    BayesianNetworkStructure(max_parents=1),
    BayesianNetworkStructure(missing="state", objective="bic", max_parents=1),
    NaiveBayesClassifier(missing="state", absent_columns="marginalise"),
    TANOfIntegers(missing="error"),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ESTIMATORS)
def test_an_estimator_keeps_the_rules_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)
