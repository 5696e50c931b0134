"""Maximum-weight branchings: Chu-Liu/Edmonds on a list of arcs, with forced edges and reduced costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.compiled import kernel

#: Rank of what does not exist; no sum of ranks is as small.
IMPOSSIBLE = -(1 << 20)
#: Instead of an arc: there is none, or none was looked for.
NONE, UNKNOWN = -1, -2


class Arcs(NamedTuple):
    """Arcs of a graph with n nodes, those into the same node side by side; there may be parallel ones.

    Attributes
    ----------
    first : int64 array, shape (n + 1,)
        The arcs into node i are ``first[i] <= a < first[i + 1]``; none go into node 0, the root.
    tail : int64 array, shape (A,)
        Where they come from.
    weights : float64 array, shape (A,)
        What they weigh.
    ranks : int64 array, shape (A,)
        1 for an arc of a forced edge, 0 otherwise. Ranks are compared before weights, so that no large constant
        costs digits.
    """

    first: NDArray[np.int64]
    tail: NDArray[np.int64]
    weights: NDArray[np.float64]
    ranks: NDArray[np.int64]


@kernel
def _best_from_outside(arcs, node, top, member):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return the best arc from outside a node into one of its members, `NONE` if there is none."""
    best, weight, rank = NONE, 0.0, 0
    for a in range(arcs.first[member], arcs.first[member + 1]):
        w, r = arcs.weights[a], arcs.ranks[a]
        if top[arcs.tail[a]] != node and (best < 0 or r > rank or (r == rank and w > weight)):
            best, weight, rank = a, w, r
    return best


@kernel
def _best_into(arcs, node, top, following, shift, rank_shift, own, member):  # type: ignore[no-untyped-def]
    """Return the best arc into a node, `NONE` if there is none; its head, and weight and rank less what that has paid.

    Nodes only grow: a member's own best arc is looked for again when its tail has come inside, and not before.
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


@kernel
def maximum_arborescence(arcs, chosen, reduced):  # type: ignore[no-untyped-def]  # numba infers the types
    """Find a maximum-weight arborescence rooted at node 0, first by rank and then by weight.

    Walks follow best incoming arcs; where one meets itself the cycle becomes a new node, and its members pay what their
    best arcs weigh (Edmonds 1967). These payments are dual values: they add up to the maximum, and bound what any arc
    can be part of. A branching over nodes 1.. is an arborescence whose arcs from 0 have the weights of parentless
    nodes.

    Parameters
    ----------
    arcs : Arcs
        The graph.
    chosen : int64 array, shape (n,)
        Gets the arc into each node, -1 for the root.
    reduced : float64 array, shape (A,) or (0,)
        Gets for every arc by how much less any arborescence with it weighs than the bound, at least; inf if such an
        arborescence has a lower rank. Left alone if empty, or if there is no arborescence.

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
    # The original nodes of each node are a chain; each knows its node, and what it has paid inside.
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
            length = 0
            u = before
            while True:
                cycle[length] = u
                length += 1
                u = top[arcs.tail[best[u]]]
                if u == before:
                    break
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
                member = begin[u]
                while True:
                    top[member] = node
                    shift[member] += dual[u]
                    rank_shift[member] += rank_dual[u]
                    if member == last:
                        break
                    member = following[member]
            end[node] = last
    rank, bound = 0, 0.0
    entered = np.zeros(size, dtype=np.bool_)
    chosen[0] = -1
    for node in range(number - 1, 0, -1):
        rank += rank_dual[node]
        bound += dual[node]
        if entered[node]:
            continue
        # The arc goes into a node that was contracted: what lies around its head is entered by it.
        member = head[node]
        chosen[member] = best[node]
        while member != node:
            entered[member] = True
            member = up[member]
    if len(reduced):
        _reduce(arcs, up, dual, rank_dual, reduced)
    return rank, bound


@kernel
def _reduce(arcs, up, dual, rank_dual, reduced):  # type: ignore[no-untyped-def]
    """Write the reduced costs: an arc pays the dual values of all nodes, contracted ones too, that it enters."""
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
    """Return for every arc the weight of the best arborescence with it, without the arc's own weight.

    Parameters
    ----------
    arcs : Arcs
        As for `maximum_arborescence`.

    Returns
    -------
    float64 array, shape (A,)
        -inf for an arc whose forcing costs a rank beside its own.
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


@kernel
def rounding_slack(n, largest):  # type: ignore[no-untyped-def]
    """Return a bound on how much better than the computed branching the true maximum can be.

    Members add up what they pay, at most n numbers of at most 2 n times the largest weight each; of n members that
    loses less than 4 n^3 times the machine epsilon of that weight.
    """
    return 4.0 * n**3 * 2.220446049250313e-16 * largest
