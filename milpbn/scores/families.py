"""Log-probability tables of all families, and where each sample looks them up: the coefficients, not yet gathered.

alpha(i, k, m, c) of P12 (12) is a difference of two entries of a small table: one row, a *cell*, for every joint
state of the family's variables other than the class, one entry for every class. The families over the same
variables form a *domain*: their cells are numbered alike, and the cell of a sample follows from its codes. All
that the bounds ask of the coefficients, their products with eta and with the dual weights, is computed from these
tables in O(M N + P) memory; the tensor of all coefficients is only made for a MILP.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from milpbn.clock import check_deadline
from milpbn.data.dataset import Dataset
from milpbn.scores.candidates import Candidates, ParentSet

#: Up to this many joint states per sample a domain's cells are numbered directly; above, only the states
#: that occur get a number, so that tables never outgrow the data.
DENSE_CELLS_PER_SAMPLE = 4


def cell_limit(n_samples: int) -> int:
    """Return up to how many joint states all of them get a cell."""
    return max(DENSE_CELLS_PER_SAMPLE * n_samples, 4096)


def active_columns(candidates: Candidates) -> NDArray[np.int64]:
    """Return the entries of eta whose margin coefficients are not all 0: a feature's sets with the class, and
    every set of the class variable (P12, footnote 1). int64 array, shape (K,).
    """  # noqa: D205
    c = candidates.n_variables - 1
    variable = candidates.variable
    return np.array([p for p, s in enumerate(candidates.flat) if variable[p] == c or c in s], dtype=np.int64)


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
        if size > cell_limit(M):
            present, index = np.unique(index, return_inverse=True)
            size = len(present)
    return index, size


@dataclass(frozen=True)
class FamilyTables:
    """Tables of all families (*columns*) whose coefficients are not all 0.

    The cell of sample m in domain d is ``sum_t strides[d, t] * codes[rows[d, t], m]``, over the t with
    ``rows[d, t] >= 0``. Column k has the table ``values[start[k] : start[k] + sizes[domain[k]]]``, and
    alpha(k, m, c) = table[cell, true[m]] - table[cell, c].

    Attributes
    ----------
    codes : int32 array, shape (n_rows, M)
        The samples, one row a variable, and after them the cell numbers of domains with too many joint states.
    true : int32 array, shape (M,)
        The entry of a table's rows that belongs to the true class.
    rows, strides : int64 arrays, shape (D, W)
        How each domain numbers its cells; rows of -1 are padding.
    sizes : int64 array, shape (D,)
        Number of cells of each domain.
    columns : int64 array, shape (K,)
        Entry of eta of each column, ascending.
    domain, start : int64 arrays, shape (K,)
        Domain of each column, and where its table begins.
    values : float64 array, shape (cells, Q)
        Log-probabilities in nats, Q = C. Under the binary margin Q = 2: the samples' class is then part of
        the domain, a row is (0, -abar), and `true` is 0.
    """

    codes: NDArray[np.int32]
    true: NDArray[np.int32]
    rows: NDArray[np.int64]
    strides: NDArray[np.int64]
    sizes: NDArray[np.int64]
    columns: NDArray[np.int64]
    domain: NDArray[np.int64]
    start: NDArray[np.int64]
    values: NDArray[np.float64]

    @property
    def n_samples(self) -> int:
        """Number of (merged) samples M."""
        return self.codes.shape[1]

    def take(self, samples: NDArray[np.integer]) -> FamilyTables:
        """Return the same tables for some of the samples."""
        codes = np.ascontiguousarray(self.codes[:, samples])
        return replace(self, codes=codes, true=self.true[samples])

    def cells(self, domain: int) -> NDArray[np.int64]:
        """Return the cell of every sample in a domain, int64 array, shape (M,)."""
        used = self.rows[domain] >= 0
        return self.strides[domain, used] @ self.codes[self.rows[domain, used]].astype(np.int64)

    def coefficients(self, column: int) -> NDArray[np.float64]:
        """Return alpha of one column for every sample and competing class, shape (M, Q - 1)."""
        domain, start = self.domain[column], self.start[column]
        table = self.values[start : start + self.sizes[domain]][self.cells(int(domain))]
        own = table[np.arange(len(table)), self.true]
        others = np.ones(table.shape, dtype=bool)
        others[np.arange(len(table)), self.true] = False
        return own[:, None] - table[others].reshape(len(table), -1)

    def keep(self, entries: NDArray[np.bool_]) -> FamilyTables:
        """Return the tables of some entries of eta; `entries`, shape (P,), says which, and renumbers them."""
        kept = entries[self.columns]
        place = np.cumsum(entries) - 1
        return replace(
            self, columns=place[self.columns[kept]], domain=self.domain[kept], start=self.start[kept]
        )

    def first_samples(self, count: int) -> FamilyTables:
        """Return the same tables with the first samples only."""
        return replace(self, codes=np.ascontiguousarray(self.codes[:, :count]), true=self.true[:count])


def family_tables(
    data: Dataset, candidates: Candidates, smoothing: float, *, binary: bool, deadline: float | None = None
) -> FamilyTables:
    """Count the data and build the tables of all families.

    The smoothed ML parameters are theta_{j|h} = (n_{j|h} + a) / (n_h + a sp(X_i)), P12 (2) with Laplace
    smoothing; with `binary` the same counts with the class re-read as {c, not c}, P12 (20)-(23).

    Parameters
    ----------
    data : Dataset
        Training data, best with merged samples; its weights are counted.
    candidates : Candidates
        Parent sets.
    smoothing : float
        Laplace constant a > 0.
    binary : bool
        Tables of the binary margin.
    deadline : float, optional
        `time.monotonic` value after which NoIncumbentError is raised.
    """
    c = candidates.n_variables - 1
    columns = active_columns(candidates)
    members: dict[ParentSet, list[int]] = {}
    for k, p in enumerate(columns.tolist()):
        child = int(candidates.variable[p])
        domain = tuple(sorted({child, *candidates.flat[p]} - {c}))
        members.setdefault(domain, []).append(k)
    codes = [np.ascontiguousarray(data.codes[:, j]) for j in range(data.n_variables)]
    width = max((len(d) for d in members), default=0) + binary
    rows = np.full((len(members), max(1, width)), -1, dtype=np.int64)
    strides = np.zeros_like(rows)
    sizes = np.empty(len(members), dtype=np.int64)
    domain_of = np.empty(len(columns), dtype=np.int64)
    start = np.empty(len(columns), dtype=np.int64)
    parts: list[NDArray[np.float64]] = []
    filled = 0
    for number, (domain, inside) in enumerate(members.items()):
        if number % 64 == 0:
            check_deadline(deadline, f"the tables of {len(columns)} parent sets were computed")
        counted = _Domain(data, domain)
        own_rows, own_strides = (domain, counted.strides)
        if counted.numbers is not None:
            codes.append(counted.numbers.astype(np.int32))
            own_rows, own_strides = (len(codes) - 1,), (1,)
        factor = data.n_classes if binary else 1
        rows[number, : len(own_rows)] = own_rows
        strides[number, : len(own_rows)] = [factor * s for s in own_strides]
        if binary:
            rows[number, len(own_rows)], strides[number, len(own_rows)] = c, 1
        sizes[number] = counted.size * factor
        for k in inside:
            p = int(columns[k])
            child = int(candidates.variable[p])
            table = counted.table(None if child == c else child, smoothing, binary=binary)
            domain_of[k], start[k] = number, filled
            parts.append(table)
            filled += len(table)
    n_entries = 2 if binary else data.n_classes
    values = np.concatenate(parts) if parts else np.empty((0, n_entries))
    true = np.zeros(data.n_samples, dtype=np.int32) if binary else np.ascontiguousarray(data.y)
    return FamilyTables(np.stack(codes), true, rows, strides, sizes, columns, domain_of, start, values)


def sums_of_others(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return in each column the sum of a row's other columns, shape as `counts`.

    Nothing is subtracted: between weights of very different size a difference would be nothing but rounding errors.
    """
    sums = np.zeros_like(counts)
    sums[:, 1:] = np.cumsum(counts[:, :-1], axis=1)
    sums[:, :-1] += np.cumsum(counts[:, :0:-1], axis=1)[:, ::-1]
    return sums


class _Domain:
    """The counts n(x_D, c) over some features D."""

    def __init__(self, data: Dataset, members: ParentSet) -> None:
        self.members = members
        self.shape = tuple(int(data.n_states[j]) for j in members)
        self.strides = tuple(prod(self.shape[t + 1 :]) for t in range(len(members)))
        self.size = prod(self.shape)
        self.present: NDArray[np.int64] | None = None
        #: Cell numbers of the samples, where not all joint states get one.
        self.numbers: NDArray[np.int64] | None = None
        index = np.zeros(data.n_samples, dtype=np.int64)
        for j, stride in zip(members, self.strides, strict=True):
            index += stride * data.codes[:, j].astype(np.int64)
        if self.size > cell_limit(data.n_samples):
            self.present, self.numbers = np.unique(index, return_inverse=True)
            index, self.size = self.numbers, len(self.present)
        C = data.n_classes
        counts = np.bincount(index * C + data.y, weights=data.weights, minlength=self.size * C)
        self.counts = counts.astype(np.float64).reshape(self.size, C)

    def table(self, child: int | None, a: float, *, binary: bool) -> NDArray[np.float64]:
        """Return log theta of a child given the other members and the class, or of the class given all members."""
        if child is None:
            above, states = self.counts.sum(axis=1, keepdims=True), 2 if binary else self.counts.shape[1]
            rest_above = above
        else:
            above, states = self._without(child), self.shape[self.members.index(child)]
            rest_above = sums_of_others(above)
        own = np.log(self.counts + a) - np.log(above + a * states)
        if not binary:
            return own
        other = np.log(sums_of_others(self.counts) + a) - np.log(rest_above + a * states)
        # One cell per joint state and true class, the class varying fastest.
        pairs = np.zeros((own.size, 2))
        pairs[:, 1] = (other - own).ravel()
        return pairs

    def _without(self, child: int) -> NDArray[np.float64]:
        """Return for every cell the counts n(h, c) of its joint state h of the other members, shape (size, C)."""
        place = self.members.index(child)
        if self.present is None:
            cube = self.counts.reshape(*self.shape, -1)
            total = np.broadcast_to(cube.sum(axis=place, keepdims=True), cube.shape)
            return total.reshape(self.counts.shape)
        stride, states = self.strides[place], self.shape[place]
        parent = self.present - self.present // stride % states * stride
        kinds, number = np.unique(parent, return_inverse=True)
        total = np.zeros((len(kinds), self.counts.shape[1]))
        np.add.at(total, number, self.counts)
        return total[number]
