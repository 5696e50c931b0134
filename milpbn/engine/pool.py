"""The K best distinct structures known, and what a search has proved of all others.

With K = 1 this is the incumbent alone. A search for the K best prunes against the K-th best score, the cutoff, so that
a node is kept as long as it may hold a structure that belongs into the list. Two structures are distinct if they give
some variable different candidate parent sets.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from milpbn.heuristics.neighbours import best_neighbours
from milpbn.problem.problem import Problem

#: A number below every score and every bound but -inf. Thresholds are computed from it, so that it has to be finite.
BELOW_ALL = -1e250


class Pool:
    """The K best distinct structures known. Any thread may call its methods.

    Parameters
    ----------
    size : int
        K.

    Attributes
    ----------
    cutoff : float
        The K-th best score known; `BELOW_ALL` while fewer than K structures are known.
    rest : float
        Upper bound on the score of all structures in pruned and open nodes, but for the nodes that `leaf` was told of.
        The search sets it.
    """

    def __init__(self, size: int) -> None:
        self.size, self.cutoff, self.rest = size, BELOW_ALL, math.inf
        self._lock = threading.RLock()
        #: By the bytes of its choice: a structure's score, and the bound of a node that holds this structure only.
        self._values: dict[bytes, float] = {}
        self._leaves: dict[bytes, float] = {}
        #: The largest bound of a node that holds a single structure which is not among the K best.
        self._dropped = -math.inf
        #: Structures whose neighbours were scored.
        self._explored: set[bytes] = set()

    @property
    def full(self) -> bool:
        """Whether K structures are known."""
        return len(self._values) >= self.size

    def offer(self, choice: NDArray[np.integer], value: float) -> None:
        """Take a structure, the indices of its parent sets, shape (V,), if it is new and among the K best."""
        with self._lock:
            if self.full and value <= self.cutoff:
                return
            key = _key(choice)
            if key in self._values:
                return
            self._values[key] = value
            if len(self._values) > self.size:
                worst = min(self._values, key=self._values.__getitem__)
                del self._values[worst]
                self._dropped = max(self._dropped, self._leaves.pop(worst, -math.inf))
            if self.full:
                self.cutoff = min(self._values.values())

    def leaf(self, choice: NDArray[np.integer], bound: float) -> None:
        """Take the bound of a node that holds one structure only, which may be one of the K best."""
        key = _key(choice)
        with self._lock:
            if key in self._values:
                self._leaves[key] = bound
            else:
                self._dropped = max(self._dropped, bound)

    def explore(self, problem: Problem, stopping: Callable[[], bool], *, parallel: bool) -> None:
        """Offer the neighbours of every structure in the list, until all of its structures were explored."""
        while not stopping() and (choice := self._unexplored()) is not None:
            structure = problem.candidates.structure(choice)
            neighbours = best_neighbours(
                problem, structure, lambda: self.cutoff, self.size, stopping, parallel=parallel
            )
            for neighbour, value in neighbours:
                self.offer(neighbour, value)

    def _unexplored(self) -> NDArray[np.int64] | None:
        """Return the best structure that this method has not returned yet, or None; shape (V,)."""
        with self._lock:
            left = [key for key in self._values if key not in self._explored]
            if not left:
                return None
            key = max(left, key=self._values.__getitem__)
            self._explored.add(key)
            return _choice(key)

    def best(self) -> list[tuple[NDArray[np.int64], float]]:
        """Return the structures as the indices of their parent sets, shape (V,), with their scores, best first."""
        with self._lock:
            ranked = sorted(self._values.items(), key=lambda item: -item[1])
            return [(_choice(key), value) for key, value in ranked]

    def others(self, rest: float) -> float:
        """Return a bound on the structures that are not in the list; -inf if there are none.

        Parameters
        ----------
        rest : float
            The value of `rest`, now or earlier.
        """
        with self._lock:
            bound = max(rest, self._dropped)
            # Reduced-cost fixing leaves out structures below the cutoff.
            return max(bound, self.cutoff) if self.full else bound

    def everything(self, rest: float) -> float:
        """Return a bound on all structures in nodes, those of the list included; see `others`."""
        with self._lock:
            return max(rest, self._dropped, *self._leaves.values(), -math.inf)


def _key(choice: NDArray[np.integer]) -> bytes:
    return choice.astype(np.int64).tobytes()


def _choice(key: bytes) -> NDArray[np.int64]:
    return np.frombuffer(key, dtype=np.int64)
