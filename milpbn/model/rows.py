"""Blocks of rows, and the fast assembly of the margin rows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from milpbn.scores.candidates import Candidates
from milpbn.scores.margins import MarginRows

#: Share of the coefficients' sum by which a row has to be above others to be left out.
ROUNDING = 1e-9


@dataclass(frozen=True)
class RowBlock:
    """Some rows of a MILP; the matrix may have fewer columns than the model (trailing zeros)."""

    matrix: sp.csr_array
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    names: list[str]

    @classmethod
    def from_coordinates(
        cls,
        rows: ArrayLike,
        columns: ArrayLike,
        values: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        names: list[str],
    ) -> RowBlock:
        """Build rows from coordinate triples; zero values are left out."""
        r, c = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
        v = np.asarray(values, dtype=np.float64)
        keep = v != 0
        width = int(c.max()) + 1 if c.size else 0
        matrix = sp.csr_array((v[keep], (r[keep], c[keep])), shape=(len(names), width))
        return cls(matrix, np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64), names)

    def take(self, rows: NDArray[np.integer]) -> RowBlock:
        """Return some of the rows."""
        names = [self.names[r] for r in rows]
        return RowBlock(self.matrix[rows], self.lower[rows], self.upper[rows], names)

    def slack(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each row's distance from its nearer bound at a point, negative where it is violated."""
        activity = self.matrix @ x[: self.matrix.shape[1]]
        return np.asarray(np.minimum(activity - self.lower, self.upper - activity))


def stack(blocks: list[RowBlock], n_columns: int) -> RowBlock:
    """Put blocks below each other, as a matrix of `n_columns` columns with sorted int32 indices."""
    data = np.concatenate([b.matrix.data for b in blocks])
    indices = np.concatenate([b.matrix.indices.astype(np.int32, copy=False) for b in blocks])
    lengths = np.concatenate([np.diff(b.matrix.indptr) for b in blocks])
    index_type = np.int32 if len(data) < 2**31 else np.int64
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(index_type)
    matrix = sp.csr_array((data, indices, indptr), shape=(len(lengths), n_columns))
    matrix.sort_indices()
    return RowBlock(
        matrix,
        np.concatenate([b.lower for b in blocks]),
        np.concatenate([b.upper for b in blocks]),
        [name for b in blocks for name in b.names],
    )


def competing_rows(margins: MarginRows, candidates: Candidates) -> NDArray[np.bool_]:
    """Return which rows (14) or (25) some structure may need, shape (M, R).

    Every row lies between the sums of the smallest and of the largest coefficients of all variables. One that is never
    below gamma needs no row, nor does one that is never below another row of its sample (of any sample, for the hard
    margin). What is left out follows from the rows (5) and the others, in the LP relaxation as well.
    """
    alpha, (M, R) = margins.alpha, margins.alpha.shape[:2]
    low, high, scale = np.zeros((M, R)), np.zeros((M, R)), np.zeros((M, R))
    for a, b in itertools.pairwise(candidates.offsets):
        first, last = np.searchsorted(margins.columns, [a, b])
        block = alpha[:, :, first:last]
        if last == first:
            continue
        # Entries without a column have the coefficient 0.
        least, most = block.min(axis=2), block.max(axis=2)
        if last - first < b - a:
            least, most = np.minimum(least, 0.0), np.maximum(most, 0.0)
        low, high = low + least, high + most
        scale += np.maximum(np.abs(least), np.abs(most))
    cap = margins.softening.cap
    lowest = high.min() if margins.smallest else high.min(axis=1, keepdims=True)
    competes = low < np.minimum(cap, lowest) + ROUNDING * (1.0 + scale)
    # Of rows that are never below each other one stays.
    if margins.smallest:
        competes[np.unravel_index(high.argmin(), high.shape)] = True
    else:
        m, r = np.arange(M), high.argmin(axis=1)
        competes[m, r] |= low[m, r] < cap
    return np.asarray(competes)


def margin_block(margins: MarginRows, tau: int, kept: NDArray[np.bool_] | None = None) -> RowBlock:
    """Rows (14) or (25): tau_m - alpha_{m,c} eta <= 0 for every sample and competing class.

    Parameters
    ----------
    margins : MarginRows
        Coefficients; exact zeros are left out.
    tau : int
        First tau column; with the hard margin the only one.
    kept : bool array, shape (M, R), optional
        The rows to write; all by default.

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
    own = np.zeros(indptr[-1], dtype=bool)
    own[last] = True
    data = np.empty(indptr[-1])
    data[own] = 1.0
    data[~own] = flat[present]
    np.negative(data, where=~own, out=data)
    indices = np.empty(indptr[-1], dtype=np.int32)
    indices[~own] = np.broadcast_to(margins.columns.astype(np.int32), flat.shape)[present]
    indices[own] = tau if margins.smallest else tau + rows // R
    width = tau + (1 if margins.smallest else M)
    matrix = sp.csr_array((data, indices, indptr), shape=(len(rows), width))
    names = [f"m_{m}_{r}" for m, r in zip(*(x.tolist() for x in np.divmod(rows, R)), strict=True)]
    return RowBlock(matrix, np.full(len(rows), -np.inf), np.zeros(len(rows)), names)
