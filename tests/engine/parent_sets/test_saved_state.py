"""Branch and cut in parts against the enumeration of all structures."""

import json

import numpy as np
import pytest
from running import in_parts
from test_search_of_parent_sets import assert_list, drawn, enumerated, weaken

from milpbn.engine.parent_sets.rows import Row
from milpbn.engine.parent_sets.saved_state import _rows
from milpbn.solvers.base import Settings
from milpbn.util.saved_arrays import SavedArrays, UnfitError


@pytest.mark.parametrize("seed", range(500, 520))
def test_the_list_of_a_search_in_parts_is_that_of_the_enumeration(seed, monkeypatch):
    if seed % 2:
        weaken(monkeypatch, seed)
    rng = np.random.default_rng(seed)
    size, reach = int(rng.choice([2, 3, 5, 20])), float(rng.choice([np.inf, 1, 30])) + 1e-6
    outcome, parts, pool, _ = in_parts(
        drawn(seed), Settings(threads=1 + seed // 2 % 2), size=size, reach=reach
    )
    assert_list(enumerated(drawn(seed)), outcome, pool)
    assert len(parts) > 1


@pytest.mark.parametrize(
    "row",
    [
        (6, (0, 1), ()),
        (-1, (0, 1), ()),
        (0, (1, 0), ()),
        (0, (0, 5), ()),
        (0, (), ()),
        (0, (0, 1), (1,)),
        (1, (0, 1), (0, 1, 1)),
        (1, tuple(range(5)) * 2, (0,) * 32),
        (2, (0,), ()),
        (3, (0, 1), (2,)),
        (4, (0, 1), (5,)),
        (5, (0, 1), (1,)),
        (5, (0, 1), (1, 1 << 5)),
        (0, (0, 1.5), ()),
        (0, "ab", ()),
    ],
)
def test_a_row_that_the_kernels_cannot_read_is_refused(row):
    fine = [Row(0, (0, 1)), Row(1, (0, 1), (0, 1, 1, 2)), Row(2, (4,), (1,)), Row(5, (0, 1), (2, 1))]

    def read(rows):
        text = np.frombuffer(json.dumps(rows).encode(), dtype=np.uint8)
        return _rows(SavedArrays({"rows": text}), 5)

    assert read(fine) == fine
    with pytest.raises(UnfitError):
        read([*fine, row])
