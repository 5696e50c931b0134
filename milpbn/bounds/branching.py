"""Maximum-weight branchings: Chu-Liu/Edmonds on a dense matrix."""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray


@njit(cache=True)
def maximum_arborescence(weights):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return the parents of a maximum-weight arborescence rooted at node 0.

    Cycles of best incoming arcs are contracted one after the other and expanded in reverse order (Edmonds 1967),
    O(n^2) each.

    Parameters
    ----------
    weights : float64 array, shape (n, n)
        weights[j, i] is the weight of the arc j -> i; -inf for an arc that must not be used. Column 0 and the
        diagonal are not read. A branching over nodes 1.. is an arborescence whose arcs from 0 have the weights
        of parentless nodes.

    Returns
    -------
    int64 array, shape (n,)
        Parent of each node; -1 for the root.
    """
    n = weights.shape[0]
    w = weights.copy()
    source = np.empty((n, n), dtype=np.int64)
    target = np.empty((n, n), dtype=np.int64)
    for j in range(n):
        for i in range(n):
            source[j, i] = j
            target[j, i] = i
    alive = np.ones(n, dtype=np.bool_)
    owner = np.arange(n)  # the contracted node that an original node lies in
    best = np.zeros(n, dtype=np.int64)
    # One record per contraction: its cycle (a slice of the node list), and the owners before it.
    cycle_nodes = np.empty(2 * n, dtype=np.int64)
    cycle_source = np.empty(2 * n, dtype=np.int64)
    cycle_target = np.empty(2 * n, dtype=np.int64)
    cycle_start = np.zeros(n + 1, dtype=np.int64)
    owners = np.empty((n, n), dtype=np.int64)
    depth = 0
    state = np.zeros(n, dtype=np.int64)
    while True:
        for i in range(1, n):
            if alive[i]:
                top = -1
                for j in range(n):
                    if alive[j] and j != i and (top < 0 or w[j, i] > w[top, i]):
                        top = j
                best[i] = top
        # Walk along best incoming arcs; a walk that meets itself has found a cycle.
        state[:] = 0
        found = -1
        for i in range(1, n):
            if not alive[i] or state[i] != 0:
                continue
            v = i
            while v != 0 and state[v] == 0:
                state[v] = i
                v = best[v]
            if v != 0 and state[v] == i:
                found = v
                break
        if found < 0:
            break
        start = cycle_start[depth]
        stop = start
        v = found
        while True:
            cycle_nodes[stop] = v
            cycle_source[stop] = source[best[v], v]
            cycle_target[stop] = target[best[v], v]
            stop += 1
            v = best[v]
            if v == found:
                break
        cycle_start[depth + 1] = stop
        owners[depth] = owner
        members = cycle_nodes[start:stop]
        inside = np.zeros(n, dtype=np.bool_)
        for v in members:
            inside[v] = True
        for u in range(n):
            if not alive[u] or inside[u]:
                continue
            enter, enter_value = members[0], -np.inf
            leave = members[0]
            for v in members:
                value = w[u, v] - w[best[v], v]
                if value > enter_value:
                    enter, enter_value = v, value
                if u != 0 and w[v, u] > w[leave, u]:
                    leave = v
            s, t = source[u, enter], target[u, enter]
            w[u, found] = enter_value
            source[u, found] = s
            target[u, found] = t
            if u != 0:
                s, t = source[leave, u], target[leave, u]
                w[found, u] = w[leave, u]
                source[found, u] = s
                target[found, u] = t
        for v in members:
            if v != found:
                alive[v] = False
        for i in range(n):
            if inside[owner[i]]:
                owner[i] = found
        depth += 1
    parent = np.full(n, -1, dtype=np.int64)
    entered = np.zeros(
        n, dtype=np.int64
    )  # the original node at which the parent's arc enters a contracted one
    for i in range(1, n):
        if alive[i]:
            parent[target[best[i], i]] = source[best[i], i]
            entered[i] = target[best[i], i]
    for level in range(depth - 1, -1, -1):
        start, stop = cycle_start[level], cycle_start[level + 1]
        head = entered[cycle_nodes[start]]  # the first member stood for the whole cycle
        for k in range(start, stop):
            v = cycle_nodes[k]
            if owners[level, head] == v:
                entered[v] = head
            else:
                parent[cycle_target[k]] = cycle_source[k]
                entered[v] = cycle_target[k]
    return parent


@njit(cache=True, parallel=True)
def forced_arborescences(weights):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return for every arc the weight of the best arborescence with it, without the arc's own weight.

    Parameters
    ----------
    weights : float64 array, shape (n, n)
        As for `maximum_arborescence`.

    Returns
    -------
    float64 array, shape (n, n)
        Column 0 and the diagonal are -inf.
    """
    n = weights.shape[0]
    result = np.full((n, n), -np.inf)
    for i in prange(1, n):
        w = weights.copy()
        for j in range(n):
            if j == i:
                continue
            w[:, i] = -np.inf
            w[j, i] = 0.0
            parent = maximum_arborescence(w)
            total = 0.0
            for v in range(1, n):
                total += w[parent[v], v]
            result[j, i] = total
    return result


def rounding_slack(weights: NDArray[np.float64]) -> float:
    """Return a bound on how much better than the computed branching the true maximum can be.

    Contractions subtract weights; n of them on n arcs, each with numbers of at most n times the largest weight,
    lose at most 4 n^3 times the machine epsilon of that weight.
    """
    finite = weights[np.isfinite(weights)]
    largest = float(np.abs(finite).max()) if finite.size else 0.0
    return 4.0 * len(weights) ** 3 * np.finfo(np.float64).eps * largest
