"""Maximum-weight branchings: Chu-Liu/Edmonds on a list of arcs, with forced edges and reduced costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.util.compiled import kernel

#: The rank if there is no arborescence; smaller than any sum of ranks.
IMPOSSIBLE = -(1 << 20)
#: In place of an arc: there is none, or the search for it is still to come.
NONE, UNKNOWN = -1, -2


class Arcs(NamedTuple):
    """Arcs of a graph with n nodes, ordered by head. Parallel arcs are allowed."""

    #: The arcs into node i are ``first[i] <= a < first[i + 1]``; none go into node 0, the root. Shape (n + 1,).
    first: NDArray[np.int64]
    #: Tail of each arc, shape (A,).
    tail: NDArray[np.int64]
    #: Weight of each arc, shape (A,).
    weights: NDArray[np.float64]
    #: 1 for an arc of a forced edge, 0 otherwise. Ranks are compared before weights. A large constant added to the
    #: weights would have the same effect, but cost digits. Shape (A,).
    ranks: NDArray[np.int64]


@kernel(linked=True, inner=True)
def _best_from_outside(arcs, node, top, member):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return the best arc from outside a contracted node into one of its members, `NONE` if there is none."""
    best, weight, rank = NONE, 0.0, 0
    for a in range(arcs.first[member], arcs.first[member + 1]):
        w, r = arcs.weights[a], arcs.ranks[a]
        if top[arcs.tail[a]] != node and (best < 0 or r > rank or (r == rank and w > weight)):
            best, weight, rank = a, w, r
    return best


@kernel(linked=True, inner=True)
def _best_into(arcs, node, top, following, shift, rank_shift, own, member):  # type: ignore[no-untyped-def]
    """Return the best arc into a node, `NONE` if there is none; its head; and its reduced weight and rank.

    They are reduced by the dual values that the head has paid. Nodes only grow, so a member's own best arc is searched
    again only when its tail has become part of the node.
    """
    arc, head, weight, rank = NONE, -1, 0.0, 0
    while member >= 0:
        a = own[member]
        if a == UNKNOWN or (a >= 0 and top[arcs.tail[a]] == node):
            a = _best_from_outside(arcs, node, top, member)
            own[member] = a
        if a >= 0:
            w, r = arcs.weights[a] - shift[member], arcs.ranks[a] - rank_shift[member]
            if arc < 0 or r > rank or (r == rank and w > weight):
                arc, head, weight, rank = a, member, w, r
        member = following[member]
    return arc, head, weight, rank


@kernel(linked=True, inner=True)
def _list_cycle(arcs, best, top, start, cycle):  # type: ignore[no-untyped-def]
    """Write the nodes of the cycle of best arcs through a node, and return their number."""
    length = 0
    node = start
    while True:
        cycle[length] = node
        length += 1
        node = top[arcs.tail[best[node]]]
        if node == start:
            return length


@kernel(linked=True, inner=True)
def _pay(member, last, following, shift, by, rank_shift, rank_by, top, node):  # type: ignore[no-untyped-def]
    """Add a dual value to what the members of a chain have paid, and make a contracted node their top node."""
    while True:
        top[member] = node
        shift[member] += by
        rank_shift[member] += rank_by
        if member == last:
            break
        member = following[member]


@kernel(inner=True)
def _choose_arcs(number, best, head, up, chosen):  # type: ignore[no-untyped-def]
    """Write the arc into each original node, given the best arc into each of the nodes below `number` and its head."""
    entered = np.zeros(number, dtype=np.bool_)
    chosen[0] = -1
    for node in range(number - 1, 0, -1):
        if entered[node]:
            continue
        # The arc enters this contracted node, and all nodes inside it that contain the arc's head.
        member = head[node]
        chosen[member] = best[node]
        while member != node:
            entered[member] = True
            member = up[member]


@kernel
def maximum_arborescence(arcs, chosen, reduced):  # type: ignore[no-untyped-def]  # numba infers the types
    """Find a maximum-weight arborescence rooted at node 0, first by rank and then by weight.

    The search walks backwards along best incoming arcs. When a walk meets itself, the cycle is contracted to a new
    node, and each of its members pays the weight of its best arc (Edmonds 1967). These payments are dual values: their
    sum is the maximum, and they give the reduced costs of all arcs. A branching over the nodes 1, 2, ... is an
    arborescence in which the arcs from node 0 have the weights of parentless nodes.

    Parameters
    ----------
    chosen : int64 array, shape (n,)
        Receives the arc into each node, -1 for the root.
    reduced : float64 array, shape (A,) or (0,)
        Receives the reduced cost of each arc: any arborescence with the arc weighs less than the bound by at least
        this; inf if it has a lower rank. Not written if it is empty or if there is no arborescence.

    Returns
    -------
    rank : int
        Sum of the arcs' ranks; `IMPOSSIBLE` if there is no arborescence.
    bound : float
        Sum of the dual values: no arborescence of this rank weighs more, up to rounding.
    """
    n = len(arcs.first) - 1
    size = 2 * n
    up = np.full(size, -1, dtype=np.int64)  # the contracted node that a node became a part of
    best, head = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    dual, rank_dual = np.zeros(size), np.zeros(size, dtype=np.int64)
    seen = np.zeros(size, dtype=np.int64)  # the walk that came to a node
    # The original nodes in a contracted node form a chain. Each knows its top node, and what it has paid inside.
    begin, end = np.arange(size), np.arange(size)
    following = np.full(n, -1, dtype=np.int64)
    top = np.arange(n)
    shift, rank_shift = np.zeros(n), np.zeros(n, dtype=np.int64)
    own = np.full(n, UNKNOWN, dtype=np.int64)
    cycle = np.empty(n, dtype=np.int64)
    number = n
    seen[0] = n
    for start in range(1, n):
        node = top[start]
        if seen[node] != 0:
            continue
        while True:
            if seen[node] == 0:
                seen[node] = start
                best[node], head[node], dual[node], rank_dual[node] = _best_into(
                    arcs, node, top, following, shift, rank_shift, own, begin[node]
                )
                if best[node] < 0:
                    return IMPOSSIBLE, -np.inf
            before = top[arcs.tail[best[node]]]
            if seen[before] == 0:
                node = before
                continue
            if seen[before] != start:
                break  # an earlier walk came from there to the root
            length = _list_cycle(arcs, best, top, before, cycle)
            node = number
            number += 1
            last = -1
            for x in range(length):
                u = cycle[x]
                up[u] = node
                if last < 0:
                    begin[node] = begin[u]
                else:
                    following[last] = begin[u]
                last = end[u]
                _pay(begin[u], last, following, shift, dual[u], rank_shift, rank_dual[u], top, node)
            end[node] = last
    rank, bound = 0, 0.0
    for node in range(number - 1, 0, -1):
        rank += rank_dual[node]
        bound += dual[node]
    _choose_arcs(number, best, head, up, chosen)
    if len(reduced):
        _reduce(arcs, up, dual, rank_dual, reduced)
    return rank, bound


@kernel(inner=True)
def _reduce(arcs, up, dual, rank_dual, reduced):  # type: ignore[no-untyped-def]
    """Write the reduced costs: the sum of the dual values of all nodes that an arc enters, minus the arc's weight."""
    n = len(arcs.first) - 1
    around = np.zeros(len(up), dtype=np.int64)
    paid, rank_paid = np.empty(len(up)), np.empty(len(up), dtype=np.int64)
    for i in range(1, n):
        total, rank_total = 0.0, 0
        node = i
        while node >= 0:
            around[node], paid[node], rank_paid[node] = i, total, rank_total
            total += dual[node]
            rank_total += rank_dual[node]
            node = up[node]
        for a in range(arcs.first[i], arcs.first[i + 1]):
            node = arcs.tail[a]
            while node >= 0 and around[node] != i:
                node = up[node]
            cost, rank_cost = (total, rank_total) if node < 0 else (paid[node], rank_paid[node])
            reduced[a] = cost - arcs.weights[a] if rank_cost == arcs.ranks[a] else np.inf


def forced_arborescences(arcs: Arcs) -> NDArray[np.float64]:
    """Return for every arc the weight of the best arborescence with it, without the arc's own weight, shape (A,).

    It is -inf for an arc with which no arborescence has the highest rank.
    """
    n, total = len(arcs.first) - 1, len(arcs.tail)
    result = np.full(total, -np.inf)
    nothing, chosen = np.empty(0), np.empty(n, dtype=np.int64)
    most, _ = maximum_arborescence(arcs, chosen, nothing)
    if most == IMPOSSIBLE:
        return result
    for i in range(1, n):
        begin, end = arcs.first[i], arcs.first[i + 1]
        first = arcs.first.copy()
        first[i + 1 :] -= end - begin - 1
        kept = np.delete(np.arange(total), np.arange(begin + 1, end))
        weights, ranks, tail = arcs.weights[kept], arcs.ranks[kept], arcs.tail[kept]
        weights[begin], ranks[begin] = 0.0, 0
        for a in range(begin, end):
            tail[begin] = arcs.tail[a]
            rank, value = maximum_arborescence(Arcs(first, tail, weights, ranks), chosen, nothing)
            if rank + arcs.ranks[a] >= most:
                result[a] = value
    return result


@kernel(linked=True)
def rounding_slack(n, largest):  # type: ignore[no-untyped-def]
    """Return a bound on the rounding error of the maximum weight of a branching.

    Each of n members adds at most n payments of at most 2 n times the largest weight. The sums lose less than 4 n^3
    times the machine epsilon times that weight.
    """
    return 4.0 * n**3 * 2.220446049250313e-16 * largest
