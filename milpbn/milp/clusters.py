"""Violated cluster rows (7) of Peharz & Pernkopf (2012): separation at integral and fractional points.

The rows are those of Jaakkola et al. (2010): in every cluster the chosen parent set of at least one variable has no
member in the cluster. The simpler row "at most |S| - 1 arcs inside S" would cut off valid DAGs, because a parent set
can contain several members of S.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse.csgraph import connected_components

from milpbn.network.structure import Structure
from milpbn.problem.candidates import Candidates

#: A cluster row is added only if a point violates it by more than this.
MINIMAL_VIOLATION = 1e-6
#: Time limit of one separation MILP in seconds; the best cluster found by then is used.
SEPARATION_SECONDS = 2.0


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


def cluster_slack(candidates: Candidates, eta: NDArray[np.float64], cluster: frozenset[int]) -> float:
    """Return the left side of row (7) minus 1, which is negative if the row is violated."""
    total = 0.0
    for i in cluster:
        a = int(candidates.offsets[i])
        total += sum(float(eta[a + k]) for k, s in enumerate(candidates.sets[i]) if cluster.isdisjoint(s))
    return total - 1.0


def fractional_clusters(
    candidates: Candidates, eta: NDArray[np.float64], *, nodes: int | None = None
) -> list[frozenset[int]]:
    """Return clusters whose rows a fractional point violates, by a small MILP (Cussens 2011).

    Variable u_i is 1 if variable i belongs to the cluster. Variable z_p is 1 if parent set p belongs to a member of the
    cluster and contains another member. The MILP minimises the slack of the row, which is sum_i u_i - sum_p eta_p z_p -
    1, where z_p <= u_i for the variable i of p and z_p <= sum_{j in p} u_j.

    The point eta, shape (P,), obeys the rows (5). The clusters are the short cycles of arcs with large weights whose
    rows are violated, the most violated first. If there is no such cycle: the most violated cluster that the MILP
    finds, or an empty list. With `nodes` the MILP stops after this number of nodes instead of after
    `SEPARATION_SECONDS`.
    """
    V = candidates.n_variables
    chosen = [p for p in np.flatnonzero(eta > 1e-9) if candidates.flat[p]]
    found = {
        s for s in _heavy_cycles(candidates, eta) if cluster_slack(candidates, eta, s) < -MINIMAL_VIOLATION
    }
    if found:
        return sorted(found, key=lambda s: (cluster_slack(candidates, eta, s), len(s), sorted(s)))
    n = len(chosen)
    if not n:
        return []
    child = sp.csr_array(
        (np.ones(n), (np.arange(n), [int(candidates.variable[p]) for p in chosen])), shape=(n, V)
    )
    rows = [k for k, p in enumerate(chosen) for _ in candidates.flat[p]]
    columns = [j for p in chosen for j in candidates.flat[p]]
    members = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, V))
    chosen_once = np.add.reduceat(eta, candidates.offsets[:-1]).min() > 1 - MINIMAL_VIOLATION
    n_components = connected_components(
        child.T @ members, directed=True, connection="strong", return_labels=False
    )
    if chosen_once and n_components == V:
        return []  # no cycle: the first member of a cluster in topological order has all its parents outside
    identity = sp.eye_array(n, format="csr")
    result = milp(
        np.concatenate([np.ones(V), -eta[chosen]]),
        # An optimal z is integral even if it is declared continuous. It is declared integral because HiGHS prints to
        # the terminal when it repairs continuous columns after presolve.
        integrality=np.ones(V + n, dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(sp.hstack([child, -identity], format="csr"), 0, np.inf),
            LinearConstraint(sp.hstack([members, -identity], format="csr"), 0, np.inf),
            LinearConstraint(np.concatenate([np.ones(V), np.zeros(n)])[None, :], 2, np.inf),
        ],
        options={
            "presolve": False,
            **({"time_limit": SEPARATION_SECONDS} if nodes is None else {"node_limit": nodes}),
        },
    )
    if result.x is None:
        return []
    cluster = frozenset(np.flatnonzero(result.x[:V] > 0.5).tolist())
    return [cluster] if cluster_slack(candidates, eta, cluster) < -MINIMAL_VIOLATION else []


def _heavy_cycles(candidates: Candidates, eta: NDArray[np.float64]) -> list[frozenset[int]]:
    """Return short cycles among the arcs whose weight exceeds 1/2, and among those whose weight exceeds 1/4."""
    V = candidates.n_variables
    parent, child, index = candidates.arcs
    weight = np.zeros((V, V))
    np.add.at(weight, (child, parent), eta[index])
    return [
        s
        for level in (0.5, 0.25)
        for s in cyclic_clusters([tuple(np.flatnonzero(row > level)) for row in weight])
    ]


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
