"""Reduced costs: for every parent set, a bound on the weight of the structures that contain it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.relaxation.branching import forced_arborescences, rounding_slack
from milpbn.engine.relaxation.oracle import (
    BRANCHINGS,
    ORDERS,
    RELAXED,
    Oracle,
    arcs_of,
    block_parents,
    class_bounds,
    heaviest_branching,
    largest_of,
)
from milpbn.engine.relaxation.orders import heaviest_orders
from milpbn.engine.tuning import TUNING
from milpbn.util.compiled import kernel

_TUNED = TUNING.oracle
#: A copy that kernels can read.
BOUNDED_CLASS_SETS = _TUNED.bounded_class_sets
_EPS = float(np.finfo(np.float64).eps)


def bound_parent_sets(
    oracle: Oracle,
    weights: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    forced: NDArray[np.int64],
    n_forced: int,
    threshold: float,
) -> NDArray[np.float64]:
    """Bound the weight of the structures with each parent set, shape (P,); the bounds are cheap, but not the smallest.

    A structure of at least the weight `threshold` weighs at most the bound of each of its parent sets. The other
    arguments are as for `heaviest_structure`.
    """
    V = len(oracle.offsets) - 1
    largest = largest_of(weights, allowed)
    # As in `heaviest_structure`, the slack covers the rounding errors of the verifier, which proves the fixings.
    slack = 24.0 * (V + 2) * _EPS * (V + 8) * largest
    out = np.full(len(weights), -np.inf)
    if oracle.kind == ORDERS:
        heaviest_orders(oracle.offsets, oracle.masks, weights, allowed, out)
        return out + slack
    if oracle.kind == RELAXED:
        masked = np.where(allowed, weights, -np.inf)
        best = np.maximum.reduceat(masked, oracle.offsets[:-1])
        others = best.sum() - best[oracle.variable]
        np.add(weights, others + slack, out=out, where=allowed)
        return out
    first = int(oracle.offsets[V - 1])
    slack += 6 * rounding_slack(oracle.n, largest_of(weights[:first], allowed))
    # A finite threshold separates the bounds of -inf, which mark class sets without structures and those already done.
    threshold = max(threshold - slack, float(np.finfo(np.float64).min))
    _bound_branchings(oracle, weights, allowed, forced, n_forced, threshold, slack, out)
    return out


@kernel
def _bound_branchings(oracle, weights, allowed, forced, n_forced, threshold, slack, out):  # type: ignore[no-untyped-def]
    """Write the result of `bound_parent_sets` over branchings to `out`, which holds -inf."""
    V = len(oracle.offsets) - 1
    first = oracle.offsets[V - 1]
    reduced, choice = np.empty(first), np.empty(V, dtype=np.int64)
    blocked = np.zeros(oracle.n, dtype=np.bool_)
    rank, free = heaviest_branching(oracle, weights, allowed, forced, blocked, choice, reduced)
    if rank < n_forced:
        return
    bounds = np.empty(len(weights) - first)
    class_bounds(oracle, weights, allowed, reduced, free, bounds)
    for scanned in range(BOUNDED_CLASS_SETS + 1):
        p = first + np.argmax(bounds)
        if bounds[p - first] < threshold:
            break
        if scanned == BOUNDED_CLASS_SETS:
            # All remaining class sets share one bound, without blocked features.
            for x in range(len(bounds)):
                if bounds[x] >= threshold:
                    out[first + x] = bounds[x] + slack
                    if weights[first + x] > weights[p]:
                        p = first + x
            for i in range(len(blocked)):
                blocked[i] = False
        else:
            block_parents(oracle, p, blocked)
        bounds[p - first] = -np.inf
        value = free
        if scanned > 0 or oracle.first[p + 1] > oracle.first[p]:
            rank, value = heaviest_branching(oracle, weights, allowed, forced, blocked, choice, reduced)
            if rank < n_forced:
                continue
        out[p] = weights[p] + value + slack
        for q in range(first):
            out[q] = max(out[q], weights[p] + value - reduced[q] + slack)


def heaviest_with(
    oracle: Oracle, weights: NDArray[np.float64], allowed: NDArray[np.bool_], threshold: float
) -> NDArray[np.float64]:
    """Return bounds as `bound_parent_sets` does, without forced edges, but solve a branching for every arc if feasible.

    The bounds, float64 array, shape (P,), are those of `bound_parent_sets` if the branchings would be too many
    (`OracleTuning.most_forced`).
    """
    n = oracle.n
    forced = np.zeros((n, n), dtype=np.int64)
    out = bound_parent_sets(oracle, weights, allowed, forced, 0, threshold)
    first = int(oracle.offsets[-2])
    alive = np.flatnonzero((out[first:] >= threshold) & allowed[first:]) + first
    if (
        oracle.kind != BRANCHINGS
        or not 0 < len(alive) <= _TUNED.bounded_class_sets
        or len(alive) * n**4 > _TUNED.most_forced
    ):
        return out
    blocked = np.zeros(n, dtype=bool)
    slack = 6 * rounding_slack(n, float(np.abs(weights[:first][allowed[:first]]).max(initial=0.0)))
    exact = np.full(first, -np.inf)
    for p in alive:
        block_parents(oracle, p, blocked)
        arcs, index = arcs_of(oracle, weights, allowed, forced, blocked)
        bound = weights[index] + forced_arborescences(arcs) + weights[p]
        exact[index] = np.maximum(exact[index], bound)
    slack += 24 * (n + 2) * (n + 8) * _EPS * float(np.abs(weights).max(initial=0.0))
    out[:first] = np.minimum(out[:first], exact + slack)
    return out
