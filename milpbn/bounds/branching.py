"""Maximum-weight branchings: Chu-Liu/Edmonds on a dense matrix, with forced edges and reduced costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milpbn.compiled import kernel

#: Rank of an arc that must not be used: no sum of other ranks makes up for it.
FORBIDDEN = -(1 << 20)


@kernel
def maximum_arborescence(weights, ranks, reduced):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return a maximum-weight arborescence rooted at node 0, first by rank and then by weight.

    Cycles of best incoming arcs are contracted one after the other and expanded in reverse order (Edmonds 1967),
    O(n^2) each. Every node, contracted ones included, gets a dual value when it is contracted or at the end: the
    reduced weight of its best incoming arc. They add up to the maximum, and bound what any arc can be part of.
    A branching over nodes 1.. is an arborescence whose arcs from 0 have the weights of parentless nodes.

    Parameters
    ----------
    weights : float64 array, shape (n, n)
        weights[j, i] is the weight of the arc j -> i. Column 0 and the diagonal are not read.
    ranks : int64 array, shape (n, n)
        `FORBIDDEN` for an arc that must not be used; 1 for an arc of a forced edge, 0 otherwise. Ranks are
        compared before weights, so that no large constant costs digits.
    reduced : float64 array, shape (n, n) or (0, 0)
        Gets for every arc by how much less any arborescence with it weighs than the bound, at least; inf if
        such an arborescence has a lower rank. Left alone if empty.

    Returns
    -------
    parent : int64 array, shape (n,)
        Parent of each node; -1 for the root.
    rank : int
        Sum of the arcs' ranks.
    bound : float
        Sum of the dual values: no arborescence of this rank weighs more, up to rounding.
    """
    n = weights.shape[0]
    w = weights.copy()
    r = ranks.copy()
    source = np.empty((n, n), dtype=np.int32)
    target = np.empty((n, n), dtype=np.int32)
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
    cycle_weight = np.empty(2 * n)
    cycle_rank = np.empty(2 * n, dtype=np.int64)
    cycle_start = np.zeros(n + 1, dtype=np.int64)
    owners = np.empty((n, n), dtype=np.int64)
    depth = 0
    state = np.zeros(n, dtype=np.int64)
    inside = np.zeros(n, dtype=np.bool_)
    for i in range(1, n):
        best[i] = -1
    while True:
        for i in range(1, n):
            if alive[i] and best[i] < 0:
                top = -1
                for j in range(n):
                    if not alive[j] or j == i:
                        continue
                    if top < 0 or r[j, i] > r[top, i] or (r[j, i] == r[top, i] and w[j, i] > w[top, i]):
                        top = j
                best[i] = top
        # Walk along best incoming arcs; a walk that meets itself has found a cycle.
        for i in range(n):
            state[i] = 0
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
            cycle_weight[stop] = w[best[v], v]
            cycle_rank[stop] = r[best[v], v]
            stop += 1
            v = best[v]
            if v == found:
                break
        cycle_start[depth + 1] = stop
        for i in range(n):
            owners[depth, i] = owner[i]
            inside[i] = False
        members = cycle_nodes[start:stop]
        for v in members:
            inside[v] = True
        for u in range(n):
            if not alive[u] or inside[u]:
                continue
            enter = members[0]
            leave = members[0]
            enter_rank = r[u, enter] - cycle_rank[start]
            enter_value = w[u, enter] - cycle_weight[start]
            for x in range(start + 1, stop):
                v = cycle_nodes[x]
                rank = r[u, v] - cycle_rank[x]
                value = w[u, v] - cycle_weight[x]
                if rank > enter_rank or (rank == enter_rank and value > enter_value):
                    enter, enter_rank, enter_value = v, rank, value
                if u != 0 and (r[v, u] > r[leave, u] or (r[v, u] == r[leave, u] and w[v, u] > w[leave, u])):
                    leave = v
            s, t = source[u, enter], target[u, enter]
            w[u, found] = enter_value
            r[u, found] = enter_rank
            source[u, found] = s
            target[u, found] = t
            if u != 0:
                s, t = source[leave, u], target[leave, u]
                w[found, u] = w[leave, u]
                r[found, u] = r[leave, u]
                source[found, u] = s
                target[found, u] = t
                if inside[best[u]]:
                    best[u] = found
        for v in members:
            if v != found:
                alive[v] = False
        best[found] = -1
        for i in range(n):
            if inside[owner[i]]:
                owner[i] = found
        depth += 1
    parent = np.full(n, -1, dtype=np.int64)
    entered = np.zeros(n, dtype=np.int64)  # the original node at which an arc enters a contracted one
    rank_sum = 0
    bound = 0.0
    for i in range(1, n):
        if alive[i]:
            parent[target[best[i], i]] = source[best[i], i]
            entered[i] = target[best[i], i]
            rank_sum += r[best[i], i]
            bound += w[best[i], i]
    for x in range(cycle_start[depth]):
        rank_sum += cycle_rank[x]
        bound += cycle_weight[x]
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
    if len(reduced):
        # An arc pays the dual values of all contracted nodes that it enters.
        for i in range(1, n):
            top = owner[i]
            for j in range(n):
                paid = -weights[j, i]
                paid_rank = -ranks[j, i]
                if owner[j] != top:
                    paid += w[best[top], top]
                    paid_rank += r[best[top], top]
                for level in range(depth):
                    own = owners[level, i]
                    if owners[level, j] != own:
                        for x in range(cycle_start[level], cycle_start[level + 1]):
                            if cycle_nodes[x] == own:
                                paid += cycle_weight[x]
                                paid_rank += cycle_rank[x]
                                break
                reduced[j, i] = paid if paid_rank == 0 else np.inf
    return parent, rank_sum, bound


def forced_arborescences(weights: NDArray[np.float64], ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for every arc the weight of the best arborescence with it, without the arc's own weight.

    Parameters
    ----------
    weights, ranks : arrays, shape (n, n)
        As for `maximum_arborescence`.

    Returns
    -------
    float64 array, shape (n, n)
        Column 0 and the diagonal are -inf, and so are arcs whose forcing costs a rank beside their own.
    """
    n = len(weights)
    result = np.full((n, n), -np.inf)
    nothing = np.empty((0, 0))
    _, most, _ = maximum_arborescence(weights, ranks, nothing)
    w, r = weights.copy(), ranks.copy()
    for i in range(1, n):
        r[:, i] = FORBIDDEN
        for j in range(n):
            if j == i:
                continue
            r[j, i], w[j, i] = 0, 0.0
            _, rank, value = maximum_arborescence(w, r, nothing)
            if rank + max(0, ranks[j, i]) >= most:
                result[j, i] = value
            r[j, i] = FORBIDDEN
        r[:, i], w[:, i] = ranks[:, i], weights[:, i]
    return result


@kernel
def rounding_slack(n, largest):  # type: ignore[no-untyped-def]
    """Return a bound on how much better than the computed branching the true maximum can be.

    Contractions subtract weights; n of them on n arcs, each with numbers of at most n times the largest weight,
    lose at most 4 n^3 times the machine epsilon of that weight.
    """
    return 4.0 * n**3 * 2.220446049250313e-16 * largest
