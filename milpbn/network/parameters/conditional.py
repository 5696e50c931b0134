r"""The convex problem of discriminative parameters: penalised conditional likelihood around an offset.

.. math:: \min_d \; - \sum_m w_m \log P(c_m | x_m; o + d) + \tfrac{\lambda}{2} \lVert d \rVert^2,
          \qquad P(c | x; o + d) \propto \exp(o_c(x) + \sum_i d_i(x_i, x_{pa(i)}, c))

with the offset o = kappa times the generative log-joint. It is a multinomial logistic regression with an L2 penalty,
solved by scipy's L-BFGS-B. The logistic regressions of scikit-learn have no offset; without one (kappa = 0) they solve
the same problem, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from milpbn.network.parameters.design import DistinctRows

#: Largest number of iterations of the solver.
MAX_ITERATIONS = 5000
#: Number of earlier steps that the solver's model of the curvature remembers.
MEMORY = 20


class Stopped(Exception):  # noqa: N818  # no error: the caller asked for it
    """Raised by `fit_deviations` if its caller asked it to stop."""


def log_loss(scores: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the sum of -w log P(c | x) in nats.

    Log-joint, up to a constant for each row, and weight have the shape (U, C).
    """
    away = scores - scores.max(axis=1, keepdims=True)
    away -= np.log(np.exp(away).sum(axis=1, keepdims=True))
    return float(-(weights * away).sum())


def objective(
    deviations: NDArray[np.float64], rows: DistinctRows, offset: NDArray[np.float64], strength: float
) -> tuple[float, NDArray[np.float64]]:
    """Return the penalised loss in nats, and its gradient.

    Parameters
    ----------
    deviations : float64 array, shape (K, C)
        The point; the gradient has the same shape.
    rows : DistinctRows
        Training rows.
    offset : float64 array, shape (U, C)
        Scores of the rows without deviations.
    strength : float
        Factor lambda of the penalty.
    """
    scores = offset + rows.indicators @ deviations
    scores -= scores.max(axis=1, keepdims=True)
    posterior = np.exp(scores)
    sums = posterior.sum(axis=1, keepdims=True)
    loss = float(rows.totals @ np.log(sums[:, 0]) - (rows.weights * scores).sum())
    posterior *= rows.totals[:, np.newaxis] / sums
    posterior -= rows.weights
    gradient = rows.transposed @ posterior + strength * deviations
    return loss + 0.5 * strength * float((deviations * deviations).sum()), gradient


def fit_deviations(
    rows: DistinctRows,
    offset: NDArray[np.float64],
    strength: float,
    start: NDArray[np.float64],
    *,
    tolerance: float,
    stopping: Callable[[], bool] = lambda: False,
) -> NDArray[np.float64]:
    """Return the deviations that minimise the penalised loss.

    The variables of the solver are scaled by the square root of an upper bound on each second derivative, a quarter of
    the joint state's weight plus lambda: without that, rare joint states take several times as many iterations.

    Parameters
    ----------
    rows, offset, strength
        As for `objective`; the strength is positive, so that the optimum is unique.
    start : float64 array, shape (K, C)
        The point from which the solver starts.
    tolerance : float
        Largest component of the scaled gradient at the end, relative to the square root of the total weight.
    stopping : callable
        Asked at every evaluation; `Stopped` is raised if it returns True.
    """
    curvature = 0.25 * (rows.transposed @ rows.totals) + strength
    scale = 1.0 / np.sqrt(curvature)[:, np.newaxis]
    size = rows.weight

    def scaled(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        if stopping():
            raise Stopped
        value, gradient = objective(scale * point.reshape(start.shape), rows, offset, strength)
        return value / size, (scale * gradient).ravel() / size

    found = minimize(
        scaled,
        (start / scale).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": MAX_ITERATIONS,
            "maxfun": 2 * MAX_ITERATIONS,
            "maxcor": MEMORY,
            "gtol": tolerance / np.sqrt(size),
            "ftol": 0.0,
        },
    )
    return scale * np.asarray(found.x).reshape(start.shape)
