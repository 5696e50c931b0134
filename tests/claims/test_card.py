"""What notebooks show of results, classifiers and estimators."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn

from milpbn.claims.parts import Average
from milpbn.claims.result import BackendInfo, DataSummary, Result
from milpbn.network.structure import Structure
from milpbn.problem.scores.spec import Score
from milpbn.sklearn import (
    DifferentiableTANClassifier,
    MaxMarginBNClassifier,
    NaiveBayesClassifier,
    TANClassifier,
)

RESULT = Result(
    data=DataSummary("toy", "0" * 64, 10, 9, 2, 2),
    score=Score(),
    reason="feasible",
    limit="time",
    structure=Structure(("a<b", "b", "class"), ((2,), (0, 2), ())),
    objective=10.0,
    bound=12.0,
    backend=BackendInfo("native", "milpbn", 1),
)


def text_of(html: str) -> str:
    parser, found = HTMLParser(), []
    parser.handle_data = found.append
    parser.feed(html)
    return " ".join(found)


def test_a_result_shows_numbers_and_network():
    shown = RESULT._repr_html_()
    assert "<svg" in shown
    for words in ("a<b", "10.000000 nats", "2.000000 nats (16.7 % of the bound)", "limit: time"):
        assert words in text_of(shown)


def test_a_result_without_structure_has_no_picture():
    assert "<svg" not in replace(RESULT, structure=None, objective=None, reason="no_solution")._repr_html_()


def test_a_result_says_that_its_classifier_is_an_average():
    averaged = replace(RESULT, average=Average(asked=2, networks=2))
    assert "average of 2 networks" in text_of(averaged._repr_html_())
    assert "classifier" not in text_of(RESULT._repr_html_())


@pytest.mark.parametrize("n", [4, 196])
@pytest.mark.parametrize(
    "make", [NaiveBayesClassifier, TANClassifier, DifferentiableTANClassifier, MaxMarginBNClassifier]
)
def test_a_repr_is_short_and_an_unfitted_estimator_has_only_the_diagram_of_scikit_learn(make, n):
    names = [f"a feature with a long name {i}" for i in range(n)]
    estimator = make(drop=names[:1], class_weight={0: 1.0, 1: 2.0})
    assert len(repr(estimator)) < 500
    shown = estimator._repr_html_()
    assert "mb-card" not in shown
    assert "class_weight" in shown
    structure = Structure((*names, "class"), (*([(n,)] * n), ()))
    assert len(repr(replace(RESULT, structure=structure, data=replace(RESULT.data, name="x" * 999)))) < 500


def test_an_estimator_shows_its_network_behind_the_diagram_of_scikit_learn():
    X, y = np.array([[0, 1], [1, 0], [1, 1], [0, 0]] * 5), np.array([0, 1, 1, 0] * 5)
    estimator = NaiveBayesClassifier()
    assert "mb-picture" not in estimator._repr_html_()
    estimator.fit(X, y)
    bundle = estimator._repr_mimebundle_()
    assert bundle["text/plain"] == repr(estimator)
    for shown in (estimator._repr_html_(), bundle["text/html"]):
        assert "sk-" in shown
        assert "mb-picture" in shown
    assert "mb-picture" in estimator.classifier_._repr_html_()
    with sklearn.config_context(display="text"):
        assert not hasattr(estimator, "_repr_html_")
