"""Which arcs every optimum has, and which none, by the parts of the search space that may hold an optimum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.reduction import deletion_threshold
from milpbn.scores.candidates import Candidates


class Optima:
    """What is common to the parts that may hold an optimum.

    Parameters
    ----------
    candidates : Candidates
        Parent sets.
    """

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        V = candidates.n_variables
        self._known = np.zeros((V, V), dtype=bool)
        parent, child, _ = candidates.arcs
        self._known[parent, child] = True
        self._forget()

    def _forget(self) -> None:
        self._bound = -np.inf
        #: By parent and child, arcs that all structures of all parts have, and that one may have.
        self._inside = self._known.copy()
        self._possible = np.zeros_like(self._known)

    def add(self, allowed: NDArray[np.bool_], bound: float, incumbent: float) -> None:
        """Take note of a part, the entries that it leaves, its bound and the incumbent, which never falls."""
        threshold = deletion_threshold(incumbent)
        if self._bound < threshold:
            self._forget()
        if bound < threshold:
            return
        self._bound = max(self._bound, bound)
        parent, child, entry = self._candidates.arcs
        kept = allowed[entry]
        having = np.zeros(self._known.shape, dtype=np.int64)
        np.add.at(having, (parent[kept], child[kept]), 1)
        left = np.bincount(self._candidates.variable[allowed], minlength=len(having))
        self._inside &= having == left[None, :]
        self._possible |= having > 0

    def arcs(self) -> dict[str, list[list[str]]]:
        """Return the arcs [parent, child] of candidate sets that every optimum has (``in``) or lacks (``out``)."""
        names = self._candidates.names
        found = {"in": self._inside & self._possible, "out": self._known & ~self._possible}
        return {key: [[names[j], names[i]] for j, i in np.argwhere(of).tolist()] for key, of in found.items()}
