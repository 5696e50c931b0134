"""The K best distinct structures known, and what a search has proved of all others.

With K = 1 this is the incumbent alone. A search for the K best prunes against the K-th best score, the cutoff, so that
a node is kept as long as it may hold a structure that belongs in the list. Two structures are distinct if they give
some variable different candidate parent sets. The list may be limited to structures near the best one, too.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.heuristics.local_search import best_neighbours
from milpbn.problem.problem import Problem
from milpbn.util.budget import Budget
from milpbn.util.saved_arrays import SavedArrays, number

#: A number below every score and every bound but -inf. Thresholds are computed from it, so that it has to be finite.
BELOW_ALL = -1e250


class PoolMark(NamedTuple):
    """What a pool held at one moment; `explored` is the number of structures whose neighbours had been scored."""

    values: dict[bytes, float]
    leaves: dict[bytes, float]
    dropped: float
    rest: float
    explored: int


class Pool:
    """The K best distinct structures known, K being the `size`. Any thread may call its methods.

    Structures that score less than the best one known by more than the `reach`, in nats, are left out.
    """

    def __init__(self, size: int, reach: float = math.inf) -> None:
        self.size, self.reach = size, reach
        #: Structures that score less are left out: the K-th best score known, or the best one minus the reach;
        #: `BELOW_ALL` while there are fewer than K structures and the reach is unlimited.
        self.cutoff = BELOW_ALL
        #: Upper bound on the score of all structures in pruned and open nodes, which the search sets. Nodes with a
        #: single structure do not count here: `leaf` takes their bounds.
        self.rest = math.inf
        self._lock = threading.RLock()
        #: By the bytes of its choice: a structure's score, and the bound of a node that holds this structure only.
        self._values: dict[bytes, float] = {}
        self._leaves: dict[bytes, float] = {}
        #: The largest bound of a node that holds a single structure which is not among the K best.
        self._dropped = -math.inf
        #: Structures whose neighbours were scored, in this order.
        self._explored: dict[bytes, None] = {}

    def __len__(self) -> int:
        return len(self._values)

    @property
    def full(self) -> bool:
        """Whether K structures are known."""
        return len(self) >= self.size

    @property
    def selective(self) -> bool:
        """Whether structures are left out for their scores."""
        return self.cutoff > BELOW_ALL

    def offer(self, choice: NDArray[np.integer], value: float) -> None:
        """Take a structure, the indices of its parent sets, shape (V,), if it is new and among the K best."""
        with self._lock:
            key, values = _key(choice), self._values
            if value < self.cutoff or (self.full and value == self.cutoff) or key in values:
                return
            values[key] = value
            least = max(values.values()) - self.reach
            while values[worst := min(values, key=values.__getitem__)] < least or len(values) > self.size:
                del values[worst]
                self._dropped = max(self._dropped, self._leaves.pop(worst, -math.inf))
            self._raise_cutoff()

    def _raise_cutoff(self) -> None:
        values = self._values.values()
        least = max(values, default=BELOW_ALL) - self.reach
        self.cutoff = max(BELOW_ALL, least, min(values) if self.full else least)

    def leaf(self, choice: NDArray[np.integer], bound: float) -> None:
        """Take the bound of a node that holds one structure only, which may be one of the K best."""
        key = _key(choice)
        with self._lock:
            if key in self._values:
                self._leaves[key] = bound
            else:
                self._dropped = max(self._dropped, bound)

    def explore(
        self,
        problem: Problem,
        score: Callable[[NDArray[np.int64]], float],
        most: int,
        budget: Budget,
        *,
        parallel: bool,
    ) -> bool:
        """Offer the neighbours of structures in the list that were not explored yet; return whether there were any.

        The best structures come first, and at most `most` of them. `score` returns the score of a choice of parent
        sets, shape (V,), in nats. `parallel` says whether large products may use threads.
        """
        for explored in range(most):
            if budget.over() or (choice := self._unexplored()) is None:
                return explored > 0
            structure = problem.candidates.structure(choice)
            neighbours = best_neighbours(
                problem, structure, lambda: self.cutoff, self.size, budget.over, parallel=parallel
            )
            for neighbour, _ in neighbours:
                if budget.over():
                    return True
                if not self.knows(neighbour):
                    self.offer(neighbour, score(neighbour))
        return True

    def knows(self, choice: NDArray[np.integer]) -> bool:
        """Whether a structure, the indices of its parent sets, shape (V,), is in the list."""
        return _key(choice) in self._values

    def _unexplored(self) -> NDArray[np.int64] | None:
        """Return the best structure that this method has not returned yet, or None; shape (V,)."""
        with self._lock:
            left = [key for key in self._values if key not in self._explored]
            if not left:
                return None
            key = max(left, key=self._values.__getitem__)
            self._explored[key] = None
            return _choice(key)

    def best(self) -> list[tuple[NDArray[np.int64], float]]:
        """Return the structures as the indices of their parent sets, shape (V,), with their scores, best first."""
        with self._lock:
            ranked = sorted(self._values.items(), key=lambda item: -item[1])
            return [(_choice(key), value) for key, value in ranked]

    def others(self, rest: float, left_out: Collection[NDArray[np.integer]] = ()) -> float:
        """Return a bound on the structures that are not in the list; -inf if there are none.

        `rest` is the value of that attribute, now or earlier. The structures that are `left_out`, int64 arrays of shape
        (V,), are of the list, and count among the others.
        """
        with self._lock:
            leaves = (self._leaves.get(_key(choice), -math.inf) for choice in left_out)
            bound = max(rest, self._dropped, *leaves, -math.inf)
            # Reduced-cost fixing leaves out structures below the cutoff.
            return max(bound, self.cutoff) if self.selective else bound

    def everything(self, rest: float) -> float:
        """Return a bound on all structures in nodes, those of the list included; see `others`."""
        with self._lock:
            return max(rest, self._dropped, *self._leaves.values(), -math.inf)

    def mark(self) -> PoolMark:
        """Return what the pool holds now."""
        with self._lock:
            return PoolMark(
                dict(self._values), dict(self._leaves), self._dropped, self.rest, len(self._explored)
            )

    def state(self, mark: PoolMark) -> dict[str, NDArray[Any]]:
        """Return what the pool held at an earlier moment as arrays, which `restore` takes."""
        with self._lock:
            explored = list(islice(self._explored, mark.explored))
        leaves = {n: mark.leaves[key] for n, key in enumerate(mark.values) if key in mark.leaves}
        return {
            "structures": choices_of(mark.values),
            "scores": np.array(list(mark.values.values()), dtype=np.float64),
            "leaf_of": np.array(list(leaves), dtype=np.int64),
            "leaf": np.array(list(leaves.values()), dtype=np.float64),
            "dropped": number(mark.dropped),
            "rest": number(mark.rest),
            "explored": choices_of(explored),
        }

    def restore(self, saved: SavedArrays, problem: Problem) -> None:
        """Become the pool whose arrays `state` returned; raise UnfitError if they are of another problem."""
        keys = saved_choices(saved, "structures", problem)
        leaf_of = saved.array("leaf_of", np.int64, None).tolist()
        leaves = saved.array("leaf", np.float64, len(leaf_of)).tolist()
        scores = saved.array("scores", np.float64, len(keys)).tolist()
        self._values = dict(zip(keys, scores, strict=True))
        self._leaves = {keys[n]: bound for n, bound in zip(leaf_of, leaves, strict=True)}
        self._dropped, self.rest = saved.number("dropped"), saved.number("rest")
        self._explored = dict.fromkeys(saved_choices(saved, "explored", problem))
        self._raise_cutoff()


def choices_of(keys: Collection[bytes]) -> NDArray[np.int64]:
    """Return choices of parent sets, given as the bytes of their int64 arrays, as one array, shape (k, V)."""
    if not keys:
        return np.empty((0, 0), dtype=np.int64)
    return np.frombuffer(b"".join(keys), dtype=np.int64).reshape(len(keys), -1)


def saved_choices(saved: SavedArrays, name: str, problem: Problem) -> list[bytes]:
    """Return the choices that `choices_of` made an array of; raise UnfitError if they are of another problem."""
    found, offsets = saved.array(name, np.int64, None, None), problem.candidates.offsets
    if found.size:
        found = saved.array(name, np.int64, None, len(offsets) - 1, least=offsets[:-1], below=offsets[1:])
    return [_key(choice) for choice in found]


def _key(choice: NDArray[np.integer]) -> bytes:
    return choice.astype(np.int64).tobytes()


def _choice(key: bytes) -> NDArray[np.int64]:
    return np.frombuffer(key, dtype=np.int64)
