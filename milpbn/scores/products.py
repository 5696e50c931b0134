"""Kernels over the family tables: joint log-probabilities and scores at a point, coefficients, best margins.

The joint log-probabilities L[m, c] = sum_k eta_k table_k[cell, c] of all samples at a point eta stand for the rows
alpha_{m,c} @ eta = L[m, true] - L[m, c].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from milpbn.compiled import kernel
from milpbn.scores.families import FamilyTables
from milpbn.threads import in_parts

#: Samples whose joint log-probabilities are added up at a time, so that they stay in the cache.
BLOCK = 256
#: exp(-NEGLIGIBLE) changes no sum of float64 of at least 1: classes and samples beyond it take no part in a likelihood.
NEGLIGIBLE = 37.0


class Tables(NamedTuple):
    """`FamilyTables`, flat, with the columns of every domain: ``members[first[d] : first[d + 1]]``."""

    codes: NDArray[np.int32]
    true: NDArray[np.int32]
    rows: NDArray[np.int64]
    strides: NDArray[np.int64]
    sizes: NDArray[np.int64]
    columns: NDArray[np.int64]
    domain: NDArray[np.int64]
    start: NDArray[np.int64]
    values: NDArray[np.float64]
    first: NDArray[np.int64]
    members: NDArray[np.int64]
    weights: NDArray[np.float64]


class Softening(NamedTuple):
    """What a sample adds: min(cap, its margins), or with `smooth` their soft minimum at temperature 1 (CLL, cap 0)."""

    cap: float
    smooth: bool


def flat_tables(families: FamilyTables, weights: NDArray[np.float64]) -> Tables:
    """Return the tables as the kernels take them; `weights`, shape (M,), are the samples'."""
    order = np.argsort(families.domain, kind="stable")
    first = np.searchsorted(families.domain[order], np.arange(len(families.sizes) + 1))
    return Tables(
        families.codes,
        families.true,
        families.rows,
        families.strides,
        families.sizes,
        families.columns,
        families.domain,
        families.start,
        families.values,
        first.astype(np.int64),
        order.astype(np.int64),
        weights,
    )


@kernel
def cell_of(tables, d, m):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return the cell of sample m in domain d."""
    cell = 0
    for t in range(tables.rows.shape[1]):
        row = tables.rows[d, t]
        if row < 0:
            break
        cell += tables.strides[d, t] * tables.codes[row, m]
    return cell


@kernel
def is_two_rows(tables, d):  # type: ignore[no-untyped-def]
    """Return whether two rows number the cells of domain d: most do, and their loops are worth being plain."""
    rows = tables.rows
    return rows.shape[1] > 1 and rows[d, 1] >= 0 and (rows.shape[1] == 2 or rows[d, 2] < 0)


@kernel
def _add_range(tables, columns, factors, logits, begin, end):  # type: ignore[no-untyped-def]
    # Unsigned places in flat arrays: no check for negative indices, and loops that are vectorised.
    Q = np.uint64(logits.shape[1])
    values = tables.values.reshape(tables.values.size)
    out = logits.reshape(logits.size)
    place = np.empty(BLOCK, dtype=np.uint64)
    for first in range(begin, end, BLOCK):
        n = min(end - first, BLOCK)
        for k, f in zip(columns, factors):  # noqa: B905 - numba knows no `strict`
            d, start = tables.domain[k], np.uint64(tables.start[k])
            if is_two_rows(tables, d):
                one, two = tables.codes[tables.rows[d, 0]], tables.codes[tables.rows[d, 1]]
                s, t = np.uint64(tables.strides[d, 0]), np.uint64(tables.strides[d, 1])
                for x in range(n):
                    place[x] = (start + s * np.uint64(one[first + x]) + t * np.uint64(two[first + x])) * Q
            else:
                for x in range(n):
                    place[x] = (start + np.uint64(cell_of(tables, d, first + x))) * Q
            for x in range(n):
                row = place[x]
                base = np.uint64(first + x) * Q
                for c in range(Q):
                    out[base + np.uint64(c)] += f * values[row + np.uint64(c)]


def add_columns(
    tables: Tables,
    columns: NDArray[np.int64],
    factors: NDArray[np.float64],
    logits: NDArray[np.float64],
    parallel: bool,
) -> None:
    """Add ``factors[n]`` times the log-probabilities of ``columns[n]`` to `logits`, shape (M, Q)."""
    in_parts(
        lambda begin, end: _add_range(tables, columns, factors, logits, begin, end), len(logits), parallel
    )


@overload(add_columns)
def _add_columns(tables, columns, factors, logits, parallel):  # type: ignore[no-untyped-def]
    return lambda tables, columns, factors, logits, parallel: _add_range(
        tables, columns, factors, logits, np.int64(0), len(logits)
    )


@kernel
def sample_score(softening, logits, m, true):  # type: ignore[no-untyped-def]
    """Return what sample m adds to the score, without its weight."""
    own = logits[m, true]
    low = softening.cap
    for c in range(logits.shape[1]):
        if c != true and own - logits[m, c] < low:
            low = own - logits[m, c]
    if not softening.smooth:
        return low
    total = np.exp(low - softening.cap)
    for c in range(logits.shape[1]):
        if c != true and own - logits[m, c] - low < NEGLIGIBLE:
            total += np.exp(low - own + logits[m, c])
    return low - np.log(total)


@kernel
def total_score(tables, softening, logits, smallest):  # type: ignore[no-untyped-def]
    """Return the samples' score at given logits, shape (M, Q); their least margin if `smallest`."""
    total = np.inf if smallest else 0.0
    for m in range(logits.shape[0]):
        value = sample_score(softening, logits, m, tables.true[m])
        if smallest:
            total = min(total, value)
        else:
            total += tables.weights[m] * value
    return total


def coefficients(tables: Tables) -> NDArray[np.float64]:
    """Return alpha of every sample, competing class and column, float64 array, shape (M, Q - 1, K)."""
    M, K, Q = tables.codes.shape[1], len(tables.columns), tables.values.shape[1]
    alpha = np.empty((M, Q - 1, K))
    in_parts(lambda begin, end: _fill_coefficients(tables, alpha, begin, end), M, True)
    return alpha


@kernel
def _fill_coefficients(tables, alpha, begin, end):  # type: ignore[no-untyped-def]
    K, Q = alpha.shape[2], tables.values.shape[1]
    D = len(tables.sizes)
    # Every cell and every true class is looked up once, and alpha is written in the order of memory.
    cell = np.empty(D, dtype=np.int64)
    row = np.empty(K, dtype=np.uint64)
    own = np.empty(K)
    for m in range(begin, end):
        y = np.uint64(tables.true[m])
        for d in range(D):
            cell[d] = cell_of(tables, d, m)
        for k in range(K):
            row[k] = tables.start[k] + cell[tables.domain[k]]
            own[k] = tables.values[row[k], y]
        r = 0
        for c in range(Q):
            if c == tables.true[m]:
                continue
            for k in range(K):
                alpha[m, r, k] = own[k] - tables.values[row[k], np.uint64(c)]
            r += 1


def best_margins(tables: Tables, blocks: NDArray[np.int64], idle: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return min_c sum_i max_k alpha(i, k, m, c) of every sample, shape (M,): every row chooses for itself.

    Parameters
    ----------
    tables : Tables
        Coefficients.
    blocks : int64 array, shape (n + 1,)
        First column of each variable that has columns, and their number.
    idle : bool array, shape (n,)
        The variable can also choose a set without coefficients.
    """
    out = np.empty(tables.codes.shape[1])
    in_parts(lambda begin, end: _best_margins(tables, blocks, idle, out, begin, end), len(out), True)
    return out


@kernel
def _best_margins(tables, blocks, idle, out, begin, end):  # type: ignore[no-untyped-def]
    Q = tables.values.shape[1]
    sums = np.empty(Q)
    best = np.empty(Q)
    for m in range(begin, end):
        y = tables.true[m]
        for c in range(Q):
            sums[c] = 0.0
        for i in range(len(idle)):
            for c in range(Q):
                best[c] = 0.0 if idle[i] else -np.inf
            for k in range(blocks[i], blocks[i + 1]):
                row = tables.start[k] + cell_of(tables, tables.domain[k], m)
                own = tables.values[row, y]
                for c in range(Q):
                    best[c] = max(best[c], own - tables.values[row, c])
            for c in range(Q):
                sums[c] += best[c]
        low = np.inf
        for c in range(Q):
            if c != y:
                low = min(low, sums[c])
        out[m] = low
