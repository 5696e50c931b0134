"""Candidate parent sets and branching decisions, for the verifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.network.structure import Structure, topological_order
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Rules

#: Relaxations that bound the heaviest structure: branchings of the features, orders of all variables, or a separate
#: choice for every variable, without acyclicity.
FORESTS, DAGS, ANY = 0, 1, 2
#: Largest number of variables for which all orders are considered.
MOST_ORDERED = 14
#: Kinds of decisions, as certificates write them: a and b are neighbours; a is a parent of b; the feature a has no
#: feature parent; parent set a is chosen.
EDGE, ARC, ORPHAN, PARENT_SET = 0, 1, 2, 3


class Space(NamedTuple):
    """Candidate parent sets in the form that the kernels take."""

    #: Relaxation: `FORESTS`, `DAGS` or `ANY`.
    kind: int
    #: Where each variable's parent sets begin, and the variable of each parent set: int64 arrays, shapes (V + 1,) and
    #: (P,).
    offsets: NDArray[np.int64]
    variable: NDArray[np.int64]
    #: For forests, node j + 1 of the only feature parent j; 0 without one: int64 array, shape (P,).
    tail: NDArray[np.int64]
    #: Whether the parent set contains the class: bool array, shape (P,).
    with_class: NDArray[np.bool_]
    #: Members of the parent sets: bool array, shape (P, V).
    is_parent: NDArray[np.bool_]
    #: For orders, members of the parent sets as bit masks: int64 array, shape (P,).
    masks: NDArray[np.int64]
    #: Number of variables that are ordered. A class without parents is not, because it comes first in every order.
    ordered: int


def space_of(candidates: Candidates) -> Space:
    """Return candidate parent sets in the form that the kernels take, and choose the relaxation."""
    V, P = candidates.n_variables, candidates.n_sets
    c = V - 1
    is_parent = np.zeros((P, V), dtype=bool)
    parent, _, entry = candidates.arcs
    is_parent[entry, parent] = True
    of_feature = candidates.variable < c
    feature_parents = is_parent[:, :c].sum(axis=1)
    ordered = V if is_parent[~of_feature].any() else c
    kind = ANY
    if (feature_parents[of_feature] <= 1).all():
        kind = FORESTS
    elif ordered <= MOST_ORDERED:
        kind = DAGS
    masks = np.zeros(P, dtype=np.int64)
    if kind == DAGS:
        masks = is_parent[:, :ordered].astype(np.int64) @ (1 << np.arange(ordered))
    tail = np.where(feature_parents == 1, is_parent[:, :c].argmax(axis=1) + 1, 0) if c else np.zeros(P)
    return Space(
        kind,
        candidates.offsets,
        candidates.variable,
        tail.astype(np.int64),
        is_parent[:, c].copy(),
        is_parent,
        masks,
        ordered,
    )


def is_decision(space: Space, kind: int, a: int, b: int) -> bool:
    """Return whether three numbers describe a branching decision."""
    V, P = len(space.offsets) - 1, len(space.variable)
    high = {EDGE: (V - 1, V - 1), ARC: (V, V), ORPHAN: (V - 1, 1), PARENT_SET: (P, 1)}.get(kind)
    return high is not None and 0 <= a < high[0] and 0 <= b < high[1]


def left_by(space: Space, kind: int, a: int, b: int, inside: bool) -> NDArray[np.bool_]:
    """Return the mask of parent sets, shape (P,), that structures can have for which a decision is true or false.

    `inside` chooses the structures for which it is true. Every structure is on one of the two sides. For an edge, the
    true side keeps all parent sets; the edge itself is recorded elsewhere.
    """
    variable, parents = space.variable, space.is_parent
    if kind == EDGE:
        either = ((variable == a) & parents[:, b]) | ((variable == b) & parents[:, a])
        return np.full(len(either), True) if inside else ~either
    if kind == ARC:
        owner, true = b, parents[:, a]
    elif kind == ORPHAN:
        owner, true = a, np.asarray(~parents[:, :-1].any(axis=1))
    else:
        owner, true = int(variable[a]), np.zeros(len(variable), dtype=np.bool_)
        true[a] = True
    return np.asarray(variable != owner) | (true if inside else ~true)


def bound_of_only(
    candidates: Candidates, rules: Rules, highest: Callable[[Structure], float], mask: NDArray[np.bool_]
) -> float:
    """Return a bound on the score of the only structure of a mask of parent sets, shape (P,).

    It is -inf if the arcs that all choices of parent sets have close a cycle or exceed a limit, and otherwise inf
    if there are several choices. `highest` returns an upper bound on the exact score of a structure.
    """
    parents = candidates.certain_parents(mask)
    if topological_order(parents) is None or not rules.within_limits(parents):
        return -np.inf
    choice = np.flatnonzero(mask)
    if not np.array_equal(candidates.variable[choice], np.arange(candidates.n_variables)):
        return np.inf
    return highest(candidates.structure(choice))
