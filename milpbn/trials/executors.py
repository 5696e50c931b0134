"""Where calls run: in this process one after the other, in threads, in processes, which can be killed, or by Dask."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from joblib.externals.loky import ProcessPoolExecutor

from milpbn.errors import InputError, SolverError
from milpbn.util import workers as processes
from milpbn.util.extras import import_extra
from milpbn.util.memory import LEAST, available_memory, limited, memory_limit

#: Seconds between two checks of whether to stop.
POLL_SECONDS = 0.05
#: Seconds after which a process without work ends.
IDLE_SECONDS = 60
#: What is said of a process that the operating system has ended, unless the caller says it better.
LOST = (
    "A process that fitted a model ended by itself, most likely because memory ran out; use fewer threads (n_jobs) or "
    "fewer rows."
)


@dataclass(frozen=True)
class Inline:
    """One call after the other, in this process."""

    #: Whether a call begins only when the one before has ended, so that its item may depend on that.
    in_turn: ClassVar[bool] = True

    @property
    def places(self) -> int:
        """How many calls may run at a time."""
        return 1

    @property
    def dask(self) -> object:
        """The client of the cluster on whose workers the calls run, for searches there; None on this machine."""
        return None

    def run(
        self, call: Callable[[Any], Any], items: Iterable[Any], stopping: Callable[[], bool]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each item with what the function returned, as calls end; no more of them once told to stop.

        A deque of items may get more of them while it is run; it is empty at the end.
        """
        waiting = queue(items)
        while waiting and not stopping():
            item = waiting.popleft()
            yield item, call(item)


@dataclass(frozen=True)
class Processes(Inline):
    """Calls in several processes, which are killed when told to stop.

    The function is pickled once for every process. Under a memory limit (`milpbn.util.memory`) the processes share what
    is left of it, and are as many as it has room for. `lost` is the error message if one ends by itself.
    """

    in_turn: ClassVar[bool] = False
    count: int
    lost: str = LOST

    @property
    def places(self) -> int:
        """How many calls may run at a time."""
        return self.count

    def run(
        self, call: Callable[[Any], Any], items: Iterable[Any], stopping: Callable[[], bool]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each item with what the function returned, as calls end; see `Inline`.

        Raise SolverError if a process ends by itself.
        """
        waiting, share = queue(items), None
        count = min(self.count, max(1, len(waiting)))
        if memory_limit() is not None:
            room = available_memory() or 0
            count = max(1, min(count, room // LEAST))
            share = max(LEAST, room // count)
        with workers(count, killable=True, prepare=_keep, arguments=(call, share)) as pool:
            yield from finished(
                pool, lambda item: (_call_kept, item), waiting, stopping, self.lost, most=count
            )


#: What a process keeps from its beginning: the function that it calls, and the memory limit, while the process lives.
_kept: tuple[Callable[[Any], Any], AbstractContextManager[None]]


def _keep(call: Callable[[Any], Any], most: int | None) -> None:
    """Prepare a process for calls of a function, which may take so many bytes."""
    global _kept
    processes.begin()
    _kept = call, limited(most)
    _kept[1].__enter__()


def _call_kept(item: Any) -> Any:
    return _kept[0](item)


@contextmanager
def spread(
    n_jobs: int,
    dask: object,
    *,
    workers: int | None = None,
    lost: str = LOST,
    prepare: Callable[[], object] | None = None,
) -> Iterator[Inline]:
    """Yield where calls run: in this process, in `n_jobs` processes, or on the workers of a Dask cluster.

    Parameters
    ----------
    workers : int or None
        Start so many Dask workers on this machine.
    dask : str, Client or None
        Address or file of a scheduler, or a client; None for this machine.
    lost : str
        As for `Processes`.
    prepare : callable, optional
        A function that each Dask worker calls before its first call. It need not be called here.

    Raises
    ------
    InputError
        If the cluster cannot be used, Dask is missing, or both a cluster and several processes are asked for.
    """
    if dask is None and workers is None:
        yield Inline() if n_jobs == 1 else Processes(n_jobs, lost)
        return
    if n_jobs != 1:
        raise InputError(
            "--n-jobs (n_jobs) starts processes on this machine, and --dask (dask) takes those of a cluster; leave out "
            "one of them."
        )
    import_extra("distributed", "dask", "Work on the workers of a cluster (--dask)")
    with import_module("milpbn.distributed.executor").workers_of(dask, workers, prepare) as found:
        yield found


@contextmanager
def workers(
    count: int,
    *,
    killable: bool,
    prepare: Callable[..., None] = processes.begin,
    arguments: tuple[Any, ...] = (),
) -> Iterator[Executor]:
    """Yield an executor with several workers.

    If they are `killable`, they are processes, which take a second or two to start, call `prepare` with the arguments,
    and are killed at the end. Else they are threads, which the end waits for; they are for short calls.
    """
    if not killable:
        with ThreadPoolExecutor(count) as pool:
            yield pool
        return
    pool = ProcessPoolExecutor(count, timeout=IDLE_SECONDS, initializer=prepare, initargs=arguments)
    try:
        yield pool
    finally:
        pool.shutdown(kill_workers=True)


def finished(
    pool: Executor,
    call_of: Callable[[Any], tuple[Any, ...]],
    items: Iterable[Any],
    stopping: Callable[[], bool],
    lost: str = LOST,
    *,
    when: str = FIRST_COMPLETED,
    most: float = math.inf,
) -> Iterator[tuple[Any, Any]]:
    """Yield each item and the result of its call as it ends, until told to stop.

    Parameters
    ----------
    call_of : callable
        Returns the function that an item stands for, and its arguments.
    items : iterable
        A deque may get more items meanwhile; it is empty at the end.
    stopping : callable
        Called at once and every `POLL_SECONDS`; True means stop.
    when : {FIRST_COMPLETED, ALL_COMPLETED}
        Whether a result is yielded when its call ends, or within `POLL_SECONDS`.
    most : float
        Number of calls at a time.

    Raises
    ------
    SolverError
        With the message `lost`, if a worker process ends by itself.
    """
    queued, running = queue(items), dict[Future[Any], Any]()
    try:
        while (queued or running) and not stopping():
            while queued and len(running) < most:
                item = queued.popleft()
                running[pool.submit(*call_of(item))] = item
            done, _ = wait(running, timeout=POLL_SECONDS, return_when=when)
            for future in [future for future in running if future in done]:
                yield running.pop(future), future.result()
    except BrokenExecutor as error:
        # A signal to the process group may kill the workers before `stopping` knows of it.
        time.sleep(POLL_SECONDS)
        if not stopping():
            raise SolverError(lost) from error
    finally:
        for future in running:
            future.cancel()


def queue(items: Iterable[Any]) -> deque[Any]:
    """Return a deque as it is, so that it may get more items, and others as a deque."""
    return items if isinstance(items, deque) else deque(items)


def results(
    pool: Executor, calls: Sequence[tuple[Any, ...]], stopping: Callable[[], bool]
) -> list[Any] | None:
    """Return the results of several calls, in order; None if told to stop before all calls have ended.

    The parameters and errors are those of `finished`.
    """
    found = dict(finished(pool, calls.__getitem__, range(len(calls)), stopping, when=ALL_COMPLETED))
    return [found[number] for number in range(len(calls))] if len(found) == len(calls) else None


def alone(call: tuple[Any, ...], stopping: Callable[[], bool], *, killable: bool) -> Any:
    """Return the result of one call, in a process if `killable`; None if told to stop before it has ended."""
    with workers(1, killable=killable) as pool:
        return (results(pool, [call], stopping) or [None])[0]
