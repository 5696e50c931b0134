"""Moves of a tree of features that turn a subtree round: what re-choosing one variable at a time cannot do.

A subtree is cut off above its root y, turned so that another of its features u is the root, and hung up somewhere
else. With the class as a parent of all, turning it changes little (its arcs point the other way: Markov equivalent but
for smoothing), but it is u now that may have a parent outside. Of the tree without directions this is the exchange of
one edge for another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from milpbn.network.structure import topological_order

if TYPE_CHECKING:
    from milpbn.learners.local_search import LocalSearch


#: Promise, entries of the turned parents, new root, and which of its candidates are worth a look.
Move = tuple[float, list[int], int, NDArray[np.bool_]]


class Rehanging:
    """The turned subtrees of one structure whose features have at most one feature parent each.

    Parameters
    ----------
    search : LocalSearch
        At a structure that no single change improves, of candidates with a `feature_parent`.
    promise : float64 array, shape (P,)
        A supergradient of the score at the structure: of any other structure it says how much it gains at most.
    """

    def __init__(self, search: LocalSearch, promise: NDArray[np.float64]) -> None:
        self._search = search
        self._candidates = candidates = search.problem.candidates
        self._promise = promise
        self._n = candidates.n_variables - 1
        assert candidates.feature_parent is not None
        self._feature = candidates.feature_parent
        self._parent = self._feature[search.choice[: self._n]].tolist()
        #: The entry of each feature's parent that has the feature as parent instead of its own one; None if there
        #: is none.
        self._turned = [self._turned_entry(i) for i in range(self._n)]

    def _turned_entry(self, child: int) -> int | None:
        i = self._parent[child]
        if i < 0:
            return None
        kept = tuple(j for j in self._candidates.flat[self._search.choice[i]] if j == self._n)
        return self._candidates.position(i, (child, *kept))

    def first_gain(self, least: float, stopping: Callable[[], bool]) -> NDArray[np.int64] | None:
        """Return the entries of a structure that gains more than `least`, the most promising first, or None."""
        now = self._search.value
        for _, path, u, allowed in self._moves(least, stopping):
            if stopping():
                return None
            choice = self._search.choice.copy()
            for entry in path:
                choice[self._candidates.variable[entry]] = entry
            values = self._search.scores(u, allowed, choice)
            for best in np.argsort(-values, kind="stable"):
                if values[best] <= now + least:
                    break
                choice[u] = int(self._candidates.offsets[u]) + best
                # Without the class there is no cycle, but the class may have parents.
                if topological_order([self._candidates.flat[p] for p in choice]) is not None:
                    return choice
        return None

    def _moves(self, least: float, stopping: Callable[[], bool]) -> list[Move]:
        """Return all moves that may gain, the most promising first."""
        candidates, choice, promise = self._candidates, self._search.choice, self._promise
        children: list[list[int]] = [[] for _ in range(self._n)]
        for i, j in enumerate(self._parent):
            if j >= 0:
                children[j].append(i)
        moves = []
        for y in range(self._n):
            if stopping():
                return []
            inside = np.zeros(self._n + 1, dtype=bool)  # the last place is that of -1, no feature parent
            below: list[tuple[int, float, list[int]]] = []
            # No path leads to what hangs below an arc that cannot be turned.
            stack: list[tuple[int, float, list[int] | None]] = [(y, 0.0, [])]
            while stack:
                i, gain, path = stack.pop()
                inside[i] = True
                for k in children[i]:
                    entry = self._turned[k]
                    if path is None or entry is None:
                        stack.append((k, 0.0, None))
                        continue
                    more = gain + promise[entry] - promise[choice[i]]
                    below.append((k, more, [*path, entry]))
                    stack.append(below[-1])
            for u, gain, path in below:
                a, b = candidates.offsets[u : u + 2]
                own = gain + promise[a:b] - promise[choice[u]]
                allowed = ~inside[self._feature[a:b]] & (own > least)
                if allowed.any():
                    moves.append((float(own[allowed].max()), path, u, allowed))
        moves.sort(key=lambda move: -move[0])
        return moves
