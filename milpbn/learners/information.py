"""Mutual information of all pairs of variables, under the empirical distribution of weighted samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from milpbn.compiled import kernel
from milpbn.data.dataset import Dataset


def mutual_information(data: Dataset) -> NDArray[np.float64]:
    """Return I(X_i; X_j) of all pairs of variables, the class among them (Chow & Liu 1968).

    Parameters
    ----------
    data : Dataset
        Training data; its weights are counted.

    Returns
    -------
    float64 array, shape (V, V)
        Nats; symmetric, with the entropies H(X_i) on the diagonal.
    """
    return _weighted(data.codes, data.n_states, data.weights) / max(float(data.weights.sum()), 1e-300)


def conditional_mutual_information(data: Dataset) -> NDArray[np.float64]:
    """Return I(X_i; X_j | C) of all pairs of features (Friedman et al. 1997).

    Parameters
    ----------
    data : Dataset
        Training data; its weights are counted.

    Returns
    -------
    float64 array, shape (N, N)
        Nats; symmetric, with the conditional entropies H(X_i | C) on the diagonal.
    """
    information = np.zeros((data.n_features, data.n_features))
    for c in range(data.n_classes):
        mine = np.flatnonzero(data.y == c)
        if len(mine):
            information += _weighted(data.X[mine], data.n_states[:-1], data.weights[mine])
    return information / float(data.weights.sum())


def _weighted(
    codes: NDArray[np.int32], n_states: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the sums of weights times the mutual information of all pairs of columns, shape (K, K)."""
    ends = np.cumsum(n_states)
    starts = ends - n_states
    joint = np.zeros((ends[-1], ends[-1]))
    _count_pairs(np.ascontiguousarray(codes.T), starts, weights, joint)
    joint += np.tril(joint, -1).T
    marginal = np.log(np.maximum(joint.diagonal(), np.finfo(float).tiny))
    total = np.log(max(float(weights.sum()), np.finfo(float).tiny))
    # sum n_ij log(n_ij n / (n_i n_j)), each block of states summed to one number per pair of columns
    terms = xlogy(joint, joint) + joint * (total - marginal[:, None] - marginal[None, :])
    return np.add.reduceat(np.add.reduceat(terms, starts, axis=0), starts, axis=1)


@kernel
def _count_pairs(columns, starts, weights, joint):  # type: ignore[no-untyped-def]  # numba infers the types
    """Add the weights of all pairs of states to the lower triangle of `joint`, shape (states, states)."""
    for i in range(len(starts)):
        for j in range(i + 1):
            for m in range(len(weights)):
                joint[starts[i] + columns[i, m], starts[j] + columns[j, m]] += weights[m]
