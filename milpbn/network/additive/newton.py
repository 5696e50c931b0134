r"""The minimum of a penalised likelihood by Newton steps.

Each step solves H s = -g for the second derivatives H by conjugate gradients. They are preconditioned by what H has
within each term: the penalty and the diagonal of the likelihood's part, in the mean over the classes. This matrix has a
narrow band, so that a system with it costs less than a product with H.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cholesky_banded
from scipy.sparse.csgraph import reverse_cuthill_mckee

from milpbn.network import convex
from milpbn.network.additive.fitting import SMALLEST_CURVATURE, Objective
from milpbn.util.compiled import kernel

#: Most Newton steps of a fit, and most products with the second derivatives for each of them.
MAX_STEPS, MAX_PRODUCTS = 50, 200
#: A step is solved until its residual, in the norm of the preconditioner, is this share of the gradient or less.
FORCING = 0.3
#: Share of the predicted decrease that a step must bring; it is halved otherwise, down to the shortest one.
SUFFICIENT, SHORTEST = 1e-4, 1e-6
#: When a rough fit ends: at this largest component of the scaled gradient, relative to the root of the total weight of
#: the rows, at this relative change of the loss, or after so many iterations.
ROUGH, LEAST_CHANGE, ITERATIONS = 1e-3, 1e-7, 300
#: Number of earlier steps that it remembers.
MEMORY = 6


@kernel(error_model="numpy")
def solve_in_place(factor, ends, values):  # type: ignore[no-untyped-def]
    """Replace `values` V, shape (d, C'), by the solution X of L L' X = V.

    Entry (j, k) of `factor` is L[j + k, j], and 1 / L[j, j] for k = 0; column j of L has no entries from row `ends[j]`
    on. SciPy's solver takes two to three times as long with so narrow a band.
    """
    size, columns = values.shape
    for j in range(size):
        for c in range(columns):
            values[j, c] *= factor[j, 0]
        for i in range(j + 1, ends[j]):
            share = factor[j, i - j]
            for c in range(columns):
                values[i, c] -= share * values[j, c]
    for j in range(size - 1, -1, -1):
        for i in range(j + 1, ends[j]):
            share = factor[j, i - j]
            for c in range(columns):
                values[j, c] -= share * values[i, c]
        for c in range(columns):
            values[j, c] *= factor[j, 0]


class BandSolver:
    """Systems with P and a changing diagonal, in an order in which the band is narrow."""

    def __init__(self, penalty: sparse.csr_array) -> None:
        self._order = reverse_cuthill_mckee(penalty, symmetric_mode=True)
        self._place = np.empty_like(self._order)
        self._place[self._order] = np.arange(len(self._order))
        entries = penalty.tocoo()
        rows, columns = self._place[entries.row], self._place[entries.col]
        below = rows >= columns
        rows, columns = rows[below], columns[below]
        #: Number of diagonals beside the main one, on one side.
        self.width = int((rows - columns).max(initial=0))
        self._band = np.zeros((self.width + 1, len(self._order)))
        self._band[rows - columns, columns] = entries.data[below]
        # The factor has entries beside those of P, but none below the last one of this column and all before.
        filled = self._band != 0.0
        filled[0] = True
        last = self.width - filled[::-1].argmax(axis=0)
        self._ends = np.maximum.accumulate(np.arange(1, filled.shape[1] + 1) + last)

    def factor(self, diagonal: NDArray[np.float64]) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
        """Return a function that solves P plus this diagonal, shape (d,), for values of shape (d, C')."""
        band = self._band.copy()
        band[0] += diagonal[self._order]
        factor = np.ascontiguousarray(
            cholesky_banded(band, overwrite_ab=True, lower=True, check_finite=False).T
        )
        factor[:, 0] = 1.0 / factor[:, 0]

        def solve(values: NDArray[np.float64]) -> NDArray[np.float64]:
            found = np.ascontiguousarray(values[self._order])
            solve_in_place(factor, self._ends, found)
            return found[self._place]

        return solve


def minimum(
    objective: Objective,
    penalty: sparse.csr_array,
    start: NDArray[np.float64] | None = None,
    *,
    tolerance: float,
    stopping: Callable[[], bool] = lambda: False,
) -> NDArray[np.float64]:
    """Return the best weights, shape (d, C'); the last ones if `stopping` returns True before.

    The last step is the first one that is expected to lower the loss by at most `tolerance` nats times the square root
    of the total weight of the rows, to which the standard error of the loss is proportional.
    """
    weights = np.zeros((objective.n_cells, objective.columns)) if start is None else start
    systems = BandSolver(objective.half * penalty)
    loss, gradient, posterior = objective.at(weights, penalty)
    for _ in range(MAX_STEPS):
        solve = systems.factor(objective.mean_curvature(posterior) + SMALLEST_CURVATURE)
        step = _step(objective, penalty, gradient, posterior, solve, stopping)
        slope = float((gradient * step).sum())
        length, before = 1.0, loss
        while not stopping():
            moved = weights + length * step
            loss, gradient, posterior = objective.at(moved, penalty)
            if loss <= before + SUFFICIENT * length * slope:
                weights = moved
                break
            length /= 2.0
            if length < SHORTEST:
                return weights
        if stopping() or -0.5 * slope <= tolerance * math.sqrt(objective.size):
            break
    return weights


def _step(
    objective: Objective,
    penalty: sparse.csr_array,
    gradient: NDArray[np.float64],
    posterior: NDArray[np.float64],
    solve: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    stopping: Callable[[], bool],
) -> NDArray[np.float64]:
    """Return the step that conjugate gradients find."""
    step, residual = np.zeros_like(gradient), -gradient
    direction = scaled = solve(residual)
    size = first = float((residual * scaled).sum())
    for _ in range(MAX_PRODUCTS):
        if size <= FORCING**2 * first or stopping():
            break
        product = objective.curved(direction, posterior, penalty)
        length = size / float((direction * product).sum())
        step += length * direction
        residual = residual - length * product
        scaled = solve(residual)
        size, before = float((residual * scaled).sum()), size
        direction = scaled + (size / before) * direction
    return step


def rough_minimum(
    objective: Objective,
    penalty: sparse.csr_array,
    start: NDArray[np.float64] | None = None,
    *,
    stopping: Callable[[], bool] = lambda: False,
) -> NDArray[np.float64]:
    """Return the weights where L-BFGS ends early, shape (d, C').

    With many classes and rows it takes a third of the time of Newton steps, and less after a small change of the
    penalty, but ends farther from the minimum: by .01 to .25 nats times the square root of the weight of the rows.
    """
    return convex.minimum(
        lambda point: objective.evaluate(point, penalty),
        np.zeros((objective.n_cells, objective.columns)) if start is None else start,
        1.0 / np.sqrt(objective.curvature(penalty)),
        tolerance=ROUGH * math.sqrt(objective.size),
        iterations=ITERATIONS,
        maxcor=MEMORY,
        ftol=LEAST_CHANGE,
        stopping=stopping,
    )
