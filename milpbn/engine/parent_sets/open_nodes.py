"""The nodes of a tree that are open, and those that threads expand at the moment."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.multiplier_proof import ProofStep
from milpbn.engine.parent_sets.rows import Row

#: Seconds after which a thread without a node looks at the budget again.
WAIT = 0.05


@dataclass(eq=False)
class SearchNode:
    """A subproblem: allowed parent sets, an order relation, and a lower bound on the costs of its structures."""

    #: The bound, in nats.
    bound: float
    #: The allowed parent sets as bits.
    allowed: NDArray[np.uint8]
    #: What comes before each variable. Shape (V, W).
    before: NDArray[np.uint64]
    depth: int = 0
    #: The basis of the parent's linear program, its rows and its columns.
    basis: tuple[Any, list[Row], NDArray[np.int64]] | None = field(default=None, repr=False)
    #: If a certificate is wanted: the node's number there, and the multipliers of a bound that is not recorded yet.
    number: int = 0
    step: ProofStep | None = field(default=None, repr=False)
    #: The parent sets of a structure in it that was offered, without which it is searched on. Shape (V,), or None.
    found: NDArray[np.int64] | None = field(default=None, repr=False)
    #: The thread whose linear program the basis is of.
    thread: int = 0


class OpenNodes:
    """All open nodes of a search by one or more threads. Whoever calls a method, or reads several facts, has the lock.

    Attributes
    ----------
    lock : Condition
        Wakes the threads that wait for a node.
    count : int
        Number of nodes that were taken so far.
    left : float
        The smallest bound of a node that was closed although it may hold structures.
    finished : bool
        Whether no node is open.
    failed : bool
        Whether a thread has ended by an exception.
    """

    def __init__(self) -> None:
        self.lock = threading.Condition(threading.RLock())
        self.count, self.left = 0, np.inf
        self.finished = self.failed = False
        self._heap: list[tuple[float, int, SearchNode]] = []
        self._stored = 0
        # The node with which each thread goes on; nothing changes it, the thread works on a copy.
        self._own: dict[int, SearchNode] = {}

    @property
    def bound(self) -> float:
        """A lower bound on the costs of all wanted structures that were not found."""
        own = [node.bound for node in self._own.values()]
        return min([self.left, *own, *(bound for bound, _, _ in self._heap[:1])])

    def nodes(self) -> list[SearchNode]:
        """Return the open nodes, which do not change any more."""
        return [*self._own.values(), *(node for _, _, node in self._heap)]

    def close(self, bound: float) -> None:
        """Note that a node with this bound is closed although it may hold structures."""
        with self.lock:
            self.left = min(self.left, bound)

    def store(self, node: SearchNode) -> None:
        """Keep an open node for later."""
        self._stored += 1
        heapq.heappush(self._heap, (node.bound, self._stored, node))

    def go_on(self, thread: int, children: list[SearchNode]) -> None:
        """Replace a thread's node by its children; the thread goes on with the first one."""
        self._own.pop(thread, None)
        for other in children[1:]:
            self.store(other)
        if children:
            self._own[thread] = children[0]
        self.lock.notify_all()

    def take(
        self, thread: int, pruned: Callable[[float], bool], stopping: Callable[[], bool]
    ) -> tuple[SearchNode | None, bool]:
        """Return the thread's node, or else the one of the smallest bound, and whether it was that.

        None when no node is open, or `stopping` returns true. While other threads have nodes, it waits for theirs.
        """
        while not stopping():
            if thread in self._own:
                self.count += 1
                return self._own[thread], False
            if self._heap:
                bound, _, node = heapq.heappop(self._heap)
                if not pruned(bound):
                    self._own[thread] = node
                    self.count += 1
                    return node, True
                self._heap.clear()
            if not self._own:
                self.finished = True
                self.lock.notify_all()
                break
            self.lock.wait(WAIT)
        return None, False
