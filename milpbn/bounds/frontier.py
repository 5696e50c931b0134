"""The open parts of a search, and which of them is split next."""

from __future__ import annotations

import heapq
import math

from milpbn.bounds.space import Open

#: Bounds that differ by this share of the distance to the incumbent are alike: no better are they converged.
ALIKE = 0.01
#: Places in the two heaps beyond four per open part, after which they are made anew: parts that are gone hold them.
GONE = 1000


class Frontier:
    """Open parts, best bound first; of those with about the same bound the newest, and of its two halves the inner.

    Where many parts have the bound of the root, as when every sample could have its gamma, best-bound search alone
    would go through the tree level by level and never see a structure; this one dives.
    """

    def __init__(self) -> None:
        # By number, in the order in which they came.
        self._open: dict[int, Open] = {}
        # Heaps with the numbers of parts, also of those that are gone, until these come to the top or are too many.
        self._next: list[tuple[float, int, int]] = []
        self._bounds: list[tuple[float, int]] = []
        self._top, self._step = math.inf, 0.0
        #: Bytes that the parts hold.
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._open)

    def push(self, opened: Open) -> None:
        """Add a part."""
        self._open[opened.number] = opened
        heapq.heappush(self._next, self._item(opened))
        heapq.heappush(self._bounds, (-opened.bound, opened.number))
        if len(self._next) + len(self._bounds) > GONE + 4 * len(self._open):
            self._rebuild()
        self.nbytes += opened.nbytes

    def pop(self, newest: bool = False) -> Open:
        """Remove the part to split next and return it; or the newest one, which leaves the fewest open behind it."""
        number = next(reversed(self._open)) if newest else heapq.heappop(self._next)[2]
        while number not in self._open:
            number = heapq.heappop(self._next)[2]
        opened = self._open.pop(number)
        self.nbytes -= opened.nbytes
        return opened

    def bound(self) -> float:
        """Return the largest bound of all parts, -inf if there is none."""
        while self._bounds and self._bounds[0][1] not in self._open:
            heapq.heappop(self._bounds)
        return -self._bounds[0][0] if self._bounds else -math.inf

    def near(self, bound: float, incumbent: float) -> None:
        """Take note of the bound on all structures and of the incumbent: they say what bounds are about the same."""
        step = ALIKE * max(0.0, bound - incumbent)
        if not 0.5 * self._step < step < 2 * self._step or abs(bound - self._top) > 0.5 * step:
            self._top, self._step = bound, step
            self._rebuild()

    def _rebuild(self) -> None:
        """Make the heaps anew, of the parts that are open."""
        self._next = [self._item(opened) for opened in self._open.values()]
        self._bounds = [(-opened.bound, opened.number) for opened in self._open.values()]
        heapq.heapify(self._next)
        heapq.heapify(self._bounds)

    def _item(self, opened: Open) -> tuple[float, int, int]:
        """Return what the heap compares. The halves of a split have the numbers 2 k - 1, the inner one, and 2 k."""
        below = self._top - opened.bound
        level = math.floor(max(0.0, below) / self._step) if self._step > 0 else -opened.bound
        pair, outer = divmod(opened.number + 1, 2)
        return level, 2 * -pair + outer, opened.number
