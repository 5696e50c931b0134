"""The work of a kernel in parts, on several threads.

Compiled kernels let go of the interpreter, so that ordinary threads run them side by side. numba's own parallel
loops would cost a compilation of every kernel for each of three wrappers, and wait actively, which is slow where
other programs use the same cores.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numba

#: Parts for every thread: they differ in what they cost.
PARTS = 4


def in_parts(work: Callable[[int, int], object], n: int, parallel: bool) -> None:
    """Call ``work(begin, end)`` for parts of range(n), in any order and several at a time.

    Parameters
    ----------
    work : callable
        Calls a kernel that releases the interpreter; the parts must not write to the same places.
    n : int
        Units of work.
    parallel : bool
        Use as many threads as numba would (`numba.get_num_threads`); otherwise everything is one part.
    """
    threads = numba.get_num_threads() if parallel else 1
    if threads < 2 or n < 2:
        work(0, n)
        return
    parts = min(n, PARTS * threads)
    ends = [n * part // parts for part in range(parts + 1)]
    for _ in _pool(threads).map(work, ends[:-1], ends[1:]):
        pass


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="milpbn")
