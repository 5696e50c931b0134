"""The dual bound's numbers at points and temperatures, for `verify`: sums of table entries, sample by sample.

Counts, coefficients, dual weights and their products are computed here once more, by other code than the search's. A
parent set's table holds the log-probabilities by cell and class; a sample's cell is found from its codes each time,
so that memory is that of the data and the tables, whatever their width.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.compiled import kernel
from milpbn.data.dataset import Dataset
from milpbn.scores.candidates import Candidates, ParentSet
from milpbn.scores.constraints import Rules
from milpbn.scores.spec import Score

#: Dual weights below exp(-REACH) of a sample's largest count as 0, as certificates mean them; REACH_LIKELY under CLL.
REACH, REACH_LIKELY = 16.0, 36.0
_EPS = float(np.finfo(np.float64).eps)


def states(data: Dataset, members: ParentSet) -> tuple[NDArray[np.int64], int]:
    """Return a number for the joint state of some variables in every sample, and how many numbers there are."""
    number, size = np.zeros(data.n_samples, dtype=np.int64), 1
    for j in members:
        r = int(data.n_states[j])
        number, size = number * r + data.codes[:, j], size * r
        if size > 4 * data.n_samples:
            kinds, number = np.unique(number, return_inverse=True)
            size = len(kinds)
    return number, size


def local_terms(data: Dataset, candidates: Candidates, score: Score, rules: Rules) -> NDArray[np.float64]:
    """Return the terms of a margin score that are linear in eta, shape (P,): penalty, hybrid, and arc weights."""
    terms = np.zeros(candidates.n_sets)
    likelihood, per_parameter = score.local_weights(float(data.weights.sum()))
    for p, (i, parents) in enumerate(zip(candidates.variable.tolist(), candidates.flat, strict=True)):
        r = int(data.n_states[i])
        if likelihood:
            above, size = states(data, parents)
            counts = np.bincount(above * r + data.codes[:, i], data.weights, size * r).reshape(size, r)
            total = counts.sum(axis=1, keepdims=True)
            seen = counts > 0
            terms[p] += likelihood * float(
                (counts * np.log(np.where(seen, counts / np.maximum(total, 1e-300), 1))).sum()
            )
        terms[p] -= per_parameter * (r - 1) * prod(int(data.n_states[j]) for j in parents)
        terms[p] += sum(rules.arc_weights.get((j, i), 0.0) for j in parents)
    return terms


class Duals:
    """b(lambda) = constant + max over structures of gradient @ eta, for the dual weights at given points.

    Parameters
    ----------
    data : Dataset
        Training data, merged samples for speed.
    candidates : Candidates
        Parent sets.
    score : Score
        ``sm``, ``sbm`` or ``cll``.
    rules : Rules
        Read for the arc weights only.
    sample_weights : float64 array, shape (M,), optional
        What the samples' margins count instead of their weights. The parameters are those of the data.

    Attributes
    ----------
    linear : float64 array, shape (P,)
        Terms linear in eta.
    slack : float
        Nats that rounding can take from a bound: the sum of the constant parts, and the linear terms.
    per_weight : float
        What it can take besides, per unit of dual weight: sums of M C products (P12 (13), a sample's own class and
        its competitors apart) for each of a structure's entries, each wrong by half an ulp of all that is summed,
        which is twice the weight; the four sums of at most M weights that a coefficient is made of.
    """

    def __init__(
        self,
        data: Dataset,
        candidates: Candidates,
        score: Score,
        rules: Rules,
        sample_weights: NDArray[np.float64] | None = None,
    ) -> None:
        weights = data.weights if sample_weights is None else sample_weights
        rows = np.flatnonzero(weights)
        self._y, self._w = data.y[rows], weights[rows]
        self._n_classes = data.n_classes
        self.smooth = score.name == "cll"
        self.reach = REACH_LIKELY if self.smooth else REACH
        self.binary = score.name == "sbm"
        self.cap = 0.0 if score.gamma is None else score.gamma
        self.linear = local_terms(data, candidates, score, rules)
        c = candidates.n_variables - 1
        self.entries = np.array(
            [p for p, s in enumerate(candidates.flat) if candidates.variable[p] == c or c in s],
            dtype=np.int64,
        )
        self.column = np.full(candidates.n_sets, -1)
        self.column[self.entries] = np.arange(len(self.entries))
        columns, self._tables = _tables(data, candidates, self.entries, score.smoothing, self.binary)
        self._columns = np.ascontiguousarray(columns[:, rows])
        self.n_rows = 1 if self.binary else data.n_classes - 1
        every = np.arange(data.n_classes)
        #: The competing classes of each class, ascending.
        self._others = np.array([every[every != y] for y in every])
        # Log-probabilities are negative: no difference of two exceeds the larger one.
        largest = np.maximum.reduceat(np.abs(self._tables.values), self._tables.first[:-1])
        owner = candidates.variable[self.entries]
        self._blocks = np.flatnonzero(np.diff(owner, prepend=-1))
        counts = np.bincount(owner, minlength=c + 1)
        #: Variables that can choose a set whose coefficients are 0.
        self._idle = (counts < np.diff(candidates.offsets))[owner[self._blocks]]
        self._starts = candidates.offsets[:-1]
        M, R = data.n_samples, self.n_rows
        total = float(self._w.sum())
        entries = float(np.maximum.reduceat(largest, self._blocks).sum())
        coefficients = _EPS * (4 * M + 64) * (c + 1)
        self.per_weight = _EPS * (M * data.n_classes + R + 64) * entries + coefficients
        self.slack = _EPS * total * (M / 2 + R + 64) * max(self.cap, np.log(R + 1) + 1)
        self.slack += _EPS * (M + 64) * float(np.maximum.reduceat(np.abs(self.linear), self._starts).sum())
        #: What rounding can take from each sample's sum of a coefficient per variable.
        self._row_slack = total * (_EPS * (c + 64) * entries + coefficients)

    def at(
        self, points: NDArray[np.float64], temperatures: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return constants and gradients of the bounds by the weights at some points.

        Parameters
        ----------
        points : float64 array, shape (B, K)
            eta, at the entries `entries`.
        temperatures : float64 array, shape (B,)
            In nats.

        Returns
        -------
        constants : float64 array, shape (B,)
            sum_m w_m lambda_{m,0} gamma, under CLL minus the entropies; what rounding can take included.
        gradients : float64 array, shape (B, P)
            linear + sum_m w_m lambda_m alpha_m.
        """
        constants = np.empty(len(points))
        gradients = np.tile(self.linear, (len(points), 1))
        for b, (point, temperature) in enumerate(zip(points, temperatures.tolist(), strict=True)):
            constants[b], weights = self._weights(point, temperature)
            gradients[b, self.entries] += self._products(weights)
        return constants, gradients

    def _weights(self, point: NDArray[np.float64], T: float) -> tuple[float, NDArray[np.float64]]:
        """Return the constant of the bound and the samples' dual weights times theirs, shape (M, R)."""
        y, constant = self._y, self.slack
        scores = np.zeros((len(y), self._n_classes))
        used = np.flatnonzero(point)
        add_scores(self._columns, self._tables, used, point[used], scores)
        own = np.take_along_axis(scores, y[:, None].astype(np.int64), axis=1)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            margins = own if self.binary else own - np.take_along_axis(scores, self._others[y], axis=1)
            low = np.minimum(margins.min(axis=1), self.cap)
            margins = (margins - low[:, None]) / -T
            weights = np.exp(margins)
            weights[margins <= -self.reach] = 0.0
            away = (low - self.cap) / T
            zero = np.where(away > -self.reach, np.exp(away), 0.0)
            total = weights.sum(axis=1) + zero
            constant += float((self.cap * zero / total) @ self._w)
            if self.smooth:
                # sum lambda log lambda, with log lambda = -away / T - log total.
                spread = np.where(weights > 0, margins * weights, 0.0).sum(axis=1)
                spread += np.where(zero > 0, away * zero, 0.0)
                constant += float((spread / total - np.log(total)) @ self._w)
            weights *= (self._w / total)[:, None]
        return constant + self.per_weight * float(weights.sum()), weights

    def _products(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sum_m w_m lambda_m alpha_m of all entries, shape (K,)."""
        # Most samples are far beyond gamma.
        rows = np.flatnonzero(weights.any(axis=1))
        y, few = self._y[rows], weights[rows]
        signed = np.zeros((len(rows), self._n_classes))
        if not self.binary:
            np.put_along_axis(signed, self._others[y], -few, axis=1)
        signed[np.arange(len(rows)), y] = few.sum(axis=1)
        out = np.empty(len(self.entries))
        add_products(self._columns[:, rows], self._tables, signed, out)
        return out

    def without_search(self) -> float:
        """Return the bound in which every row of every sample chooses each variable's parent set for itself."""
        terms = np.maximum.reduceat(self.linear, self._starts)
        total, size = float(terms.sum()), float(np.abs(terms).sum())
        margins = np.zeros((len(self._y), self.n_rows))
        ends = np.append(self._blocks[1:], len(self.entries))
        competing = self._others if not self.binary else np.empty((self._n_classes, 0), dtype=np.int64)
        for first, end, idle in zip(self._blocks, ends, self._idle, strict=True):
            add_best(self._columns, self._tables, first, end, idle, self._y, competing, margins)
        least = np.minimum(margins.min(axis=1), self.cap)
        total, size = total + float(self._w @ least), size + float(self._w @ np.abs(least))
        # Terms that no variable chooses, of forbidding weights for instance, take no part in any of these sums.
        return total + self._row_slack + _EPS * (len(self._y) + 64) * size


class Tables(NamedTuple):
    """The tables of K entries, and where their samples' cells are found.

    Attributes
    ----------
    values : float64 array
        Table after table, by cell and class.
    first : int64 array, shape (K + 1,)
        Where each table begins.
    column, factor : int64 arrays
        A sample's cell in a table is the sum of its codes in some columns times these factors.
    place : int64 array, shape (K + 1,)
        Where each table's columns and factors begin.
    n_classes : int
        C.
    """

    values: NDArray[np.float64]
    first: NDArray[np.int64]
    column: NDArray[np.int64]
    factor: NDArray[np.int64]
    place: NDArray[np.int64]
    n_classes: int


def _tables(
    data: Dataset, candidates: Candidates, entries: NDArray[np.int64], a: float, binary: bool
) -> tuple[NDArray[np.int32], Tables]:
    """Return codes by column and sample, and the tables of all entries over them.

    The columns are the variables', and one of its own for every parent set with more joint states than are counted.
    """
    columns = list(data.codes.T)
    values: list[NDArray[np.float64]] = []
    column: list[int] = []
    factor: list[int] = []
    place = [0]
    last = len(data.variables) - 1
    for p in entries.tolist():
        i = int(candidates.variable[p])
        features = tuple(j for j in candidates.flat[p] if j != last)
        above, n_above = states(data, features)
        values.append(_table(data, i, above, n_above, a, binary).ravel())
        r = 1 if i == last else int(data.n_states[i])
        members = features
        if n_above < prod(int(data.n_states[j]) for j in features):
            columns.append(above.astype(np.int32))
            members = (len(columns) - 1,)
        if i != last:
            column.append(i)
            factor.append(1)
        for j in reversed(members):
            column.append(j)
            factor.append(r)
            r *= int(data.n_states[j]) if j <= last else 1
        place.append(len(column))
    first = np.concatenate([[0], np.cumsum([len(v) for v in values])])
    tables = Tables(
        np.concatenate(values), first, np.array(column), np.array(factor), np.array(place), data.n_classes
    )
    return np.ascontiguousarray(columns, dtype=np.int32), tables


def _table(
    data: Dataset, i: int, above: NDArray[np.int64], n_above: int, a: float, binary: bool
) -> NDArray[np.float64]:
    """Return the log-probabilities of a variable by cell and class, shape (cells, C).

    Under SBM instead the differences log theta(own class) - log theta(all other classes), P12 (23).
    """
    C = data.n_classes
    n_h = np.bincount(above * C + data.y, data.weights, n_above * C).reshape(n_above, C)
    # Sums over the other classes, and no differences from the sum over all: weights may be of very different size.
    rest_of = 1.0 - np.eye(C)
    if i == len(data.variables) - 1:
        counts = n_h
        whole = n_h.sum(axis=1, keepdims=True)
        rest, r = whole, 2 if binary else C
        others, other_rest = n_h @ rest_of, whole
    else:
        r = int(data.n_states[i])
        cell, size = above * r + data.codes[:, i], n_above * r
        counts = np.bincount(cell * C + data.y, data.weights, size * C).reshape(size, C)
        rest = np.repeat(n_h, r, axis=0)
        others, other_rest = counts @ rest_of, rest @ rest_of
    table: NDArray[np.float64] = np.log((counts + a) / (rest + a * r))
    if binary:
        table = table - np.log((others + a) / (other_rest + a * r))
    return table


@kernel
def find_cells(columns, tables, k, cells):  # type: ignore[no-untyped-def]  # numba infers the types
    """Write where in `values` each sample's row of table k begins; columns (n, M), cells (M,)."""
    cells[:] = 0
    for q in range(tables.place[k], tables.place[k + 1]):
        codes = columns[tables.column[q]]
        for m in range(len(cells)):
            cells[m] += tables.factor[q] * codes[m]
    for m in range(len(cells)):
        cells[m] = tables.first[k] + tables.n_classes * cells[m]


@kernel
def add_scores(columns, tables, used, eta, scores):  # type: ignore[no-untyped-def]
    """Add eta times the log-probabilities of some entries to the classes' scores, shape (M, C)."""
    M, C = scores.shape
    cells = np.empty(M, dtype=np.int64)
    for x in range(len(used)):
        find_cells(columns, tables, used[x], cells)
        for m in range(M):
            for c in range(C):
                scores[m, c] += eta[x] * tables.values[cells[m] + c]


@kernel
def add_products(columns, tables, signed, out):  # type: ignore[no-untyped-def]
    """Write for every entry the sum of its samples' log-probabilities times `signed`, shape (M, C)."""
    M, C = signed.shape
    cells = np.empty(M, dtype=np.int64)
    first = np.zeros(M + 1, dtype=np.int64)
    kind = np.empty(M * C, dtype=np.int64)
    value = np.empty(M * C)
    n = 0
    for m in range(M):
        for c in range(C):
            if signed[m, c] != 0.0:
                kind[n] = c
                value[n] = signed[m, c]
                n += 1
        first[m + 1] = n
    for k in range(len(out)):
        find_cells(columns, tables, k, cells)
        total = 0.0
        for m in range(M):
            for x in range(first[m], first[m + 1]):
                total += value[x] * tables.values[cells[m] + kind[x]]
        out[k] = total


@kernel
def add_best(columns, tables, begin, end, idle, y, others, margins):  # type: ignore[no-untyped-def]
    """Add the largest coefficient among some entries to every row's margin; with `idle` at least 0.

    `others` has the competing classes of each class, shape (C, R); without any, (C, 0), a sample has one row, of the
    own class's values alone.
    """
    M, R = margins.shape
    best = np.full((M, R), 0.0 if idle else -np.inf)
    cells = np.empty(M, dtype=np.int64)
    for k in range(begin, end):
        find_cells(columns, tables, k, cells)
        for m in range(M):
            own = tables.values[cells[m] + y[m]]
            for r in range(R):
                away = tables.values[cells[m] + others[y[m], r]] if others.shape[1] else 0.0
                best[m, r] = max(best[m, r], own - away)
    margins += best
