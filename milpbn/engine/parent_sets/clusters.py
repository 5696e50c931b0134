"""Cluster rows that a fractional point violates: all pairs and triples, and larger clusters by tabu search and cuts.

The point is given by the parent sets in use, by variable, and their shares. A cluster is violated if the shares of the
sets of its members that lie outside it sum to less than 1, which is its weight here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, maximum_flow

from milpbn.engine.parent_sets.rows import CLUSTER, Row
from milpbn.engine.parent_sets.sets import (
    WORD,
    ParentSets,
    generator,
    has,
    meets,
    members_of,
    put,
    random_below,
    random_share,
)
from milpbn.util.compiled import kernel

#: A row is violated if it fails by at least this much.
LEAST_VIOLATION = 1e-2
#: Capacities of a cut are whole numbers: shares times this.
SCALE = 10**6
#: Most clusters found at once, and steps of the tabu search from each start.
MOST, STEPS = 600, 30
#: A variable that has just been moved is not moved again for this many steps, and up to as many more at random.
TABU, TABU_MORE = 3, 4


class Support(NamedTuple):
    """The parent sets in use at a point, by variable."""

    #: Their numbers, ascending. Shape (K,).
    used: NDArray[np.int64]
    #: Where those of each variable begin. Shape (V + 1,).
    offsets: NDArray[np.int64]
    #: Their members. Shape (K, W).
    masks: NDArray[np.uint64]
    #: Their shares, which sum to 1 for each variable. Shape (K,).
    shares: NDArray[np.float64]

    @property
    def integral(self) -> bool:
        """Whether every share is 0 or 1, up to 1e-6."""
        return bool((self.shares > 1 - 1e-6).all())


def support_of(sets: ParentSets, columns: NDArray[np.int64], values: NDArray[np.float64]) -> Support:
    """Return the support of a point, whose `values` belong to the parent sets `columns`."""
    positive = values > 1e-9
    order = np.argsort(columns[positive], kind="stable")
    used, shares = columns[positive][order], values[positive][order]
    offsets = np.searchsorted(sets.child[used], np.arange(sets.n_variables + 1)).astype(np.int64)
    return Support(used, offsets, sets.masks[used], shares)


def least_entered(
    tail: NDArray[np.int64], head: NDArray[np.int64], shares: NDArray[np.float64], a: int, b: int
) -> list[int]:
    """Return the smallest set with b and without a that arcs enter with less than 1 in all; none if there is none."""
    n = int(max(tail.max(), head.max(), a, b)) + 1
    whole = np.rint(SCALE * shares).astype(np.int32)
    graph = csr_array(coo_array((whole, (tail, head)), shape=(n, n)))
    found = maximum_flow(graph, a, b)
    if found.flow_value > (1 - LEAST_VIOLATION) * SCALE:
        return []
    left = csr_array((graph - found.flow).T)
    left.eliminate_zeros()
    return sorted(breadth_first_order(left, b, return_predecessors=False).tolist())


def cut_clusters(point: Support, arcs: NDArray[np.float64]) -> list[Row]:
    """Return violated clusters that are minimum cuts, the most violated and smallest first.

    They lie inside strongly connected parts of the graph. A parent set counts as an arc from one of its members in the
    part, which may hide a cluster that another one reaches. At an integral point a cyclic part always has one.
    `arcs` are those of `arc_weights`.
    """
    n = len(arcs)
    _, part = connected_components(arcs > LEAST_VIOLATION, connection="strong")
    on = np.flatnonzero(np.bincount(part)[part] > 1).tolist()
    places = [t for i in on for t in range(point.offsets[i], point.offsets[i + 1])]
    head = np.repeat(on, np.diff(point.offsets)[on])
    near = [
        [j for j in members_of(point.masks[t]) if part[j] == part[i]]
        for t, i in zip(places, head, strict=True)
    ]
    tail = np.array([inner[0] if inner else n for inner in near])
    found: dict[tuple[int, ...], tuple[float, int]] = {}
    for i in on:
        members = tuple(least_entered(tail, head, point.shares[places], n, i))
        if members:
            inside = set(members)
            outside = [
                t
                for t, i, own in zip(places, head, near, strict=True)
                if i in inside and inside.isdisjoint(own)
            ]
            found[members] = (float(point.shares[outside].sum()), len(members))
    rows: list[Row] = []
    for members in sorted(found, key=found.__getitem__):
        if not any(set(row.members) < set(members) for row in rows):
            rows.append(Row(CLUSTER, members))
    return rows


@kernel
def arc_weights(point):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return the shares of the sets of i that contain j, float64 array, shape (V, V)."""
    n = len(point.offsets) - 1
    out = np.zeros((n, n))
    for i in range(n):
        for t in range(point.offsets[i], point.offsets[i + 1]):
            for j in range(n):
                if has(point.masks[t], j):
                    out[i, j] += point.shares[t]
    return out


@kernel(linked=True)
def _outside(point, cluster, i):  # type: ignore[no-untyped-def]
    """Return the shares of the sets of variable i outside a cluster."""
    total = 0.0
    for t in range(point.offsets[i], point.offsets[i + 1]):
        if not meets(point.masks[t], cluster):
            total += point.shares[t]
    return total


@kernel(inner=True)
def _keep(out, weights, n, cluster, weight):  # type: ignore[no-untyped-def]
    """Add a cluster to the n found so far, or put it in place of the heaviest one; return their number."""
    for t in range(n):
        if np.all(out[t] == cluster):
            return n
    if n < len(out):
        out[n], weights[n] = cluster, weight
        return n + 1
    worst = np.argmax(weights)
    if weight < weights[worst]:
        out[worst], weights[worst] = cluster, weight
    return n


@kernel
def small_clusters(point, arcs, out, weights):  # type: ignore[no-untyped-def]
    """Fill the violated clusters of two and three variables and their weights; return their number."""
    n, found = len(arcs), 0
    cluster = np.zeros(out.shape[1], dtype=np.uint64)
    near = np.empty(n, dtype=np.int64)
    for i in range(n):
        m = 0
        for j in range(n):
            if j != i and arcs[i, j] + arcs[j, i] > LEAST_VIOLATION:
                near[m] = j
                m += 1
        for a in range(m):
            j = near[a]
            weight = 2.0 - arcs[i, j] - arcs[j, i]
            if i < j and weight < 1 - LEAST_VIOLATION:
                cluster[:] = 0
                put(cluster, i)
                put(cluster, j)
                found = _keep(out, weights, found, cluster, weight)
            for b in range(a + 1, m):
                k = near[b]
                around = arcs[i, j] + arcs[j, i] + arcs[i, k] + arcs[k, i] + arcs[j, k] + arcs[k, j]
                if around <= 2 + LEAST_VIOLATION:
                    continue
                cluster[:] = 0
                put(cluster, i)
                put(cluster, j)
                put(cluster, k)
                weight = (
                    _outside(point, cluster, i) + _outside(point, cluster, j) + _outside(point, cluster, k)
                )
                if weight < 1 - LEAST_VIOLATION:
                    found = _keep(out, weights, found, cluster, weight)
    return found


@kernel(inner=True)
def _occurrences(point, n, starts, places, owner):  # type: ignore[no-untyped-def]
    """Fill, for every variable, the places of the sets that contain it, and for every place its variable."""
    for turn in range(2):
        if turn:
            for j in range(n, 0, -1):
                starts[j] = starts[j - 1]
            starts[0] = 0
            for j in range(n):
                starts[j + 1] += starts[j]
        fill = starts.copy()
        for i in range(n):
            for t in range(point.offsets[i], point.offsets[i + 1]):
                owner[t] = i
                for j in range(n):
                    if has(point.masks[t], j):
                        if turn:
                            places[fill[j]] = t
                            fill[j] += 1
                        else:
                            starts[j] += 1


@kernel(inner=True)
def _step(point, starts, places, owner, hits, member, size, blocked, step, random):  # type: ignore[no-untyped-def]
    """Return the weight of a cluster, the best variable to add or remove (-1 for none), and what that changes."""
    n = len(member)
    weight, best, least = 0.0, -1, np.inf
    free = np.zeros(n)
    for i in range(n):
        for t in range(point.offsets[i], point.offsets[i + 1]):
            if hits[t] == 0:
                free[i] += point.shares[t]
        if member[i]:
            weight += free[i]
    for j in range(n):
        if blocked[j] > step or (member[j] and size <= 2):
            continue
        change = -free[j] if member[j] else free[j]
        for q in range(starts[j], starts[j + 1]):
            t = places[q]
            if member[owner[t]]:
                if member[j] and hits[t] == 1:
                    change += point.shares[t]
                elif not member[j] and hits[t] == 0:
                    change -= point.shares[t]
        change += 1e-7 * random_share(random)
        if change < least:
            best, least = j, change
    return weight, best, least


@kernel(linked=True)
def _flip(starts, places, hits, member, j):  # type: ignore[no-untyped-def]
    """Add a variable to the cluster or remove it."""
    member[j] = not member[j]
    for q in range(starts[j], starts[j + 1]):
        hits[places[q]] += 1 if member[j] else -1


@kernel
def tabu_clusters(point, centres, begins, steps, out, weights, found, random):  # type: ignore[no-untyped-def]
    """Add the violated clusters at the local minima of a tabu search to the `found` ones; return their number.

    The search begins `begins` times, in turn from each of some variables and then from a parent set in use with its
    child. A step adds or removes the variable that lowers the weight most.
    """
    n, K = len(point.offsets) - 1, len(point.shares)
    if K == 0 or not np.any(point.masks):
        return found
    starts, owner = np.zeros(n + 1, dtype=np.int64), np.empty(K, dtype=np.int64)
    total = 0
    for t in range(K):
        for j in range(n):
            total += has(point.masks[t], j)
    places = np.empty(total, dtype=np.int64)
    _occurrences(point, n, starts, places, owner)
    hits, blocked = np.empty(K, dtype=np.int64), np.empty(n, dtype=np.int64)
    member, cluster = np.empty(n, dtype=np.bool_), np.empty(out.shape[1], dtype=np.uint64)
    for begin in range(begins):
        hits[:], blocked[:], member[:] = 0, 0, False
        _flip(starts, places, hits, member, centres[begin % len(centres)])
        if begin >= len(centres):
            t = random_below(random, K)
            for j in range(n):
                if (has(point.masks[t], j) or j == owner[t]) and not member[j]:
                    _flip(starts, places, hits, member, j)
        size = int(np.sum(member))
        for step in range(steps):
            weight, j, change = _step(point, starts, places, owner, hits, member, size, blocked, step, random)
            if j < 0:
                break
            if change >= 0 and size >= 2 and weight < 1 - LEAST_VIOLATION:
                cluster[:] = 0
                for i in range(n):
                    if member[i]:
                        put(cluster, i)
                found = _keep(out, weights, found, cluster, weight)
            _flip(starts, places, hits, member, j)
            size += 1 if member[j] else -1
            blocked[j] = step + TABU + random_below(random, TABU_MORE)
    return found


def violated_clusters(
    point: Support, seed: int, *, begins: int | None = None, steps: int = STEPS
) -> list[Row]:
    """Return violated clusters, the most violated first: minimum cuts if a point is integral or has no others."""
    arcs = arc_weights(point)
    if point.integral:
        return cut_clusters(point, arcs)
    out, weights = np.zeros((MOST, point.masks.shape[1]), dtype=np.uint64), np.zeros(MOST)
    found = small_clusters(point, arcs, out[: MOST // 2], weights[: MOST // 2])
    # Of many variables those with several sets: a violated cluster has some, unless it is a cycle.
    centres = np.flatnonzero(np.diff(point.offsets) > (1 if len(arcs) > WORD else 0))
    begins = 2 * len(centres) if begins is None else begins
    found = tabu_clusters(point, centres, begins, steps, out, weights, found, generator(seed))
    rows = [Row(CLUSTER, members_of(out[k])) for k in np.argsort(weights[:found], kind="stable")]
    return rows or cut_clusters(point, arcs)
