"""Comparisons are read back from their files."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from running import random_data

from milpbn.data import read_table
from milpbn.errors import InputError
from milpbn.learners.comparison import compare
from milpbn.learners.figures import Comparison
from milpbn.learners.repeated import compare_over_folds


@pytest.fixture(scope="module")
def document():
    data = random_data(7, n_features=3, n_samples=120)
    train, test = data.take(np.arange(0, 80)), data.take(np.arange(80, 120))
    return compare(train, test, ("sm", "tan", "multinet"), score={"p": 0.9}).to_dict()


def test_a_comparison_reads_as_it_was_written(document):
    found = Comparison.read(document, "It")
    assert found.to_dict() == document
    assert [row.name for row in found.rows] == ["sm", "tan", "multinet"]


def test_a_comparison_over_folds_shows_the_same_table():
    written = compare_over_folds(read_table("iris"), 2, 2, ("naive-bayes", "tan"), against="tan")
    found = Comparison.read(written.to_dict(), "It")
    assert str(found) == str(written)
    assert len(found.rows[0].parts) == 4


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (("rows", 1, "test"), 1.5, "at most 1"),
        (("rows", 1, "intervals", "test"), [0.5], "interval of two numbers"),
        (("rows", 0, "details", "score"), 3, "needs an object"),
        (("rows", 0, "name"), None, "needs text"),
        (("data",), [], "needs an object"),
        (("folds",), 1, "at least 2"),
    ],
)
def test_impossible_values_are_named(document, place, value, sentence):
    changed = copy.deepcopy(document)
    inside = changed
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    with pytest.raises(InputError, match=sentence):
        Comparison.read(changed, "It")


def test_a_score_without_its_options_has_the_defaults(document):
    changed = copy.deepcopy(document)
    changed["rows"][0]["details"]["score"] = {}
    assert "max_parents = 2" in str(Comparison.read(changed, "It"))
