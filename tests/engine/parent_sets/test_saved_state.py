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


@pytest.mark.parametrize(
    "seeds",
    [*((seed,) for seed in range(400, 430)), pytest.param(range(2000, 6000), marks=pytest.mark.slow)],
)
def test_a_search_in_parts_proves_the_optimum(seeds, monkeypatch):
    for seed in seeds:
        problem, every = drawn(seed), enumerated(drawn(seed))
        with monkeypatch.context() as patch:
            if seed % 4:
                weaken(patch, seed)
            outcome, parts, _, _ = in_parts(problem, Settings(reduce=seed % 2 == 0))
        if not every:
            assert outcome.infeasible
            continue
        assert outcome.finished
        nodes = [events.count for events in parts if events.count]
        assert nodes == sorted(nodes)  # they are counted on
        found = max(problem.rescored(s)[0] for s in parts[-1].structures)
        assert found == pytest.approx(every[0][0], abs=1e-9)
        for events in parts:  # what every part has proved holds
            assert min(events.bounds) >= every[0][0]
        assert min(bound for events in parts for bound in events.bounds) <= every[0][0] + 1e-6


@pytest.mark.parametrize("seed", range(500, 520))
def test_the_list_of_a_search_in_parts_is_that_of_the_enumeration(seed, monkeypatch):
    if seed % 2:
        weaken(monkeypatch, seed)
    rng = np.random.default_rng(seed)
    size, reach = int(rng.choice([2, 3, 5, 20])), float(rng.choice([np.inf, 1, 30])) + 1e-6
    outcome, _, pool, _ = in_parts(drawn(seed), Settings(), size=size, reach=reach)
    assert_list(enumerated(drawn(seed)), outcome, pool)


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
