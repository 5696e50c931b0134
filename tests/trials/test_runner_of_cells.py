"""Cells: each is computed once, and what is not finished is computed the next time."""

from __future__ import annotations

import pytest

from milpbn.trials.executors import Inline, Processes
from milpbn.trials.runner import run_cells


class Notes(dict):
    add = dict.__setitem__


@pytest.mark.parametrize("spread", [Inline(), Processes(2)])
def test_only_what_the_store_lacks_is_computed(spread: Inline) -> None:
    store = Notes({2: 7})
    assert dict(run_cells([-1, 2, -3], abs, store, spread)) == {-1: 1, 2: 7, -3: 3} == store


def test_a_cell_may_depend_on_the_one_before() -> None:
    seen: list[int] = []
    cells = (sum(seen) + 1 for _ in range(4))
    for cell, _ in run_cells(cells, abs, Notes()):
        seen.append(cell)
    assert seen == [1, 2, 4, 8]


def test_after_a_stop_the_rest_is_left() -> None:
    store = Notes({3: 3})
    found = run_cells([1, 2, 3], lambda cell: None if cell == 2 else cell, store)
    assert [cell for cell, _ in found] == [1]
    assert [cell for cell, _ in run_cells([3, 4], abs, store, stopping=lambda: True)] == []
    assert store == {1: 1, 3: 3}
