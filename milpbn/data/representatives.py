"""A few weighted samples that stand for all: what a margin score's sum can be taken over instead of all rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.preprocessing import OneHotEncoder

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError

#: Rounds of k-means: what stands for what need not be settled to the last row.
ROUNDS = 20


def representative_weights(data: Dataset, n_samples: int, random_state: int = 0) -> NDArray[np.float64]:
    """Choose representative samples, and weights that make them stand for all (P12, section 4, leaves it open).

    Every class gets a share of the samples by its weight, at least one. Its rows are grouped by k-means on their
    indicator vectors, where squared distances are twice the number of features that differ; the row nearest to a
    group's centre gets the whole group's weight.

    Parameters
    ----------
    data : Dataset
        Training data without unknown values, best with identical rows merged.
    n_samples : int
        Number of samples to choose.
    random_state : int
        Seed of k-means.

    Returns
    -------
    float64 array, shape (M,)
        Weights with the same sum as the data's in every class; 0 for rows that are not chosen. The data's own
        weights if it has no more than `n_samples` rows.

    Raises
    ------
    InputError
        If `n_samples` is smaller than the number of classes that occur.
    """
    classes, inverse = np.unique(data.y, return_inverse=True)
    if n_samples < len(classes):
        raise InputError(
            f"A subset of {n_samples} samples cannot represent {len(classes)} classes; take at least {len(classes)}."
        )
    if n_samples >= data.n_samples:
        return data.weights.copy()
    counts = _shares(
        np.bincount(inverse, weights=data.weights).astype(np.float64), np.bincount(inverse), n_samples
    )
    chosen = np.zeros(data.n_samples)
    for c, count in enumerate(counts):
        rows = np.flatnonzero(inverse == c)
        if count == len(rows):
            chosen[rows] = data.weights[rows]
            continue
        indicators = OneHotEncoder().fit_transform(data.X[rows])
        groups = KMeans(int(count), n_init=1, max_iter=ROUNDS, random_state=random_state)
        distances = groups.fit_transform(indicators, sample_weight=data.weights[rows])
        label = distances.argmin(axis=1)
        weight = np.bincount(label, weights=data.weights[rows], minlength=int(count))
        for k in np.flatnonzero(weight):
            mine = np.flatnonzero(label == k)
            chosen[rows[mine[distances[mine, k].argmin()]]] = weight[k]
    return chosen


def _shares(weights: NDArray[np.float64], rows: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Divide `total` by weight, with at least 1 and at most all rows for everyone; int64 array."""
    counts = np.ones(len(weights), dtype=np.int64)
    for _ in range(total - len(weights)):
        # The one that is furthest below its share; classes without rows left drop out.
        behind = np.where(counts < rows, weights / counts, -1.0)
        if behind.max() < 0:
            break
        counts[behind.argmax()] += 1
    return counts
