"""What the log-joint says of the true classes: margins, their soft sum, posteriors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax


def log_margins(log_joint: NDArray[np.float64], y: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return log P(c_m, z_m) - max over c != c_m of log P(c, z_m), the logarithm of P12 (8).

    Parameters
    ----------
    log_joint : float64 array, shape (M, C)
        log P(c, z_m) in nats, ``-inf`` allowed.
    y : integer array, shape (M,)
        True class codes, all known.

    Returns
    -------
    float64 array, shape (M,)
        Nats; positive where the sample is classified correctly. 0 for a tie, also where the true class
        and all others have probability 0.
    """
    rows = np.arange(len(y))
    rivals = log_joint.copy()
    rivals[rows, y] = -np.inf
    own, best = log_joint[rows, y], rivals.max(axis=1)
    tie = own == best
    return np.subtract(own, best, out=np.zeros(len(y)), where=~tie)


def soft_margin(
    margins: NDArray[np.float64], gamma: float, weights: NDArray[np.float64] | None = None
) -> float:
    """Return sum over m of w_m min(log-margin_m, gamma): P12 (9), in nats.

    Parameters
    ----------
    margins : float64 array, shape (M,)
        Log-margins.
    gamma : float
        Desired log-margin in nats.
    weights : float64 array, shape (M,), optional
        Sample weights, 1 each by default.
    """
    capped = np.minimum(margins, gamma)
    return float(capped.sum() if weights is None else weights @ capped)


def log_posterior(log_joint: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log P(c | z_m), shape (M, C), in nats; uniform where every class has probability 0."""
    possible = np.isfinite(log_joint).any(axis=1, keepdims=True)
    return log_softmax(np.where(possible, log_joint, 0.0), axis=1)
