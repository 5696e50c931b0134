"""Cuts by boosted trees, and two resolutions of a column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from milpbn.data import read_table
from milpbn.data.boosted import boosted_cuts
from milpbn.data.discretisation import Discretisation, equal_weights
from milpbn.data.resolutions import nested, with_fine
from milpbn.errors import InputError


def crossed(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two columns whose product decides the class, at .7 of the first, and one of noise."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 3))
    return values, ((values[:, 0] > 0.7) == (values[:, 1] > 0)).astype(int)


def test_a_feature_that_matters_only_with_another_is_cut_where_it_matters() -> None:
    values, classes = crossed(800)
    everything = np.ones(3, dtype=bool)
    cuts = boosted_cuts(values, everything, classes, np.ones(800), 8)
    assert min(abs(cuts[0] - 0.7)) < 0.05
    assert min(abs(cuts[1])) < 0.05
    univariate = Discretisation().cuts_of_all(values, everything, classes, 2, np.ones(800))
    assert len(univariate[0]) == 0
    assert all(len(own) <= 7 and (np.diff(own) > 0).all() for own in cuts)


def test_missing_values_rows_without_weight_and_few_values() -> None:
    values, classes = crossed(300)
    values[::9, 0] = np.nan
    values[:, 1] = values[:, 1] > 0
    values[:, 2] = 3.0
    weights = np.ones(300)
    weights[:100] = 0
    everything = np.ones(3, dtype=bool)
    cuts = boosted_cuts(values, everything, classes, weights, 8)
    assert cuts[1].tolist() == [0.5]
    assert cuts[2].size == 0
    kept = boosted_cuts(values[100:], everything, classes[100:], np.ones(200), 8)
    for one, other in zip(cuts, kept, strict=True):
        np.testing.assert_array_equal(one, other)
    assert boosted_cuts(values, ~everything, classes, weights, 8)[0].size == 0
    gone = np.full((300, 1), np.nan)
    assert boosted_cuts(gone, everything[:1], classes, weights, 8)[0].size == 0


def test_a_value_in_most_rows_leaves_cuts_for_the_others() -> None:
    rng = np.random.default_rng(1)
    values = np.where(rng.random(2000) < 0.9, 0.0, rng.exponential(size=2000))
    classes = (values > 1).astype(int)
    assert len(equal_weights(values, np.ones(2000), 64)) > 40
    cuts = boosted_cuts(values[:, None], np.ones(1, dtype=bool), classes, np.ones(2000), 8)[0]
    assert len(cuts) > 3
    assert min(abs(cuts - 1)) < 0.05


@pytest.mark.parametrize("missing", ["drop", "state"])
def test_every_fine_interval_lies_in_one_coarse_interval(missing: str) -> None:
    values, classes = crossed(400)
    frame = pd.DataFrame(values, columns=["a", "a (fine)", "c"]).assign(kind=np.where(classes, "y", "n"))
    frame.loc[::11, "a"] = np.nan
    table = read_table(frame, target="kind", missing=missing, discretise="boosted:5")
    coarse = table.dataset("train")
    data = with_fine(coarse, table, table.train_indices)
    found = nested(data)
    assert [data.names[i] for i in found] == ["a (fine)'", "a (fine) (fine)", "c (fine)"]
    for fine, (own, states) in found.items():
        assert (states[data.codes[:, fine]] == data.codes[:, own]).all()
        assert set(data.variables[own].cuts or ()) < set(data.variables[fine].cuts or ())
    # Encoded as rows for prediction are.
    again = table.encode(data.variables, "train")
    np.testing.assert_array_equal(again.codes, data.codes)
    assert nested(coarse) == {}


def test_boosted_needs_a_class() -> None:
    values, _ = crossed(50)
    table = read_table(pd.DataFrame(values, columns=list("abc")), target=None, discretise="quantile:3")
    with pytest.raises(InputError, match="the cuts of boosted need a class"):
        replace(table, discretisation=Discretisation.parse("boosted:4")).dataset()
