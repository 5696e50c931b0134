"""The rows of the samples: margin rows (14) and (25) of Peharz & Pernkopf (2012), and tangents.

Tangents are for the conditional log-likelihood, which is concave in eta and therefore nowhere above a tangent.
Let a_c = alpha_{m,c} @ eta for every competing class c, and a_c = 0 for the true class. Sample m contributes
F_m(eta) = log P(c_m | z_m) = -log sum_c exp(-a_c). For every lambda in the simplex over the classes

    F_m(eta) <= sum_c lambda_c a_c - H(lambda),

with equality at the points eta whose posterior P(c | z_m) equals lambda (Gibbs' inequality). The row for the posterior
at a point is therefore the tangent at that point.
"""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax, xlogy

from milpbn.problem.candidates import Candidates
from milpbn.problem.margins import MarginRows
from milpbn.problem.rows import RowBlock

#: A row is left out only if it exceeds another by this tolerance, relative to the sum of its coefficients.
ROUNDING = 1e-9
#: Smaller posteriors are set to 0. The row stays valid, as every lambda is, and solvers ignore coefficients this small.
NEGLIGIBLE = 1e-9
#: Number of samples whose tangents are computed at a time, which limits the memory for copies of their coefficients.
CHUNK = 1024


def competing_rows(margins: MarginRows, candidates: Candidates) -> NDArray[np.bool_]:
    """Return which rows (14) or (25) can bind at some structure, shape (M, R).

    The margin of a row lies between the sum of the smallest and the sum of the largest coefficients of all variables.
    A row is redundant if its margin is never below gamma, or never below the margin of another row of the same sample
    (of any sample, for the hard margin). The redundant rows follow from the rows (5) and the rows that are kept, in
    the LP relaxation too.
    """
    low, high, scale = _ranges(margins, candidates)
    M = len(low)
    cap = margins.softening.cap
    lowest = high.min() if margins.smallest else high.min(axis=1, keepdims=True)
    competes = low < np.minimum(cap, lowest) + ROUNDING * (1.0 + scale)
    # Of rows with equal and constant margins, one must stay.
    if margins.smallest:
        competes[np.unravel_index(high.argmin(), high.shape)] = True
    else:
        m, r = np.arange(M), high.argmin(axis=1)
        competes[m, r] |= low[m, r] < cap
    return np.asarray(competes)


def margin_span(margins: MarginRows, candidates: Candidates) -> float:
    """Return by how much the samples' part of a score can differ between structures, acyclic or not, at most; nats."""
    low, high, _ = _ranges(margins, candidates)
    cap, smooth = margins.softening
    if smooth:
        least, most = (-np.logaddexp.reduce(np.pad(-m, ((0, 0), (0, 1))), axis=1) for m in (low, high))
    else:
        least, most = (np.minimum(m.min(axis=1), cap) for m in (low, high))
    return float(most.min() - least.min() if margins.smallest else margins.weights @ (most - least))


def _ranges(
    margins: MarginRows, candidates: Candidates
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums of smallest and of largest coefficients of all variables, and of their sizes, shape (M, R)."""
    alpha, (M, R) = margins.alpha, margins.alpha.shape[:2]
    low, high, scale = np.zeros((M, R)), np.zeros((M, R)), np.zeros((M, R))
    for a, b in itertools.pairwise(candidates.offsets):
        first, last = np.searchsorted(margins.columns, [a, b])
        block = alpha[:, :, first:last]
        if last == first:
            continue
        # A parent set without a column has the coefficient 0.
        least, most = block.min(axis=2), block.max(axis=2)
        if last - first < b - a:
            least, most = np.minimum(least, 0.0), np.maximum(most, 0.0)
        low, high = low + least, high + most
        scale += np.maximum(np.abs(least), np.abs(most))
    return low, high, scale


def margin_block(margins: MarginRows, tau: int, kept: NDArray[np.bool_] | None = None) -> RowBlock:
    """Return the rows (14) or (25): tau_m - alpha_{m,c} eta <= 0 for every sample and competing class.

    The rows are named ``m_<sample>_<row>``; exact zeros are not stored. `tau` is the first tau column, the only one for
    the hard margin. `kept`, bool of shape (M, R), says which rows are written, by default all.
    """
    M, R, K = margins.alpha.shape
    flat = margins.alpha.reshape(M * R, K)
    rows = np.arange(M * R) if kept is None else np.flatnonzero(kept)
    if len(rows) < M * R:
        flat = flat[rows]
    present = flat != 0
    lengths = np.count_nonzero(present, axis=1) + 1
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    last = indptr[1:] - 1
    is_tau = np.zeros(indptr[-1], dtype=bool)
    is_tau[last] = True
    data = np.empty(indptr[-1])
    data[is_tau] = 1.0
    data[~is_tau] = flat[present]
    np.negative(data, where=~is_tau, out=data)
    indices = np.empty(indptr[-1], dtype=np.int32)
    indices[~is_tau] = np.broadcast_to(margins.columns.astype(np.int32), flat.shape)[present]
    indices[is_tau] = tau if margins.smallest else tau + rows // R
    width = tau + (1 if margins.smallest else M)
    matrix = sp.csr_array((data, indices, indptr), shape=(len(rows), width))
    names = [f"m_{m}_{r}" for m, r in zip(*(x.tolist() for x in np.divmod(rows, R)), strict=True)]
    return RowBlock(matrix, np.full(len(rows), -np.inf), np.zeros(len(rows)), names)


def tangent_block(
    margins: MarginRows, tau: int, eta: NDArray[np.float64], samples: NDArray[np.integer], number: int
) -> RowBlock:
    """Return the rows tau_m - sum_c lambda_{m,c} alpha_{m,c} eta <= -H(lambda_m), tangent to the score at a point.

    The margins are those of the conditional log-likelihood. `tau` is the first tau column; column ``tau + m`` belongs
    to sample m. The point `eta`, shape (P,), may be integral or not. There is a row for each of `samples`, an integer
    array, named ``l_<sample>_<number>`` with the number of the point.
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
