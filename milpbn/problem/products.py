"""Kernels over the family tables: joint log-probabilities and scores at a point, coefficients, best margins.

The joint log-probabilities (logits) at a point eta are L[m, c] = sum_k eta_k table_k[cell, c]. They give the margin
rows: alpha_{m,c} @ eta = L[m, true] - L[m, c]. Under leave-one-out scores L[m, true] is looked up in the true class's
tables, which are `apart` from those of the other classes (`Tables.two_tables`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from milpbn.problem.family_tables import Tables
from milpbn.util.compiled import kernel
from milpbn.util.threads import in_parts

#: Samples whose joint log-probabilities are summed at a time, so that they stay in the cache.
BLOCK = 256
#: Table look-ups of a kernel between two checks of the clock: a fraction of a second.
SLICE = 50_000_000
#: Adding exp(-NEGLIGIBLE) to a float64 of at least 1 does not change it: samples with a larger margin add nothing.
NEGLIGIBLE = 37.0
#: Classes further than this from the nearest one are left out of a sample's score. It is larger than `NEGLIGIBLE`,
#: because log1p takes their sum without the 1.
VANISHING = 100.0


class Softening(NamedTuple):
    """How a sample's margins make its part of the score.

    The part is the smallest of `cap` and the sample's log-margins. If `smooth`, it is their soft minimum at temperature
    1 instead: with the cap 0, the conditional log-likelihood of the sample.
    """

    cap: float
    smooth: bool


@kernel(linked=True, inner=True)
def apart(two_tables, size):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return how many rows the table of the true class is after that of the others, which has `size` rows."""
    return size if two_tables else 0


@kernel(linked=True, inner=True)
def number_cells(codes, rows, strides, d, first, n, cells):  # type: ignore[no-untyped-def]
    """Write the cells of the samples `first` to `first` + n - 1 in domain d to `cells`, uint32 array.

    Kernels number many cells at a time, row by row. LLVM did not copy a function for one cell into its callers, and at
    every call numba counted the references to all arrays of `Tables`, which took a quarter of a search.
    """
    for x in range(n):
        cells[x] = 0
    for w in range(rows.shape[1]):
        row = rows[d, w]
        if row < 0:
            break
        own, stride = codes[row], np.uint32(strides[d, w])
        for x in range(n):
            cells[x] += stride * np.uint32(own[first + x])


@kernel(linked=True, inner=True)
def number_cells_of(codes, rows, strides, d, sample, cells):  # type: ignore[no-untyped-def]
    """Write the cells of some samples in domain d to `cells`, uint32 array; see `number_cells`."""
    for x in range(len(sample)):
        cells[x] = 0
    for w in range(rows.shape[1]):
        row = rows[d, w]
        if row < 0:
            break
        own, stride = codes[row], np.uint32(strides[d, w])
        for x in range(len(sample)):
            cells[x] += stride * np.uint32(own[sample[x]])


@kernel
def _add_range(tables, columns, factors, logits, begin, end):  # type: ignore[no-untyped-def]
    # Unsigned indices into flat arrays need no check for negatives, so the loops are vectorised.
    Q = np.uint64(logits.shape[1])
    values = tables.values.reshape(tables.values.size)
    out = logits.reshape(logits.size)
    # Four columns at a time, because rows are short; the last one to three are added one by one.
    fours = len(columns) - len(columns) % 4
    cells = np.empty((4, BLOCK), dtype=np.uint32)
    own = np.empty(BLOCK)
    for first in range(begin, end, BLOCK):
        n = min(end - first, BLOCK)
        for x in range(n):
            own[x] = out[np.uint64(first + x) * Q + np.uint64(tables.true[first + x])]
        for y in range(0, len(columns), 4):
            for z in range(min(4, len(columns) - y)):
                k, f = columns[y + z], factors[y + z]
                number_cells(tables.codes, tables.rows, tables.strides, tables.domain[k], first, n, cells[z])
                if tables.two_tables:
                    far = np.uint64(tables.start[k] + tables.sizes[tables.domain[k]]) * Q
                    for x in range(n):
                        place = far + np.uint64(cells[z, x]) * Q + np.uint64(tables.true[first + x])
                        own[x] += f * values[place]
                if y == fours:
                    start = np.uint64(tables.start[k])
                    for x in range(n):
                        row, base = (start + np.uint64(cells[z, x])) * Q, np.uint64(first + x) * Q
                        for c in range(Q):
                            out[base + np.uint64(c)] += f * values[row + np.uint64(c)]
            if y == fours:
                break
            f0, f1, f2, f3 = factors[y], factors[y + 1], factors[y + 2], factors[y + 3]
            t0, t1 = np.uint64(tables.start[columns[y]]), np.uint64(tables.start[columns[y + 1]])
            t2, t3 = np.uint64(tables.start[columns[y + 2]]), np.uint64(tables.start[columns[y + 3]])
            for x in range(n):
                r0, r1 = (t0 + np.uint64(cells[0, x])) * Q, (t1 + np.uint64(cells[1, x])) * Q
                r2, r3 = (t2 + np.uint64(cells[2, x])) * Q, (t3 + np.uint64(cells[3, x])) * Q
                base = np.uint64(first + x) * Q
                for c in range(Q):
                    total = out[base + np.uint64(c)] + f0 * values[r0 + np.uint64(c)]
                    total += f1 * values[r1 + np.uint64(c)]
                    total += f2 * values[r2 + np.uint64(c)]
                    out[base + np.uint64(c)] = total + f3 * values[r3 + np.uint64(c)]
        if tables.two_tables:
            for x in range(n):
                out[np.uint64(first + x) * Q + np.uint64(tables.true[first + x])] = own[x]


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


@kernel(linked=True, inner=True)
def sample_score(softening, logits, m, true):  # type: ignore[no-untyped-def]
    """Return the part of sample m in the score, for a unit of weight."""
    own = logits[m, true]
    low = softening.cap
    least = true
    for c in range(logits.shape[1]):
        if c != true and own - logits[m, c] < low:
            low = own - logits[m, c]
            least = c
    if not softening.smooth:
        return low
    # The smallest margin adds 1 to the sum, so its logarithm is log1p of the rest.
    rest = 0.0 if least == true else np.exp(low - softening.cap)
    for c in range(logits.shape[1]):
        if c != true and c != least and own - logits[m, c] - low < VANISHING:
            rest += np.exp(low - own + logits[m, c])
    return low - np.log1p(rest)


@kernel
def total_score(tables, softening, logits, smallest):  # type: ignore[no-untyped-def]
    """Return the samples' part of the score at given logits, shape (M, Q); the smallest margin if `smallest`.

    The sum is Neumaier's: what an addition rounds off is added at the end, so that the error does not grow with M.
    """
    total, lost = np.inf if smallest else 0.0, 0.0
    for m in range(logits.shape[0]):
        value = sample_score(softening, logits, m, tables.true[m])
        if smallest:
            total = min(total, value)
        else:
            value *= tables.weights[m]
            new = total + value
            lost += (total - new) + value if abs(total) >= abs(value) else (value - new) + total
            total = new
    return total + lost


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
    # Each cell and each true class is looked up once, and alpha is written in memory order.
    cells = np.empty((D, BLOCK), dtype=np.uint32)
    row = np.empty(K, dtype=np.uint64)
    own = np.empty(K)
    for first in range(begin, end, BLOCK):
        n = min(end - first, BLOCK)
        for d in range(D):
            number_cells(tables.codes, tables.rows, tables.strides, d, first, n, cells[d])
        for x in range(n):
            m = first + x
            y = np.uint64(tables.true[m])
            for k in range(K):
                d = tables.domain[k]
                row[k] = np.uint64(tables.start[k]) + np.uint64(cells[d, x])
                own[k] = tables.values[row[k] + np.uint64(apart(tables.two_tables, tables.sizes[d])), y]
            r = 0
            for c in range(Q):
                if c == tables.true[m]:
                    continue
                for k in range(K):
                    alpha[m, r, k] = own[k] - tables.values[row[k], np.uint64(c)]
                r += 1


def best_margins(
    tables: Tables,
    blocks: NDArray[np.int64],
    idle: NDArray[np.bool_],
    stopping: Callable[[], bool] = lambda: False,
) -> NDArray[np.float64]:
    """Return min_c sum_i max_k alpha(i, k, m, c) of every sample, shape (M,): each margin row has its own best sets.

    `blocks`, int64 of shape (n + 1,), has the first column of each variable that has columns, and the total number of
    columns. `idle`, bool of shape (n,), says which of these variables also have a parent set without coefficients. Once
    `stopping` returns true, asked between slices of samples, the remaining samples keep the trivial value inf.
    """
    out = np.full(tables.codes.shape[1], np.inf)
    step = BLOCK * max(1, SLICE // (BLOCK * max(1, tables.values.shape[1] * len(tables.columns))))

    def part(begin: int, end: int) -> None:
        for first in range(begin, end, step):
            if stopping():
                return
            _best_margins(tables, blocks, idle, out, first, min(end, first + step))

    in_parts(part, len(out), True)
    return out


@kernel
def _best_margins(tables, blocks, idle, out, begin, end):  # type: ignore[no-untyped-def]
    # The outer loop is over columns: one table fits into the cache, all tables do not.
    Q = tables.values.shape[1]
    cells = np.empty(BLOCK, dtype=np.uint32)
    sums, best = np.empty((BLOCK, Q)), np.empty((BLOCK, Q))
    for first in range(begin, end, BLOCK):
        n = min(end - first, BLOCK)
        sums[:] = 0.0
        for i in range(len(idle)):
            best[:] = 0.0 if idle[i] else -np.inf
            before = -1
            for k in range(blocks[i], blocks[i + 1]):
                d, start = tables.domain[k], tables.start[k]
                if d != before:
                    before = d
                    number_cells(tables.codes, tables.rows, tables.strides, d, first, n, cells)
                far = apart(tables.two_tables, tables.sizes[d])
                for x in range(n):
                    row = start + np.int64(cells[x])
                    own = tables.values[row + far, tables.true[first + x]]
                    for c in range(Q):
                        best[x, c] = max(best[x, c], own - tables.values[row, c])
            sums += best
        for x in range(n):
            low = np.inf
            for c in range(Q):
                if c != tables.true[first + x]:
                    low = min(low, sums[x, c])
            out[first + x] = low
