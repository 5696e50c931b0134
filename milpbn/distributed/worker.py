"""What happens on a Dask worker: it keeps the context of a search, and searches below the nodes that it is sent.

The functions are plain functions of this module, so that workers import them instead of unpickling them.
"""

from __future__ import annotations

import pickle
import time
from typing import Any, cast

import distributed

from milpbn.engine.tree.bounding import Context, Worker
from milpbn.engine.tree.subtree import FoundStructures, SubtreeResult, SubtreeTask, search_subtree
from milpbn.util.budget import Budget
from milpbn.version import __version__


class SearchPlugin(distributed.WorkerPlugin):
    """What a worker keeps of one search. Dask sets it up on all workers, and on those that start later.

    Data that are scattered would be gone for ever with the workers that hold them.

    Parameters
    ----------
    name : str
        Name of the search.
    context : bytes
        The pickled `Context`.

    Attributes
    ----------
    stopped : bool
        Whether to stop at once.
    cutoff : float
        The cutoff that the calling process has told last, in nats.
    """

    def __init__(self, name: str, context: bytes) -> None:
        self.name, self.stopped, self.cutoff = name, False, float("-inf")
        self._pickled: bytes | None = context
        self._hurried = 0.0
        self._climbed: set[bytes] = set()

    def setup(self, worker: distributed.Worker) -> None:
        """Read the context."""
        assert self._pickled is not None
        self.context: Context = pickle.loads(self._pickled)
        self._pickled = None

    def search(self, task: SubtreeTask) -> SubtreeResult:
        """Search below nodes until the time of the task is over, or until told to hurry or to stop."""
        begun = time.monotonic()
        budget = Budget(cancelled=lambda: self.stopped)
        found = FoundStructures(self.context, task, budget, shared=lambda: self.cutoff, climbed=self._climbed)
        ends = Budget(task.seconds, cancelled=lambda: self._hurried > begun)
        return search_subtree(Worker(self.context, found, budget), task, ends)

    def hurry(self) -> None:
        """Return the results of the parts that are searched now as soon as possible."""
        self._hurried = time.monotonic()


def search_part(name: str, number: int, task: bytes) -> bytes:
    """Search below nodes on this worker; tell the search at the beginning which part it is.

    Task and result are pickled here and in the dispatcher: Dask would take several times as long, in the thread that
    receives everything.
    """
    worker = distributed.get_worker()
    worker.log_event(name, (number, worker.address))
    return pickle.dumps(cast(SearchPlugin, worker.plugins[name]).search(pickle.loads(task)))


async def tell(name: str, what: dict[str, Any], dask_worker: distributed.Worker) -> None:
    """Set attributes of a search on this worker; ``hurry`` calls the method. Dask waits for no coroutine."""
    plugin = cast(SearchPlugin | None, dask_worker.plugins.get(name))
    if plugin is None:
        return
    for attribute, value in what.items():
        if attribute == "hurry":
            plugin.hurry()
        else:
            setattr(plugin, attribute, value)


def installed_version() -> str:
    """Return the version of milpbn on this worker."""
    return __version__
