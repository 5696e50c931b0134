"""A solver-neutral sparse mixed integer linear program."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


@dataclass(frozen=True)
class Milp:
    """Maximise ``c @ x + constant`` over ``row_lower <= A @ x <= row_upper``, ``lower <= x <= upper``.

    Always a maximisation. Infinite bounds are ``+-inf``. Holds plain arrays and no solver's object.

    Attributes
    ----------
    c : float64 array, shape (n,)
        Objective coefficients.
    constant : float
        Objective constant; file formats leave it out and the sidecar carries it.
    A : scipy.sparse.csr_array, shape (m, n)
        Row coefficients, int32 indices, without explicit zeros and with sorted indices.
    row_lower, row_upper : float64 arrays, shape (m,)
        Row bounds.
    lower, upper : float64 arrays, shape (n,)
        Column bounds.
    integer : bool array, shape (n,)
        Integrality; all integer columns are binary or have integral bounds.
    column_names, row_names : lists of str
        Unique names, safe in .lp and .mps files of all solvers.
    name : str
        Name of the model.
    """

    c: NDArray[np.float64]
    constant: float
    A: sp.csr_array
    row_lower: NDArray[np.float64]
    row_upper: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    integer: NDArray[np.bool_]
    column_names: list[str]
    row_names: list[str]
    name: str = field(default="milpbn")

    @property
    def n_columns(self) -> int:
        """Number of columns n."""
        return len(self.c)

    @property
    def n_rows(self) -> int:
        """Number of rows m."""
        return self.A.shape[0]

    def objective(self, x: NDArray[np.float64]) -> float:
        """Return the objective of a point, constant included."""
        return float(self.c @ x + self.constant)

    def violation(self, x: NDArray[np.float64]) -> float:
        """Return the largest violation of any row, bound or integrality requirement by a point."""
        activity = self.A @ x
        parts = [
            self.row_lower - activity,
            activity - self.row_upper,
            self.lower - x,
            x - self.upper,
            np.abs(x - np.round(x))[self.integer],
        ]
        return max((float(p.max()) for p in parts if p.size), default=0.0)
