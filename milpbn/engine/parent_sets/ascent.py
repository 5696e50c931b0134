"""Dual ascent over clusters: the first multipliers, without a linear program (Trösser, de Givry & Katsirelos 2021).

Where the parent sets with reduced cost 0 hold no acyclic structure, the variables that cannot be placed are a cluster
none of whose members has such a set outside it. Its multiplier grows until one has; so the bound grows by as much.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.parent_sets.rows import CLUSTER, Row
from milpbn.engine.parent_sets.sets import (
    ParentSets,
    drop,
    generator,
    has,
    inside,
    meets,
    members_of,
    put,
    random_below,
)
from milpbn.util.budget import Budget
from milpbn.util.compiled import kernel

#: Reduced costs up to this are taken as 0, in nats.
NEARLY_FREE = 1e-9
#: Most clusters.
MOST_CLUSTERS = 3000
#: Random clusters of which the one with the largest multiplier is taken; fewer if there are many variables.
TRIES, TRIES_OF_ALL = 20, 2000
#: Clusters between two looks at the budget.
AT_ONCE = 10


@kernel
def unplaceable(starts, free, masks):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return the variables that no order places, as a set of words; none if the free sets hold a structure.

    The free sets of variable i are ``free[starts[i]:starts[i + 1]]``, numbers of rows of `masks`.
    """
    n = len(starts) - 1
    placed = np.zeros(masks.shape[1], dtype=np.uint64)
    rest = np.zeros(masks.shape[1], dtype=np.uint64)
    for i in range(n):
        put(rest, i)
    found = True
    while found:
        found = False
        for i in range(n):
            if not has(rest, i):
                continue
            for q in range(starts[i], starts[i + 1]):
                if inside(masks[free[q]], placed):
                    put(placed, i)
                    drop(rest, i)
                    found = True
                    break
    return rest


@kernel(inner=True)
def _grow(starts, free, masks, unplaced, cluster, random):  # type: ignore[no-untyped-def]
    """Fill a cluster of unplaced variables: from a random one on, every free set of a member gets a member.

    The free sets of variable i are ``free[starts[i]:starts[i + 1]]``. Each of them meets the unplaced variables.
    """
    n = len(starts) - 1
    cluster[:] = 0
    waiting = np.empty(n, dtype=np.int64)
    i = random_below(random, n)
    while not has(unplaced, i):
        i = (i + 1) % n
    put(cluster, i)
    waiting[0] = i
    done, size = 0, 1
    while done < size:
        i = waiting[done]
        done += 1
        for q in range(starts[i], starts[i + 1]):
            if meets(masks[free[q]], cluster):
                continue
            j = random_below(random, n)
            while not (has(unplaced, j) and has(masks[free[q]], j)):
                j = (j + 1) % n
            put(cluster, j)
            waiting[size] = j
            size += 1


@kernel(inner=True)
def _shrink(starts, free, masks, cluster, order):  # type: ignore[no-untyped-def]
    """Leave members out of a cluster, in an order, as long as no free set of a member lies outside it."""
    for v in order:
        if not has(cluster, v):
            continue
        rest = cluster.copy()
        drop(rest, v)
        found = True
        while found:
            found = False
            for i in order:
                if not has(rest, i):
                    continue
                for q in range(starts[i], starts[i + 1]):
                    if not meets(masks[free[q]], rest):
                        drop(rest, i)
                        found = True
                        break
        if np.any(rest):
            for w in range(len(cluster)):  # loops compile sooner than slices
                cluster[w] = rest[w]


@kernel
def ascend(sets, reduced, clusters, multipliers, begin, end, changed, random):  # type: ignore[no-untyped-def]
    """Fill the clusters begin, ..., end - 1 and their multipliers; return their number, -1 if there is no structure.

    `reduced`, shape (P,), are the costs, and at the end what is left of them. `changed`, bool of shape (V,), has the
    variables whose costs have changed since the least one of them was 0: at first all.
    """
    n, offsets, masks = len(sets.offsets) - 1, sets.offsets, sets.masks
    usable = reduced <= NEARLY_FREE
    members, free = np.empty(n, dtype=np.int64), np.empty(len(reduced), dtype=np.int64)
    starts = np.zeros(n + 1, dtype=np.int64)
    cluster, best = np.empty(masks.shape[1], dtype=np.uint64), np.empty(masks.shape[1], dtype=np.uint64)
    for k in range(begin, end):
        m = 0
        for i in range(n):
            starts[i] = m
            least = np.inf
            if changed[i]:
                least = np.min(reduced[offsets[i] : offsets[i + 1]])
            for p in range(offsets[i], offsets[i + 1]):
                if changed[i]:
                    reduced[p] -= least
                    usable[p] = reduced[p] <= NEARLY_FREE
                if usable[p]:
                    free[m] = p
                    m += 1
            changed[i] = False
        starts[n] = m
        unplaced = unplaceable(starts, free, masks)
        if not np.any(unplaced):
            return k
        most = -1.0
        for _ in range(max(1, min(TRIES, TRIES_OF_ALL // n))):
            _grow(starts, free, masks, unplaced, cluster, random)
            size = 0
            for i in range(n):
                if has(cluster, i):
                    members[size] = i
                    size += 1
            for t in range(size - 1, 0, -1):
                j = random_below(random, t + 1)
                members[t], members[j] = members[j], members[t]
            _shrink(starts, free, masks, cluster, members[:size])
            least = np.inf
            for i in members[:size]:
                if has(cluster, i):
                    for p in range(offsets[i], offsets[i + 1]):
                        if reduced[p] < least and not meets(masks[p], cluster):
                            least = reduced[p]
            if least > most:
                most = least
                best[:] = cluster
        if most == np.inf:
            return -1
        for i in range(n):
            if has(best, i):
                changed[i] = True
                for p in range(offsets[i], offsets[i + 1]):
                    if not meets(masks[p], best):
                        reduced[p] -= most
        clusters[k] = best
        multipliers[k] = most
    return end


def first_clusters(
    sets: ParentSets, seed: int, budget: Budget
) -> tuple[list[Row], NDArray[np.float64]] | None:
    """Return clusters and their multipliers, or None if the sets hold no structure."""
    clusters = np.zeros((MOST_CLUSTERS, sets.masks.shape[1]), dtype=np.uint64)
    multipliers = np.zeros(MOST_CLUSTERS)
    reduced, random, n = sets.costs.copy(), generator(seed), 0
    changed = np.ones(sets.n_variables, dtype=bool)
    for begin in range(0, MOST_CLUSTERS, AT_ONCE):
        n = ascend(sets, reduced, clusters, multipliers, begin, begin + AT_ONCE, changed, random)
        if n < 0:
            return None
        if n < begin + AT_ONCE or budget.over():
            break
    together: dict[Row, float] = {}
    for mask, multiplier in zip(clusters[:n], multipliers[:n], strict=True):
        row = Row(CLUSTER, members_of(mask))
        together[row] = together.get(row, 0.0) + multiplier
    return list(together), np.array(list(together.values()))
