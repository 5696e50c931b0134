"""The multipliers of the inequalities, by a linear program with cutting planes and columns on demand.

At given weights w the bound's maximum over the structures, relaxed as the oracle does it, is to be as small as
multipliers can make it: that is the maximum of w @ eta over the linear relaxation with the inequalities, whose dual
values are the multipliers. Its clusters are found one violated row after the other (Cussens 2011), its columns by their
reduced costs; what comes of it is a bound whether or not either search was brought to an end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from milpbn.bounds.inequalities import CLUSTER, Inequalities, add_row, inequalities_of, side
from milpbn.bounds.oracle import RELAXED, Oracle
from milpbn.model.clusters import fractional_clusters
from milpbn.scores.candidates import Candidates

#: Columns of each variable to begin with, and to add at a time.
COLUMNS = 10
#: Solutions of the linear program, and clusters, at most.
ROUNDS, MOST_CLUSTERS = 60, 500
#: Nodes of the search for a violated row, at most: no clock, so that bounds do not depend on it.
NODES = 100
#: Reduced costs up to this share of the largest weight are rounding.
TOLERANCE = 1e-9


def best_multipliers(
    oracle: Oracle,
    candidates: Candidates,
    rows: Inequalities,
    weights: NDArray[np.float64],
    allowed: NDArray[np.bool_],
    known: NDArray[np.int64],
    stopping: Callable[[], bool],
) -> tuple[Inequalities, NDArray[np.float64]]:
    """Return the rows that bound structures of some weights best, and their multipliers, shape (R,).

    Parameters
    ----------
    oracle, candidates
        Candidate sets.
    rows : Inequalities
        Known rows; clusters are added where the oracle relaxes acyclicity.
    weights : float64 array, shape (P,)
        What structures are weighed by, without multipliers.
    allowed : bool array, shape (P,)
        Entries that may be chosen.
    known : int64 array, shape (V,)
        Entries of a structure that obeys the rows, one per variable: the linear program has a solution.
    stopping : callable
        Asked between solutions of the linear program.
    """
    V, P = candidates.n_variables, candidates.n_sets
    owner = np.asarray(candidates.variable, dtype=np.int64)
    masked = np.where(allowed, weights, -np.inf)
    chosen = np.zeros(P, dtype=bool)
    chosen[known] = True
    _take_best(masked, candidates, chosen)
    most_rows = len(rows.limit) + MOST_CLUSTERS
    matrix = _matrix(oracle, rows)
    multipliers = np.zeros(len(rows.limit))
    tolerance = TOLERANCE * float(np.abs(weights[allowed]).max(initial=1.0))
    for _ in range(ROUNDS):
        if stopping():
            break
        columns = np.flatnonzero(chosen)
        k = len(columns)
        one: Any = sp.csr_array((np.ones(k), (owner[columns], np.arange(k))), shape=(V, k))
        sides = np.array([side(rows, r) for r in range(len(rows.limit))])
        above: Any = -matrix[:, columns] if len(sides) else None
        solved = linprog(
            -weights[columns],
            A_ub=above,
            b_ub=-sides if len(sides) else None,
            A_eq=one,
            b_eq=np.ones(V),
            bounds=(0, None),
            method="highs-ds",
        )
        if solved.x is None:
            break
        multipliers = np.maximum(0.0, -solved.ineqlin.marginals) if len(sides) else np.zeros(0)
        reduced = masked + matrix.T @ multipliers + solved.eqlin.marginals[owner]
        reduced[chosen] = -np.inf
        missing = reduced > tolerance
        if missing.any():
            _take_best(np.where(missing, reduced, -np.inf), candidates, chosen)
        eta = np.zeros(P)
        eta[columns] = solved.x
        seen = {frozenset(np.flatnonzero(r).tolist()) for r in rows.members[rows.limit == CLUSTER]}
        new = [s for s in fractional_clusters(candidates, eta, nodes=NODES) if s not in seen]
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
    # The oracle knows more than the clusters.
    limits = rows.limit != CLUSTER
    return Inequalities(rows.members[limits], rows.limit[limits]), out[limits]


def _take_best(values: NDArray[np.float64], candidates: Candidates, chosen: NDArray[np.bool_]) -> None:
    """Add the largest finite values of each variable to the columns."""
    for a, b in zip(candidates.offsets[:-1], candidates.offsets[1:], strict=True):
        best = a + np.argsort(-values[a:b], kind="stable")[:COLUMNS]
        chosen[best[np.isfinite(values[best])]] = True


def _matrix(oracle: Oracle, rows: Inequalities) -> sp.csr_array:
    """Return a, shape (R, P)."""
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
