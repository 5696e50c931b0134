"""The multipliers of the inequalities, by a linear program with cutting planes and columns on demand.

Given weights w, the multipliers should minimise the maximum of w @ eta over the oracle's relaxation of the structures.
The minimum is the maximum of w @ eta over the linear relaxation with the inequalities, and the multipliers are the dual
values of these rows. Violated cluster rows are added in rounds (Cussens 2011), and columns by their reduced costs. Any
multipliers give a valid bound, so both searches may stop early.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from milpbn.certificate.records import CLUSTER, Inequalities
from milpbn.engine.dual.inequalities import add_row, inequalities_of, side
from milpbn.engine.relaxation.oracle import RELAXED, Oracle
from milpbn.engine.tuning import TUNING
from milpbn.milp.clusters import fractional_clusters
from milpbn.problem.candidates import Candidates
from milpbn.util.budget import Budget

_TUNED = TUNING.multipliers


def best_multipliers(
    oracle: Oracle,
    candidates: Candidates,
    rows: Inequalities,
    weights: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    incumbent: NDArray[np.int64],
    budget: Budget,
) -> tuple[Inequalities, NDArray[np.float64]]:
    """Return the rows and multipliers that give the best bound for some weights; the multipliers have shape (R,).

    Parameters
    ----------
    rows : Inequalities
        Rows to start with. Clusters are added if the oracle relaxes acyclicity.
    weights : float64 array, shape (P,)
        Weights of the parent sets, without terms of multipliers.
    allowed : bool array, shape (P,)
        Parent sets that may be chosen.
    incumbent : int64 array, shape (V,)
        The parent sets of a structure that obeys the rows. They make the linear program feasible.
    budget : Budget
        Asked between solutions of the linear program.
    """
    V, P = candidates.n_variables, candidates.n_sets
    owner = np.asarray(candidates.variable, dtype=np.int64)
    masked = np.where(allowed, weights, -np.inf)
    chosen = np.zeros(P, dtype=bool)
    chosen[incumbent] = True
    _take_best(masked, candidates, chosen)
    most_rows = len(rows.limit) + _TUNED.most_clusters
    matrix = _matrix(oracle, rows)
    multipliers = np.zeros(len(rows.limit))
    tolerance = _TUNED.rounding * float(np.abs(weights[allowed]).max(initial=1.0))
    for _ in range(_TUNED.rounds):
        if budget.over():
            break
        columns = np.flatnonzero(chosen)
        solved = _solved(weights[columns], owner[columns], matrix[:, columns], rows)
        if solved.x is None:
            break
        multipliers = np.maximum(0.0, -solved.ineqlin.marginals) if len(rows.limit) else np.zeros(0)
        reduced = masked + matrix.T @ multipliers + solved.eqlin.marginals[owner]
        reduced[chosen] = -np.inf
        missing = reduced > tolerance
        if missing.any():
            _take_best(np.where(missing, reduced, -np.inf), candidates, chosen)
        eta = np.zeros(P)
        eta[columns] = solved.x
        seen = {frozenset(np.flatnonzero(r).tolist()) for r in rows.members[rows.limit == CLUSTER]}
        new = [
            s for s in fractional_clusters(candidates, eta, nodes=_TUNED.separation_nodes) if s not in seen
        ]
        new = new[: most_rows - len(rows.limit)]
        if not new and not missing.any():
            break
        if new:
            more = inequalities_of(new, [CLUSTER] * len(new), V)
            matrix = sp.csr_array(sp.vstack([matrix, _matrix(oracle, more)], format="csr"))
            rows = Inequalities(*(np.concatenate(both) for both in zip(rows, more, strict=True)))
    out = np.zeros(len(rows.limit))
    out[: len(multipliers)] = multipliers
    if oracle.kind == RELAXED:
        return rows, out
    # The oracle enforces acyclicity exactly, so cluster rows cannot improve its bound.
    limits = rows.limit != CLUSTER
    return Inequalities(rows.members[limits], rows.limit[limits]), out[limits]


def _solved(weights: NDArray[np.float64], owner: NDArray[np.int64], matrix: Any, rows: Inequalities) -> Any:
    """Maximise the weights of k columns, whose variables are their owners, under the rows; return scipy's result.

    The arrays have shapes (k,), (k,) and (R, k).
    """
    k = len(weights)
    one: Any = sp.csr_array((np.ones(k), (owner, np.arange(k))))
    sides = np.array([side(rows, r) for r in range(len(rows.limit))])
    return linprog(
        -weights,
        A_ub=-matrix if len(sides) else None,
        b_ub=-sides if len(sides) else None,
        A_eq=one,
        b_eq=np.ones(one.shape[0]),
        bounds=(0, None),
        method="highs-ds",
    )


def _take_best(values: NDArray[np.float64], candidates: Candidates, chosen: NDArray[np.bool_]) -> None:
    """Add the parent sets of each variable with the largest finite values to the chosen columns."""
    for a, b in zip(candidates.offsets[:-1], candidates.offsets[1:], strict=True):
        best = a + np.argsort(-values[a:b], kind="stable")[: _TUNED.columns]
        chosen[best[np.isfinite(values[best])]] = True


def _matrix(oracle: Oracle, rows: Inequalities) -> sp.csr_array:
    """Return the matrix of the rows a_r, shape (R, P)."""
    P = len(oracle.variable)
    dense = np.zeros(P)
    places, values, first = [], [], [0]
    for r in range(len(rows.limit)):
        dense[:] = 0.0
        add_row(oracle, rows, r, 1.0, dense)
        place = np.flatnonzero(dense)
        places.append(place)
        values.append(dense[place])
        first.append(first[-1] + len(place))
    none = np.empty(0, dtype=np.int64)
    return sp.csr_array(
        (np.concatenate([np.empty(0), *values]), np.concatenate([none, *places]), np.array(first)),
        shape=(len(rows.limit), P),
    )
