"""The frontier of a tree search: the nodes that are not branched on, and which comes next.

The best bound comes first, with dives among nodes of nearly the same bound.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.tree.node import Node
from milpbn.engine.tuning import TUNING
from milpbn.util.saved_arrays import SavedArrays, number

#: The heaps are rebuilt when they have more items than this plus four per open node: items of nodes that are no longer
#: open stay in them.
STALE_ITEMS = 1000


class Frontier:
    """The open nodes. The best bound comes first, among nearly equal bounds the newest node, of two siblings the first.

    A node that was taken is being expanded. It counts in the bound until it is closed, and can be opened again.

    If many nodes have the bound of the root, for example because every sample could reach gamma, best-bound search
    alone would visit the tree level by level and reach no structure for a long time. This order dives instead.
    """

    def __init__(self) -> None:
        # By number, in the order of their arrival.
        self._open: dict[int, Node] = {}
        self._taken: dict[int, Node] = {}
        # Heaps with the numbers of nodes. Nodes that are no longer open stay until they reach the top or are too many.
        self._next: list[tuple[float, int, int]] = []
        self._bounds: list[tuple[float, int]] = []
        self._top, self._step = math.inf, 0.0
        #: Bytes of the open nodes.
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._open)

    @property
    def n_taken(self) -> int:
        """Number of nodes that are being expanded."""
        return len(self._taken)

    def push(self, node: Node) -> None:
        """Add a node."""
        self._open[node.number] = node
        heapq.heappush(self._next, self._item(node))
        heapq.heappush(self._bounds, (-node.bound, node.number))
        if len(self._next) + len(self._bounds) > STALE_ITEMS + 4 * len(self._open):
            self._rebuild()
        self.nbytes += node.nbytes

    def take(self, newest: bool = False) -> Node:
        """Return the node to branch on next, or the newest one, which keeps open nodes few."""
        number = next(reversed(self._open)) if newest else heapq.heappop(self._next)[2]
        while number not in self._open:
            number = heapq.heappop(self._next)[2]
        node = self._open.pop(number)
        self.nbytes -= node.nbytes
        self._taken[number] = node
        return node

    def close(self, node: Node) -> None:
        """Remove a taken node, which is branched on or pruned."""
        del self._taken[node.number]

    def reopen(self, node: Node) -> None:
        """Open a taken node again."""
        self._taken.pop(node.number, None)
        self.push(node)

    def bound(self) -> float:
        """Return the largest bound of all open and taken nodes, -inf if there are none."""
        return max([self.open_bound(), *(node.bound for node in self._taken.values())])

    @property
    def step(self) -> float:
        """Difference of two bounds that count as nearly equal."""
        return self._step

    def open_bound(self) -> float:
        """Return the largest bound of the open nodes, -inf if there are none."""
        while self._bounds and self._bounds[0][1] not in self._open:
            heapq.heappop(self._bounds)
        return -self._bounds[0][0] if self._bounds else -math.inf

    def update(self, bound: float, incumbent: float) -> None:
        """Take the bound on all structures and the incumbent; their distance says which bounds are nearly the same."""
        step = TUNING.tree.bound_step * max(0.0, bound - incumbent)
        if not 0.5 * self._step < step < 2 * self._step or abs(bound - self._top) > 0.5 * step:
            self._top, self._step = bound, step
            self._rebuild()

    def nodes(self) -> list[Node]:
        """Return the open nodes in the order of their arrival, and then the taken ones."""
        return [*self._open.values(), *self._taken.values()]

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return what decides the order besides the nodes as arrays, which `restore` takes."""
        return {"top": number(self._top), "step": number(self._step)}

    def restore(self, saved: SavedArrays, nodes: Iterable[Node]) -> None:
        """Become the frontier whose arrays `state` returned, with these nodes, in the order of their arrival."""
        self._top, self._step = saved.number("top"), saved.number("step")
        self._open = {node.number: node for node in nodes}
        self.nbytes = sum(node.nbytes for node in self._open.values())
        self._rebuild()

    def _rebuild(self) -> None:
        """Rebuild the heaps from the open nodes."""
        self._next = [self._item(node) for node in self._open.values()]
        self._bounds = [(-node.bound, node.number) for node in self._open.values()]
        heapq.heapify(self._next)
        heapq.heapify(self._bounds)

    def _item(self, node: Node) -> tuple[float, int, int]:
        """Return the sort key of a node: the interval of its bound, newer branchings first, then its number.

        The children of the k-th branching have the numbers 2 k - 1, in which the decision holds, and 2 k.
        """
        below = self._top - node.bound
        level = math.floor(max(0.0, below) / self._step) if self._step > 0 else -node.bound
        pair, other = divmod(node.number + 1, 2)
        return level, 2 * -pair + other, node.number
