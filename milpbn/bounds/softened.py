"""The margin part of a score, softened: its value, its supergradient weights, and its slope along a line.

With temperature T the minimum over {gamma, rows} of a sample becomes the soft minimum
-T log sum exp(-./T), whose weights are a point of the simplex: the lambda of the dual bound.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

_CHUNKS = 16


@njit(cache=True, parallel=True)
def _weights(rows, sample_weights, gamma, temperature, out):  # type: ignore[no-untyped-def]
    """Write w_m lambda_{m,r} to `out`; return sums of w_m min(...) and w_m lambda_{m,0}."""
    M, R = rows.shape
    exact = np.zeros(_CHUNKS)
    capped = np.zeros(_CHUNKS)
    for chunk in prange(_CHUNKS):
        for m in range(chunk * M // _CHUNKS, (chunk + 1) * M // _CHUNKS):
            low = gamma
            for r in range(R):
                low = min(low, rows[m, r])
            total = np.exp((low - gamma) / temperature)
            zero = total
            for r in range(R):
                e = np.exp((low - rows[m, r]) / temperature)
                out[m, r] = e
                total += e
            w = sample_weights[m]
            for r in range(R):
                out[m, r] *= w / total
            exact[chunk] += w * low
            capped[chunk] += w * zero / total
    return exact.sum(), capped.sum()


@njit(cache=True, parallel=True)
def _slope(rows, direction, step, sample_weights, gamma, temperature):  # type: ignore[no-untyped-def]
    """Return the derivative of the softened score at rows + step * direction along direction."""
    M, R = rows.shape
    parts = np.zeros(_CHUNKS)
    for chunk in prange(_CHUNKS):
        for m in range(chunk * M // _CHUNKS, (chunk + 1) * M // _CHUNKS):
            low = gamma
            for r in range(R):
                low = min(low, rows[m, r] + step * direction[m, r])
            total = np.exp((low - gamma) / temperature)
            slope = 0.0
            for r in range(R):
                e = np.exp((low - rows[m, r] - step * direction[m, r]) / temperature)
                total += e
                slope += e * direction[m, r]
            parts[chunk] += sample_weights[m] * slope / total
    return parts.sum()


def soft_weights(
    rows: NDArray[np.float64],
    sample_weights: NDArray[np.float64],
    gamma: float,
    temperature: float,
    out: NDArray[np.float64],
) -> tuple[float, float]:
    """Compute the soft minimum's weights at a point.

    Parameters
    ----------
    rows : float64 array, shape (M, R)
        alpha_{m,r} @ eta.
    sample_weights : float64 array, shape (M,)
        w_m.
    gamma : float
        Desired log-margin.
    temperature : float
        T > 0, nats.
    out : float64 array, shape (M, R)
        Gets w_m lambda_{m,r}.

    Returns
    -------
    exact, capped : float
        sum_m w_m min(gamma, min_r rows[m, r]), and sum_m w_m lambda_{m,0}, the weight of gamma.
    """
    exact, capped = _weights(rows, sample_weights, gamma, temperature, out)
    return float(exact), float(capped)


def best_step(
    rows: NDArray[np.float64],
    direction: NDArray[np.float64],
    longest: float,
    linear_slope: float,
    sample_weights: NDArray[np.float64],
    gamma: float,
    temperature: float,
    halvings: int = 8,
) -> float:
    """Return the step in [0, longest] that maximises the softened score along a direction, by bisection.

    Parameters
    ----------
    rows, direction : float64 arrays, shape (M, R)
        Where the step starts and where it goes.
    longest : float
        Longest step.
    linear_slope : float
        Slope of the score's linear terms along the direction.
    sample_weights, gamma, temperature
        As for `soft_weights`.
    halvings : int
        Precision: the step is found to within longest / 2^halvings.
    """

    def slope(step: float) -> float:
        return linear_slope + _slope(rows, direction, step, sample_weights, gamma, temperature)

    if slope(longest) >= 0:
        return longest
    low, high = 0.0, longest
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        if slope(middle) > 0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
