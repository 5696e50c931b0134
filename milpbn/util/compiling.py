"""Compilation of kernels in several processes, into the shared cache on disk.

No process distributes the work. Each one goes through the same list and skips kernels that another one is compiling
(`Specialization.is_claimed`); it reads finished ones from disk. So two programs that start at the same time share the
work, and if a process is killed, another one compiles its kernels.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO

from milpbn.util.compiled import COMPILING, Specialization, are_kept
from milpbn.util.memory import available_memory, memory_limit
from milpbn.util.threads import all_cores

#: Largest number of helper processes. More do not help, because a kernel is compiled after those that it calls.
MOST_HELPERS = 7
#: Least number of kernels per helper process. With fewer, its start would take longer than its work.
KERNELS_PER_HELPER = 4
#: Bytes that a helper process takes at most, where there is a memory limit.
HELPER_BYTES = 2**29
#: Seconds between two checks whether another process still compiles a kernel, and between two counts of kernels.
POLL, COUNT_EVERY = 0.02, 0.5
#: The program of a helper process. It reads its input before it imports numba, so that its parent need not wait.
_HELPER = (
    "import pickle, sys; path, jobs = pickle.load(sys.stdin.buffer); sys.path[:] = path; "
    "from milpbn.util.compiling import help_out; help_out(jobs, sys.stdin.buffer)"
)


class Compilation:
    """The compilation of all kernels that a program will need, with helper processes.

    The jobs are in the order of their use, called kernels before their callers; `report` is called with the numbers of
    kernels compiled so far and to compile.
    """

    def __init__(
        self, jobs: Sequence[Specialization], report: Callable[[int, int], object] = lambda done, of: None
    ) -> None:
        self._jobs, self._report, self._counted_at = list(jobs), report, 0.0
        self._helpers: list[subprocess.Popen[bytes]] = []
        #: Kernels that were not in the cache at the start, and those among them that are still to be compiled.
        self._missing: list[Specialization] | None = None
        self._unfinished: list[Specialization] = []

    def start(self) -> None:
        """Start the helper processes, which go through all kernels that are not in the cache."""
        if self._missing is not None:
            return
        self._missing = self._unfinished = _absent(self._jobs)
        if are_kept():
            count = min(all_cores() - 1, MOST_HELPERS, len(self._missing) // KERNELS_PER_HELPER)
            if memory_limit() is not None:
                count = min(count, (available_memory() or 0) // HELPER_BYTES)
            started = (_started(self._missing) for _ in range(count))
            self._helpers = [helper for helper in started if helper is not None]

    def ready(self, jobs: Sequence[Specialization], stopping: Callable[[], bool]) -> bool:
        """Load or compile the kernels that are needed now; return False if stopped before all of them were loaded.

        `stopping` is asked before each kernel and while other processes compile. A kernel takes a second or two.
        """
        left = [job for job in jobs if not job.is_loaded()]
        if _absent(left):
            self.start()
        with _uncollected():
            while left:
                self._count()
                if stopping():
                    return False
                free = next((job for job in left if not job.is_claimed()), None)
                if free is None:
                    with COMPILING:
                        time.sleep(POLL)
                    continue
                free()
                left.remove(free)
        return True

    def _count(self) -> None:
        """Report the number of compiled kernels, at most twice a second."""
        if self._missing and self._unfinished and time.monotonic() >= self._counted_at + COUNT_EVERY:
            self._unfinished = _absent(self._unfinished)
            self._report(len(self._missing) - len(self._unfinished), len(self._missing))
            self._counted_at = time.monotonic()

    def close(self) -> None:
        """End the helper processes. Kernels that they have not finished are compiled when they are needed."""
        for helper in self._helpers:
            helper.kill()
            helper.wait()
            if helper.stdin is not None:
                with suppress(OSError):
                    helper.stdin.close()
        self._helpers = []


def are_cached(jobs: Sequence[Specialization]) -> bool:
    """Return whether none of the kernels has to be compiled."""
    return not _absent(jobs)


def _absent(jobs: Sequence[Specialization]) -> list[Specialization]:
    """Return the kernels that are neither loaded nor in the cache."""
    return [job for job in jobs if not (job.is_loaded() or job.is_kept())]


@contextmanager
def _uncollected() -> Iterator[None]:
    """Switch off the garbage collector, which takes a thirtieth of the compilation time and frees almost nothing."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _started(jobs: Sequence[Specialization]) -> subprocess.Popen[bytes] | None:
    """Start a helper process; return None if that fails. It ends when its input ends, so never after this process."""
    try:
        helper = subprocess.Popen(
            [sys.executable, "-c", _HELPER],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
    assert helper.stdin is not None
    with suppress(OSError):  # the helper has ended already; this process compiles its kernels
        pickle.dump((sys.path, pickle.dumps(list(jobs))), helper.stdin)
        helper.stdin.flush()
    return helper


def help_out(pickled: bytes, source: BinaryIO) -> None:
    """Compile the kernels that no other process has started, until all are started or the input ends.

    `pickled` is a list of `Specialization`, and `source` the pipe from the parent, which sends nothing more.
    """
    # A terminal sends Ctrl-C to all processes; the parent ends this one if it stops.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    jobs: list[Specialization] = pickle.loads(pickled)
    gc.disable()

    def watch() -> None:
        source.read()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    for job in jobs:
        if not job.is_kept() and not job.is_claimed():
            job()
    os._exit(0)
