"""A MILP with real coefficients as an integer program that is a relaxation of it.

CP-SAT takes integers only. Every column x_j becomes y_j = D_j x_j, rounded, and every row is multiplied by a
factor and rounded so that each feasible point of the MILP stays feasible and its objective does not fall.
Hence the integer program's bound holds for the MILP.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from milpbn.backends.column_bounds import finite_bounds
from milpbn.errors import InputError
from milpbn.model.milp import Milp

#: Sums of |coefficient| x range stay below 2**BITS: exact as doubles, and far from overflow in 64 bits.
BITS = 52
#: The scale is not made finer than 2**-MAX_SCALE_BITS nats: larger numbers only slow propagation down.
MAX_SCALE_BITS = 36
#: A bound that rounding may lift by more than this, relative to the objective's range, proves nothing.
COARSEST = 1e-6


@dataclass(frozen=True)
class IntegerRelaxation:
    """Maximise ``objective @ y`` over ``row_lower <= A @ y <= row_upper``, ``0 <= y <= upper``, all integers.

    Attributes
    ----------
    milp : Milp
        The program that is relaxed, n columns.
    unit : float64 array, shape (n,)
        D: y is ``unit * x``, rounded in the direction in which the objective rises, minus `origin`.
    origin : float64 array, shape (n,)
        Value of ``unit * x`` where y = 0, an integer.
    upper : int64 array, shape (n,)
        Upper bounds of y.
    A : scipy.sparse.csr_array of int64, shape (r, n)
        Row coefficients.
    row_lower, row_upper : float64 arrays, shape (r,)
        Integers or infinite.
    objective : int64 array, shape (n,)
        Objective coefficients.
    scale : float
        Units of the integer objective per unit of the MILP's objective, a power of two.
    offset : float
        The MILP's objective where y = 0.
    """

    milp: Milp
    unit: NDArray[np.float64]
    origin: NDArray[np.float64]
    upper: NDArray[np.int64]
    A: sp.csr_array
    row_lower: NDArray[np.float64]
    row_upper: NDArray[np.float64]
    objective: NDArray[np.int64]
    scale: float
    offset: float

    def bound(self, value: float) -> float:
        """Return the bound on the MILP's objective that a bound on the integer objective implies."""
        bound = self.offset + value / self.scale
        return bound + 2.0**-46 * (abs(self.offset) + abs(bound))

    def integers(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the integer point of a feasible point of the MILP; it is feasible and scores no less."""
        y = _outward(self.unit * x, self.milp) - self.origin
        return np.clip(
            np.where(_rounded(self.milp, self.unit), y, np.round(self.unit * x - self.origin)), 0, self.upper
        ).astype(np.int64)

    def point(self, y: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the MILP's point of an integer point; columns that were scaled are approximate."""
        return (y + self.origin) / self.unit


def relax_to_integers(milp: Milp) -> IntegerRelaxation:
    raise NotImplementedError
