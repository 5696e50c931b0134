"""Cells on Dask workers: the executor of the harness whose calls run on a cluster."""

from __future__ import annotations

import pickle
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from distributed import Client, KilledWorker, Worker, WorkerPlugin, as_completed, get_worker

from milpbn.errors import SolverError
from milpbn.trials.executors import POLL_SECONDS, Inline


class CallPlugin(WorkerPlugin):
    """The function that a worker calls for every item; workers that start later get it, too."""

    def __init__(self, name: str, call: bytes) -> None:
        self.name, self._pickled = name, call

    def setup(self, worker: Worker) -> None:
        """Read the function, with the data that belong to it."""
        self.call: Callable[[Any], Any] = pickle.loads(self._pickled)


def call_kept(name: str, item: Any) -> Any:
    """Call the kept function with an item, on a worker."""
    return cast(CallPlugin, get_worker().plugins[name]).call(item)


@dataclass(frozen=True)
class DaskWorkers(Inline):
    """Calls on the workers of a Dask cluster. A worker that dies loses only its calls, which others repeat.

    Calls that run when told to stop go on until they end; their results are not used.

    Attributes
    ----------
    client : Client
        A connection to the scheduler.
    """

    in_turn: ClassVar[bool] = False
    client: Client

    def run(
        self, call: Callable[[Any], Any], items: Iterable[Any], stopping: Callable[[], bool]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each item with what the function returned, as calls end; see `Inline`.

        Raises
        ------
        SolverError
            If several workers in turn died of one call, or the scheduler is gone.
        """
        name, listed = f"milpbn-calls-{uuid.uuid4().hex}", list(items)
        if not listed or stopping():
            return
        self.client.register_plugin(CallPlugin(name, pickle.dumps(call)), name=name)
        calls = {
            self.client.submit(call_kept, name, item, pure=False, key=f"{name}-{k}"): item
            for k, item in enumerate(listed)
        }
        done = as_completed(calls, with_results=True, raise_errors=False, loop=self.client.loop)
        try:
            while calls and not stopping():
                batch = done.next_batch(block=False)
                if not batch:
                    time.sleep(POLL_SECONDS)
                for future, result in batch:
                    if future.status == "finished":
                        yield calls.pop(future), result
                    else:
                        raise _error_of(result)
        finally:
            if self.client.status == "running":
                self.client.cancel(list(calls))
                self.client.unregister_worker_plugin(name)


def _error_of(result: Any) -> BaseException:
    """Return the error of a call that failed, in words if it is the cluster's."""
    error = result[1] if isinstance(result, tuple) else result
    if isinstance(error, KilledWorker):
        return SolverError(
            "Several Dask workers ended during the same call, most likely because memory ran out."
        )
    if isinstance(error, CancelledError) or not isinstance(error, BaseException):
        return SolverError("The Dask scheduler is lost; run again to go on, since finished cells are kept.")
    return error
