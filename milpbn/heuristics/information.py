"""Mutual information of all pairs of variables, under the empirical distribution of weighted samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from milpbn.data.dataset import Dataset
from milpbn.heuristics.tuning import TUNING
from milpbn.util.compiled import kernel


def mutual_information(data: Dataset) -> NDArray[np.float64]:
    """Return I(X_i; X_j) of all pairs of variables, including the class (Chow & Liu 1968).

    They are nats, symmetric, float64 of shape (V, V), with the entropies H(X_i) on the diagonal. Samples count with
    their weights.
    """
    total = max(float(data.weights.sum()), 1e-300)
    return _scaled_information(data.codes, data.n_states, data.weights) / total


def conditional_mutual_information(data: Dataset) -> NDArray[np.float64]:
    """Return I(X_i; X_j | C) of all pairs of features (Friedman et al. 1997).

    They are nats, symmetric, float64 of shape (N, N), with the conditional entropies H(X_i | C) on the diagonal.
    Samples count with their weights.
    """
    information = np.zeros((data.n_features, data.n_features))
    for c in range(data.n_classes):
        rows = np.flatnonzero(data.y == c)
        if len(rows):
            information += _scaled_information(data.X[rows], data.n_states[:-1], data.weights[rows])
    return information / float(data.weights.sum())


def _scaled_information(
    codes: NDArray[np.int32], n_states: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mutual information of all pairs of columns times the sum of the weights, shape (K, K)."""
    columns = np.ascontiguousarray(codes.T)
    K, M = columns.shape
    marginals = [np.bincount(x, weights=weights, minlength=r) for x, r in zip(columns, n_states, strict=True)]
    total = np.log(max(float(weights.sum()), np.finfo(float).tiny))
    logs = np.concatenate([np.log(np.maximum(n, np.finfo(float).tiny)) for n in marginals])
    starts = np.cumsum(n_states) - n_states
    room = max(TUNING.sort_from * M, 2**16)
    information = np.zeros((K, K))
    _add_information(columns, n_states, starts, weights, logs, total, room, information)
    for i in range(K):
        information[i, i] = total * marginals[i].sum() - xlogy(marginals[i], marginals[i]).sum()
        for j in range(i):
            if n_states[i] * n_states[j] > room:
                # A table of all pairs of states would be mostly zeros.
                pairs, cells = np.unique(columns[i] * n_states[j] + columns[j], return_inverse=True)
                counts = np.bincount(cells, weights=weights)
                a, b = np.divmod(pairs, n_states[j])
                expected = logs[starts[i] + a] + logs[starts[j] + b]
                information[i, j] = float(np.sum(xlogy(counts, counts) + counts * (total - expected)))
    return information + np.tril(information, -1).T


@kernel
def _add_information(columns, n_states, starts, weights, logs, total, room, information):  # type: ignore[no-untyped-def]  # numba infers the types
    """Write the information of every pair of columns with at most `room` pairs of states into the lower triangle."""
    joint = np.zeros(room)
    for i in range(len(starts)):
        for j in range(i):
            width = n_states[j]
            if n_states[i] * width > room:
                continue
            for cell in range(n_states[i] * width):
                joint[cell] = 0.0
            for m in range(len(weights)):
                joint[columns[i, m] * width + columns[j, m]] += weights[m]
            value = 0.0
            # sum n_ab log(n_ab n / (n_a n_b))
            for a in range(n_states[i]):
                for b in range(width):
                    n = joint[a * width + b]
                    if n > 0.0:
                        value += n * (np.log(n) + total - logs[starts[i] + a] - logs[starts[j] + b])
            information[i, j] = value
