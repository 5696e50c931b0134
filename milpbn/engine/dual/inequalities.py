"""Inequalities that every structure obeys, relaxed into the bound by Lagrange multipliers.

The oracle maximises over branchings, over orders, or over each variable separately. Its answers may violate limits on
children and, in the last case, acyclicity. Rows a_r @ eta >= b_r express both:

    sum_{i in C} sum_{S without members of C} eta(i, S) >= 1     for a cluster C of variables
    - sum_{S with j} eta(i, S) >= - K                            for a variable j of at most K children

(the first is row (7) of Peharz and Pernkopf, "Exact maximum margin structure learning of Bayesian networks", 2012).

For any multipliers mu >= 0, f(eta) + sum_r mu_r (a_r @ eta - b_r) is at least f(eta) for every structure. The terms
mu_r a_r are added to the linear terms, and - mu @ b to the constant. With the best multipliers the oracle's maximum is
that of the linear relaxation with these rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.records import Inequalities
from milpbn.engine.dual.point import Model, Subproblem
from milpbn.engine.relaxation.oracle import heaviest_structure
from milpbn.engine.tuning import TUNING
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Rules
from milpbn.problem.rounding import CAREFUL
from milpbn.util.compiled import kernel

#: Parameters under names that kernels can read; see `milpbn.engine.tuning`.
TRIALS, LEAST_FALL = TUNING.multipliers.trials, TUNING.multipliers.least_fall
_EPS = float(np.finfo(np.float64).eps)


def inequalities_of(sets: Sequence[Collection[int]], limits: Sequence[int], n_variables: int) -> Inequalities:
    """Return the rows of some sets of variables: clusters, or single variables with a child limit."""
    members = np.zeros((len(sets), n_variables), dtype=bool)
    for row, inside in zip(members, sets, strict=True):
        row[list(inside)] = True
    return Inequalities(members, np.array(limits, dtype=np.int64))


def child_limits(candidates: Candidates, rules: Rules) -> Inequalities:
    """Return the limits on children that some choice of parent sets exceeds."""
    parent, child, _ = candidates.arcs
    limited = {
        j: limit
        for j, limit in sorted(rules.max_children.items())
        if len(np.unique(child[parent == j])) > limit
    }
    return inequalities_of([(j,) for j in limited], list(limited.values()), candidates.n_variables)


def subproblem_of(
    model: Model,
    rows: Inequalities,
    multipliers: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    forced: NDArray[np.int64],
    n_forced: int,
) -> Subproblem:
    """Return a node as the kernels take it, with multipliers mu, float64 array, shape (R,)."""
    if not multipliers.any():
        return Subproblem(allowed, forced, n_forced, model.linear, 0.0)
    terms = np.zeros(len(model.linear))
    constant = add_terms(model.oracle, rows, multipliers, terms)
    return Subproblem(allowed, forced, n_forced, model.linear + terms, constant)


@kernel(linked=True, inner=True)
def _meets(oracle, members, p):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return whether parent set p contains one of the members."""
    found = False
    for x in range(oracle.first[p], oracle.first[p + 1]):
        found = found or members[oracle.members[x]]
    return found


@kernel
def add_row(oracle, rows, r, factor, out):  # type: ignore[no-untyped-def]
    """Add `factor` times a_r to `out`, shape (P,)."""
    members = rows.members[r]
    cluster = rows.limit[r] < 0
    for i in range(len(members)):
        if cluster and not members[i]:
            continue
        for p in range(oracle.offsets[i], oracle.offsets[i + 1]):
            if _meets(oracle, members, p) != cluster:
                out[p] += factor if cluster else -factor


@kernel(linked=True)
def side(rows, r):  # type: ignore[no-untyped-def]
    """Return b_r."""
    return 1.0 if rows.limit[r] < 0 else -float(rows.limit[r])


@kernel(inner=True)
def _surplus(oracle, rows, r, choice):  # type: ignore[no-untyped-def]
    """Return a_r @ eta - b_r for a choice of one parent set per variable."""
    members = rows.members[r]
    cluster = rows.limit[r] < 0
    total = -side(rows, r)
    for i in range(len(members)):
        if cluster and not members[i]:
            continue
        if _meets(oracle, members, choice[i]) != cluster:
            total += 1.0 if cluster else -1.0
    return total


@kernel
def add_terms(oracle, rows, multipliers, out):  # type: ignore[no-untyped-def]
    """Add sum_r mu_r a_r to `out`, shape (P,); return - mu @ b plus a bound on the rounding errors of both.

    The multipliers mu are a float64 array, shape (R,).
    """
    constant = 0.0
    total = 0.0
    for r in range(len(multipliers)):
        if multipliers[r] != 0.0:
            add_row(oracle, rows, r, multipliers[r], out)
            constant -= multipliers[r] * side(rows, r)
            total += multipliers[r] * (len(oracle.offsets) + abs(side(rows, r)))
    # `CAREFUL` also covers the verifier's rounding errors (`milpbn.problem.rounding`).
    return constant + CAREFUL * (len(multipliers) + 64.0) * _EPS * total


@kernel(inner=True)
def _move(oracle, rows, r, by, weights, allowed, forced, n_forced, choice):  # type: ignore[no-untyped-def]
    """Change one multiplier; return the maximum of the changed weights over the structures, and the row's surplus."""
    add_row(oracle, rows, r, by, weights)
    _, most, _ = heaviest_structure(oracle, weights, allowed, forced, n_forced, choice)
    return most, _surplus(oracle, rows, r, choice)


@kernel(linked=True, inner=True)
def _crossing(low, low_value, low_slope, high, high_value, high_slope):  # type: ignore[no-untyped-def]
    """Return where two lines cross, each given by a point and its slope, and their value there."""
    at = (low_value - high_value + high_slope * high - low_slope * low) / (high_slope - low_slope)
    return at, low_value + low_slope * (at - low)


@kernel
def lower(  # type: ignore[no-untyped-def]
    oracle, rows, weights, allowed, forced, n_forced, multipliers, active, enough, choice
):
    """Change some multipliers one at a time, each to the value that minimises the bound.

    As a function of one multiplier the bound is convex and piecewise linear; its minimum is where two lines cross.

    Parameters
    ----------
    weights : float64 array, shape (P,)
        Weights that include ``sum_r mu_r a_r``; updated with the multipliers.
    allowed, forced, n_forced
        As for `heaviest_structure`.
    multipliers : float64 array, shape (R,)
        mu; overwritten.
    active : int64 array, shape (k,)
        The rows whose multipliers may change.
    enough : float
        Stop when the bound has fallen by this much. Without a limit, the bound of a node without structures would fall
        for ever.
    choice : int64 array, shape (V,)
        Receives the oracle's last answer.

    Returns
    -------
    float
        The fall of the bound at these weights.
    """
    _, most, _ = heaviest_structure(oracle, weights, allowed, forced, n_forced, choice)
    fallen = 0.0
    if most == -np.inf:
        return fallen
    for r in active:
        if fallen >= enough:
            break
        slope = _surplus(oracle, rows, r, choice)
        start = multipliers[r]
        if slope == 0.0 or (slope > 0.0 and start == 0.0):
            continue
        # phi(mu) = most - mu b, with value and slope at both ends of an interval around its minimum.
        b = side(rows, r)
        here, value = start, most - start * b
        first = value
        low, low_value, low_slope = -1.0, 0.0, 0.0
        high, high_value, high_slope = -1.0, 0.0, 0.0
        best, best_value = start, value
        step = max(start, 1e-3 * max(1.0, abs(most)))
        for _ in range(TRIALS):
            if slope < 0.0:
                low, low_value, low_slope = here, value, slope
            elif slope > 0.0:
                high, high_value, high_slope = here, value, slope
            else:
                break
            if low < 0.0:
                goal = 0.0
            elif high < 0.0:
                goal = low + step
                step *= 4.0
            else:
                goal, line = _crossing(low, low_value, low_slope, high, high_value, high_slope)
                if best_value <= line + LEAST_FALL * max(1.0, abs(line)):
                    break
            most, slope = _move(oracle, rows, r, goal - here, weights, allowed, forced, n_forced, choice)
            here = goal
            value = most - here * b
            if value < best_value:
                best, best_value = here, value
            if (here == 0.0 and slope > 0.0) or fallen + first - best_value >= enough:
                break
        if here != best:
            most, slope = _move(oracle, rows, r, best - here, weights, allowed, forced, n_forced, choice)
        multipliers[r] = best
        fallen += first - best_value
    return fallen
