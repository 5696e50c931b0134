r"""The minimum of a penalised likelihood by Newton steps.

A step s solves H s = -g, with the Hessian H and the gradient g, approximately by conjugate gradients (a truncated
Newton method). The preconditioner is the penalty P plus the diagonal of the likelihood's Hessian, averaged over the
classes. P couples only cells of the same term, so the preconditioner is a band matrix, and solving with it costs less
than a product with H.
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

#: Most Newton steps of a fit, and most products with the Hessian in each of them.
MAX_STEPS, MAX_PRODUCTS = 50, 200
#: The forcing term: conjugate gradients stop when the preconditioned norm of the residual is at most this share of that
#: of the gradient.
FORCING = 0.3
#: Armijo's condition: the share of the predicted decrease that a step must reach, or else its length is halved; and the
#: length below which the fit ends.
SUFFICIENT, SHORTEST = 1e-4, 1e-6
#: A rough fit ends when no component of the scaled gradient exceeds the first number times the root of the rows' total
#: weight, when the relative change of the loss is below the second one, or after so many iterations.
ROUGH, LEAST_CHANGE, ITERATIONS = 1e-3, 1e-7, 300
#: Number of earlier steps from which L-BFGS models the Hessian.
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
        self._place = np.argsort(self._order)
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

    The fit stops after the first step whose predicted decrease is at most `tolerance` times sqrt(W) nats. W is the
    total weight of the rows; the standard error of their loss is proportional to its root as well.
    """
    weights = np.zeros((objective.n_cells, objective.columns)) if start is None else start
    systems = BandSolver(objective.half * penalty)
    loss, gradient, posterior = objective.with_posterior(weights, penalty)
    for _ in range(MAX_STEPS):
        solve = systems.factor(objective.mean_hessian_diagonal(posterior) + SMALLEST_CURVATURE)
        step = _step(objective, penalty, gradient, posterior, solve, stopping)
        slope = float((gradient * step).sum())
        length, before = 1.0, loss
        while not stopping():
            moved = weights + length * step
            loss, gradient, posterior = objective.with_posterior(moved, penalty)
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
    """Return the Newton step, solved approximately by conjugate gradients."""
    step, residual = np.zeros_like(gradient), -gradient
    direction = scaled = solve(residual)
    size = first = float((residual * scaled).sum())
    for _ in range(MAX_PRODUCTS):
        if size <= FORCING**2 * first or stopping():
            break
        product = objective.hessian_product(direction, posterior, penalty)
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

    With many classes and rows it takes a third of the time of Newton steps, and still less if `start` is the minimum of
    a similar penalty. It ends .01 to .25 times sqrt(W) nats above the minimum, with the total weight W of the rows.
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
