"""Upper bounds on the weight of the heaviest structure, for the verifier: plain code, independent of the search.

Branchings are bounded by the dual of Edmonds (1967). Every strongly connected group of nodes receives the weight of
its best entering arc, this weight is subtracted from all arcs that enter the group, and groups on a cycle of best arcs
are merged. As soon as no arc has a positive weight left, no branching weighs more than the sum of the subtracted
weights, in whatever order the steps were done. Only this dual is computed, because the verifier does not need the
branching itself.
"""

from __future__ import annotations

import numpy as np

from milpbn.certificate.verify.space import ANY, DAGS, FORESTS
from milpbn.util.compiled import kernel

#: Rank of an arc that does not exist; no sum of other ranks compensates for it.
ABSENT = -(1 << 30)
#: Weights of this size, or not finite, prove nothing. Sums of smaller weights stay within the range of float64.
LARGEST = 1e150
_EPS = float(np.finfo(np.float64).eps)


@kernel
def _best_arcs(left, left_rank, group, source, target):  # type: ignore[no-untyped-def]  # numba infers the types
    """Write source and target of the best arc that enters each group, by rank and then by weight."""
    n = len(group)
    source[:] = -1
    for i in range(1, n):
        k = group[i]
        for j in range(n):
            if group[j] == k:
                continue
            s, t = source[k], target[k]
            more = left_rank[j, i] - left_rank[s, t] if s >= 0 else 1
            if more > 0 or (more == 0 and left[j, i] > left[s, t]):
                source[k] = j
                target[k] = i


@kernel
def _merge_cycles(group, source):  # type: ignore[no-untyped-def]
    """Merge the groups on every cycle of best arcs; return whether there was one."""
    n = len(group)
    walk = np.full(n, -1, dtype=np.int64)
    merged = False
    for k in range(1, n):
        if group[k] != k or walk[k] >= 0:
            continue
        v = k
        while v != 0 and walk[v] < 0:
            walk[v] = k
            v = group[source[v]]
        if v == 0 or walk[v] != k:
            continue
        merged = True
        u = group[source[v]]
        while u != v:
            following = group[source[u]]
            for i in range(1, n):
                if group[i] == u:
                    group[i] = v
            u = following
    return merged


@kernel
def branching_bound(weight, rank, left, left_rank):  # type: ignore[no-untyped-def]
    """Bound the arborescences rooted at node 0, which are compared by the sum of ranks and then by weight.

    `weight` and `rank`, float64 and int64 arrays of shape (n, n), are those of the arcs j -> i; column 0 and the
    diagonal are not read. `left` and `left_rank`, of the same types and shape, receive every arc's reduced weight and
    rank, at most (0, 0): an arborescence that contains the arc has at most the bound's rank and weight plus these.

    Return an upper bound on the weight of arborescences of rank `total_rank`, rounded up, and `total_rank`, an upper
    bound on the rank of all arborescences.
    """
    n = weight.shape[0]
    for i in range(n):  # loops compile sooner than slices
        for j in range(n):
            left[i, j], left_rank[i, j] = weight[i, j], rank[i, j]
    group = np.arange(n)
    source = np.empty(n, dtype=np.int64)
    target = np.empty(n, dtype=np.int64)
    total, taken, largest = 0.0, 0.0, 0.0
    total_rank = 0
    levels = 0
    merged = True
    while merged:
        levels += 1
        _best_arcs(left, left_rank, group, source, target)
        for k in range(1, n):
            if group[k] != k:
                continue
            dual = left[source[k], target[k]]
            dual_rank = left_rank[source[k], target[k]]
            total += dual
            taken += abs(dual)
            total_rank += dual_rank
            for i in range(1, n):
                if group[i] == k:
                    for j in range(n):
                        if group[j] != k:
                            left[j, i] -= dual
                            left_rank[j, i] -= dual_rank
                            largest = max(largest, abs(left[j, i]))
        merged = _merge_cycles(group, source)
    # Each subtraction may make an arc too light by half an ulp, and an arborescence has fewer than n arcs.
    slack = _EPS * (n * levels * largest + 2 * n * levels * taken)
    return total + slack, total_rank


@kernel
def _fill(space, g, mask, forced, class_set, weight, rank):  # type: ignore[no-untyped-def]
    """Write the weight of every arc's heaviest allowed parent set, and the arc's rank.

    `class_set` is the class's parent set, or -1 for none: its features may not have the class as a parent.
    """
    weight[:] = 0.0
    rank[:] = ABSENT
    for p in range(space.offsets[-2]):
        i = space.variable[p]
        if not mask[p] or (class_set >= 0 and space.with_class[p] and space.is_parent[class_set, i]):
            continue
        j = space.tail[p]
        if rank[j, i + 1] == ABSENT or g[p] > weight[j, i + 1]:
            weight[j, i + 1] = g[p]
            rank[j, i + 1] = forced[j, i + 1]


@kernel
def _best_sets(space, g, mask):  # type: ignore[no-untyped-def]
    """Return the weight of each variable's heaviest allowed parent set within each set U of variables.

    The result has shape (n, 2^n) for the n ordered variables; U is a bit mask.
    """
    n = space.ordered
    best = np.full((n, 1 << n), -np.inf)
    for p in range(len(g)):
        i = space.variable[p]
        if mask[p] and i < n:
            best[i, space.masks[p]] = max(best[i, space.masks[p]], g[p])
    for b in range(n):
        for i in range(n):
            for U in range(1 << n):
                if U >> b & 1:
                    best[i, U] = max(best[i, U], best[i, U ^ (1 << b)])
    return best


@kernel
def _first_sets(best):  # type: ignore[no-untyped-def]
    """Return the weight of the heaviest structure over each set of variables without the others, shape (2^n,)."""
    n = len(best)
    total = np.full(1 << n, -np.inf)
    total[0] = 0.0
    for U in range(1 << n):
        for i in range(n):
            if not U >> i & 1:
                total[U | (1 << i)] = max(total[U | (1 << i)], total[U] + best[i, U])
    return total


@kernel
def _last_sets(best):  # type: ignore[no-untyped-def]
    """Return, for each set of variables that come first, the most that the others can add, shape (2^n,)."""
    n = len(best)
    rest = np.full(1 << n, -np.inf)
    rest[-1] = 0.0
    for U in range((1 << n) - 2, -1, -1):
        for i in range(n):
            if not U >> i & 1:
                rest[U] = max(rest[U], best[i, U] + rest[U | (1 << i)])
    return rest


@kernel
def _tops(space, g, mask):  # type: ignore[no-untyped-def]
    """Return the weight of each variable's heaviest allowed parent set, shape (V,)."""
    V = len(space.offsets) - 1
    top = np.full(V, -np.inf)
    for p in range(len(g)):
        if mask[p]:
            top[space.variable[p]] = max(top[space.variable[p]], g[p])
    return top


@kernel
def _sum_slack(space, g, mask):  # type: ignore[no-untyped-def]
    """Return the largest rounding error of a sum of one allowed weight per variable and a few more numbers.

    It is inf if a weight is at least `LARGEST` or not finite, because no sum is reliable then.
    """
    V = len(space.offsets) - 1
    largest = 0.0
    for p in range(len(g)):
        if mask[p]:
            if not abs(g[p]) < LARGEST:
                return np.inf
            largest = max(largest, abs(g[p]))
    return _EPS * (V + 8) * (V + 2) * largest


@kernel
def _descending(g, first):  # type: ignore[no-untyped-def]  # by itself: to compile a sort takes a second
    """Return the indices from `first` on, the largest weight first."""
    return np.argsort(-g[first:]) + first


@kernel
def heaviest(space, g, mask, forced, n_forced, enough):  # type: ignore[no-untyped-def]
    """Return an upper bound on ``g @ eta``, g float64 of shape (P,), over the structures of a node.

    It is -inf if the node has no structures, and inf if the weights are too large for a bound. A bound up to `enough`
    is returned without tightening it further. The structures have only parent sets of `mask`, bool of shape (P,), and
    if they are forests, the `n_forced` edges of `forced`, int64 of shape (V, V), which has a 1 for both arcs between
    the ends of a forced edge, else 0; feature i is node i + 1.
    """
    slack = _sum_slack(space, g, mask)
    if slack == np.inf:
        return slack
    top = _tops(space, g, mask)
    for i in range(len(top)):
        if top[i] == -np.inf:
            return -np.inf
    if space.kind == ANY:
        return top.sum() + slack
    if space.kind == DAGS:
        total = _first_sets(_best_sets(space, g, mask))[-1]
        if space.ordered < len(top):
            total += top[-1]
        return total + slack
    n = len(top)
    weight, left = np.empty((n, n)), np.empty((n, n))
    rank, left_rank = np.empty((n, n), dtype=np.int64), np.empty((n, n), dtype=np.int64)
    _fill(space, g, mask, forced, -1, weight, rank)
    free, reached = branching_bound(weight, rank, left, left_rank)
    if reached < n_forced:
        return -np.inf
    first = space.offsets[-2]
    largest = -np.inf
    for p in _descending(g, first):
        if not mask[p]:
            continue
        # The weights descend, so that no later parent set of the class exceeds this.
        relaxed = g[p] + free
        if relaxed + slack <= enough or relaxed <= largest:
            return max(largest, relaxed) + slack
        value = free
        if space.is_parent[p].any():
            _fill(space, g, mask, forced, p, weight, rank)
            value, reached = branching_bound(weight, rank, left, left_rank)
            if reached < n_forced:
                continue
        largest = max(largest, g[p] + value)
    return largest + slack


@kernel
def unproved(space, g, mask, forced, n_forced, parent_sets, limit):  # type: ignore[no-untyped-def]
    """Return one of some parent sets (indices) that a structure of weight `limit` or more may have, else -1.

    The indices ascend, so that each variable's work is done once. The other arguments are those of `heaviest`.
    """
    slack = _sum_slack(space, g, mask)
    if slack == np.inf:
        for p in parent_sets:
            if mask[p]:
                return p
        return -1
    limit -= 2 * slack
    top = _tops(space, g, mask)
    if space.kind == FORESTS:
        return _unproved_arcs(space, g, mask, forced, n_forced, parent_sets, limit)
    if space.kind == ANY:
        for p in parent_sets:
            others = 0.0
            for i in range(len(top)):
                if i != space.variable[p]:
                    others += top[i]
            if mask[p] and not g[p] + others < limit:
                return p
        return -1
    best = _best_sets(space, g, mask)
    first = _first_sets(best)
    last = _last_sets(best)
    n = space.ordered
    free = top[-1] if n < len(top) else 0.0
    around = np.empty(1 << n)
    done = -1
    for p in parent_sets:
        i = space.variable[p]
        if not mask[p]:
            continue
        if i >= n:
            if not g[p] + first[-1] < limit:
                return p
            continue
        if i != done:
            # around[U] is the most that the others weigh if all variables of U come before i.
            done = i
            for U in range(1 << n):
                around[U] = -np.inf if U >> i & 1 else first[U] + last[U | (1 << i)]
            for b in range(n):
                for U in range(1 << n):
                    if not U >> b & 1:
                        around[U] = max(around[U], around[U | (1 << b)])
        if not g[p] + around[space.masks[p]] + free < limit:
            return p
    return -1


@kernel
def _unproved_arcs(space, g, mask, forced, n_forced, parent_sets, limit):  # type: ignore[no-untyped-def]
    """Do the work of `unproved` for forests.

    An arc's reduced weight bounds the structures that have the arc. Where this bound does not suffice, a dual is
    computed for the one arc.
    """
    n = len(space.offsets) - 1
    first = space.offsets[-2]
    weight, left = np.empty((n, n)), np.empty((n, n))
    rank, left_rank = np.empty((n, n), dtype=np.int64), np.empty((n, n), dtype=np.int64)
    _fill(space, g, mask, forced, -1, weight, rank)
    free, reached = branching_bound(weight, rank, left, left_rank)
    if reached < n_forced:
        return -1
    wanted = np.zeros(len(g), dtype=np.bool_)
    gain = np.full(len(g), -np.inf)
    highest = -np.inf
    for p in parent_sets:
        if not mask[p]:
            continue
        if p >= first:
            wanted[p] = True
            continue
        j, i = space.tail[p], space.variable[p] + 1
        if left_rank[j, i] + reached >= n_forced:
            wanted[p] = True
            gain[p] = left[j, i] - weight[j, i] + g[p]
            highest = max(highest, gain[p])
    own, own_rank = np.empty((n, n)), np.empty((n, n), dtype=np.int64)
    spare, spare_rank = np.empty((n, n)), np.empty((n, n), dtype=np.int64)
    for s in _descending(g, first):
        if g[s] + free < limit:
            break
        if not mask[s]:
            continue
        if not wanted[s] and g[s] + free + highest < limit:
            continue
        _fill(space, g, mask, forced, s, weight, rank)
        value, reached = branching_bound(weight, rank, left, left_rank)
        if reached < n_forced or g[s] + value < limit:
            continue
        if wanted[s]:
            return s
        for p in parent_sets:
            if p >= first or not wanted[p] or g[s] + free + gain[p] < limit:
                continue
            j, i = space.tail[p], space.variable[p] + 1
            if space.with_class[p] and space.is_parent[s, i - 1]:
                continue
            if left_rank[j, i] + reached < n_forced:
                continue
            if g[s] + value + (left[j, i] - weight[j, i] + g[p]) < limit:
                continue
            for b in range(n):
                for a in range(n):
                    own[a, b], own_rank[a, b] = weight[a, b], ABSENT if b == i and a != j else rank[a, b]
            own[j, i] = g[p]
            alone, most = branching_bound(own, own_rank, spare, spare_rank)
            if most >= n_forced and not g[s] + alone < limit:
                return p
    return -1
