"""Log-probability tables of all candidate parent sets: what the margin coefficients are gathered from.

Every candidate that can change a margin (features' sets with the class, and all sets of the class) becomes a
*column*. A column's table has a row, a *cell*, for every joint state of the variables other than the class
that the family covers, and an entry for every class. The tables of all columns are stacked in one array.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.clock import check_deadline
from milpbn.data.dataset import Dataset
from milpbn.scores.candidates import Candidates, ParentSet

#: Up to this many joint states per sample a column's cells are numbered directly; above, only the states
#: that occur get a number, so that tables never outgrow the data.
DENSE_CELLS_PER_SAMPLE = 4


@dataclass(frozen=True)
class MarginTables:
    """Stacked tables of all columns.

    Attributes
    ----------
    columns : int64 array, shape (K,)
        Entry of eta of each column, ascending. All other entries have the coefficient 0 for every sample.
    own : float64 array, shape (cells, C)
        Under SM log theta with the class c; under SBM log theta(c) with class 1, P12 (20).
    other : float64 array, shape (cells, C)
        Under SM the same array as `own`; under SBM log theta(c) with class 2.
    cells : int32 array, shape (M, K)
        Row of the tables that sample m uses in column k.
    """

    columns: NDArray[np.int64]
    own: NDArray[np.float64]
    other: NDArray[np.float64]
    cells: NDArray[np.int32]


def joint_states(
    codes: NDArray[np.int32], members: tuple[int, ...], n_states: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Return the numbers of the joint states of some variables, the last member varying fastest.

    Parameters
    ----------
    codes : int32 array, shape (M, V)
        Samples.
    members : tuple of int
        The variables.
    n_states : int64 array, shape (V,)
        Numbers of states.

    Returns
    -------
    index : int64 array, shape (M,)
        Number of each sample's joint state.
    size : int
        How many numbers there are: all joint states, or only those that occur if there would be more than
        `DENSE_CELLS_PER_SAMPLE` per sample.
    """
    M = codes.shape[0]
    index = np.zeros(M, dtype=np.int64)
    size = 1
    for j in members:
        index *= n_states[j]
        index += codes[:, j]
        size *= int(n_states[j])
        if size > max(DENSE_CELLS_PER_SAMPLE * M, 4096):
            present, index = np.unique(index, return_inverse=True)
            size = len(present)
    return index, size


def _class_counts(
    index: NDArray[np.int64], size: int, y: NDArray[np.int32], weights: NDArray[np.float64], n_classes: int
) -> NDArray[np.float64]:
    counts = np.bincount(index * n_classes + y, weights=weights, minlength=size * n_classes)
    return counts.astype(np.float64).reshape(size, n_classes)


def _column(
    data: Dataset, child: int, parents: ParentSet, smoothing: float, binary: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return one column's tables (own, other) and the cell of each sample.

    The smoothed ML parameters are theta_{j|h} = (n_{j|h} + a) / (n_h + a sp(X_i)), P12 (2) with Laplace
    smoothing; with `binary` the same counts with the class re-read as {c, not c}, P12 (20).
    """
    C, a, c = data.n_classes, smoothing, data.n_variables - 1
    others = tuple(j for j in parents if j != c)
    index, size = joint_states(data.codes, others, data.n_states)
    above = _class_counts(index, size, data.y, data.weights, C)
    if child == c:
        total = above.sum(axis=1, keepdims=True)
        if binary:
            norm = np.log(total + 2 * a)
            return np.log(above + a) - norm, np.log(total - above + a) - norm, index
        table = np.log(above + a) - np.log(total + a * C)
        return table, table, index
    r = int(data.n_states[child])
    cell = index * r + data.codes[:, child]
    parent_of = np.arange(size * r) // r
    if size * r > max(DENSE_CELLS_PER_SAMPLE * data.n_samples, 4096):
        present, cell = np.unique(cell, return_inverse=True)
        parent_of = present // r
    counts = _class_counts(cell, len(parent_of), data.y, data.weights, C)

    def log_theta(n: NDArray[np.float64], n_h: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.log(n + a) - np.log(n_h + a * r)[parent_of]

    own = log_theta(counts, above)
    if not binary:
        return own, own, cell
    rest = np.maximum(counts.sum(axis=1, keepdims=True) - counts, 0.0)
    rest_above = np.maximum(above.sum(axis=1, keepdims=True) - above, 0.0)
    return own, log_theta(rest, rest_above), cell


def active_columns(candidates: Candidates) -> NDArray[np.int64]:
    """Return the entries of eta whose margin coefficients are not all 0: a feature's sets with the class, and
    every set of the class variable (P12, footnote 1). int64 array, shape (K,).
    """  # noqa: D205
    c = candidates.n_variables - 1
    variable = candidates.variable
    return np.array([p for p, s in enumerate(candidates.flat) if variable[p] == c or c in s], dtype=np.int64)


def margin_tables(
    data: Dataset, candidates: Candidates, smoothing: float, *, binary: bool, deadline: float | None = None
) -> MarginTables:
    """Build the tables of all columns from the counts of the data.

    Parameters
    ----------
    data : Dataset
        Training data, best with merged samples; its weights are counted.
    candidates : Candidates
        Parent sets.
    smoothing : float
        Laplace constant a > 0.
    binary : bool
        One-versus-rest tables of the binary margin, P12 (20)-(23), instead of the margin's.
    deadline : float, optional
        `time.monotonic` value after which NoIncumbentError is raised.

    Returns
    -------
    MarginTables
    """
    columns = active_columns(candidates)
    cells = np.empty((data.n_samples, len(columns)), dtype=np.int32)
    own: list[NDArray[np.float64]] = []
    other: list[NDArray[np.float64]] = []
    start = 0
    for k, p in enumerate(columns):
        if k % 64 == 0:
            check_deadline(deadline, f"the tables of {len(columns)} parent sets were computed")
        child = int(candidates.variable[p])
        mine, theirs, cell = _column(data, child, candidates.flat[p], smoothing, binary)
        cells[:, k] = cell + start
        own.append(mine)
        other.append(theirs)
        start += len(mine)
    if start >= 2**31:
        raise MemoryError(f"{start} cells")
    stacked = np.concatenate(own) if own else np.empty((0, data.n_classes))
    return MarginTables(columns, stacked, np.concatenate(other) if binary else stacked, cells)
