"""Violated cluster rows (7) of P12: separation at integral and fractional points.

Over general candidate sets "arcs inside S <= |S| - 1" cuts off valid DAGs; the rows here are the ones of
Jaakkola et al. (2010): in every cluster at least one variable's chosen set does not meet the cluster.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse.csgraph import connected_components

from milpbn.network.structure import Structure
from milpbn.scores.candidates import Candidates

#: A cluster row must be violated by this much to be worth a row.
MINIMAL_VIOLATION = 1e-6
#: Seconds for one separation by MILP; what it has found by then is used.
SEPARATION_SECONDS = 2.0


def cyclic_clusters(parents: list[tuple[int, ...]]) -> list[frozenset[int]]:
    """Return clusters whose rows a cyclic graph violates: a shortest cycle through each cyclic component's nodes.

    Short cycles give rows that exclude more graphs than the whole component's row does.
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
    """Return the left side of row (7) minus 1: negative where the row is violated."""
    total = 0.0
    for i in cluster:
        a = int(candidates.offsets[i])
        total += sum(float(eta[a + k]) for k, s in enumerate(candidates.sets[i]) if cluster.isdisjoint(s))
    return total - 1.0


def fractional_clusters(
    candidates: Candidates, eta: NDArray[np.float64], *, nodes: int | None = None
) -> list[frozenset[int]]:
    """Return clusters whose rows a fractional point violates, by a small MILP (Cussens 2011).

    With u_i = 1 for members of the cluster and z_p for the sets p with weight eta_p that meet it, the row's
    slack is sum_i u_i - sum_p eta_p z_p - 1, to be made negative, where z_p <= u_i and z_p <= sum_{j in p} u_j.

    Parameters
    ----------
    candidates : Candidates
        Parent sets.
    eta : float64 array, shape (P,)
        A point of the relaxation; rows (5) hold.
    nodes : int, optional
        End the MILP after so many nodes, and not by the clock.

    Returns
    -------
    list of frozenset of int
        The most violated cluster found, and the clusters of short cycles of the heavy arcs that are violated
        too; empty if there is none.
    """
    V = candidates.n_variables
    entries = [p for p in np.flatnonzero(eta > 1e-9) if candidates.flat[p]]
    found = {
        s for s in _heavy_cycles(candidates, eta) if cluster_slack(candidates, eta, s) < -MINIMAL_VIOLATION
    }
    if found:
        return sorted(found, key=lambda s: (cluster_slack(candidates, eta, s), len(s), sorted(s)))
    n = len(entries)
    if not n:
        return []
    own = sp.csr_array(
        (np.ones(n), (np.arange(n), [int(candidates.variable[p]) for p in entries])), shape=(n, V)
    )
    rows = [k for k, p in enumerate(entries) for _ in candidates.flat[p]]
    columns = [j for p in entries for j in candidates.flat[p]]
    meets = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, V))
    identity = sp.eye_array(n, format="csr")
    result = milp(
        np.concatenate([np.ones(V), -eta[entries]]),
        # z would be whole numbers by itself. HiGHS writes to the terminal where it mends what presolve or rounding has
        # done to continuous columns.
        integrality=np.ones(V + n, dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(sp.hstack([own, -identity], format="csr"), 0, np.inf),
            LinearConstraint(sp.hstack([meets, -identity], format="csr"), 0, np.inf),
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
    """Return short cycles of the arcs, taking each variable's heaviest parents first."""
    V = candidates.n_variables
    parent, child, entry = candidates.arcs
    weight = np.zeros((V, V))
    np.add.at(weight, (child, parent), eta[entry])
    return [
        s
        for level in (0.5, 0.25)
        for s in cyclic_clusters([tuple(np.flatnonzero(row > level)) for row in weight])
    ]


def repaired(candidates: Candidates, choice: NDArray[np.int64]) -> Structure | None:
    """Return an acyclic structure near a cyclic choice: variables keep their set if it fits the order so far.

    Variables are placed one by one, first those whose chosen set lies among the placed ones; where a cycle
    blocks all of them, the one that can fall back on its largest fitting candidate is placed.
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
