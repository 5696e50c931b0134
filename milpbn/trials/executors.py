"""Where calls run: in this process one after the other, in threads, or in processes, which can be killed."""

from __future__ import annotations

import time
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
from typing import Any, ClassVar

from joblib.externals.loky import ProcessPoolExecutor

from milpbn.errors import SolverError
from milpbn.util import workers as processes
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

    def run(
        self, call: Callable[[Any], Any], items: Iterable[Any], stopping: Callable[[], bool]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each item with what the function returned, as calls end; no more of them once told to stop."""
        for item in items:
            if stopping():
                return
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

    def run(
        self, call: Callable[[Any], Any], items: Iterable[Any], stopping: Callable[[], bool]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each item with what the function returned, as calls end; SolverError if a process ends by itself."""
        listed, share = list(items), None
        count = min(self.count, max(1, len(listed)))
        if memory_limit() is not None:
            room = available_memory() or 0
            count = max(1, min(count, room // LEAST))
            share = max(LEAST, room // count)
        with workers(count, killable=True, prepare=_keep, arguments=(call, share)) as pool:
            calls = [(_call_kept, item) for item in listed]
            for number, result in finished(pool, calls, stopping, self.lost):
                yield listed[number], result


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
    calls: Sequence[tuple[Any, ...]],
    stopping: Callable[[], bool],
    lost: str = LOST,
    *,
    when: str = FIRST_COMPLETED,
) -> Iterator[tuple[int, Any]]:
    """Yield the number of each call and its result as it ends, until told to stop.

    Parameters
    ----------
    calls : sequence of tuples
        For each call the function and its arguments.
    stopping : callable
        Called at once and every `POLL_SECONDS`; True means stop.
    when : {FIRST_COMPLETED, ALL_COMPLETED}
        Whether a result is yielded when its call ends, or within `POLL_SECONDS`.

    Raises
    ------
    SolverError
        With the message `lost`, if a worker process ends by itself.
    """
    if stopping():
        return
    waiting: dict[Future[Any], int] = {}
    try:
        waiting = {pool.submit(*call): number for number, call in enumerate(calls)}
        while waiting:
            done, _ = wait(waiting, timeout=POLL_SECONDS, return_when=when)
            for future in sorted(done, key=waiting.__getitem__):
                yield waiting.pop(future), future.result()
            if waiting and stopping():
                return
    except BrokenExecutor as error:
        # A signal to the process group may kill the workers before `stopping` knows of it.
        time.sleep(POLL_SECONDS)
        if not stopping():
            raise SolverError(lost) from error
    finally:
        for future in waiting:
            future.cancel()


def results(
    pool: Executor, calls: Sequence[tuple[Any, ...]], stopping: Callable[[], bool]
) -> list[Any] | None:
    """Return the results of several calls, in order; None if told to stop before all calls have ended.

    The parameters and errors are those of `finished`.
    """
    found = dict(finished(pool, calls, stopping, when=ALL_COMPLETED))
    return [found[number] for number in range(len(calls))] if len(found) == len(calls) else None


def alone(call: tuple[Any, ...], stopping: Callable[[], bool], *, killable: bool) -> Any:
    """Return the result of one call, in a process if `killable`; None if told to stop before it has ended."""
    with workers(1, killable=killable) as pool:
        return (results(pool, [call], stopping) or [None])[0]
