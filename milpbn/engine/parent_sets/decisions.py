"""Decisions on which a node can be branched."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.parent_sets.clusters import Support, arc_weights
from milpbn.engine.parent_sets.sets import ParentSets, members_of


@dataclass(frozen=True)
class ArcDecision:
    """An arc j -> i, or with `order` that j comes before i; the second child has the opposite."""

    i: int
    j: int
    order: bool


def with_arc(sets: ParentSets, decision: ArcDecision) -> tuple[slice, NDArray[np.bool_]]:
    """Return the parent sets of the child as a slice, and which of them have the arc."""
    j, block = decision.j, slice(*sets.offsets[decision.i : decision.i + 2])
    return block, (sets.masks[block, j // 64] >> np.uint64(j % 64)) & np.uint64(1) == 1


def fractional(sets: ParentSets, point: Support, allowed: NDArray[np.bool_], most: int) -> list[ArcDecision]:
    """Return at most so many decisions on fractional arcs and orders, the most fractional first.

    An arc that all allowed parent sets of a variable have looks fractional if the variable has a share of "no parent
    set". Branching on it would change nothing, so it is left out.
    """
    arcs = arc_weights(point)
    # The share of an arc that an integral point would have to change; orders count twice.
    single = np.minimum(arcs, 1 - arcs)
    both = np.triu(np.minimum(arcs, arcs.T))
    scores = np.concatenate([single.ravel(), 2 * both.ravel()])
    usable = np.concatenate([single.ravel() > 1e-4, both.ravel() > 0.05])
    n = len(arcs)
    best = [k for k in np.argsort(-scores, kind="stable")[: 4 * most].tolist() if usable[k]]
    found = [ArcDecision(k % (n * n) // n, k % n, k >= n * n) for k in best]
    return [one for one in found if one.order or _divides(sets, one, allowed)][:most]


def _divides(sets: ParentSets, decision: ArcDecision, allowed: NDArray[np.bool_]) -> bool:
    """Return whether some allowed parent sets of the child have an arc, and others lack it."""
    block, contains = with_arc(sets, decision)
    own = contains[allowed[block]]
    return bool(own.any() and not own.all())


def undecided(sets: ParentSets, allowed: NDArray[np.bool_]) -> list[ArcDecision]:
    """Return an arc that some allowed parent sets of its child have, and others lack; none if there is no such."""
    for i, (a, b) in enumerate(pairwise(sets.offsets.tolist())):
        masks = sets.masks[a:b][allowed[a:b]]
        some = members_of(np.bitwise_or.reduce(masks) & ~np.bitwise_and.reduce(masks))
        if some:
            return [ArcDecision(i, some[0], False)]
    return []
