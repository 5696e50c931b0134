"""Weighted counts of families, their log-likelihood and their free parameters."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from milpbn.data import Table
from milpbn.data.dataset import Dataset
from milpbn.data.sums import log_share
from milpbn.errors import InputError

#: Up to this many joint states per sample, every joint state of a domain gets a cell. With more, only the joint
#: states that occur get one, so that a table has at most one cell per sample.
DENSE_CELLS_PER_SAMPLE = 4


def cell_limit(n_samples: int) -> int:
    """Return the largest number of joint states at which every joint state gets a cell."""
    return max(DENSE_CELLS_PER_SAMPLE * n_samples, 4096)


def require_units(data: Dataset | Table, unit: float) -> None:
    """Refuse weights below 1 if one unit of weight is to be left out of every sample (`unit` is not 0).

    Then a count between 1 and 2 is the weight of a single row, which is exact, so that a count less 1 keeps a small
    relative error (`milpbn.problem.rounding`). The sum of smaller weights would not.
    """
    least = float(data.weights.min(initial=1.0))
    if unit and least < 1:
        raise InputError(
            "Leave-one-out scores (--leave-one-out, --recipe) leave one unit of weight out of every sample, "
            f"but the data {data.name!r} have samples of weight {least:g}; multiply all weights by "
            f"{math.ceil(100 / least) / 100:g}. In place of balanced class weights, give each class one of at least 1."
        )


def joint_states(
    codes: NDArray[np.int32], members: tuple[int, ...], n_states: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Return the numbers of the joint states of some variables, the last member varying fastest, and a bound on them.

    The numbers are an int64 array of shape (M,), given codes of shape (M, V) and n_states of shape (V,). All of them
    are below the bound: the number of all joint states up to `cell_limit`; beyond, joint states that do not occur are
    left out.
    """
    M = codes.shape[0]
    index = np.zeros(M, dtype=np.int64)
    size = 1
    for j in members:
        index *= n_states[j]
        index += codes[:, j]
        size *= int(n_states[j])
        if size > cell_limit(M):
            present, index = np.unique(index, return_inverse=True)
            size = len(present)
    return index, size


def family_counts(data: Dataset, child: int, parents: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the weighted counts n_{j|h}; float64 array, shape (parent states, child states).

    With more joint parent states than `cell_limit`, only those that occur have a row.
    """
    index, size = joint_states(data.codes, parents, data.n_states)
    r = int(data.n_states[child])
    cell = index * r + data.codes[:, child]
    return data.total_weights(cell, size * r).reshape(size, r)


def log_likelihood(data: Dataset, child: int, parents: tuple[int, ...]) -> float:
    """Return sum_{j,h} n_{j|h} log(n_{j|h} / n_h) with 0 log 0 = 0, in nats: unsmoothed ML parameters.

    All terms have the same sign, and each has a small relative error. The form sum n log n - sum n_h log n_h would
    lose digits to cancellation.
    """
    counts = family_counts(data, child, parents)
    rest = data.other_weights(counts)
    # An infinite count gives an empty cell the logarithm of 1, so that 0 log 0 = 0.
    return float((counts * log_share(np.where(counts > 0, counts, np.inf), rest)).sum())


def n_parameters(data: Dataset, child: int, parents: tuple[int, ...]) -> int:
    """Return the family's number of free parameters, (sp(X_i) - 1) times the number of joint parent states."""
    sizes = data.n_states
    return int(sizes[child] - 1) * math.prod(int(sizes[j]) for j in parents)
