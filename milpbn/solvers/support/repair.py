"""Recomputes the continuous columns of a point whose integer columns are known exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milpbn.milp.milp import Milp


def polish(milp: Milp, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round the integer columns, and move each continuous column as far as its rows allow the objective to rise.

    For a given eta the best tau_m is min(gamma, min_c alpha_{m,c} . eta). Computing it makes the result independent of
    the few digits, or of the scaled integers, of a solver's answer. Columns without objective, such as the order
    variables, keep their values. The result, shape (n,), is exact if no row has two of the moved columns, as in every
    formulation of this project. The given point, shape (n,), is feasible up to rounding.
    """
    y = np.clip(np.where(milp.integer, np.round(x), x), milp.lower, milp.upper)
    moved = np.flatnonzero(~milp.integer & (milp.c != 0))
    if not moved.size:
        return y
    y[moved] = 0.0
    activity = milp.A @ y
    entries = milp.A.tocsc()[:, moved].tocoo()
    rows, columns, a = entries.row, entries.col, entries.data
    # The side of the row that limits the column: the upper side if the activity grows with it.
    sign = np.sign(milp.c[moved])
    grows = a * sign[columns] > 0
    side = np.where(grows, milp.row_upper[rows], milp.row_lower[rows])
    limit = (side - activity[rows]) / a
    best = np.where(sign > 0, milp.upper[moved], milp.lower[moved])
    up = sign[columns] > 0
    np.minimum.at(best, columns[up], limit[up])
    np.maximum.at(best, columns[~up], limit[~up])
    y[moved] = np.where(np.isfinite(best), best, x[moved])
    return y
