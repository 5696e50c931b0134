"""Workers for calls of libraries without time limits and interrupts; worker processes can be killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor

from milpbn.errors import SolverError
from milpbn.util.workers import begin

#: Seconds between two checks of whether to stop.
POLL_SECONDS = 0.05
#: Seconds after which a process without work ends.
IDLE_SECONDS = 60


@contextmanager
def workers(count: int, *, killable: bool) -> Iterator[Executor]:
    """Yield an executor with several workers.

    Parameters
    ----------
    count : int
        Number of workers.
    killable : bool
        True: the workers are processes, which take a second or two to start and are killed at the end.
        False: the workers are threads, which the end waits for; they are for short calls.
    """
    if not killable:
        with ThreadPoolExecutor(count) as pool:
            yield pool
        return
    pool = ProcessPoolExecutor(count, timeout=IDLE_SECONDS, initializer=begin)
    try:
        yield pool
    finally:
        pool.shutdown(kill_workers=True)


def results(
    pool: Executor, calls: Sequence[tuple[Any, ...]], stopping: Callable[[], bool]
) -> list[Any] | None:
    """Return the results of several calls, in order; None if told to stop before all calls have ended.

    Parameters
    ----------
    pool : Executor
        An executor from `workers`.
    calls : sequence of tuples
        For each call the function and its arguments.
    stopping : callable
        Called at once and every `POLL_SECONDS`; True means stop.

    Raises
    ------
    SolverError
        If a worker process dies.
    """
    if stopping():
        return None
    try:
        futures = [pool.submit(*call) for call in calls]
        while wait(futures, timeout=POLL_SECONDS).not_done:
            if stopping():
                for future in futures:
                    future.cancel()
                return None
        return [future.result() for future in futures]
    except BrokenExecutor as error:
        # A signal to the process group may kill the workers before `stopping` knows of it.
        time.sleep(POLL_SECONDS)
        if stopping():
            return None
        raise SolverError(
            "A process that fitted a model ended by itself, most likely because memory ran out; use fewer threads "
            "(n_jobs) or fewer rows."
        ) from error
