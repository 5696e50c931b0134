"""Finite bounds for every column of a MILP that keep an optimal point."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.milp.milp import Milp

Vector = NDArray[np.float64]

#: Relative slack of derived bounds, to cover rounding in their sums.
SLACK = 1e-9


def finite_bounds(milp: Milp) -> tuple[Vector, Vector]:
    """Return finite lower and upper bounds of all columns, shape (n,) each, that some optimal point obeys.

    A missing bound is first derived from the rows. If the rows do not imply one, it is derived from the objective. For
    instance, tau_m has no lower bound. But raising it raises the objective, until one of its margin rows binds. So no
    optimum needs a tau_m below the smallest value at which a row can bind. With one parent set per variable this
    value is min_c sum_i min_k alpha_{m,c,i,k}.

    Raises InputError if a column stays unbounded; infinite bounds of integer columns are not replaced.
    """
    lower, upper = milp.lower.copy(), milp.upper.copy()
    group = one_of_groups(milp)
    while True:
        missing = np.isinf(lower), np.isinf(upper)
        is_open = missing[0] | missing[1]
        if not is_open.any():
            return lower, upper
        _close(milp, lower, upper, group, np.flatnonzero(is_open & ~milp.integer))
        if np.array_equal(missing, (np.isinf(lower), np.isinf(upper))):
            name = milp.column_names[int(np.argmax(is_open))]
            raise InputError(
                f"The column {name} of the model has no finite bounds, and its rows imply none, but this solver needs "
                "them; choose another --backend."
            )


def one_of_groups(milp: Milp) -> NDArray[np.int64]:
    """Return the number of the one-of row ``sum of binaries = 1`` that each column is in, else -1; shape (n,)."""
    A = milp.A
    binary = milp.integer & (milp.lower == 0) & (milp.upper == 1)
    group = np.full(milp.n_columns, -1, dtype=np.int64)
    candidates = np.flatnonzero((milp.row_lower == 1) & (milp.row_upper == 1))
    for g, r in enumerate(candidates.tolist()):
        entries = slice(A.indptr[r], A.indptr[r + 1])
        columns = A.indices[entries]
        if (A.data[entries] == 1).all() and binary[columns].all() and (group[columns] < 0).all():
            group[columns] = g
    return group


def _close(
    milp: Milp, lower: Vector, upper: Vector, group: NDArray[np.int64], columns: NDArray[np.int64]
) -> None:
    """Replace infinite bounds of the given columns by finite ones where rows or objective imply them, in place."""
    entries = milp.A.tocsc()[:, columns]
    a, place = entries.data, np.repeat(np.arange(len(columns)), np.diff(entries.indptr))
    rows, at = np.unique(entries.indices, return_inverse=True)
    least, most, n_least, n_most = (part[at] for part in _activities(milp.A[rows], lower, upper, group))
    ends = np.stack([a * lower[columns[place]], a * upper[columns[place]]])
    # Activity of each row without the column's own part: finite if no other part is infinite.
    least = np.where(n_least > np.isinf(ends.min(axis=0)), -np.inf, least - _finite(ends.min(axis=0)))
    most = np.where(n_most > np.isinf(ends.max(axis=0)), np.inf, most - _finite(ends.max(axis=0)))
    side_up = np.where(a > 0, milp.row_upper[entries.indices], milp.row_lower[entries.indices])
    side_down = np.where(a > 0, milp.row_lower[entries.indices], milp.row_upper[entries.indices])
    stops_up, stops_down = np.isfinite(side_up), np.isfinite(side_down)

    def ends_of(
        stops: NDArray[np.bool_], side: Vector, rest: Vector, ufunc: np.ufunc, start: Vector
    ) -> Vector:
        result = start.copy()
        ufunc.at(result, place[stops], ((side - rest) / a)[stops])
        return result

    infinite = np.full(len(columns), np.inf)
    # Implied by the rows: with the other columns at their most favourable values, no feasible point goes further.
    far_up = ends_of(stops_up, side_up, np.where(a > 0, least, most), np.minimum, infinite)
    far_down = ends_of(stops_down, side_down, np.where(a > 0, most, least), np.maximum, -infinite)
    low, high = lower[columns], upper[columns]
    low = np.where(np.isinf(low), _pad(far_down, -1), low)
    high = np.where(np.isinf(high), _pad(far_up, 1), high)
    # Implied by the objective: even with the other columns at their least favourable values, the column may move so
    # far, and the objective does not fall.
    near_up = ends_of(stops_up, side_up, np.where(a > 0, most, least), np.minimum, high)
    near_down = ends_of(stops_down, side_down, np.where(a > 0, least, most), np.maximum, low)
    c = milp.c[columns]
    lower[columns] = np.where(np.isinf(low) & (c >= 0) & (near_up < np.inf), _pad(near_up, -1), low)
    upper[columns] = np.where(np.isinf(high) & (c <= 0) & (near_down > -np.inf), _pad(near_down, 1), high)


def _activities(
    A: sp.csr_array, lower: Vector, upper: Vector, group: NDArray[np.int64]
) -> tuple[Vector, Vector, Vector, Vector]:
    """Return minimum and maximum activity of rows over their finite parts, and the numbers of infinite parts."""
    m = A.shape[0]
    row = np.repeat(np.arange(m), np.diff(A.indptr))
    g = group[A.indices]
    single = g < 0
    a, j = A.data[single], A.indices[single]
    ends = np.stack([a * lower[j], a * upper[j]])
    sums: list[Vector] = []
    for part, value in ((row[single], ends.min(axis=0)), (row[single], ends.max(axis=0))):
        finite = np.isfinite(value)
        sums.append(np.bincount(part, np.where(finite, value, 0.0), m).astype(np.float64))
        sums.append(np.bincount(part, ~finite, m).astype(np.float64))
    least, n_least, most, n_most = sums
    if not single.all():
        n_groups = int(group.max()) + 1
        size = np.bincount(group[group >= 0], minlength=n_groups)
        key = row[~single] * n_groups + g[~single]
        order = np.argsort(key, kind="stable")
        key, a = key[order], A.data[~single][order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        count = np.diff(np.append(first, len(key)))
        # A member of the group without a coefficient in the row counts as 0.
        complete = count == size[key[first] % n_groups]
        low, high = np.minimum.reduceat(a, first), np.maximum.reduceat(a, first)
        of = key[first] // n_groups
        least += np.bincount(of, np.where(complete, low, np.minimum(low, 0.0)), m)
        most += np.bincount(of, np.where(complete, high, np.maximum(high, 0.0)), m)
    return least, most, n_least, n_most


def _finite(values: Vector) -> Vector:
    return np.where(np.isfinite(values), values, 0.0)


def _pad(values: Vector, direction: int) -> Vector:
    return values + direction * SLACK * (1.0 + np.abs(_finite(values)))
