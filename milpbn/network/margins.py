"""Log-margins, soft margins and posteriors, computed from the log-joint of every class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.util.validation import real_number


def log_margins(log_joint: NDArray[np.float64], y: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return log P(c_m, z_m) - max_{c != c_m} log P(c, z_m): the logarithm of (8) of Peharz and Pernkopf (2012).

    Parameters
    ----------
    log_joint : float64 array, shape (M, C)
        log P(c, z_m) in nats, ``-inf`` allowed.
    y : integer array, shape (M,)
        True class codes; none may be unknown.

    Returns
    -------
    float64 array, shape (M,)
        In nats; positive for samples that are classified correctly, and 0 for a tie, even a tie of
        probabilities 0.
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
    """Return the sum over m of w_m min(log-margin_m, gamma) in nats: (9) of Peharz and Pernkopf (2012).

    Log-margins and gamma are in nats; log-margins and weights have the shape (M,). By default all weights are 1.
    """
    capped = np.minimum(margins, gamma)
    return float(capped.sum() if weights is None else weights @ capped)


def log_posterior(log_joint: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log P(c | z_m) in nats, shape (M, C); uniform for samples whose probability is 0 for every class.

    The value of the most probable class is - log1p(sum of the others' odds), which is accurate even near 0.
    """
    if not log_joint.size:
        return np.zeros(log_joint.shape)
    possible = np.isfinite(log_joint).any(axis=1, keepdims=True)
    away = np.where(possible, log_joint, 0.0)
    away -= away.max(axis=1, keepdims=True)
    odds = np.exp(away)
    odds[np.arange(len(odds)), away.argmax(axis=1)] = 0.0
    return away - np.log1p(odds.sum(axis=1, keepdims=True))


def checked_gamma(gamma: float | None) -> float | None:
    """Return a desired log-margin in nats as a float, None for none; `InputError` unless it is positive."""
    if gamma is not None and not (gamma := real_number("gamma", gamma)) > 0:
        raise InputError(f"gamma must be a positive number of nats, got {gamma:g}.")
    return gamma
