"""The oracle: the maximum of a linear function over structures, or an upper bound on it, for the dual bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.relaxation.branching import Arcs, maximum_arborescence, rounding_slack
from milpbn.engine.relaxation.orders import best_order
from milpbn.engine.tuning import TUNING
from milpbn.problem.candidates import Candidates
from milpbn.util.compiled import kernel

#: Largest number of class sets for which the oracle solves a branching; a copy that kernels can read.
CLASS_SET_SCANS = TUNING.oracle.class_sets
#: Kinds of search: over branchings, over all orders, or over each variable separately, with acyclicity relaxed.
BRANCHINGS, ORDERS, RELAXED = 0, 1, 2
#: Weights that are not smaller than this give no bound, because their sums may overflow.
LARGEST = 1e150
_EPS = float(np.finfo(np.float64).eps)


class Oracle(NamedTuple):
    """Candidate sets as the kernels take them."""

    #: `BRANCHINGS`, `ORDERS` or `RELAXED`.
    kind: int
    #: Nodes of a branching: node 0 is the root, node i + 1 the feature i.
    n: int
    #: Arc tail -> head of each parent set in a branching; tail 0 for a set without features. Shape (parent sets of the
    #: features,).
    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    #: Whether the set contains the class, shape (parent sets of the features,).
    needs_class: NDArray[np.bool_]
    #: Start of each variable's block in eta, and the variable of each parent set, shapes (V + 1,) and (P,).
    offsets: NDArray[np.int64]
    variable: NDArray[np.int64]
    #: The members of parent set p are ``members[first[p] : first[p + 1]]``.
    first: NDArray[np.int64]
    members: NDArray[np.int64]
    #: The members of each parent set as bits, for `ORDERS`, shape (P,).
    masks: NDArray[np.int64]
    #: Every branching, with any parent set of the class that fits it, is acyclic.
    safe: bool


def oracle_of(candidates: Candidates) -> Oracle:
    """Return the oracle of some candidate sets, with the kind of search that suits them."""
    c = candidates.n_variables - 1
    n_entries = int(candidates.offsets[c])
    feature_parent = candidates.feature_parent
    needs_class = np.array([c in s for s in candidates.flat[:n_entries]], dtype=bool)
    # A class without parents can come first in every order, and needs no bit.
    ordered = c if candidates.sets[c] == ((),) else c + 1
    kind = (
        BRANCHINGS
        if feature_parent is not None
        else ORDERS
        if ordered <= TUNING.oracle.most_ordered
        else RELAXED
    )
    masks = np.zeros(candidates.n_sets, dtype=np.int64)
    if kind == ORDERS:
        masks[:] = [sum(1 << j for j in s if j < ordered) for s in candidates.flat]
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
        candidates.firsts,
        candidates.arcs[0],
        masks,
        safe,
    )


@kernel
def arcs_of(oracle, weights, allowed, forced, blocked):  # type: ignore[no-untyped-def]
    """Return the arcs of all allowed parent sets except the blocked ones, and the parent sets' indices."""
    room = len(oracle.head)
    first = np.zeros(oracle.n + 1, dtype=np.int64)
    tail, heavy = np.empty(room, dtype=np.int64), np.empty(room)
    ranks, entry = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    used = 0
    for i in range(1, oracle.n):
        first[i] = used
        for p in range(oracle.offsets[i - 1], oracle.offsets[i]):
            if allowed[p] and not (blocked[i] and oracle.needs_class[p]):
                j = oracle.tail[p]
                tail[used], heavy[used], ranks[used], entry[used] = j, weights[p], forced[j, i], p
                used += 1
    first[oracle.n] = used
    return Arcs(first, tail[:used], heavy[:used], ranks[:used]), entry[:used]


@kernel
def heaviest_branching(oracle, weights, allowed, forced, blocked, choice, reduced):  # type: ignore[no-untyped-def]
    """Write the heaviest branching of the features to `choice`, shape (V,); return its rank and its bound.

    `reduced`, shape (parent sets of the features,) or (0,), receives the reduced costs, inf for excluded parent sets.
    """
    arcs, entry = arcs_of(oracle, weights, allowed, forced, blocked)
    chosen = np.empty(oracle.n, dtype=np.int64)
    costs = np.empty(len(entry) if len(reduced) else 0)
    rank, bound = maximum_arborescence(arcs, chosen, costs)
    if bound > -np.inf:
        for i in range(1, oracle.n):
            choice[i - 1] = entry[chosen[i]]
        for p in range(len(reduced)):
            reduced[p] = np.inf
        for a in range(len(costs)):
            reduced[entry[a]] = costs[a]
    return rank, bound


@kernel
def block_parents(oracle, p, blocked):  # type: ignore[no-untyped-def]
    """Mark the features in parent set p of the class; as parents of the class they cannot have it as a parent."""
    for i in range(len(blocked)):
        blocked[i] = False
    for x in range(oracle.first[p], oracle.first[p + 1]):
        blocked[oracle.members[x] + 1] = True


@kernel
def largest_of(weights, allowed):  # type: ignore[no-untyped-def]
    """Return the largest absolute weight of the allowed parent sets; inf if it is not below `LARGEST`."""
    largest = 0.0
    for p in range(len(weights)):
        if allowed[p]:
            if not abs(weights[p]) < LARGEST:
                return np.inf
            largest = max(largest, abs(weights[p]))
    return largest


@kernel
def class_bounds(oracle, weights, allowed, reduced, free, bounds):  # type: ignore[no-untyped-def]
    """Bound the weight of the structures with each parent set of the class.

    A structure weighs less than the best branching by at least the sum of the reduced costs of its arcs. The parents of
    the class must have arcs without the class, which may have positive reduced costs.

    `reduced`, one number for each parent set of the features, is the result of `heaviest_branching` without blocked
    features; if it is empty, reduced costs count as 0. `free` bounds all branchings, without blocked features.
    `bounds`, one for each parent set of the class, receives the bounds; -inf for a set that is not allowed or leaves no
    structure.
    """
    n = oracle.n
    loss = np.zeros(n)
    if len(reduced):
        loss[:] = np.inf
        for p in range(len(oracle.head)):
            if allowed[p] and not oracle.needs_class[p]:
                i = oracle.head[p]
                loss[i] = min(loss[i], max(0.0, reduced[p]))
    first = len(weights) - len(bounds)
    for x in range(len(bounds)):
        p = first + x
        bounds[x] = -np.inf
        if allowed[p]:
            bounds[x] = weights[p] + free
            for y in range(oracle.first[p], oracle.first[p + 1]):
                bounds[x] -= loss[oracle.members[y] + 1]


@kernel(inner=True)
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


@kernel(linked=True, inner=True)
def weight_of(weights, choice):  # type: ignore[no-untyped-def]
    """Return the sum of the weights of a choice of one parent set per variable."""
    value = 0.0
    for i in range(len(choice)):
        value += weights[choice[i]]
    return value


@kernel(linked=True, inner=True)
def _choose_each(oracle, weights, allowed, choice):  # type: ignore[no-untyped-def]
    """Choose for every variable the heaviest of its allowed parent sets; return False if one has none."""
    for i in range(len(choice)):
        top = -1
        for p in range(oracle.offsets[i], oracle.offsets[i + 1]):
            if allowed[p] and (top < 0 or weights[p] > weights[top]):
                top = p
        if top < 0:
            return False
        choice[i] = top
    return True


@kernel
def heaviest_structure(oracle, weights, allowed, forced, n_forced, choice):  # type: ignore[no-untyped-def]
    """Maximise ``weights @ eta`` over the structures with only allowed parent sets and all forced edges.

    Parameters
    ----------
    weights : float64 array, shape (P,)
        Weights of the parent sets.
    allowed : bool array, shape (P,)
        Parent sets that may be chosen.
    forced : int64 array, shape (n, n)
        1 for both arcs of a forced edge, else 0; only for branchings.
    n_forced : int
        Number of forced edges.
    choice : int64 array, shape (V,)
        Receives one parent set per variable. The graph may be cyclic if acyclicity is relaxed.

    Returns
    -------
    value, bound : float
        Weight of the choice, and an upper bound on the weight of every structure, rounding errors included. Both are
        -inf if there is no structure; the bound is inf if the weights may overflow.
    acyclic : bool
        Whether the choice is a structure.
    """
    V = len(choice)
    # The slack also covers the rounding errors of the verifier, which proves this bound (`milpbn.problem.rounding`).
    slack = 12.0 * (V + 2) * _EPS * (V + 8) * largest_of(weights, allowed)
    bounded = slack < np.inf
    if oracle.kind == ORDERS:
        value = best_order(oracle.offsets, oracle.masks, weights, allowed, choice)
        if value == -np.inf:
            return value, value if bounded else np.inf, False
        return value, value + 2 * slack if bounded else np.inf, True
    c = V - 1
    if oracle.kind == RELAXED:
        if not _choose_each(oracle, weights, allowed, choice):
            return -np.inf, -np.inf, False
        value = weight_of(weights, choice)
        return value, value + slack if bounded else np.inf, _is_acyclic(oracle, choice)
    nothing = np.empty(0)
    blocked = np.zeros(oracle.n, dtype=np.bool_)
    slack += 6 * rounding_slack(oracle.n, largest_of(weights[: len(oracle.head)], allowed))
    bounds = np.empty(oracle.offsets[V] - oracle.offsets[c])
    reduced = np.empty(len(oracle.head)) if len(bounds) > 1 else nothing
    trial = choice.copy()
    rank, free = heaviest_branching(oracle, weights, allowed, forced, blocked, trial, reduced)
    if rank < n_forced:
        return -np.inf, -np.inf, False
    class_bounds(oracle, weights, allowed, reduced, free, bounds)
    best, rest, scanned = -np.inf, -np.inf, 0
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
            block_parents(oracle, p, blocked)
            rank, value = heaviest_branching(oracle, weights, allowed, forced, blocked, trial, nothing)
            if rank < n_forced:
                continue
        if weights[p] + value > best:
            best = weights[p] + value
            for i in range(c):
                choice[i] = trial[i]
            choice[c] = p
    if best == -np.inf:
        return -np.inf, rest + slack if bounded else np.inf, False
    return (
        weight_of(weights, choice),
        max(best, rest) + slack if bounded else np.inf,
        oracle.safe or _is_acyclic(oracle, choice),
    )
