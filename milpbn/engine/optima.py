"""The arcs that every optimum has, and those that none has, from the pruned nodes that may contain an optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.thresholds import fixing_threshold
from milpbn.problem.candidates import Candidates
from milpbn.util.saved_arrays import SavedArrays, number


class Optima:
    """The arcs common to all nodes that may contain an optimum; `error` bounds the rounding error of a score."""

    def __init__(self, candidates: Candidates, error: float) -> None:
        self._candidates, self._error = candidates, error
        V = candidates.n_variables
        self._candidate = np.zeros((V, V), dtype=bool)
        parent, child, _ = candidates.arcs
        self._candidate[parent, child] = True
        self._forget()

    def _forget(self) -> None:
        self._bound = -np.inf
        #: By parent and child: arcs that all structures of all added nodes have, and arcs that some may have.
        self._inside = self._candidate.copy()
        self._possible = np.zeros_like(self._candidate)

    def add(self, allowed: NDArray[np.bool_], bound: float, incumbent: float) -> None:
        """Add a pruned node: its allowed parent sets, its bound, and the incumbent, which never falls between calls."""
        threshold = fixing_threshold(incumbent, self._error)
        if self._bound < threshold:
            self._forget()
        if bound < threshold:
            return
        self._bound = max(self._bound, bound)
        parent, child, index = self._candidates.arcs
        kept = allowed[index]
        having = np.zeros(self._candidate.shape, dtype=np.int64)
        np.add.at(having, (parent[kept], child[kept]), 1)
        left = np.bincount(self._candidates.variable[allowed], minlength=len(having))
        self._inside &= having == left[None, :]
        self._possible |= having > 0

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the arcs as arrays, which `restore` takes."""
        return {
            "bound": number(self._bound),
            "inside": self._inside.copy(),
            "possible": self._possible.copy(),
        }

    def restore(self, saved: SavedArrays) -> None:
        """Become the object whose arrays `state` returned; raise UnfitError if they are of another problem."""
        shape = self._candidate.shape
        self._bound = saved.number("bound")
        self._inside = saved.array("inside", np.bool_, *shape).copy()
        self._possible = saved.array("possible", np.bool_, *shape).copy()

    def arcs(self) -> dict[str, list[list[str]]]:
        """Return the arcs [parent, child] of candidate sets that every optimum has (``in``) or lacks (``out``)."""
        names = self._candidates.names
        found = {"in": self._inside & self._possible, "out": self._candidate & ~self._possible}
        return {key: [[names[j], names[i]] for j, i in np.argwhere(of).tolist()] for key, of in found.items()}
