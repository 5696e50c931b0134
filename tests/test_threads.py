"""Work in parts."""

from __future__ import annotations

import threading

import numba
import pytest

from milpbn.threads import in_parts


@pytest.mark.parametrize("n", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("parallel", [False, True])
def test_every_unit_is_worked_on_once(n, parallel):
    seen, lock = [], threading.Lock()

    def work(begin, end):
        with lock:
            seen.extend(range(begin, end))

    in_parts(work, n, parallel)
    assert sorted(seen) == list(range(n))


def test_an_error_in_a_part_is_raised():
    def work(begin, end):
        if begin:
            raise ValueError("part")

    if numba.get_num_threads() > 1:
        with pytest.raises(ValueError, match="part"):
            in_parts(work, 100, True)
