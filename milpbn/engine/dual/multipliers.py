"""The multipliers of the inequalities, by the linear program over parent sets with cutting planes.

Given weights w, the multipliers should minimise the maximum of w @ eta over the oracle's relaxation of the structures.
The minimum is the maximum of w @ eta over the linear relaxation with the inequalities, and the multipliers are the dual
values of these rows. A sum of weights is a decomposable score, so the rounds of `milpbn.engine.parent_sets.cutting`
solve this linear program. Any multipliers give a valid bound, so the rounds may stop early.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate import records
from milpbn.certificate.records import Inequalities
from milpbn.engine.dual.inequalities import inequalities_of
from milpbn.engine.parent_sets.climbing import OrderClimber, greedy_order
from milpbn.engine.parent_sets.clusters import Support
from milpbn.engine.parent_sets.cutting import Cutting
from milpbn.engine.parent_sets.rows import CLUSTER, LIMIT, Row
from milpbn.engine.parent_sets.sets import list_sets, selected
from milpbn.engine.relaxation.oracle import RELAXED, Oracle
from milpbn.problem.candidates import Candidates
from milpbn.util.budget import Budget

#: A bound that is closer to the incumbent's weight is as good; a share of the largest weight.
ROUNDING = 1e-9


class Multipliers(NamedTuple):
    """Multipliers of inequalities, and the solution of the linear program that has them as dual values."""

    rows: Inequalities
    #: Their multipliers, at least 0, shape (R,).
    values: NDArray[np.float64]
    #: The solution as a convex combination of k choices of parent sets, which may have cycles; k = 0 if rounds that
    #: stopped early left a variable without a parent set. Shapes (k, V) and (k,).
    vertices: NDArray[np.int64]
    shares: NDArray[np.float64]


def best_multipliers(
    oracle: Oracle,
    candidates: Candidates,
    rows: Inequalities,
    weights: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    incumbent: NDArray[np.int64],
    budget: Budget,
) -> Multipliers:
    """Return the rows and multipliers that give the best bound for some weights.

    Parameters
    ----------
    rows : Inequalities
        Rows to start with. Clusters are added if the oracle relaxes acyclicity.
    weights : float64 array, shape (P,)
        Weights of the parent sets, without terms of multipliers.
    allowed : bool array, shape (P,)
        Parent sets that may be chosen.
    incumbent : int64 array, shape (V,)
        The parent sets of a structure that obeys the rows. The rounds end when they cannot bring the bound below it.
    budget : Budget
        Asked between solutions of the linear program.
    """
    found = np.zeros(len(rows.limit))
    listed = list_sets(candidates, np.where(allowed, weights, -np.inf))
    usable = np.isfinite(listed.sets.costs)
    sets, in_eta = selected(listed.sets, usable), listed.in_eta[usable]
    known = {_row(members, limit): r for r, (members, limit) in enumerate(zip(*rows, strict=True))}
    limits = [row for row in known if row.kind == LIMIT]
    climber = OrderClimber(sets, 0)
    climber.start(greedy_order(sets, np.ones(sets.n_sets)))

    def cost_of(choice: NDArray[np.int64]) -> float | None:
        return None if limits else float(sets.costs[choice].sum())

    cutting = Cutting(sets, climber, limits, cost_of, math.inf, budget)
    cutting.known.cutoff = min(cutting.cutoff, listed.best - float(weights[incumbent].sum()))
    if not cutting.begin():
        return Multipliers(rows, found, np.empty((0, candidates.n_variables), dtype=np.int64), np.empty(0))
    cutting.relaxation.add_rows(known)
    least = ROUNDING * float(np.abs(weights[allowed]).max(initial=1.0))
    cutting.run(lambda: None, lambda: cutting.bound >= cutting.cutoff - least, blocks=0)
    used = dict(zip(cutting.relaxation.rows, cutting.relaxation.multipliers.tolist(), strict=True))
    # Where the oracle enforces acyclicity exactly, cluster rows cannot improve its bound.
    new = {row: y for row, y in used.items() if row not in known and y > 0 and oracle.kind == RELAXED}
    for row, r in known.items():
        found[r] = used.get(row, 0.0)
    more = inequalities_of([row.members for row in new], [records.CLUSTER] * len(new), candidates.n_variables)
    rows = Inequalities(*(np.concatenate(both) for both in zip(rows, more, strict=True)))
    values = np.concatenate([found, list(new.values())])
    return Multipliers(rows, values, *_combination(cutting.relaxation.support(), in_eta))


def _combination(point: Support, in_eta: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return a point as a convex combination of choices.

    The cumulated shares of all variables divide [0, 1] into intervals, on each of which every variable has one set.
    `in_eta` has the numbers of the parent sets among all candidates.
    """
    if not np.diff(point.offsets).all():
        return np.empty((0, len(point.offsets) - 1), dtype=np.int64), np.empty(0)
    blocks = [slice(a, b) for a, b in zip(point.offsets[:-1], point.offsets[1:], strict=True)]
    sums = [np.cumsum(point.shares[block]) for block in blocks]
    ends = [each / each[-1] for each in sums]
    cuts = np.unique(np.concatenate([[0.0], *ends]))
    shares = np.diff(cuts)
    chosen = [block.start + np.searchsorted(end, cuts[1:]) for block, end in zip(blocks, ends, strict=True)]
    return in_eta[point.used[np.stack(chosen, axis=1)]], shares


def _row(members: NDArray[np.bool_], limit: int) -> Row:
    """Return an inequality as the linear program takes it."""
    inside = tuple(np.flatnonzero(members).tolist())
    return Row(CLUSTER, inside) if limit == records.CLUSTER else Row(LIMIT, inside, (int(limit),))
