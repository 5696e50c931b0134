"""The margin rows (14) and (25) of the MILP of Peharz & Pernkopf (2012), and the choice of those that can bind."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from milpbn.problem.candidates import Candidates
from milpbn.problem.margins import MarginRows
from milpbn.problem.rows import RowBlock

#: A row is left out only if it exceeds another by this tolerance, relative to the sum of its coefficients.
ROUNDING = 1e-9


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
    """Return the sums of the smallest and of the largest coefficients of all variables, and the sum of their sizes.

    Each has the shape (M, R): one number per sample and margin row.
    """
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

    Parameters
    ----------
    margins : MarginRows
        Coefficients; exact zeros are not stored.
    tau : int
        First tau column; the only one for the hard margin.
    kept : bool array, shape (M, R), optional
        The rows to write; by default all.

    Returns
    -------
    RowBlock
        Rows named ``m_<sample>_<row>``.
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
