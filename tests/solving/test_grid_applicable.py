"""The settings that a selection compares on given data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from milpbn.data import read_table
from milpbn.errors import InputError
from milpbn.problem.scores.spec import Score
from milpbn.solving.grid import Grid, applicable, source_of
from milpbn.trials.parts import splits_of

CUTS = "discretise=mdl,quantile:5"


def frame(*, continuous: bool, missing: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    values = rng.normal(size=60) if continuous else rng.choice(["u", "v"], 60)
    found = pd.DataFrame({"a": rng.choice(["x", "y"], 60), "b": values, "class": rng.choice(["c", "d"], 60)})
    found.loc[: missing - 1, "a"] = None
    return found


def described(words: str, data: pd.DataFrame) -> list[str]:
    grid = Grid.parse(words)
    source = source_of(data, grid)
    return [s.describe() for s in applicable(grid, Score(), source, splits_of(source, 0)[0])]


@pytest.mark.parametrize(("continuous", "expected"), [(True, 4), (False, 2)])
def test_cuts_are_compared_if_there_is_something_to_cut(continuous: bool, expected: int) -> None:
    assert len(described(f"p=.6,.9 {CUTS}", frame(continuous=continuous, missing=0))) == expected


@pytest.mark.parametrize(("missing", "expected"), [(0, 2), (5, 4), (60, 2)])
def test_policies_are_compared_if_rows_can_be_dropped(missing: int, expected: int) -> None:
    found = described("p=.6,.9 missing=drop,state", frame(continuous=False, missing=missing))
    assert len(set(found)) == len(found) == expected
    assert any("missing" in text for text in found) == (missing > 0)


def test_a_dataset_cannot_be_cut_anew() -> None:
    dataset = read_table(frame(continuous=True, missing=0)).dataset("train")
    with pytest.raises(InputError, match="give the selection a table"):
        applicable(Grid.parse(CUTS), Score(), dataset, splits_of(dataset, 0)[0])
