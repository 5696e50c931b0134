"""Of wide tables the features that say most about the class are used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from milpbn.data import read_table
from milpbn.data.dataset import dropped_notes
from milpbn.data.relevance import LEAST_FEATURES, MOST_FEATURES, of_relevant


def wide(n_rows: int, n_noise: int) -> pd.DataFrame:
    """Noise, a number, states and a missing value that tell two classes apart, and a column of nearly one value."""
    rng = np.random.default_rng(0)
    second = rng.random(n_rows) < 0.5
    frame = pd.DataFrame(rng.normal(size=(n_rows, n_noise))).add_prefix("noise ")
    frame["number"] = (rng.normal(size=n_rows) - 4 * second).astype(object)
    frame.loc[rng.random(n_rows) < 0.1, "number"] = None
    frame["states"] = np.where(rng.random(n_rows) < 0.8, np.where(second, "AA", "GG"), "AG")
    frame["there"] = np.where(second & (rng.random(n_rows) < 0.9), None, "yes")
    frame["flat"] = ["one", *["other"] * (n_rows - 1)]
    return frame.assign(kind=np.where(second, "b", "a"))


def test_numbers_states_and_missing_values_are_found_and_named_features_stay(tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    wide(60, MOST_FEATURES).to_csv(file, index=False)
    table = read_table(
        file, target="kind", missing="state", drop=["noise 0"], continuous=["number", "noise 1", "noise 2"]
    )
    rows = np.arange(table.n_rows)
    chosen = of_relevant(table, rows, ["flat"])
    assert len(chosen.features) == LEAST_FEATURES
    assert {"number", "states", "there", "flat"} <= {*chosen.features}
    n = len(table.features)
    assert f"{n - LEAST_FEATURES} of {n} features" in chosen.notes[-1]
    assert dropped_notes(chosen.dataset("train").notes) == (chosen.notes[-1],)
    data = chosen.dataset("train")
    assert data.request is not None
    again = read_table(data.request.source, **data.request.options).dataset("train")
    assert again.names == data.names
    np.testing.assert_array_equal(again.codes, data.codes)
    assert of_relevant(table, rows[:20]).features != chosen.features  # only these rows count


def test_features_are_kept_while_they_are_beyond_chance_and_all_of_a_narrow_table() -> None:
    rng = np.random.default_rng(1)
    second = rng.random(80) < 0.5
    frame = pd.DataFrame(rng.normal(size=(80, MOST_FEATURES + 100))).add_prefix("x")
    frame.iloc[:, :50] += 2.5 * second[:, None]
    table = read_table(frame.assign(kind=np.where(second, "b", "a")), target="kind")
    chosen = of_relevant(table, np.arange(80))
    assert {*frame.columns[:50]} <= {*chosen.features}
    assert len(chosen.features) < 80
    narrow = read_table(frame.iloc[:, :MOST_FEATURES].assign(kind=np.where(second, "b", "a")), target="kind")
    assert of_relevant(narrow, np.arange(80)) is narrow
