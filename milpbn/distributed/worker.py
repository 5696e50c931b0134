"""What happens on a Dask worker: it keeps the context of a search, and searches below the nodes that it is sent.

The functions are plain functions of this module, so that workers import them instead of unpickling them.
"""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path
from typing import Any, cast

import distributed
import psutil

from milpbn.engine.tree.bounding import Context, Worker
from milpbn.engine.tree.subtree import FoundStructures, SubtreeResult, SubtreeTask, search_subtree
from milpbn.util.budget import Budget
from milpbn.util.memory import Growth, format_bytes, peak_memory
from milpbn.version import __version__

#: How often a plugin is sent to the workers, if one of them dies meanwhile.
REGISTERED = 5
#: Seconds before the end of its lifetime at which a worker gives back what it searches.
LEAVES_BEFORE = 1.0


class SearchPlugin(distributed.WorkerPlugin):
    """What a worker keeps of one search. Dask sets it up on all workers, and on those that start later.

    Data that are scattered would be gone for ever with the workers that hold them.

    Parameters
    ----------
    name : str
        Name of the search.
    context : bytes
        The pickled `Context`.
    share : int or None
        Bytes that the process may have in memory; None for the half of what is free on its machine.

    Attributes
    ----------
    stopped : bool
        Whether to stop at once.
    cutoff : float
        The cutoff that the calling process has told last, in nats.
    """

    def __init__(self, name: str, context: bytes, share: int | None = None) -> None:
        self.name, self.stopped, self.cutoff, self._share = name, False, float("-inf"), share
        self._pickled: bytes | None = context
        self._hurried = 0.0
        self._climbed: set[bytes] = set()

    def setup(self, worker: distributed.Worker) -> None:
        """Read the context."""
        # Dask's own clock begins some moments after the process.
        self._leaves = psutil.Process().create_time() + worker.lifetime if worker.lifetime else float("inf")
        assert self._pickled is not None
        self.context: Context = pickle.loads(self._pickled)
        self._pickled = None

    def search(self, task: SubtreeTask) -> SubtreeResult:
        """Search below nodes until the time of the task is over, or until told to hurry or to stop.

        It ends early where memory is short, and before the lifetime of the worker is over (``dask worker --lifetime``).
        """
        begun, growth = time.monotonic(), Growth(self._share)
        seconds = min(task.seconds, self._leaves - LEAVES_BEFORE - time.time())
        budget = Budget(cancelled=lambda: self.stopped)
        found = FoundStructures(self.context, task, budget, shared=lambda: self.cutoff, climbed=self._climbed)
        ends = Budget(seconds, cancelled=lambda: self._hurried > begun or growth.over())
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


def register(client: distributed.Client, plugin: distributed.WorkerPlugin, name: str) -> None:
    """Send a plugin to all workers; again if one of them dies meanwhile. OSError if the scheduler is lost."""
    for left in reversed(range(REGISTERED)):
        try:
            client.register_plugin(plugin, name=name)
            return
        except OSError:
            if not left or client.status != "running":
                raise


def search_file(path: str | os.PathLike[str]) -> str:
    """Search a lost part alone, in this process, and return in a sentence what it took.

    The file is a pickle, which executes code when it is read: it must be one's own.
    """
    context, task = pickle.loads(Path(path).read_bytes())
    budget = Budget()
    found = search_subtree(
        Worker(context, FoundStructures(context, task, budget), budget), task, Budget(task.seconds)
    )
    peak = peak_memory()
    memory = "unknown" if peak is None else format_bytes(peak)
    nodes = f"{found.n_children} new nodes in {found.seconds:.1f} s, {len(found.open_nodes)} left open"
    return f"{nodes}, peak memory {memory}."


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
