"""The work of a kernel in parts, on several threads.

Compiled kernels let go of the interpreter, so that ordinary threads run them side by side. numba's own parallel
loops would cost a compilation of every kernel for each of three wrappers, and wait actively, which is slow where
other programs use the same cores. The threads live no longer than the work: none is in the way of a fork or of the
end of the process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Parts for every thread: they differ in what they cost.
PARTS = 4

_most: list[int] = []


def all_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def thread_count() -> int:
    """Return how many threads kernels may use: what `threads_used` says, or else all cores."""
    return _most[-1] if _most else all_cores()


@contextmanager
def threads_used(count: int) -> Iterator[None]:
    """Let kernels of this process, whatever thread calls them, use so many threads at most."""
    _most.append(max(1, count))
    try:
        yield
    finally:
        _most.pop()


def in_parts(work: Callable[[int, int], object], n: int, parallel: bool) -> None:
    """Call ``work(begin, end)`` for parts of range(n), in any order and several at a time.

    Parameters
    ----------
    work : callable
        Calls a kernel that releases the interpreter; the parts must not write to the same places. Its exception
        is raised when all threads have ended.
    n : int
        Units of work.
    parallel : bool
        Use as many threads as `thread_count` says; otherwise everything is one part.
    """
    threads = min(thread_count(), n) if parallel else 1
    if threads < 2:
        work(0, n)
        return
    count = min(n, PARTS * threads)
    parts = iter([(n * part // count, n * (part + 1) // count) for part in range(count)])
    lock = threading.Lock()
    failures: list[BaseException] = []

    def take() -> None:
        while not failures:
            with lock:
                part = next(parts, None)
            if part is None:
                return
            try:
                work(*part)
            except BaseException as error:  # handed to the caller
                failures.append(error)

    others = [threading.Thread(target=take, name=f"milpbn-part-{k}", daemon=True) for k in range(1, threads)]
    for thread in others:
        thread.start()
    take()
    for thread in others:
        thread.join()
    if failures:
        raise failures[0]
