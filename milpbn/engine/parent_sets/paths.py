"""Rows of constraints on paths, and of a limit of features, that a point of the linear program violates.

At every point, a missing path from an ancestor is found as a minimum cut, and an excluded path as a shortest path.
Independences, and the number of features in families with the class, are checked at integral points only; the row has
a minimal set of arcs that leaves an active trail, or too many features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from milpbn.engine.parent_sets.clusters import LEAST_VIOLATION, Support, arc_weights, least_entered
from milpbn.engine.parent_sets.rows import ARCS, CLOSED, REACHED, Row
from milpbn.engine.parent_sets.sets import members_of
from milpbn.problem.constraints import Rules


def violated_path_rows(point: Support, rules: Rules) -> list[Row]:
    """Return rows of ancestors and of pairs without a path that a point violates."""
    rows = [_entering(point, a, b) for a, b in sorted(rules.ancestors)]
    if rules.no_ancestors:
        arcs = arc_weights(point)
        rows += [_path(point, arcs, a, b) for a, b in sorted(rules.no_ancestors)]
    return [row for row in rows if row is not None]


def _entering(point: Support, a: int, b: int) -> Row | None:
    """Return the set with b and without a that is entered least, if it is entered by less than a whole path."""
    n, sets = len(point.offsets) - 1, len(point.used)
    child = np.repeat(np.arange(n), np.diff(point.offsets))
    members = [members_of(mask) for mask in point.masks]
    # A parent set is a node between its members and its variable: it is cut once, however many members are outside.
    of = np.repeat(np.arange(sets), list(map(len, members)))
    inner = np.array([j for own in members for j in own], dtype=np.int64)
    capacity = np.concatenate([np.full(len(inner), 2.0), point.shares])
    tail, head = np.concatenate([inner, n + np.arange(sets)]), np.concatenate([n + of, child])
    outside = [i for i in least_entered(tail, head, capacity, a, b) if i < n]
    return Row(CLOSED, tuple(outside)) if outside else None


def _path(point: Support, arcs: NDArray[np.float64], a: int, b: int) -> Row | None:
    """Return the row of the heaviest path from a to b, if the point violates it."""
    lengths = np.where(arcs.T > LEAST_VIOLATION, 1 + 1e-6 - np.minimum(arcs.T, 1.0), 0.0)
    distance, before = dijkstra(lengths, indices=np.array([a]), return_predecessors=True)
    if not distance[0, b] < 1 - LEAST_VIOLATION:
        return None
    reached, i = [], b
    while i != a:
        reached.append(i)
        i = int(before[0, i])
    return Row(REACHED, tuple(sorted(reached)), (a,))


def broken_independences(point: Support, rules: Rules) -> list[Row]:
    """Return rows that cut off an acyclic integral point: one that separates too little, or has too many features."""
    apart = sorted(rules.independences, key=lambda one: (*one[:2], sorted(one[2])))
    parts = [
        Rules(max_features=rules.max_features),
        *(Rules(independences=frozenset([one])) for one in apart),
    ]
    parents = [set(members_of(point.masks[t])) for t in point.offsets[:-1]]
    rows = []
    for part in parts:
        if not part.broken_by(parents):
            continue
        # Fewer arcs break no more; what is left after removing arcs one by one is a smallest set that breaks the rule.
        left = [set(own) for own in parents]
        for i in range(len(left)):
            for j in sorted(left[i]):
                left[i].remove(j)
                if not part.broken_by(left):
                    left[i].add(j)
        children = tuple(i for i, own in enumerate(left) if own)
        rows.append(Row(ARCS, children, tuple(sum(1 << j for j in left[i]) for i in children)))
    return rows
