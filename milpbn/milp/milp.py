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

    The program is always a maximisation. Infinite bounds are ``+-inf``. It holds arrays and no object of a solver.

    Attributes
    ----------
    c : float64 array, shape (n,)
        Objective coefficients.
    constant : float
        Objective constant. Model files leave it out; the sidecar holds it.
    A : scipy.sparse.csr_array, shape (m, n)
        Row coefficients, with sorted int32 indices and without explicit zeros.
    row_lower, row_upper : float64 arrays, shape (m,)
        Row bounds.
    lower, upper : float64 arrays, shape (n,)
        Column bounds.
    integer : bool array, shape (n,)
        Which columns are integer; each of them is binary or has integral bounds.
    column_names, row_names : lists of str
        Unique names that every solver accepts in .lp and .mps files.
    name : str
        Name of the model.
    lazy_rows : callable, optional
        Finds further rows of the program where a point violates them. Only solvers that add rows inside their tree
        take such a program; other solvers and files do not have these rows.
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
    name: str = "milpbn"
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
