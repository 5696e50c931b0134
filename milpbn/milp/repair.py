"""Acyclic graphs near cyclic ones, which the points of relaxations choose."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milpbn.network.structure import Structure
from milpbn.problem.candidates import Candidates


def repaired(candidates: Candidates, choice: NDArray[np.int64]) -> Structure | None:
    """Return an acyclic structure near a cyclic choice, or None if the candidate sets do not permit one this way.

    Variables are placed in an order, parents before children. A variable whose chosen parents are all placed comes next
    and keeps its parent set. When there is no such variable, every remaining variable is compared by the candidate set
    that keeps most of its chosen parents and contains placed variables only; the variable that loses the fewest
    parents comes next and takes that set.
    """
    V = candidates.n_variables
    placed: set[int] = set()
    parents: dict[int, tuple[int, ...]] = {}
    while len(placed) < V:
        waiting = [i for i in range(V) if i not in placed]
        ready = [i for i in waiting if placed.issuperset(candidates.flat[choice[i]])]
        if ready:
            parents |= {i: candidates.flat[choice[i]] for i in ready}
            placed |= set(ready)
            continue
        best: tuple[int, int, tuple[int, ...]] | None = None
        for i in waiting:
            fitting = [s for s in candidates.sets[i] if placed.issuperset(s)]
            if fitting:
                wanted = set(candidates.flat[choice[i]])
                nearest = max(fitting, key=lambda s: (len(wanted & set(s)), -len(s)))
                lost = len(wanted - set(nearest))
                if best is None or lost < best[0]:
                    best = lost, i, nearest
        if best is None:
            return None
        parents[best[1]] = best[2]
        placed.add(best[1])
    return Structure(candidates.names, tuple(parents[i] for i in range(V)))
