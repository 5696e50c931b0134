"""Tangent rows of the conditional log-likelihood, which is concave in eta and therefore nowhere above a tangent.

Let a_c = alpha_{m,c} @ eta for every competing class c, and a_c = 0 for the true class. Sample m contributes
F_m(eta) = log P(c_m | z_m) = -log sum_c exp(-a_c). For every lambda in the simplex over the classes

    F_m(eta) <= sum_c lambda_c a_c - H(lambda),

with equality at the points eta whose posterior P(c | z_m) equals lambda (Gibbs' inequality). The row for the posterior
at a point is therefore the tangent at that point.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax, xlogy

from milpbn.problem.margins import MarginRows
from milpbn.problem.rows import RowBlock

#: Smaller posteriors are set to 0. The row stays valid, as every lambda is, and solvers ignore coefficients this small.
NEGLIGIBLE = 1e-9
#: Number of samples whose tangents are computed at a time, which limits the memory for copies of their coefficients.
CHUNK = 1024


def tangent_block(
    margins: MarginRows, tau: int, eta: NDArray[np.float64], samples: NDArray[np.integer], number: int
) -> RowBlock:
    """Return the rows tau_m - sum_c lambda_{m,c} alpha_{m,c} eta <= -H(lambda_m), tangent to the score at a point.

    Parameters
    ----------
    margins : MarginRows
        Coefficients of the conditional log-likelihood.
    tau : int
        First tau column; column ``tau + m`` belongs to sample m.
    eta : float64 array, shape (P,)
        The point, integral or not.
    samples : integer array, shape (n,)
        The samples to write a row for.
    number : int
        Number of the point, which is part of the rows' names.

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
    # The competing classes are in ascending order, as in alpha.
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
