"""Tangent rows of the conditional log-likelihood: above it everywhere, as it is concave in eta.

With a_c = alpha_{m,c} @ eta for the competing classes and 0 for the true one, sample m adds
F_m(eta) = log P(c_m | z_m) = -log sum_c exp(-a_c). For every lambda in the simplex over the classes

    F_m(eta) <= sum_c lambda_c a_c - H(lambda),

with equality at the points eta whose posterior P(c | z_m) is lambda (Gibbs): those rows are the tangents.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax, xlogy

from milpbn.model.rows import RowBlock
from milpbn.scores.margins import MarginRows

#: Smaller posteriors count as 0: any lambda is valid, and solvers drop coefficients of this size by themselves.
NEGLIGIBLE = 1e-9
#: Samples whose tangents are computed at a time, as the coefficients behind them are copied.
CHUNK = 1024


def tangent_block(
    margins: MarginRows, tau: int, eta: NDArray[np.float64], samples: NDArray[np.integer], number: int
) -> RowBlock:
    """Rows tau_m - sum_c lambda_{m,c} alpha_{m,c} eta <= -H(lambda_m), tangent to the score at a point.

    Parameters
    ----------
    margins : MarginRows
        Coefficients of the conditional log-likelihood.
    tau : int
        First tau column; sample m's is ``tau + m``.
    eta : float64 array, shape (P,)
        The point, integral or not.
    samples : integer array, shape (n,)
        Which samples get a row.
    number : int
        Goes into the rows' names, to tell the points apart.

    Returns
    -------
    RowBlock
        Rows named ``l_<sample>_<number>``.
    """
    share = softmax(margins.logits(eta)[samples], axis=1)
    share[share < NEGLIGIBLE] = 0.0
    share /= share.sum(axis=1, keepdims=True)
    entropy = -xlogy(share, share).sum(axis=1)
    n, Q = share.shape
    # As in alpha: the competing classes in ascending order.
    rival = np.arange(Q) != margins.tables.true[samples][:, None]
    rivals = share[rival].reshape(n, 1, Q - 1)
    parts = [slice(k, k + CHUNK) for k in range(0, n, CHUNK)]
    slopes = np.concatenate([(rivals[part] @ margins.alpha[samples[part]])[:, 0] for part in parts])
    rows, columns = np.nonzero(slopes)
    return RowBlock.from_coordinates(
        np.concatenate([rows, np.arange(n)]),
        np.concatenate([margins.columns[columns], tau + samples]),
        np.concatenate([-slopes[rows, columns], np.ones(n)]),
        np.full(n, -np.inf),
        -entropy,
        [f"l_{m}_{number}" for m in samples.tolist()],
    )
