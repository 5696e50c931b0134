"""The selection chooses between dropping rows with missing values and a state for these, on the same held-out rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import milpbn
from milpbn.data.dataset import MISSING
from milpbn.errors import DataWarning, InputError
from milpbn.sklearn import MaxMarginBNClassifier
from milpbn.solving.selection import solve_selected
from milpbn.trials.parts import datasets_of, splits_of

QUICK = {"threads": 1, "time_limit": 20.0, "verbose": False}
GRID = "score=cll max-parents=1 missing=drop,state"


def frame(*, informative: bool, n: int = 120) -> pd.DataFrame:
    """Return a table that lacks values of `a` in rows of class 1, or at random."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n)
    lacking = (
        np.where(y == 1, rng.random(n) < 0.7, rng.random(n) < 0.05) if informative else rng.random(n) < 0.3
    )
    a = np.where(rng.random(n) < 0.1, 1 - y, y) if not informative else rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "a": np.where(lacking, None, np.where(a == 1, "yes", "no")),
            "b": np.where(rng.random(n) < 0.3, 1 - y, y).astype(str),
            "c": y.astype(str),
        }
    )


def test_both_policies_are_scored_on_the_same_rows() -> None:
    table = milpbn.read_table(frame(informative=True), missing="state")
    splits, _ = splits_of(table, 0)
    assert not table.complete.all()
    for split in splits:
        dropped, held_out = datasets_of(table, split, None, "drop")
        kept, same = datasets_of(table, split, None, "state")
        assert held_out.n_samples == same.n_samples == len(split[1])
        np.testing.assert_array_equal(held_out.y, same.y)
        assert dropped.n_samples == table.complete[split[0]].sum() < kept.n_samples
        assert (held_out.codes == MISSING).sum() == (~table.complete[split[1]]).sum()
        assert not (same.codes == MISSING).any()


@pytest.mark.parametrize("informative", [True, False])
def test_what_held_out_rows_prefer_is_chosen(informative) -> None:
    data = frame(informative=informative)
    result = solve_selected(data, grid=GRID, by="log-loss", **QUICK)
    losses = {trial.options["missing"]: trial.log_loss for trial in result.selection.trials}
    assert set(losses) == {"drop", "state"}
    chosen = result.selection.options["missing"]
    assert losses[chosen] == min(losses.values())
    if informative:
        assert chosen == "state"
    lacking = int(data["a"].isna().sum())
    with pytest.warns(DataWarning):
        plain = milpbn.read_table(data, missing="drop")
    if chosen == "drop":
        assert result.data.samples == len(data) - lacking
        assert result.data.sha256 == plain.dataset().sha256
        assert f"Rows dropped for missing values: {lacking} of {len(data)}." in result.notes
    else:
        assert result.data.samples == len(data)
        assert result.data.sha256 == milpbn.read_table(data, missing="state").dataset().sha256


def test_the_table_of_complete_rows_is_the_one_that_drop_reads() -> None:
    data = frame(informative=False)
    table = milpbn.read_table(data, missing="state").of_complete_rows()
    with pytest.warns(DataWarning):
        other = milpbn.read_table(data, missing="drop")
    assert table.frame.equals(other.frame)
    assert (table.missing, table.notes, table.kinds) == (other.missing, other.notes, other.kinds)
    assert table.dataset().sha256 == other.dataset().sha256


def test_nothing_is_chosen_where_there_is_nothing_to_choose() -> None:
    data = frame(informative=False).dropna()
    result = solve_selected(data, grid=GRID, **QUICK)
    assert [dict(trial.options) for trial in result.selection.trials] == [{"score": "cll"}]
    with pytest.warns(DataWarning):
        dropped = milpbn.read_table(frame(informative=False))
    with pytest.raises(InputError, match="the table was read with missing='drop'"):
        solve_selected(dropped, grid=GRID, **QUICK)


def test_rows_are_not_dropped_where_a_class_would_be_lost() -> None:
    data = frame(informative=False)
    data.loc[data["c"] == "1", "a"] = None
    result = solve_selected(data, grid=GRID, **QUICK)
    assert result.selection.options["missing"] == "state"
    assert len(result.selection.trials) == 1


def test_an_estimator_leaves_the_choice_to_a_recipe() -> None:
    data = frame(informative=True)
    X, y = data[["a", "b"]], data["c"]
    options = {"max_parents": 1, "hybrid": 0.5, "parameters": "ml", "time_limit": 20}
    model = MaxMarginBNClassifier(recipe="accurate", missing="select", **options).fit(X, y)
    trials = model.result_.selection.trials
    assert {trial.options["missing"] for trial in trials} == {"drop", "state"}
    assert model.n_dropped_ == len(data) - model.result_.data.samples
    assert model.predict(X).shape == (len(data),)
    with pytest.raises(InputError, match="leaves the choice to validation"):
        MaxMarginBNClassifier(missing="select").fit(X, y)
