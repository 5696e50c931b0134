"""The largest linear score of any structure, or an upper bound on it: what the dual bound asks for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.branching import FORBIDDEN, forced_arborescences, maximum_arborescence, rounding_slack
from milpbn.bounds.orders import best_order, heaviest_orders
from milpbn.compiled import kernel
from milpbn.scores.candidates import Candidates

#: Parent sets of the class that are tried with a branching of their own; all others share one bound.
CLASS_SET_SCANS = 200
#: Of so many of them the arcs get a reduced cost of their own.
CLASS_SET_PRICES = 20
#: Every arc gets a branching of its own, where that is asked for, up to so many nodes to the fourth power in all: a
#: second's work.
MOST_FORCED = 4 * 64**4
#: Up to so many variables are put into all orders by dynamic programming; with more, acyclicity is relaxed.
MOST_ORDERED = 14
#: How structures are searched: branchings, all orders, or every variable for itself.
BRANCHINGS, ORDERS, RELAXED = 0, 1, 2
_EPS = float(np.finfo(np.float64).eps)


class Oracle(NamedTuple):
    """Candidate sets as the kernels take them.

    Attributes
    ----------
    kind : int
        `BRANCHINGS`, `ORDERS` or `RELAXED`.
    n : int
        Nodes of a branching: node 0 is the root, node i + 1 the feature i.
    head, tail : int64 arrays, shape (entries of the features,)
        Arc tail -> head of each entry of a branching; tail 0 for a set without features.
    needs_class : bool array, shape (entries of the features,)
        Whether the set contains the class.
    offsets, variable : int64 arrays
        Blocks of eta, and the variable of each entry.
    first, members : int64 arrays
        Parents of entry p: ``members[first[p] : first[p + 1]]``.
    masks : int64 array, shape (P,)
        The same as bits, where variables are ordered.
    safe : bool
        A branching is always a structure.
    """

    kind: int
    n: int
    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    needs_class: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    variable: NDArray[np.int64]
    first: NDArray[np.int64]
    members: NDArray[np.int64]
    masks: NDArray[np.int64]
    safe: bool


def oracle_of(candidates: Candidates) -> Oracle:
    """Choose how to search the structures of some candidate sets."""
    c = candidates.n_variables - 1
    n_entries = int(candidates.offsets[c])
    feature_parent = candidates.feature_parent
    needs_class = np.array([c in s for s in candidates.flat[:n_entries]], dtype=bool)
    # A class without parents comes first in every order and needs no bit.
    ordered = c if candidates.sets[c] == ((),) else c + 1
    kind = BRANCHINGS if feature_parent is not None else ORDERS if ordered <= MOST_ORDERED else RELAXED
    masks = np.zeros(candidates.n_sets, dtype=np.int64)
    if kind == ORDERS:
        masks[:] = [sum(1 << j for j in s if j < ordered) for s in candidates.flat]
    sizes = [len(s) for s in candidates.flat]
    with_parents = {j for s in candidates.sets[c] for j in s}
    safe = not with_parents or not any(
        s and not need for s, need in zip(candidates.flat, needs_class, strict=False)
    )
    return Oracle(
        kind,
        c + 1,
        candidates.variable[:n_entries] + 1,
        np.zeros(n_entries, dtype=np.int64) if feature_parent is None else feature_parent[:n_entries] + 1,
        needs_class,
        candidates.offsets,
        candidates.variable.astype(np.int64),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array([j for s in candidates.flat for j in s], dtype=np.int64),
        masks,
        safe,
    )


@kernel
def _matrix(oracle, weights, allowed, forced, blocked, square, ranks, entry):  # type: ignore[no-untyped-def]
    """Write the heaviest allowed entry of every arc, as weight, rank and entry, without the blocked ones."""
    for i in range(oracle.n):
        for j in range(oracle.n):
            square[i, j] = 0.0
            ranks[i, j] = FORBIDDEN
    for p in range(len(oracle.head)):
        i = oracle.head[p]
        if not allowed[p] or (blocked[i] and oracle.needs_class[p]):
            continue
        j = oracle.tail[p]
        if ranks[j, i] == FORBIDDEN or weights[p] > square[j, i]:
            square[j, i] = weights[p]
            ranks[j, i] = forced[j, i]
            entry[j, i] = p


@kernel
def _block(oracle, p, blocked):  # type: ignore[no-untyped-def]
    """Mark the features among the parents of entry p: as parents of the class they must do without it."""
    for i in range(len(blocked)):
        blocked[i] = False
    for x in range(oracle.first[p], oracle.first[p + 1]):
        blocked[oracle.members[x] + 1] = True


@kernel
def _largest(weights, allowed):  # type: ignore[no-untyped-def]
    largest = 0.0
    for p in range(len(weights)):
        if allowed[p]:
            largest = max(largest, abs(weights[p]))
    return largest


@kernel
def _class_bounds(oracle, weights, allowed, square, reduced, free, bounds):  # type: ignore[no-untyped-def]
    """Bound the structures with each parent set of the class.

    A structure weighs as much less than the best branching as the reduced costs of its arcs say, all together; and the
    parents of the class need arcs that do without it.

    Parameters
    ----------
    square : float64 array, shape (n, n)
        See `_matrix`; without blocked entries.
    reduced : float64 array, shape (n, n) or (0, 0)
        What `maximum_arborescence` says of them. If empty, what the arcs lose is left out of account.
    free : float
        The maximum.
    bounds : float64 array, shape (parent sets of the class,)
        Gets the bounds; -inf for a set that is not allowed or leaves no structure.
    """
    n = oracle.n
    loss = np.zeros(n)
    if len(reduced):
        loss[:] = np.inf
        for p in range(len(oracle.head)):
            if allowed[p] and not oracle.needs_class[p]:
                i, j = oracle.head[p], oracle.tail[p]
                loss[i] = min(loss[i], max(0.0, reduced[j, i] + square[j, i] - weights[p]))
    first = len(weights) - len(bounds)
    for x in range(len(bounds)):
        p = first + x
        bounds[x] = -np.inf
        if allowed[p]:
            bounds[x] = weights[p] + free
            for y in range(oracle.first[p], oracle.first[p + 1]):
                bounds[x] -= loss[oracle.members[y] + 1]


@kernel
def _is_acyclic(oracle, choice):  # type: ignore[no-untyped-def]
    V = len(choice)
    placed = np.zeros(V, dtype=np.bool_)
    left = V
    while left:
        before = left
        for i in range(V):
            if placed[i]:
                continue
            ready = True
            for x in range(oracle.first[choice[i]], oracle.first[choice[i] + 1]):
                if not placed[oracle.members[x]]:
                    ready = False
                    break
            if ready:
                placed[i] = True
                left -= 1
        if left == before:
            return False
    return True


@kernel
def heaviest_structure(oracle, weights, allowed, forced, n_forced, choice):  # type: ignore[no-untyped-def]
    """Maximise ``weights @ eta`` over the structures that have allowed entries and all forced edges.

    Parameters
    ----------
    oracle : Oracle
        Candidate sets.
    weights : float64 array, shape (P,)
        What is maximised.
    allowed : bool array, shape (P,)
        Entries that may be chosen.
    forced : int64 array, shape (n, n)
        1 for both arcs of a forced edge, else 0; only for branchings.
    n_forced : int
        Number of forced edges.
    choice : int64 array, shape (V,)
        Gets one entry per variable; possibly a cyclic graph where acyclicity is relaxed.

    Returns
    -------
    value, bound : float
        Weight of the choice, and what no structure exceeds, rounding included; -inf if there is none.
    acyclic : bool
        The choice is a structure.
    """
    V = len(choice)
    slack = 4.0 * V * _EPS * V * _largest(weights, allowed)
    if oracle.kind == ORDERS:
        value = best_order(oracle.offsets, oracle.masks, weights, allowed, choice)
        if value == -np.inf:
            return value, value, False
        return value, value + 2 * slack, True
    c = V - 1
    if oracle.kind == RELAXED:
        value = 0.0
        for i in range(V):
            top = -1
            for p in range(oracle.offsets[i], oracle.offsets[i + 1]):
                if allowed[p] and (top < 0 or weights[p] > weights[top]):
                    top = p
            if top < 0:
                return -np.inf, -np.inf, False
            choice[i] = top
            value += weights[top]
        return value, value + slack, _is_acyclic(oracle, choice)
    n = oracle.n
    square = np.empty((n, n))
    ranks = np.empty((n, n), dtype=np.int64)
    entry = np.empty((n, n), dtype=np.int64)
    nothing = np.empty((0, 0))
    blocked = np.zeros(n, dtype=np.bool_)
    slack += 3 * rounding_slack(n, _largest(weights[: len(oracle.head)], allowed))
    _matrix(oracle, weights, allowed, forced, blocked, square, ranks, entry)
    bounds = np.empty(oracle.offsets[V] - oracle.offsets[c])
    reduced = np.empty((n, n)) if len(bounds) > 1 else nothing
    parent, rank, free = maximum_arborescence(square, ranks, reduced)
    if rank < n_forced:
        return -np.inf, -np.inf, False
    _class_bounds(oracle, weights, allowed, square, reduced, free, bounds)
    best = -np.inf
    rest = -np.inf
    scanned = 0
    while True:
        x = np.argmax(bounds)
        if bounds[x] <= best:
            break
        if scanned >= CLASS_SET_SCANS and best > -np.inf:
            rest = bounds[x]
            break
        p = oracle.offsets[c] + x
        bounds[x] = -np.inf
        scanned += 1
        value = free
        if scanned > 1 or oracle.first[p + 1] > oracle.first[p]:
            _block(oracle, p, blocked)
            _matrix(oracle, weights, allowed, forced, blocked, square, ranks, entry)
            parent, rank, value = maximum_arborescence(square, ranks, nothing)
            if rank < n_forced:
                continue
        if weights[p] + value > best:
            best = weights[p] + value
            for i in range(1, n):
                choice[i - 1] = entry[parent[i], i]
            choice[c] = p
    if best == -np.inf:
        return -np.inf, rest + slack, False
    value = 0.0
    for i in range(V):
        value += weights[choice[i]]
    return value, max(best, rest) + slack, oracle.safe or _is_acyclic(oracle, choice)


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
    largest = _largest(weights, allowed)
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
    square, reduced = np.empty((n, n)), np.empty((n, n))
    ranks, entry = np.empty((n, n), dtype=np.int64), np.empty((n, n), dtype=np.int64)
    blocked = np.zeros(n, dtype=bool)
    slack += 2 * rounding_slack(n, _largest(weights[:first], allowed))
    # Finite, so that it tells what has no structure, or was looked at, from all else.
    threshold = max(threshold - slack, float(np.finfo(np.float64).min))
    _matrix(oracle, weights, allowed, forced, blocked, square, ranks, entry)
    _, rank, free = maximum_arborescence(square, ranks, reduced)
    if rank < n_forced:
        return out
    arcs = oracle.tail, oracle.head
    own = weights[:first]
    bounds = np.empty(len(weights) - first)
    _class_bounds(oracle, weights, allowed, square, reduced, free, bounds)
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
            _block(oracle, p, blocked)
        bounds[p - first] = -np.inf
        _matrix(oracle, weights, allowed, forced, blocked, square, ranks, entry)
        _, rank, value = maximum_arborescence(square, ranks, reduced)
        if rank < n_forced:
            continue
        out[p] = weights[p] + value + slack
        usable = allowed[:first] & ~(blocked[oracle.head] & oracle.needs_class)
        bound = weights[p] + value - reduced[arcs] - (square[arcs] - own) + slack
        np.maximum(out[:first], bound, out=out[:first], where=usable)
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
    square, ranks = np.empty((n, n)), np.empty((n, n), dtype=np.int64)
    entry = np.empty((n, n), dtype=np.int64)
    blocked = np.zeros(n, dtype=bool)
    slack = 2 * rounding_slack(n, float(np.abs(weights[:first][allowed[:first]]).max(initial=0.0)))
    exact = np.full(first, -np.inf)
    for p in alive:
        _block(oracle, p, blocked)
        _matrix(oracle, weights, allowed, forced, blocked, square, ranks, entry)
        others = forced_arborescences(square, ranks)[oracle.tail, oracle.head]
        usable = allowed[:first] & ~(blocked[oracle.head] & oracle.needs_class)
        bound = np.where(usable, weights[:first] + others + weights[p], -np.inf)
        np.maximum(exact, bound, out=exact)
    out[:first] = np.minimum(out[:first], exact + slack + 8 * n * n * _EPS * np.abs(weights).max(initial=0.0))
    return out
