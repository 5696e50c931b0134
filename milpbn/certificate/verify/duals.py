"""Constants and gradients of the dual bounds that a certificate claims, for the verifier.

Counts, coefficients, dual weights and their products are computed again, by other code than that of the search. A
parent set's table holds log-probabilities by cell and class. A sample's cell is computed from its codes whenever it is
needed, so that memory is that of the data and the tables, and does not grow with samples times parent sets.
"""

from __future__ import annotations

from math import log, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.problem.candidates import Candidates, ParentSet
from milpbn.problem.constraints import Rules
from milpbn.problem.rounding import bound_errors, bound_slack, linear_error, no_search_slack
from milpbn.problem.scores.spec import Score
from milpbn.util.compiled import kernel

#: By definition of the format, dual weights below exp(-REACH) of a sample's largest are 0; REACH_LIKELY is for CLL.
REACH, REACH_LIKELY = 16.0, 36.0


def states(data: Dataset, members: ParentSet) -> tuple[NDArray[np.int64], int]:
    """Return the number of the joint state of some variables in every sample, shape (M,), and how many there are."""
    number, size = np.zeros(data.n_samples, dtype=np.int64), 1
    for j in members:
        r = int(data.n_states[j])
        number, size = number * r + data.codes[:, j], size * r
        if size > 4 * data.n_samples:
            kinds, number = np.unique(number, return_inverse=True)
            size = len(kinds)
    return number, size


def local_terms(
    data: Dataset, candidates: Candidates, score: Score, rules: Rules
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the terms of a margin score that are linear in eta, and their rounding errors, each of shape (P,).

    The terms are the penalty, the hybrid term and the arc weights. Under leave-one-out scores the hybrid term is
    sum n_{j|h} log((n_{j|h} - 1 + a) / (n_h - 1 + a sp(X_i))).
    """
    terms, sizes = np.zeros((2, candidates.n_sets))
    likelihood = score.hybrid
    by_name = {"bic": 0.5 * log(data.total_weight), "aic": 1.0}
    per_parameter = by_name[score.penalty] if isinstance(score.penalty, str) else score.penalty
    for p, (i, parents) in enumerate(zip(candidates.variable.tolist(), candidates.flat, strict=True)):
        r = int(data.n_states[i])
        if likelihood:
            above, size = states(data, parents)
            counts = data.total_weights(above * r + data.codes[:, i], size * r).reshape(size, r)
            # log(n / n_h) = -log1p((n_h - n) / n) keeps its digits where the quotient is close to 1.
            rest = data.other_weights(counts)
            seen = counts > 0
            part, rest = counts[seen], rest[seen]
            if score.leave_one_out:
                part, rest = part - 1 + score.smoothing, rest + score.smoothing * (r - 1)
            fit = likelihood * float((counts[seen] * -np.log1p(rest / part)).sum())
            terms[p] += fit
            sizes[p] += abs(fit)
        k = (r - 1) * prod(int(data.n_states[j]) for j in parents)
        terms[p] -= per_parameter * k
        sizes[p] += (abs(per_parameter) + 1) * k * (bool(likelihood) or per_parameter != 0)
        arcs = [rules.arc_weights.get((j, i), 0.0) for j in parents]
        terms[p] += sum(arcs)
        sizes[p] += sum(map(abs, arcs))
    return terms, linear_error(data, sizes)


class ClaimedDuals:
    """The bound b(lambda) = constant + max over structures of gradient @ eta, for the dual weights at given points.

    Parameters
    ----------
    data : Dataset
        Training data; merged samples (`Dataset.merged`) make it faster.
    candidates : Candidates
        Parent sets.
    score : Score
        ``sm``, ``sbm`` or ``cll``.
    rules : Rules
        Only its arc weights are used.
    sample_weights : float64 array, shape (M,), optional
        Weights of the samples' margins, instead of the data's weights. The parameters are still those of the data.

    Attributes
    ----------
    linear : float64 array, shape (P,)
        Terms linear in eta.
    errors : BoundErrors
        How much rounding can lower a bound (`milpbn.problem.rounding`).
    parent_sets : int64 array, shape (K,)
        Indices of the parent sets with coefficients: those of the class, and those that contain it.
    column : int64 array, shape (P,)
        Position of each parent set in `parent_sets`; -1 without coefficients.
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
        self.linear, self._linear_error = local_terms(data, candidates, score, rules)
        self.errors = bound_errors(data, score.smoothing, len(rows), self._linear_error, candidates.offsets)
        self._data, self._smoothing = data, score.smoothing
        c = candidates.n_variables - 1
        self.parent_sets = np.array(
            [p for p, s in enumerate(candidates.flat) if candidates.variable[p] == c or c in s],
            dtype=np.int64,
        )
        self.column = np.full(candidates.n_sets, -1)
        self.column[self.parent_sets] = np.arange(len(self.parent_sets))
        columns, self._tables = _tables(data, candidates, self.parent_sets, score)
        self._columns = np.ascontiguousarray(columns[:, rows])
        self.n_rows = 1 if self.binary else data.n_classes - 1
        every = np.arange(data.n_classes)
        #: The competing classes of each class, ascending.
        self._others = np.array([every[every != y] for y in every])
        owner = candidates.variable[self.parent_sets]
        self._blocks = np.flatnonzero(np.diff(owner, prepend=-1))
        counts = np.bincount(owner, minlength=c + 1)
        #: Whether each variable has a candidate without coefficients.
        self._idle = (counts < np.diff(candidates.offsets))[owner[self._blocks]]
        self._starts = candidates.offsets[:-1]

    def at(
        self, points: NDArray[np.float64], temperatures: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return constants and gradients of the bounds that belong to the dual weights at some points.

        Parameters
        ----------
        points : float64 array, shape (B, K)
            The components of eta at `parent_sets`.
        temperatures : float64 array, shape (B,)
            In nats.

        Returns
        -------
        constants : float64 array, shape (B,)
            sum_m w_m lambda_{m,0} gamma, or under CLL minus the entropies, with the rounding errors added.
        gradients : float64 array, shape (B, P)
            linear + sum_m w_m lambda_m alpha_m.
        """
        constants = np.empty(len(points))
        gradients = np.tile(self.linear, (len(points), 1))
        for b, (point, temperature) in enumerate(zip(points, temperatures.tolist(), strict=True)):
            constants[b], weights = self._weights(point, temperature)
            gradients[b, self.parent_sets] += self._products(weights)
        return constants, gradients

    def _weights(self, point: NDArray[np.float64], T: float) -> tuple[float, NDArray[np.float64]]:
        """Return the constant of the bound, and w_m lambda_{m,c}, shape (M, R)."""
        y = self._y
        scores, own = np.zeros((len(y), self._n_classes)), np.zeros((len(y), 1))
        used = np.flatnonzero(point)
        add_scores(self._columns, self._tables, used, point[used], y, scores, own)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            margins = own if self.binary else own - np.take_along_axis(scores, self._others[y], axis=1)
            low = np.minimum(margins.min(axis=1), self.cap)
            margins = (margins - low[:, None]) / -T
            weights = np.exp(margins)
            weights[margins <= -self.reach] = 0.0
            away = (low - self.cap) / T
            zero = np.where(away > -self.reach, np.exp(away), 0.0)
            both = np.column_stack([weights, zero])
            total = both.sum(axis=1)
            constant = float((self.cap * zero / total) @ self._w)
            if self.smooth:
                # sum lambda log lambda, where log lambda is the exponent minus log total. The largest exponential is 1,
                # so that log1p of the others' sum is log total.
                spread = np.where(weights > 0, margins * weights, 0.0).sum(axis=1)
                spread += np.where(zero > 0, away * zero, 0.0)
                both[np.arange(len(both)), both.argmax(axis=1)] = 0.0
                constant += float((spread / total - np.log1p(both.sum(axis=1))) @ self._w)
            weights *= (self._w / total)[:, None]
        slack = bound_slack(self.errors, constant, float(weights.sum()), 2 * np.count_nonzero(weights))
        return constant + slack, weights

    def _products(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sum_m w_m lambda_m alpha_m of `parent_sets`, shape (K,), from w_m lambda_m, shape (M, R)."""
        # Most samples have a margin far above gamma, and no weight.
        rows = np.flatnonzero(weights.any(axis=1))
        y, weights = self._y[rows], weights[rows]
        signed = np.zeros((len(rows), self._n_classes))
        if not self.binary:
            np.put_along_axis(signed, self._others[y], -weights, axis=1)
        signed[np.arange(len(rows)), y] = weights.sum(axis=1)
        out = np.empty(len(self.parent_sets))
        add_products(self._columns[:, rows], self._tables, y, signed, out)
        return out

    def without_search(self) -> float:
        """Return the bound in which every sample and competing class chooses each variable's parent set on its own."""
        terms = np.maximum.reduceat(self.linear + self._linear_error, self._starts)
        margins = np.zeros((len(self._y), self.n_rows))
        ends = np.append(self._blocks[1:], len(self.parent_sets))
        competing = self._others if not self.binary else np.empty((self._n_classes, 0), dtype=np.int64)
        for first, end, idle in zip(self._blocks, ends, self._idle, strict=True):
            add_best(self._columns, self._tables, first, end, idle, self._y, competing, margins)
        least = margins.min(axis=1)
        slack = no_search_slack(self._data, self._smoothing, least, self._w, self.cap, terms)
        return float(terms.sum()) + float(self._w @ np.minimum(least, self.cap)) + slack


class MarginTables(NamedTuple):
    """The tables of K parent sets, and how a sample's cell in each of them is computed.

    Attributes
    ----------
    values : float64 array
        The tables one after another, each by cell and class. Under leave-one-out scores the tables without one unit of
        the weight of the cell and class follow, in the same order.
    apart : int
        How far after the entries of the competing classes those of the true class are; 0 if one table has both.
    first : int64 array, shape (K + 1,)
        Where each table begins in `values`.
    column, factor : int64 arrays
        A sample's cell in a table is the sum over the table's columns of its codes times these factors.
    place : int64 array, shape (K + 1,)
        Where each table's columns and factors begin.
    n_classes : int
        Number of classes C.
    """

    values: NDArray[np.float64]
    apart: int
    first: NDArray[np.int64]
    column: NDArray[np.int64]
    factor: NDArray[np.int64]
    place: NDArray[np.int64]
    n_classes: int


def _tables(
    data: Dataset, candidates: Candidates, parent_sets: NDArray[np.int64], score: Score
) -> tuple[NDArray[np.int32], MarginTables]:
    """Return codes by column and sample, and the tables of some parent sets over these columns.

    There is a column for every variable. A parent set with so many joint states that `states` numbers only those that
    occur has a column of its own with these numbers.
    """
    columns = list(data.codes.T)
    values: list[NDArray[np.float64]] = []
    left_out: list[NDArray[np.float64]] = []
    column: list[int] = []
    factor: list[int] = []
    place = [0]
    last = len(data.variables) - 1
    for p in parent_sets.tolist():
        i = int(candidates.variable[p])
        features = tuple(j for j in candidates.flat[p] if j != last)
        above, n_above = states(data, features)
        table, own = _table(data, i, above, n_above, score)
        values.append(table.ravel())
        left_out += [] if own is None else [own.ravel()]
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
    # The dtype matters for empty lists: no parent set may have a variable besides the class.
    column_of, factors, places = (np.array(v, dtype=np.int64) for v in (column, factor, place))
    apart = int(first[-1]) if left_out else 0
    tables = MarginTables(
        np.concatenate(values + left_out), apart, first, column_of, factors, places, data.n_classes
    )
    return np.ascontiguousarray(columns, dtype=np.int32), tables


def _table(
    data: Dataset, i: int, above: NDArray[np.int64], n_above: int, score: Score
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the log-probabilities of a variable by cell and class, shape (cells, C).

    Under SBM they are the differences log theta(class) - log theta(all other classes), equation (23) of Peharz and
    Pernkopf (2012). Under other leave-one-out scores a second array has those of the true class, which lack one unit of
    its weight; under SBM the differences do. If the variable is the class, its parents' count lacks the unit for every
    class alike, so that it keeps it here for all of them.
    """
    C, a, binary = data.n_classes, score.smoothing, score.name == "sbm"
    # The weight of the other classes or states is their sum, never the total minus a part: weights may differ by orders
    # of magnitude, and theta = part / (part + rest) may be nearly 1.
    if i == len(data.variables) - 1:
        counts = data.total_weights(above * C + data.y, n_above * C).reshape(n_above, C)
        rest, r = data.other_weights(counts), 2 if binary else C
        others, other_rest = rest, counts
    else:
        r = int(data.n_states[i])
        cells = data.total_weights((above * r + data.codes[:, i]) * C + data.y, n_above * r * C)
        counts = cells.reshape(n_above * r, C)
        rest = data.other_weights(counts.reshape(n_above, r, C), axis=1).reshape(n_above * r, C)
        others, other_rest = data.other_weights(counts), data.other_weights(rest)
    table: NDArray[np.float64] = -np.log1p((rest + a * (r - 1)) / (counts + a))
    own = None
    if score.leave_one_out:
        missing = rest + 1 if i == len(data.variables) - 1 else rest
        # A cell without the class is the own cell of no sample.
        part = np.where(counts > 0, counts - 1, 0.0) + a
        own = -np.log1p((missing + a * (r - 1)) / part)
    if binary:
        rivals = np.log1p((other_rest + a * (r - 1)) / (others + a))
        return (table if own is None else own) + rivals, None
    return table, own


@kernel
def find_cells(columns, tables, k, cells):  # type: ignore[no-untyped-def]  # numba infers the types
    """Write to `cells`, shape (M,), where in `values` each sample's row of table k begins; columns has shape (n, M)."""
    cells[:] = 0
    for q in range(tables.place[k], tables.place[k + 1]):
        codes = columns[tables.column[q]]
        for m in range(len(cells)):
            cells[m] += tables.factor[q] * codes[m]
    for m in range(len(cells)):
        cells[m] = tables.first[k] + tables.n_classes * cells[m]


@kernel
def add_scores(columns, tables, used, eta, y, scores, own):  # type: ignore[no-untyped-def]
    """Add eta times the log-probabilities of the parent sets `used` to the scores of all classes, shape (M, C).

    Add those of the true classes y to `own`, shape (M, 1).
    """
    M, C = scores.shape
    cells = np.empty(M, dtype=np.int64)
    for x in range(len(used)):
        find_cells(columns, tables, used[x], cells)
        for m in range(M):
            for c in range(C):
                scores[m, c] += eta[x] * tables.values[cells[m] + c]
            own[m, 0] += eta[x] * tables.values[cells[m] + tables.apart + y[m]]


@kernel
def add_products(columns, tables, y, signed, out):  # type: ignore[no-untyped-def]
    """Write to `out` each parent set's sum over samples and classes of log-probability times `signed` (M, C).

    The true classes y have log-probabilities of their own.
    """
    M, C = signed.shape
    cells = np.empty(M, dtype=np.int64)
    first = np.zeros(M + 1, dtype=np.int64)
    kind = np.empty(M * C, dtype=np.int64)
    value = np.empty(M * C)
    n = 0
    for m in range(M):
        for c in range(C):
            if signed[m, c] != 0.0:
                kind[n] = c + (tables.apart if c == y[m] else 0)
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
    """Add the largest coefficient among the parent sets begin, ..., end - 1 to every margin, shape (M, R).

    With `idle`, the variable also has a candidate with coefficients 0. `others`, shape (C, R), holds the competing
    classes of each class. Under SBM it has shape (C, 0): a sample then has one margin, the value of its true class.
    """
    M, R = margins.shape
    best = np.full((M, R), 0.0 if idle else -np.inf)
    cells = np.empty(M, dtype=np.int64)
    for k in range(begin, end):
        find_cells(columns, tables, k, cells)
        for m in range(M):
            own = tables.values[cells[m] + tables.apart + y[m]]
            for r in range(R):
                away = tables.values[cells[m] + others[y[m], r]] if others.shape[1] else 0.0
                best[m, r] = max(best[m, r], own - away)
    margins += best
