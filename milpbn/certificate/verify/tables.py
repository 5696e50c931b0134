"""Log-probabilities of parent sets by cell and class, for the verifier, and the kernels that look samples up in them.

A sample's cell is computed from its codes whenever it is needed, so that memory is that of the data and the tables, and
does not grow with samples times parent sets.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.verify.priors import cell_priors, states
from milpbn.data.dataset import Dataset
from milpbn.problem.candidates import Candidates, ParentSet
from milpbn.problem.scores.spec import Score
from milpbn.util.compiled import kernel


class MarginTables(NamedTuple):
    """The tables of K parent sets, and how a sample's cell in each of them is computed."""

    #: The tables one after another, each by cell and class. Under leave-one-out scores the tables without one unit of
    #: the weight of the cell and class follow, in the same order: float64 array.
    values: NDArray[np.float64]
    #: How far after the entries of the competing classes those of the true class are; 0 if one table has both.
    apart: int
    #: Where each table begins in `values`: int64 array, shape (K + 1,).
    first: NDArray[np.int64]
    #: A sample's cell in a table is the sum over the table's columns of its codes times these factors: int64 arrays.
    column: NDArray[np.int64]
    factor: NDArray[np.int64]
    #: Where each table's columns and factors begin: int64 array, shape (K + 1,).
    place: NDArray[np.int64]
    #: Number of classes C.
    n_classes: int


def margin_tables(
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
        table, own = _table(data, i, features, above, n_above, score)
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
    data: Dataset, i: int, features: ParentSet, above: NDArray[np.int64], n_above: int, score: Score
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the log-probabilities of a variable by cell and class, shape (cells, C).

    Under SBM they are the differences log theta(class) - log theta(all other classes), equation (23) of Peharz and
    Pernkopf (2012). Under other leave-one-out scores a second array has those of the true class, which lack one unit of
    its weight; under SBM the differences do. If the variable is the class, its parents' count lacks the unit for every
    class alike, so that it keeps it here for all of them.
    """
    C, binary = data.n_classes, score.name == "sbm"
    # The weight of the other classes or states is their sum, never the total minus a part: weights may differ by orders
    # of magnitude, and theta = part / (part + rest) may be nearly 1.
    if i == len(data.variables) - 1:
        counts = data.total_weights(above * C + data.y, n_above * C).reshape(n_above, C)
        rest = data.other_weights(counts)
        others, other_rest = rest, counts
    else:
        r = int(data.n_states[i])
        cells = data.total_weights((above * r + data.codes[:, i]) * C + data.y, n_above * r * C)
        counts = cells.reshape(n_above * r, C)
        rest = data.other_weights(counts.reshape(n_above, r, C), axis=1).reshape(n_above * r, C)
        others, other_rest = data.other_weights(counts), data.other_weights(rest)
    mine, theirs = cell_priors(data, i, features, n_above, score)
    own = -np.log1p((rest + mine.rest) / (counts + mine.part))
    if score.leave_one_out:
        missing = rest + 1 if i == len(data.variables) - 1 else rest
        # A cell without the class is the own cell of no sample.
        own = -np.log1p((missing + mine.rest) / (np.where(counts > 0, counts - 1, 0.0) + mine.part))
    if binary:
        return own + np.log1p((other_rest + theirs.rest) / (others + theirs.part)), None
    if not score.leave_one_out:
        return own, None
    return -np.log1p((rest + theirs.rest) / (counts + theirs.part)), own


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
