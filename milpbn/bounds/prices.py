"""What the structures with one entry can weigh at most, for every entry."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.branching import forced_arborescences, rounding_slack
from milpbn.bounds.oracle import (
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
from milpbn.bounds.orders import heaviest_orders

#: Of so many parent sets of the class the arcs get a reduced cost of their own.
CLASS_SET_PRICES = 20
#: Every arc gets a branching of its own, where that is asked for, up to so many nodes to the fourth power in all: a
#: second's work.
MOST_FORCED = 4 * 64**4
_EPS = float(np.finfo(np.float64).eps)


def price_entries(
    oracle: Oracle,
    weights: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    forced: NDArray[np.int64],
    n_forced: int,
    threshold: float,
) -> NDArray[np.float64]:
    """Bound the weight of the structures that have an entry, for every entry; cheap, and not the smallest bound.

    Parameters
    ----------
    oracle, weights, allowed, forced, n_forced
        As for `heaviest_structure`.
    threshold : float
        Structures that weigh less are left out of account.

    Returns
    -------
    float64 array, shape (P,)
        Every structure that weighs at least `threshold` weighs at most the bound of each of its entries.
    """
    V = len(oracle.offsets) - 1
    largest = largest_of(weights, allowed)
    slack = 8.0 * V * _EPS * V * largest
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
    n, first = oracle.n, int(oracle.offsets[V - 1])
    reduced, choice = np.empty(first), np.empty(V, dtype=np.int64)
    blocked = np.zeros(n, dtype=bool)
    slack += 2 * rounding_slack(n, largest_of(weights[:first], allowed))
    # Finite, so that it tells what has no structure, or was looked at, from all else.
    threshold = max(threshold - slack, float(np.finfo(np.float64).min))
    rank, free = heaviest_branching(oracle, weights, allowed, forced, blocked, choice, reduced)
    if rank < n_forced:
        return out
    bounds = np.empty(len(weights) - first)
    class_bounds(oracle, weights, allowed, reduced, free, bounds)
    for scanned in range(CLASS_SET_PRICES + 1):
        p = first + int(np.argmax(bounds))
        if bounds[p - first] < threshold:
            break
        if scanned == CLASS_SET_PRICES:
            # All that are left share the bound of one that blocks nothing.
            left = bounds >= threshold
            out[first:][left] = bounds[left] + slack
            p = first + int(np.argmax(np.where(left, weights[first:], -np.inf)))
            blocked[:] = False
        else:
            block_parents(oracle, p, blocked)
        bounds[p - first] = -np.inf
        rank, value = heaviest_branching(oracle, weights, allowed, forced, blocked, choice, reduced)
        if rank < n_forced:
            continue
        out[p] = weights[p] + value + slack
        np.maximum(out[:first], weights[p] + value - reduced + slack, out=out[:first])
    return out


def heaviest_with(
    oracle: Oracle, weights: NDArray[np.float64], allowed: NDArray[np.bool_], threshold: float
) -> NDArray[np.float64]:
    """Return what `price_entries` returns, but with a branching of its own for every arc; without forced edges.

    Parameters
    ----------
    oracle : Oracle
        Candidate sets.
    weights, allowed : arrays, shape (P,)
        As for `heaviest_structure`.
    threshold : float
        As for `price_entries`.

    Returns
    -------
    float64 array, shape (P,)
    """
    n = oracle.n
    forced = np.zeros((n, n), dtype=np.int64)
    out = price_entries(oracle, weights, allowed, forced, 0, threshold)
    first = int(oracle.offsets[-2])
    alive = np.flatnonzero((out[first:] >= threshold) & allowed[first:]) + first
    if oracle.kind != BRANCHINGS or not 0 < len(alive) <= CLASS_SET_PRICES or len(alive) * n**4 > MOST_FORCED:
        return out
    blocked = np.zeros(n, dtype=bool)
    slack = 2 * rounding_slack(n, float(np.abs(weights[:first][allowed[:first]]).max(initial=0.0)))
    exact = np.full(first, -np.inf)
    for p in alive:
        block_parents(oracle, p, blocked)
        arcs, entry = arcs_of(oracle, weights, allowed, forced, blocked)
        bound = weights[entry] + forced_arborescences(arcs) + weights[p]
        exact[entry] = np.maximum(exact[entry], bound)
    out[:first] = np.minimum(out[:first], exact + slack + 8 * n * n * _EPS * np.abs(weights).max(initial=0.0))
    return out
