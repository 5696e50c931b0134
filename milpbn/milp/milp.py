"""A solver-neutral sparse mixed integer linear program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

LazyRows = Callable[[NDArray[np.float64]], list[tuple[NDArray[np.int64], NDArray[np.float64], float]]]
"""Takes a point, integral or not, and returns the rows that it violates, each as columns, values and lower bound. It is
pickled for a solver in a child process.
"""


@dataclass(frozen=True)
class Milp:
    """Maximise ``c @ x + constant`` over ``row_lower <= A @ x <= row_upper``, ``lower <= x <= upper``.

    The program is always a maximisation with m rows and n columns. Infinite bounds are ``+-inf``. Objective and column
    bounds have the shape (n,), row bounds the shape (m,). It holds arrays and no object of a solver.
    """

    c: NDArray[np.float64]
    #: Objective constant. Model files leave it out; the sidecar holds it.
    constant: float
    #: Row coefficients, shape (m, n), with sorted int32 indices and without explicit zeros.
    A: sp.csr_array
    row_lower: NDArray[np.float64]
    row_upper: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    #: Which columns are integer, shape (n,); each of them is binary or has integral bounds.
    integer: NDArray[np.bool_]
    #: Unique names that every solver accepts in .lp and .mps files.
    column_names: list[str]
    row_names: list[str]
    name: str = "milpbn"
    #: Finds further rows of the program where a point violates them. Only solvers that add rows inside their tree take
    #: such a program; other solvers and files do not have these rows.
    lazy_rows: LazyRows | None = None

    @property
    def n_columns(self) -> int:
        """Number of columns n."""
        return len(self.c)

    @property
    def n_rows(self) -> int:
        """Number of rows m."""
        return self.A.shape[0]

    def objective(self, x: NDArray[np.float64]) -> float:
        """Return the objective of a point, with the constant."""
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
