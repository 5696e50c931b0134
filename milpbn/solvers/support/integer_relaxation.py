"""Turns a MILP with real coefficients into an integer program that is a relaxation of it.

CP-SAT takes integers only. Every column x_j becomes y_j = D_j x_j, rounded. Every row is multiplied by a factor and
rounded, so that each feasible point of the MILP stays feasible and its objective does not fall. So a bound on the
integer program is a bound on the MILP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.milp.milp import Milp
from milpbn.solvers.support.column_bounds import finite_bounds, one_of_groups

Vector = NDArray[np.float64]

#: Sums of |coefficient| x range stay below 2**BITS, so they are exact as doubles and cannot overflow 64 bits.
BITS = 50
#: The scale is chosen so that rounding lifts the bound by at most this, relative to the objective. A finer scale makes
#: CP-SAT slow, since it climbs by single units: corral takes 0.4 s at 24 bits, and over 30 s at 36.
TOLERANCE = 5e-7
#: The objective for which the scale is chosen where no column is scaled, in nats. Rounding then lifts the bound by less
#: than what counts as optimal, however much other parent sets lose. Such models are not slow with a fine scale.
FINEST = 0.5
#: Accepted instead of `TOLERANCE` where `BITS` does not allow a finer scale.
COARSEST = 1e-6
#: Relative error of the few floating-point operations between the MILP's numbers and the integers.
ROUNDING = 2.0**-48


@dataclass(frozen=True)
class IntegerRelaxation:
    """Maximise ``objective @ y`` over ``row_lower <= A @ y <= row_upper``, ``0 <= y <= upper``, all integers."""

    #: The factors D. An integral column has D = 1. A scaled column has D = `scale` |c_j|, or `scale` if c_j = 0. So
    #: its objective coefficient is exactly 1, -1 or 0, whatever the sample weights are: float64 array, shape (n,).
    unit: Vector
    #: Columns whose y is ``unit * x``, rounded in the direction in which the objective rises: bool array, shape (n,).
    scaled: NDArray[np.bool_]
    #: That direction, 1 or -1: float64 array, shape (n,).
    direction: Vector
    #: Integer value of ``unit * x`` where y = 0: float64 array, shape (n,).
    origin: Vector
    #: Upper bounds of y: int64 array, shape (n,).
    upper: NDArray[np.int64]
    #: Row coefficients: scipy.sparse.csr_array of int64, shape (r, n).
    A: sp.csr_array
    #: Integers or infinite: float64 arrays, shape (r,).
    row_lower: Vector
    row_upper: Vector
    #: Objective coefficients: int64 array, shape (n,).
    objective: NDArray[np.int64]
    #: S, a power of two: steps of the integer objective per unit of the MILP's.
    scale: float
    #: The MILP's objective where y = 0.
    offset: float

    def bound(self, value: float) -> float:
        """Return the bound on the MILP's objective that follows from a bound on the integer objective."""
        bound = self.offset + value / self.scale
        return bound + 2.0**-50 * (abs(self.offset) + abs(bound))

    def integers(self, x: Vector) -> NDArray[np.int64]:
        """Return the integer point of a point x of the MILP, shape (n,).

        It is feasible and its objective is not smaller, provided that each column which `finite_bounds` bounded by the
        objective is moved as far as its rows allow.
        """
        y = self.unit * x
        y = np.where(self.scaled, self.direction * np.ceil(self.direction * y - 1e-6), np.round(y))
        return np.clip(y - self.origin, 0, self.upper).astype(np.int64)

    def point(self, y: NDArray[np.int64]) -> Vector:
        """Return the point of the MILP for an integer point; its scaled columns are approximate."""
        return (y + self.origin) / self.unit


def relax_to_integers(milp: Milp, objective: float | None = None) -> IntegerRelaxation:
    """Build the integer relaxation of a MILP.

    A value of about the size of the optimum determines the scale; by default it is a tenth of the range that the column
    bounds allow. Raises InputError if a column has no finite bounds, or the numbers span too many digits for
    `COARSEST`.
    """
    lower, upper = finite_bounds(milp)
    scaled = ~milp.integer & ~integral_columns(milp)
    scale = _scale(milp, lower, upper, scaled, objective)
    unit = np.where(scaled, scale * np.where(milp.c == 0, 1.0, np.abs(milp.c)), 1.0)
    direction = np.where(milp.c >= 0, 1.0, -1.0)
    origin = np.floor(unit * lower + np.where(scaled, 0.0, 1e-9))
    top = np.ceil(unit * upper - np.where(scaled, 0.0, 1e-9))
    range_ = np.maximum(top - origin, 0.0)

    exact = _exact_rows(milp, scaled)
    blocks = [
        (
            milp.A[exact],
            milp.row_lower[exact] - milp.A[exact] @ origin,
            milp.row_upper[exact] - milp.A[exact] @ origin,
        )
    ]
    for sign, side in ((1.0, milp.row_upper), (-1.0, -milp.row_lower)):
        rows = np.flatnonzero(~exact & np.isfinite(side))
        if rows.size:
            matrix, right = _rounded_rows(
                sp.csr_array(sign * milp.A[rows]), side[rows], unit, scaled, direction, origin, range_
            )
            blocks.append((matrix, np.full(len(rows), -np.inf), right))

    per_step = np.where(milp.c == 0, 0.0, np.where(scaled, direction, np.ceil(scale * milp.c)))
    # At the origin, integral columns count with their true coefficients, scaled columns in steps of 1 / scale.
    at_origin = np.where(scaled, np.sign(milp.c) * origin / scale, milp.c * origin)
    return IntegerRelaxation(
        unit,
        scaled,
        direction,
        origin,
        range_.astype(np.int64),
        sp.csr_array(sp.vstack([block[0] for block in blocks], format="csr").astype(np.int64)),
        np.concatenate([block[1] for block in blocks]),
        np.concatenate([block[2] for block in blocks]),
        per_step.astype(np.int64),
        scale,
        math.fsum([milp.constant, *at_origin]),
    )


def _is_integer(values: Vector) -> NDArray[np.bool_]:
    return values == np.round(values)


def _all_by_row(A: sp.csr_array, holds: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether a property holds for all nonzeros of each row."""
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return np.bincount(row, ~holds, A.shape[0]) == 0


def integral_columns(milp: Milp) -> NDArray[np.bool_]:
    """Return which continuous columns are integral in some optimal point, shape (n,).

    Such a column is either defined by an equation in integers (AICc's number of parameters), or belongs to a set of
    columns that occur only in rows x_j - x_i >= integer when the integer columns are fixed (the order variables o). The
    matrix of these rows is totally unimodular.
    """
    A = milp.A
    row = np.repeat(np.arange(milp.n_rows), np.diff(A.indptr))
    sides_integral = (np.isinf(milp.row_lower) | _is_integer(milp.row_lower)) & (
        np.isinf(milp.row_upper) | _is_integer(milp.row_upper)
    )
    integral_rows = sides_integral & _all_by_row(A, _is_integer(A.data))
    found = np.zeros(milp.n_columns, dtype=bool)

    continuous = ~milp.integer[A.indices]
    alone = np.bincount(row, continuous, milp.n_rows) == 1
    defining = integral_rows & alone & (milp.row_lower == milp.row_upper)
    found[A.indices[continuous & defining[row] & (np.abs(A.data) == 1)]] = True

    finite_integral = (
        _is_integer(milp.lower) & _is_integer(milp.upper) & np.isfinite(milp.lower) & np.isfinite(milp.upper)
    )
    good = ~milp.integer & ~found & finite_integral
    while True:
        kept = ~milp.integer[A.indices] & ~found[A.indices]
        a = np.where(kept, A.data, 0.0)
        network = np.bincount(row, np.maximum(a, 0.0), milp.n_rows) <= 1
        network &= np.bincount(row, np.maximum(-a, 0.0), milp.n_rows) <= 1
        network &= integral_rows & _all_by_row(A, ~kept | good[A.indices])
        touched = np.zeros(milp.n_columns, dtype=bool)
        touched[A.indices[~network[row]]] = True
        if not (good & touched).any():
            return found | good
        good &= ~touched


def _exact_rows(milp: Milp, scaled: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which rows have integer coefficients and integral columns only; these rows are not changed."""
    small = np.abs(milp.A.data) < 2.0**40
    entries = _all_by_row(milp.A, _is_integer(milp.A.data) & ~scaled[milp.A.indices] & small)
    sides = [np.isinf(side) | _is_integer(side) for side in (milp.row_lower, milp.row_upper)]
    return entries & sides[0] & sides[1]


def _scale(
    milp: Milp, lower: Vector, upper: Vector, scaled: NDArray[np.bool_], objective: float | None
) -> float:
    """Return S, the smallest power of two for which the rounding error is below `TOLERANCE`, if `BITS` allows it."""
    largest = np.maximum(np.maximum(np.abs(lower), np.abs(upper)), upper - lower)
    range_ = float(np.abs(milp.c) @ largest)
    # Rows without scaled columns are left out here: their factor does not depend on the scale.
    factor = _row_factors(milp.A, np.where(milp.c == 0, 1.0, np.abs(milp.c)), scaled)
    needed = max(range_, float(np.max((abs(milp.A) @ largest) * factor, initial=0.0)), 2.0**-20)
    steps = _rounding_steps(milp, upper - lower, scaled)
    size = max(1.0, 0.1 * range_ if objective is None else abs(objective))
    wanted = TOLERANCE * (size if scaled.any() else FINEST)
    scale = 2.0 ** min(math.ceil(math.log2(steps / wanted)), math.floor(BITS - math.log2(needed)))
    if steps / scale > COARSEST * size:
        raise InputError(
            "CP-SAT's integers are too coarse for the numbers of this model, so that its bound would prove "
            "little; choose another --backend."
        )
    return scale


def _rounding_steps(milp: Milp, ranges: Vector, scaled: NDArray[np.bool_]) -> float:
    """Return the maximum number of steps by which rounding can raise the integer objective.

    For each scaled column there is one step for each parent set chosen, and for each unit of another integral column,
    in the row that binds it, and two steps for the column itself. Each unit of an integral column in the objective adds
    one more step.
    """
    group = one_of_groups(milp)
    n_groups = len(np.unique(group[group >= 0]))
    units = np.where(scaled | (group >= 0), 0.0, ranges)
    A = milp.A
    row = np.repeat(np.arange(milp.n_rows), np.diff(A.indptr))
    with_scaled = np.bincount(row, scaled[A.indices], milp.n_rows) > 0
    per_row = float(np.bincount(row, units[A.indices], milp.n_rows)[with_scaled].max(initial=0.0))
    return scaled.sum() * (n_groups + per_row + 2.0) + n_groups + float(units[milp.c != 0].sum()) + 1.0


def _row_factors(A: sp.csr_array, unit: Vector, scaled: NDArray[np.bool_]) -> Vector:
    """Return the largest D_j / |a_rj| over each row's scaled columns, 0 for rows without scaled columns."""
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    mine = scaled[A.indices]
    factor = np.zeros(A.shape[0])
    np.maximum.at(factor, row[mine], unit[A.indices[mine]] / np.abs(A.data[mine]))
    return factor


def _rounded_rows(
    A: sp.csr_array,
    side: Vector,
    unit: Vector,
    scaled: NDArray[np.bool_],
    direction: Vector,
    origin: Vector,
    range_: Vector,
) -> tuple[sp.csr_array, Vector]:
    """Relax rows ``A @ x <= side`` to ``B @ y <= right`` in integers.

    Multiplied by its factor R, a row reads sum_j q_j (y_j + origin_j) <= R side with q_j = R a_j / D_j. As y >= 0,
    rounding q down relaxes the row. Rounding a scaled column in its direction, by less than 1, may raise the row's
    activity by up to q_j; this is added to the right side. If a row has one scaled column, R makes its q exactly 1
    or -1.
    """
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    factor = _row_factors(A, unit, scaled)
    size = np.bincount(row, np.abs(A.data) * np.maximum(range_, 1.0)[A.indices], A.shape[0])
    free = factor == 0
    factor[free] = 2.0 ** np.floor(BITS - np.log2(np.maximum(size[free], 1e-30)))
    # Dividing by D / |a|, and not multiplying by |a| / D, gives exactly 1 where the factor equals D / |a|.
    q = np.sign(A.data) * factor[row] / (unit[A.indices] / np.abs(A.data))
    unrounded = scaled[A.indices] & _is_integer(q)
    offsets = q * origin[A.indices]
    q = np.where(unrounded, q, np.floor(q - ROUNDING * np.abs(q)))
    rising = np.where(scaled[A.indices], np.maximum(q * direction[A.indices], 0.0), 0.0)
    right = factor * side - np.bincount(row, offsets, A.shape[0]) + np.bincount(row, rising, A.shape[0])
    magnitude = np.abs(factor * side) + np.bincount(row, np.abs(offsets), A.shape[0])
    B = sp.csr_array((q, A.indices, A.indptr), shape=A.shape)
    return B, np.floor(right + ROUNDING * magnitude)
