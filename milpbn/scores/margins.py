"""Margin coefficients alpha(i, k, m, c), P12 (12), and abar(i, k, m), P12 (23)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.scores.candidates import Candidates
from milpbn.scores.spec import Score
from milpbn.scores.tables import MarginTables, margin_tables


@dataclass(frozen=True)
class MarginRows:
    """One row of coefficients per sample and competing class (SM), or per sample (SBM).

    The log-margin of sample m is the minimum over its rows of ``alpha[m] @ eta[columns]``.

    Attributes
    ----------
    alpha : float64 array, shape (M, R, K)
        Coefficients in nats; R = C - 1 competing classes, in ascending order of the class and without the
        true one, or R = 1 under SBM.
    columns : int64 array, shape (K,)
        Entry of eta of each column; the coefficients of all other entries are 0.
    weights : float64 array, shape (M,)
        Sample weights.
    gamma : float or None
        Desired log-margin; None for the hard margin, where the smallest log-margin is the score.
    """

    alpha: NDArray[np.float64]
    columns: NDArray[np.int64]
    weights: NDArray[np.float64]
    gamma: float | None

    @property
    def n_samples(self) -> int:
        """Number of (merged) samples M."""
        return self.alpha.shape[0]

    @property
    def n_rows(self) -> int:
        """Number of margin rows, M times R."""
        return self.alpha.shape[0] * self.alpha.shape[1]

    def log_margins(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return min_r alpha[m, r] @ eta for every sample, shape (M,); P12 (13) and (22)."""
        M, R, K = self.alpha.shape
        return (self.alpha.reshape(M * R, K) @ eta[self.columns]).reshape(M, R).min(axis=1)

    def value(self, eta: NDArray[np.float64]) -> float:
        """Return the margin part of the score, P12 (9), or the smallest log-margin without gamma."""
        margins = self.log_margins(eta)
        if self.gamma is None:
            return float(margins.min())
        return float(self.weights @ np.minimum(margins, self.gamma))


@njit(cache=True, parallel=True)
def _fill_multiclass(alpha, table, cells, y):  # type: ignore[no-untyped-def]  # numba infers the types
    M, R, K = alpha.shape
    for m in prange(M):
        true = y[m]
        for k in range(K):
            row = table[cells[m, k]]
            reference = row[true]
            for c in range(true):
                alpha[m, c, k] = reference - row[c]
            for c in range(true + 1, R + 1):
                alpha[m, c - 1, k] = reference - row[c]


@njit(cache=True, parallel=True)
def _fill_binary(alpha, own, other, cells, y):  # type: ignore[no-untyped-def]  # numba infers the types
    M, _, K = alpha.shape
    for m in prange(M):
        c = y[m]
        for k in range(K):
            cell = cells[m, k]
            alpha[m, 0, k] = own[cell, c] - other[cell, c]


def fill_rows(tables: MarginTables, y: NDArray[np.int32], *, binary: bool) -> NDArray[np.float64]:
    """Gather the coefficients of every sample from the tables; float64 array, shape (M, R, K)."""
    M, K = tables.cells.shape
    n_classes = tables.own.shape[1]
    alpha = np.empty((M, 1 if binary else n_classes - 1, K))
    if binary:
        _fill_binary(alpha, tables.own, tables.other, tables.cells, y)
    else:
        _fill_multiclass(alpha, tables.own, tables.cells, y)
    return alpha


def margin_rows(
    data: Dataset, candidates: Candidates, score: Score, deadline: float | None = None
) -> MarginRows:
    """Build the coefficients of a margin score.

    Parameters
    ----------
    data : Dataset
        Training data, merged samples for speed and size.
    candidates : Candidates
        Parent sets.
    score : Score
        ``sm``, ``sbm`` or ``hard-margin``.
    deadline : float, optional
        `time.monotonic` value after which NoIncumbentError is raised.

    Returns
    -------
    MarginRows
    """
    binary = score.name == "sbm"
    tables = margin_tables(data, candidates, score.smoothing, binary=binary, deadline=deadline)
    alpha = fill_rows(tables, np.ascontiguousarray(data.y), binary=binary)
    return MarginRows(alpha, tables.columns, data.weights, score.gamma)
