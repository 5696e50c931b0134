"""A dispatcher that has parts of a tree searched by Dask workers.

The calling process owns frontier, incumbent, pseudo-costs, proof and checkpoint. A worker gets a part: some of the
nodes with the largest bounds, below which it searches for some seconds. It gives back the nodes that it closed, with
their dual weights, and those that are open. The calling process records them in its proof, which a certificate has.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import shlex
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from distributed import Client, Future, KilledWorker, as_completed

from milpbn.distributed.worker import SearchPlugin, register, search_part, tell
from milpbn.engine.tree.dispatch import ThreadDispatcher, TreeSearch
from milpbn.engine.tree.subtree import SubtreeResult, SubtreeTask
from milpbn.errors import InputError, MilpbnWarning, SolverError, warn
from milpbn.util import stages
from milpbn.util.atomic import atomic_path

#: Parts that a worker has at a time: one that it searches, and one that waits, so that it never waits for the network.
PARTS = 2
#: Seconds that a part takes while the frontier is small, so that it grows soon, and later.
FIRST_SECONDS, MOST_SECONDS = 0.25, 10.0
#: Seconds that a part takes at least, for each worker.
SECONDS_A_WORKER = 0.02
#: Largest number of nodes of a part.
MOST_NODES = 500
#: Seconds to wait for a result at most, and between two messages of one kind, and looks at the list of workers.
LOOK_SECONDS, MESSAGE_SECONDS, COUNT_SECONDS = 0.1, 0.5, 1.0
#: Seconds that workers have to give back their parts after a stop; what comes later is searched again.
STOP_SECONDS = 3.0
#: Share of the time that this process may spend on climbs from near the incumbent.
CLIMB_SHARE = 0.1
#: How often a part may be lost with its worker before its time is halved, and before the search gives up.
HALVED, GIVEN_UP = 2, 3


class SentPart(NamedTuple):
    """A part that was sent to the cluster."""

    #: Number of the sending.
    number: int
    #: The nodes.
    task: SubtreeTask
    #: How often it had been lost with its worker before it was sent.
    lost: int = 0


def part_size(n_open: int, workers: int, rate: float) -> tuple[int, float, float]:
    """Return the largest number of nodes of a part, and the most and the least seconds to search below them.

    While few nodes are open, parts are short, because their results are the nodes for the other workers. The least time
    grows with the number of workers that get a part: the calling process can take back some fifty parts a second. A
    part has only as many nodes as a worker closes in the least time, so that all nodes come in about the order of
    best-bound search.

    Parameters
    ----------
    n_open : int
        Number of open nodes.
    workers : int
        Number of threads of all workers.
    rate : float
        Nodes that a worker closes in a second.
    """
    slots = PARTS * max(1, workers)
    least = max(FIRST_SECONDS, SECONDS_A_WORKER * min(workers, n_open))
    most = min(math.ceil(rate * least), n_open // (2 * slots), MOST_NODES)
    return max(1, most), min(MOST_SECONDS + least, least * max(1.0, n_open / slots)), least


class LostError(Exception):
    """All workers are lost, and with them all parts. The text is a clause."""


class DaskDispatcher:
    """Has parts of a tree searched by the workers of a Dask cluster, as many as it has at any time.

    Parameters
    ----------
    client : Client
        A connection to the scheduler.
    threads : int
        Number of threads of this process that go on if the workers are lost.
    beside : path or None
        A file of the run; one about a part that is lost for good is written beside it.
    share : int or None
        Bytes that a worker may have in memory, if there is such a limit.
    check : callable
        Raises LostError if there will be no workers any more.
    """

    def __init__(
        self,
        client: Client,
        threads: int = 1,
        *,
        beside: str | os.PathLike[str] | None = None,
        share: int | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.client, self._threads = client, threads
        self._beside, self._share, self._check = beside, share, check
        self._name = f"milpbn-{uuid.uuid4().hex}"
        self._out: dict[Future, SentPart] = {}
        self._starts: Counter[int] = Counter()
        self._next_number = 0
        self._workers = 0
        #: The most threads of all workers at any time; see `Dispatcher`.
        self.workers: int | None = 0
        #: `time.monotonic` values of what was done last: counting, hurrying, telling the cutoff.
        self._last: dict[str, float] = {}
        self._began, self._climbed = time.monotonic(), 0.0
        #: Nodes closed so far, and the seconds of workers that this took.
        self._closed, self._busy = 0, 0.0
        self._cutoff = float("-inf")
        self._stopped: float | None = None

    def run(self, search: TreeSearch) -> None:
        """Have nodes searched below until the search hands out no more; see `Dispatcher`."""
        try:
            self._begin(search)
            self._search(search)
        except Exception as error:
            self._reopen(search)
            # Dask's own functions fail in many ways if the connection is lost meanwhile.
            if not isinstance(error, LostError | OSError) and self.client.status == "running":
                search.fail(None, error)
            elif not search.budget.over():
                why = error if isinstance(error, LostError) else f"The Dask scheduler is lost ({error})"
                warn(f"{why}; the search goes on in this process.", MilpbnWarning)
                ThreadDispatcher(self._threads).run(search)
        except BaseException as error:
            self._reopen(search)
            search.fail(None, error)
        finally:
            self._end()

    def _begin(self, search: TreeSearch) -> None:
        plugin = SearchPlugin(self._name, pickle.dumps(search.context), self._share)
        register(self.client, plugin, self._name)
        self.client.subscribe_topic(self._name, lambda event: self._starts.update([event[1][0]]))
        self._done = as_completed(with_results=True, raise_errors=False, loop=self.client.loop)
        self._cutoff = search.cutoff

    def _end(self) -> None:
        if self.client.status == "running":
            # The scheduler may be lost at any moment; and then `_begin` may not have come to its end.
            with suppress(OSError, ValueError):
                self.client.unregister_worker_plugin(self._name)
                self.client.unsubscribe_topic(self._name)

    def _search(self, search: TreeSearch) -> None:
        while True:
            self._check_cluster()
            self._hand_out(search)
            if not self._out:
                return
            self._tell_news(search)
            if self._stopped is not None and time.monotonic() > self._stopped + STOP_SECONDS:
                self._reopen(search)
                return
            batch = self._done.next_batch(block=False)
            for future, result in batch:
                self._take(search, future, result)
            if not batch:
                self._idle(search)
            self._give_again(search)

    def _idle(self, search: TreeSearch) -> None:
        """Climb while no worker needs anything, or wait for the next result for a moment."""
        now = time.monotonic()
        if self._stopped is None and self._climbed < CLIMB_SHARE * (now - self._began):
            search.climb()
            self._climbed += time.monotonic() - now
        with self._done.thread_condition:
            if not self._done.has_ready():
                self._done.thread_condition.wait(LOOK_SECONDS)

    @property
    def _rate(self) -> float:
        return (1 + self._closed) / (1.0 + self._busy)

    def _due(self, what: str, seconds: float) -> bool:
        """Return whether so many seconds have passed since this was true for the same words."""
        now = time.monotonic()
        if now < self._last.get(what, -seconds) + seconds:
            return False
        self._last[what] = now
        return True

    def _check_cluster(self) -> None:
        """Count the workers; raise `LostError` if the scheduler or all workers are gone."""
        if self.client.status != "running":
            raise LostError("The Dask scheduler is lost (its connection is closed)")
        if self._due("count", COUNT_SECONDS):
            self._check()
            known = self.client.scheduler_info(n_workers=-1)["workers"]
            self._workers = sum(worker["nthreads"] for worker in known.values())
            self.workers = max(self.workers or 0, self._workers)
            stages.enter(f"branch and bound, workers: {self._workers}, parts: {len(self._out)}")

    def _hand_out(self, search: TreeSearch) -> None:
        """Send nodes away until all workers have enough."""
        slots = PARTS * max(1, self._workers)
        while len(self._out) < slots:
            task = search.hand_out_subtree(*part_size(search.n_open, self._workers, self._rate))
            if task is None:
                return
            self._send(search, task)

    def _send(self, search: TreeSearch, task: SubtreeTask, lost: int = 0) -> None:
        self._next_number += 1
        part = SentPart(self._next_number, task, lost)
        try:
            future = self.client.submit(
                search_part, self._name, part.number, pickle.dumps(part.task), pure=False
            )
        except BaseException:  # the connection may be lost at any moment
            search.take_back_subtree(task, None)
            raise
        self._out[future] = part
        self._done.add(future)

    def _tell_news(self, search: TreeSearch) -> None:
        """Tell the workers a larger cutoff, that others have nothing to do, or that the search stops."""
        what: dict[str, float | bool] = {}
        if self._stopped is None and search.budget.over():
            self._stopped = time.monotonic()
            what["stopped"] = True
        if search.cutoff > self._cutoff and self._due("cutoff", MESSAGE_SECONDS):
            self._cutoff = what["cutoff"] = search.cutoff
        if len(self._out) < self._workers and self._stopped is None and self._due("hurry", MESSAGE_SECONDS):
            what["hurry"] = True
        if what:
            self.client.run(tell, self._name, what, wait=False, on_error="ignore")

    def _take(self, search: TreeSearch, future: Future, result: object) -> None:
        """Take back what a worker found, or what went wrong."""
        part = self._out.pop(future, None)
        if part is None:
            return  # a part that came twice
        if isinstance(result, bytes):
            found: SubtreeResult = pickle.loads(result)
            search.take_back_subtree(part.task, found)
            self._closed += found.n_closed
            self._busy += found.seconds
            self._starts.pop(part.number, None)
            return
        error = result[1] if isinstance(result, tuple) else result
        if isinstance(error, CancelledError):
            search.take_back_subtree(part.task, None)
            raise LostError("The Dask scheduler is lost (it forgot what it was asked for)")
        if isinstance(error, KilledWorker):
            # Dask also counts workers that ended before they had begun the part.
            self._again(search, part, part.lost + self._starts[part.number])
            return
        search.take_back_subtree(part.task, None)
        raise error if isinstance(error, BaseException) else SolverError(f"A worker failed: {error}")

    def _give_again(self, search: TreeSearch) -> None:
        """Halve the time of parts that were lost with their workers more than once, which Dask gives to others."""
        for future, part in list(self._out.items()):
            lost = part.lost + max(0, self._starts[part.number] - 1)
            if lost >= HALVED and lost > part.lost:
                del self._out[future]
                future.cancel()
                self._again(search, part, lost)

    def _again(self, search: TreeSearch, part: SentPart, lost: int) -> None:
        """Send a part once more, with half the time; raise SolverError if it was lost too often."""
        if lost >= GIVEN_UP:
            search.take_back_subtree(part.task, None)
            raise SolverError(
                f"{GIVEN_UP} workers ended while they searched below the nodes "
                f"{', '.join(str(node.number) for node in part.task.nodes)}, most likely because memory ran out; "
                f"these nodes stay open in the checkpoint, if there is one. {self._kept(search, part)}Give the workers "
                "more memory, or go on without them."
            )
        self._send(search, part.task._replace(seconds=part.task.seconds / 2), lost)

    def _kept(self, search: TreeSearch, part: SentPart) -> str:
        """Write a part that is lost for good to a file, and return a sentence that says how to search it alone."""
        if self._beside is None:
            return ""
        path = Path(f"{os.fspath(self._beside)}.part")
        try:
            with atomic_path(path) as temporary:
                temporary.write_bytes(pickle.dumps((search.context, part.task)))
        except InputError as error:
            return f"{error} "
        name = json.dumps(str(path), ensure_ascii=False)
        call = f"from milpbn.distributed.worker import search_file; print(search_file({name}))"
        return f"To see what they need, search them alone: python -c {shlex.quote(call)}. "

    def _reopen(self, search: TreeSearch) -> None:
        """Open the nodes of all parts again that were not given back."""
        for future, part in self._out.items():
            search.take_back_subtree(part.task, None)
            if self.client.status == "running":
                future.cancel()
        self._out.clear()
