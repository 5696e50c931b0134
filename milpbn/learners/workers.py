"""Calls of other libraries that know neither time limits nor interrupts: in workers that can be left, or killed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor

from milpbn.errors import SolverError

#: Seconds between two questions whether to stop.
POLL = 0.05
#: Seconds after which a process without work ends by itself, should its parent have been killed.
IDLE = 60


@contextmanager
def workers(count: int, *, killable: bool) -> Iterator[Executor]:
    """Yield an executor; at the end its processes are killed, or its threads waited for.

    Parameters
    ----------
    count : int
        Workers.
    killable : bool
        Processes, which take a second or two to start; else threads, for calls that are short.
    """
    if not killable:
        with ThreadPoolExecutor(count) as pool:
            yield pool
        return
    pool = ProcessPoolExecutor(count, timeout=IDLE, initializer=_leave_interrupts)
    try:
        yield pool
    finally:
        pool.shutdown(kill_workers=True)


def _leave_interrupts() -> None:
    """Ignore Ctrl-C, which a terminal sends to every process of a group: the parent decides what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def results(
    pool: Executor, calls: Sequence[tuple[Any, ...]], stopping: Callable[[], bool]
) -> list[Any] | None:
    """Return what calls return, in order; None if told to stop before all have ended.

    Parameters
    ----------
    pool : Executor
        From `workers`.
    calls : sequence of tuples
        A function and its arguments.
    stopping : callable
        Asked at once, and every `POLL` seconds.

    Raises
    ------
    SolverError
        If a process ended by itself.
    """
    if stopping():
        return None
    try:
        futures = [pool.submit(*call) for call in calls]
        while wait(futures, timeout=POLL).not_done:
            if stopping():
                for future in futures:
                    future.cancel()
                return None
        return [future.result() for future in futures]
    except BrokenExecutor as error:
        # A signal may have reached the processes before this one was told.
        time.sleep(POLL)
        if stopping():
            return None
        raise SolverError(
            "A process that was to fit a model ended by itself, most likely for want of memory; use fewer threads "
            "(n_jobs) or fewer rows."
        ) from error
