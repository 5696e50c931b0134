"""Calls on Dask workers, which the harness uses for cells: they lose nothing if workers die.

A worker gets the function, with the data that belong to it, once, and then only items. Data that are scattered would be
gone for ever with the workers that hold them.
"""

from __future__ import annotations

import multiprocessing
import pickle
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, cast

from distributed import Client, Future, KilledWorker, Worker, WorkerPlugin, as_completed, get_worker

from milpbn.distributed.clusters import check_cluster, connected, local_workers
from milpbn.distributed.dispatcher import LostError
from milpbn.distributed.worker import register
from milpbn.errors import MilpbnWarning, SolverError, warn
from milpbn.trials.executors import POLL_SECONDS, Inline, queue
from milpbn.util import interrupts
from milpbn.util.threads import library_threads, threads_used

#: Calls that a thread of a worker has at a time: one that runs, and one that waits, so that it never waits itself.
CALLS = 2
#: Seconds between two looks at the list of workers, and after which a cluster without any is named.
COUNT_SECONDS, ALONE_SECONDS = 1.0, 5.0
#: How often a call is sent whose workers died; Dask tries it on four workers each time.
SENT = 2


class Returned(NamedTuple):
    """What a call returned, told apart from Dask's own ways to say that it failed."""

    value: Any


class CallPlugin(WorkerPlugin):
    """The function that a worker calls for every item; Dask sets it up on workers that start later, too.

    `call` is the function, pickled with one that is called before its first call, or with None. So many calls are
    `running`; once it is `stopped`, none begins.
    """

    def __init__(self, name: str, call: bytes) -> None:
        self.name, self._pickled, self.running, self.stopped = name, call, 0, False

    def setup(self, worker: Worker) -> None:
        """Let calls start processes of their own, which Dask's nannies forbid by default."""
        multiprocessing.current_process().daemon = False

    def teardown(self, worker: Worker) -> None:
        """Stop at the end of a run: no call begins, and one that runs is told, unless others may run beside it."""
        self.stopped = True
        if self.running and worker.state.nthreads == 1:
            interrupts.note()

    @cached_property
    def _function(self) -> Callable[[Any], Any]:
        call, prepare = pickle.loads(self._pickled)
        if prepare is not None:
            prepare()
        return cast(Callable[[Any], Any], call)

    def call(self, item: Any) -> Any:
        """Call the function, with one thread; return None if told to stop, as all calls of this process are."""
        with threads_used(1), library_threads(1), interrupts.deferred():
            self.running += 1
            try:
                return None if self.stopped else self._function(item)
            except KeyboardInterrupt:  # would end the worker
                return None
            finally:
                self.running -= 1


def call_kept(name: str, item: Any) -> Returned:
    """Call the function with an item, on a worker."""
    return Returned(cast(CallPlugin, get_worker().plugins[name]).call(item))


@contextmanager
def workers_of(
    dask: object, workers: int | None = None, prepare: Callable[[], object] | None = None
) -> Iterator[DaskWorkers]:
    """Yield the workers of a cluster (address or file of its scheduler, or a client, which stays open), or new ones."""
    if not isinstance(dask, str):
        check_cluster(dask)
    if workers is None:
        with connected(dask) as client:
            yield DaskWorkers(client, prepare)
    else:
        with local_workers(workers) as here:
            here.wait()
            yield DaskWorkers(here.client, prepare, here.check)


@dataclass(frozen=True)
class DaskWorkers(Inline):
    """Calls on the workers of a Dask cluster, as many as it has at any time, each with one thread.

    A worker that dies loses only its calls, which others repeat. A stop also reaches the calls that run then, and their
    results are not used. Each worker calls the function `prepare` before its first call. `check` raises LostError if
    there will be no workers any more.
    """

    in_turn: ClassVar[bool] = False
    client: Client
    prepare: Callable[[], object] | None = None
    check: Callable[[], None] = lambda: None

    @property
    def dask(self) -> Client:
        """The client."""
        return self.client

    @property
    def places(self) -> int:
        """Number of threads of all workers; SolverError if the scheduler is gone."""
        try:
            known = self.client.scheduler_info(n_workers=-1)["workers"]
        except OSError as error:
            raise _lost(error) from error
        return sum(worker["nthreads"] for worker in known.values())

    def run(
        self, call: Callable[[Any], Any], items: Iterable[Any], stopping: Callable[[], bool]
    ) -> Iterator[tuple[Any, Any]]:
        """Do the same as `Inline`.

        Raise SolverError if many workers in turn died of one call, or if the scheduler or all workers are gone.
        """
        waiting = queue(items)
        if not waiting or stopping():
            return
        name = f"milpbn-calls-{uuid.uuid4().hex}"
        calls: dict[Future, tuple[Any, int]] = {}
        try:
            try:
                register(self.client, CallPlugin(name, pickle.dumps((call, self.prepare))), name)
            except OSError as error:
                raise _lost(error) from error
            yield from self._run(name, waiting, calls, stopping)
        finally:
            if self.client.status == "running":
                with suppress(OSError):  # the scheduler may be lost at any moment
                    self.client.cancel(list(calls))
                    self.client.unregister_worker_plugin(name)

    def _run(
        self,
        name: str,
        waiting: deque[Any],
        calls: dict[Future, tuple[Any, int]],
        stopping: Callable[[], bool],
    ) -> Iterator[tuple[Any, Any]]:
        """Send items as workers have room for them, and yield what comes back.

        `calls` has the items that are sent, and how often their workers have died.
        """
        done = as_completed(with_results=True, raise_errors=False, loop=self.client.loop)
        room, counted, alone, told = 0, float("-inf"), time.monotonic(), False

        def send(item: Any, died: int = 0) -> None:
            future = self.client.submit(call_kept, name, item, pure=False)
            calls[future] = item, died
            done.add(future)

        while (waiting or calls) and not stopping():
            if self.client.status != "running":
                raise _lost("its connection is closed")
            if time.monotonic() > counted + COUNT_SECONDS:
                try:
                    self.check()
                except LostError as error:
                    raise SolverError(f"{error}. What is finished is kept.") from None
                threads, counted = self.places, time.monotonic()
                room = CALLS * max(1, threads)
                alone = counted if threads else alone
                if counted > alone + ALONE_SECONDS and not told:
                    warn("The Dask cluster has no workers; waiting for the first of them.", MilpbnWarning)
                    told = True
            while waiting and len(calls) < room:
                send(waiting.popleft())
            batch = done.next_batch(block=False)
            if not batch:
                time.sleep(POLL_SECONDS)
            for future, result in batch:
                item, died = calls.pop(future)
                # Not by the future's status: if the worker that kept a result dies once we have it, that is "lost".
                if isinstance(result, Returned):
                    yield item, result.value
                    continue
                failure = result[1] if isinstance(result, tuple) else result
                if not isinstance(failure, KilledWorker) or died + 1 == SENT:
                    raise _error_of(failure, item)
                send(item, died + 1)


def _error_of(error: object, item: object) -> BaseException:
    """Return the error of a call that failed, in words if it is the cluster's."""
    if isinstance(error, KilledWorker):
        return SolverError(
            f"Dask workers ended one after the other in the same piece of work ({item}), most likely because memory "
            "ran out; give the workers more memory. What is finished is kept."
        )
    if isinstance(error, CancelledError) or not isinstance(error, BaseException):
        return _lost(error)
    return error


def _lost(why: object) -> SolverError:
    return SolverError(
        f"The Dask scheduler is lost ({why}); start it again and repeat the command. What is finished is kept."
    )
