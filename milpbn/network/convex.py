"""Minima of smooth convex functions: scipy's L-BFGS in scaled variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

#: Number of earlier steps that the solver's model of the curvature remembers.
MEMORY = 20
#: A function that returns its value at a point, and its gradient in the shape of the point.
Loss: TypeAlias = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]


class Stopped(Exception):  # noqa: N818  # no error: the caller asked for it
    """Raised by a loss, and so by `minimum`, if its caller asked it to stop."""


def minimum(
    loss: Loss,
    start: NDArray[np.float64],
    scale: NDArray[np.float64] | float,
    *,
    tolerance: float,
    iterations: int,
    unit: float = 1.0,
    stopping: Callable[[], bool] = lambda: False,
    **more: float,
) -> NDArray[np.float64]:
    """Return the point at which a convex function is least, in the shape of `start`.

    The solver works with x / `scale` and loss / `unit`; 1 / sqrt(second derivative) is a good scale for a variable. It
    ends when no component of this scaled gradient exceeds `tolerance`, after so many `iterations`, or when `stopping`,
    asked after each of them, returns True. `more` are further options of scipy's L-BFGS-B.
    """

    def scaled(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, gradient = loss(scale * point.reshape(start.shape))
        return value / unit, (scale * gradient).ravel() / unit

    def callback(intermediate_result: object) -> None:
        if stopping():
            raise StopIteration

    options: Any = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": MEMORY, "gtol": tolerance}
    options |= {"ftol": 0.0, **more}
    x0 = (start / scale).ravel()
    found = scipy.optimize.minimize(
        scaled, x0, jac=True, method="L-BFGS-B", callback=callback, options=options
    )
    return scale * np.asarray(found.x).reshape(start.shape)
