"""Running work in parts on several threads."""

from __future__ import annotations

import threading
import time

import pytest
from threadpoolctl import threadpool_info

from milpbn.util.threads import in_parts, library_threads, thread_count, threads_used


@pytest.mark.parametrize("n", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("parallel", [False, True])
def test_every_unit_is_worked_on_once(n, parallel):
    seen, lock = [], threading.Lock()

    def work(begin, end):
        with lock:
            seen.extend(range(begin, end))

    with threads_used(3):
        in_parts(work, n, parallel)
    assert sorted(seen) == list(range(n))


def test_an_error_in_a_part_is_raised():
    def work(begin, end):
        if begin:
            raise ValueError("part")

    with threads_used(3), pytest.raises(ValueError, match="part"):
        in_parts(work, 100, True)


def test_the_requested_threads_run_and_end_with_the_work():
    everybody = set()

    def work(begin, end):
        everybody.add(threading.get_ident())
        time.sleep(0.01)

    before = threading.active_count()
    for count in (1, 2, 3):
        everybody.clear()
        with threads_used(count):
            assert thread_count() == count
            in_parts(work, 100, True)
        assert len(everybody) == count
    assert threading.active_count() == before


def test_libraries_use_no_more_threads_within_the_block():
    def most():
        return max(library["num_threads"] for library in threadpool_info())

    before = most()
    with library_threads(1):
        assert most() == 1
    assert most() == before
