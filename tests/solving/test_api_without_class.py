"""Data without a class: a network of all variables."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from oracle import enumerate_best, random_dataset

import milpbn
from milpbn import Constraints, InputError, Score


def without_class(seed: int):
    return replace(random_dataset(np.random.default_rng(seed), 3, 2, 3, 30), has_class=False)


@pytest.mark.parametrize("backend", ["branch-and-cut", "highs"])
@pytest.mark.parametrize("score", ["bdeu", "bic"])
def test_the_optimum_is_that_of_all_structures(score, backend):
    data = without_class(len(score))
    best = enumerate_best(data, {"bic": "mdl"}.get(score, score), max_parents=3, parent_sets="all")
    result = milpbn.solve(data, Score(score, max_parents=3), backend=backend)
    assert result.optimal
    assert not result.among
    assert result.objective == pytest.approx(best.objective)
    assert result.structure.parents in best.structures


def test_a_limit_of_children_is_one_of_every_variable():
    """The last variable is no class, to which the limit would not apply."""
    data = without_class(7)
    asked = Constraints(max_children={"*": 0, "X1": 1})

    def allowed(parents):
        return all(sum(j in p for p in parents) <= (j == 0) for j in range(4))

    best = enumerate_best(data, "bdeu", parent_sets="all", allowed=allowed)
    result = milpbn.solve(data, "bdeu", constraints=asked)
    assert result.optimal
    assert result.objective == pytest.approx(best.objective)


def test_continuous_columns_need_cuts_without_a_class():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["x", "y", "z"])
    with pytest.raises(
        InputError, match=r"'x' of .* is continuous, and the cuts of mdl need a class; choose"
    ):
        milpbn.read_table(frame, target=None).dataset()
    data = milpbn.read_table(frame, target=None, discretise="quantile:3").dataset()
    assert [v.n_states for v in data.variables] == [3, 3, 3]
    array = milpbn.read_table(frame.to_numpy(), target=None, discretise="uniform:2").dataset()
    assert array.names == ("x1", "x2", "x3")
    with pytest.raises(InputError, match="y holds class labels"):
        milpbn.read_table(frame, np.zeros(60), target=None)


def test_missing_values_of_the_last_column_are_no_missing_class():
    frame = pd.DataFrame({"a": ["u", "v"] * 10, "b": ["u", None] * 10})
    data = milpbn.read_table(frame, target=None, missing="state").dataset()
    assert data.n_samples == 20
    assert data.variables[1].missing_state
