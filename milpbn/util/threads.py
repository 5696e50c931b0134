"""Running a kernel on several threads, each on a part of the work.

Compiled kernels release the interpreter lock, so that ordinary threads run them in parallel. Parallel loops of numba
would compile every kernel for each of three wrappers, and they wait actively, which is slow if other programs use the
same cores. The threads end with the work, so that they disturb neither a fork nor the end of the process.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController

#: Number of parts per thread; several, because parts take different times.
PARTS = 4

_most: list[int] = []


def all_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def thread_count() -> int:
    """Return the number of threads that kernels may use: that of the current `threads_used` block, or all cores."""
    return _most[-1] if _most else all_cores()


@contextmanager
def threads_used(count: int) -> Iterator[None]:
    """Limit the number of threads of this process's kernels within the block, in whatever thread they are called."""
    _most.append(max(1, count))
    try:
        yield
    finally:
        _most.pop()


@contextmanager
def library_threads(count: int) -> Iterator[None]:
    """Limit the number of threads of libraries such as BLAS and OpenMP within the block, in the whole process."""
    with _libraries(len(sys.modules)).limit(limits=count):
        yield


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:
    """Return the loaded libraries that have threads; the search is slow, and repeated only after further imports."""
    return ThreadpoolController()


def in_parts(work: Callable[[int, int], object], n: int, parallel: bool) -> None:
    """Call ``work(begin, end)`` for parts of range(n), in any order and several at a time.

    The work calls a kernel that releases the interpreter lock; different parts must not write to the same places. If it
    raises an exception, that is raised again after all threads have ended. Unless `parallel`, all work is one part, in
    the calling thread; else `thread_count` threads do it.
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
            except BaseException as error:  # raised again in the calling thread
                failures.append(error)

    others = [threading.Thread(target=take, name=f"milpbn-part-{k}", daemon=True) for k in range(1, threads)]
    for thread in others:
        thread.start()
    take()
    for thread in others:
        thread.join()
    if failures:
        raise failures[0]
