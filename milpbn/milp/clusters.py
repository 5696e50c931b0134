"""Cyclic graphs: the cluster rows (7) of Peharz & Pernkopf (2012) that one violates, and acyclic graphs near it.

The rows are those of Jaakkola et al. (2010): in every cluster the chosen parent set of at least one variable has no
member in the cluster. The simpler row "at most |S| - 1 arcs inside S" would cut off valid DAGs, because a parent set
can contain several members of S.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from milpbn.network.structure import Structure
from milpbn.problem.candidates import Candidates


def cyclic_clusters(parents: list[tuple[int, ...]]) -> list[frozenset[int]]:
    """Return clusters whose rows a cyclic graph violates: a shortest cycle through each node that lies on a cycle.

    The row of a short cycle excludes more graphs than the row of a whole strongly connected component.
    """
    V = len(parents)
    rows = [j for j, p in enumerate(parents) for _ in p]
    columns = [i for p in parents for i in p]
    graph = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(V, V))
    _, component = connected_components(graph, directed=True, connection="strong")
    found: set[frozenset[int]] = set()
    for start in range(V):
        cycle = _shortest_cycle(parents, start, component)
        if cycle is not None:
            found.add(cycle)
    return sorted(found, key=lambda s: (len(s), sorted(s)))


def _shortest_cycle(
    parents: list[tuple[int, ...]], start: int, component: NDArray[np.integer]
) -> frozenset[int] | None:
    came_from: dict[int, int] = {}
    frontier = [start]
    while frontier:
        following = []
        for i in frontier:
            for j in parents[i]:
                if j == start:
                    cycle = {start}
                    while i != start:
                        cycle.add(i)
                        i = came_from[i]
                    return frozenset(cycle)
                if j not in came_from and component[j] == component[start]:
                    came_from[j] = i
                    following.append(j)
        frontier = following
    return None


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
