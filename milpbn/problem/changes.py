"""The score of a structure after one more parent set is chosen, for many parent sets at once; local search needs it.

A parent set is a column of the coefficients, and choosing it adds its table to the joint log-probabilities. Under SM,
SBM and the hard margin, the smallest margin of each sample is then looked up. Under the conditional log-likelihood
every class counts: the odds of the classes are computed once per sample, and the exponentials of a column's table once
per row. Then a sample and a column need one product per class and one logarithm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.problem.family_tables import Tables
from milpbn.problem.products import NEGLIGIBLE, Softening, apart, number_cells, number_cells_of
from milpbn.util.compiled import kernel
from milpbn.util.extrema import maximum, minimum
from milpbn.util.threads import in_parts

#: Smaller sums of odds are replaced by it before the logarithm. They occur only where a column's table differs by 690
#: nats between two classes, far from any structure that a search accepts.
LEAST_SUM = 1e-300
#: Samples that `within_reach` takes at a time, so that their logits stay in the cache.
BLOCK = 512
#: No column, and no factor.
NOTHING, NO_FACTORS = np.empty(0, dtype=np.int64), np.empty(0)


@kernel
def table_spreads(tables):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return the most by which each column's table can lower a log-margin, in nats; float64 array, shape (K,)."""
    out = np.zeros(len(tables.columns))
    for k in range(len(out)):
        d, start = tables.domain[k], tables.start[k]
        far = apart(tables.two_tables, tables.sizes[d])
        for row in range(start, start + tables.sizes[d]):
            low, high = np.inf, -np.inf
            for c in range(tables.values.shape[1]):
                low = minimum(low, tables.values[row + far, c])
                high = maximum(high, tables.values[row, c])
            out[k] = max(out[k], high - low)
    return out


def score_changes(
    tables: Tables,
    spreads: NDArray[np.float64],
    softening: Softening,
    logits: NDArray[np.float64],
    columns: NDArray[np.int64],
    smallest: bool,
    parallel: bool,
    added: NDArray[np.int64] = NOTHING,
    factors: NDArray[np.float64] = NO_FACTORS,
) -> NDArray[np.float64]:
    """Return the samples' part of the score, in nats, with each of n columns added to the logits, one at a time.

    Samples whose margin stays above gamma whichever column is added are counted once for all columns. `spreads`, shape
    (K,), are those of `table_spreads`. `logits`, shape (M, Q), are the joint log-probabilities from the parent sets of
    all other variables, once ``factors[x]`` times the columns ``added[x]`` are added to them, which this function does.
    Among the n columns, -1 stands for one of 0s. Under the hard margin (`smallest`) the smallest margin of all samples
    is the score. `parallel` says whether to use threads.
    """
    reach = np.inf
    if not smallest:
        beyond = softening.cap + (NEGLIGIBLE if softening.smooth else 0.0)
        reach = beyond + float(spreads[columns[columns >= 0]].max(initial=0.0))
    near, decided = within_reach(tables, logits, added, factors, reach)
    least = _to_odds(near.gaps, tables.two_tables) if softening.smooth else np.empty(0)
    out = np.empty(len(columns))

    def part(begin: int, end: int) -> None:
        if softening.smooth:
            _likelihoods(tables, near, least, columns[begin:end], out[begin:end])
        else:
            add_up_margins(tables, near, softening.cap, smallest, columns[begin:end], out[begin:end])

    in_parts(part, len(columns), parallel)
    return out if smallest else out + decided * softening.cap


class Near(NamedTuple):
    """The samples whose part of the score one more column may change: their indices and weights, shape (n,).

    `gaps`, shape (n, Q), has the log-odds of the true class against every class, inf for itself; `_to_odds` makes odds
    of them.
    """

    sample: NDArray[np.int64]
    gaps: NDArray[np.float64]
    weights: NDArray[np.float64]


@kernel(fastmath={"nnan", "nsz"})
def within_reach(tables, logits, added, factors, reach):  # type: ignore[no-untyped-def]
    """Return the samples with a margin below `reach` once some columns are added, and the weight of the others."""
    # Unsigned indices into flat arrays need no check for negatives, so the loops are vectorised.
    M, Q = logits.shape[0], np.uint64(logits.shape[1])
    given, values = logits.reshape(logits.size), tables.values.reshape(tables.values.size)
    sample = np.empty(M, dtype=np.int64)
    gaps, weights = np.empty(logits.size), np.empty(M)
    some, own = np.empty(BLOCK * logits.shape[1]), np.empty(BLOCK)
    cells = np.empty(BLOCK, dtype=np.uint32)
    n = 0
    decided = 0.0
    for first in range(0, M, BLOCK):
        size = min(BLOCK, M - first)
        begin = np.uint64(first) * Q
        for z in range(np.uint64(size) * Q):
            some[z] = given[begin + z]
        for x in range(size):
            own[x] = some[np.uint64(x) * Q + np.uint64(tables.true[first + x])]
        for y in range(len(added)):
            k, f = added[y], factors[y]
            d, start = tables.domain[k], np.uint64(tables.start[k])
            number_cells(tables.codes, tables.rows, tables.strides, d, first, size, cells)
            far = np.uint64(apart(tables.two_tables, tables.sizes[d])) * Q
            for x in range(size):
                row, base = (start + np.uint64(cells[x])) * Q, np.uint64(x) * Q
                own[x] += f * values[row + far + np.uint64(tables.true[first + x])]
                for c in range(Q):
                    some[base + c] += f * values[row + c]
        for x in range(size):
            base = np.uint64(x) * Q
            some[base + np.uint64(tables.true[first + x])] = -np.inf
            highest = -np.inf
            for c in range(Q):
                highest = maximum(highest, some[base + np.uint64(c)])
            if own[x] - highest < reach:
                sample[n], weights[n] = first + x, tables.weights[first + x]
                to = np.uint64(n) * Q
                for c in range(Q):
                    gaps[to + c] = own[x] - some[base + c]
                n += 1
            else:
                decided += tables.weights[first + x]
    return Near(sample[:n], gaps.reshape(logits.shape)[:n], weights[:n]), decided


@kernel
def _to_odds(gaps, apart):  # type: ignore[no-untyped-def]
    """Replace log-odds against all classes by exp(least - log-odds); return `least`, the smallest log-odds, shape (n,).

    The true class has the log-odds 0, although the array holds inf there. If its log-probabilities are `apart` from
    those of the other classes, it gets the odds 0 here, and `_likelihoods` adds them.
    """
    least = np.zeros(len(gaps))
    for x in range(len(gaps)):
        for c in range(gaps.shape[1]):
            least[x] = min(least[x], gaps[x, c])
        for c in range(gaps.shape[1]):
            gaps[x, c] = np.exp(least[x] - (0.0 if gaps[x, c] == np.inf and not apart else gaps[x, c]))
    return least


@kernel(inner=True)
def _cells(tables, k, sample):  # type: ignore[no-untyped-def]
    """Return the tables of column k, that of the true class second, and the cells of some samples.

    The cells are unsigned to save the check for negatives. Column -1 has a table of 0s.
    """
    if k < 0:
        nothing = np.zeros((1, tables.values.shape[1]))
        return nothing, nothing, np.zeros(len(sample), dtype=np.uint32)
    d, start = tables.domain[k], tables.start[k]
    cells = np.empty(len(sample), dtype=np.uint32)
    number_cells_of(tables.codes, tables.rows, tables.strides, d, sample, cells)
    size = tables.sizes[d]
    own = start + apart(tables.two_tables, size)
    return tables.values[start : start + size], tables.values[own : own + size], cells


@kernel
def add_up_margins(tables, near, cap, smallest, columns, out):  # type: ignore[no-untyped-def]
    """Write the score of some samples with each of some columns added, given the log-odds against all classes."""
    sample, gaps, weights = near.sample, near.gaps, near.weights
    Q = gaps.shape[1]
    for n in range(len(columns)):
        table, own, cells = _cells(tables, columns[n], sample)
        total = np.inf if smallest else 0.0
        for x in range(len(sample)):
            cell = np.uint64(cells[x])
            low = np.inf
            for c in range(Q):
                low = minimum(low, gaps[x, c] - table[cell, c])
            low += own[cell, np.uint64(tables.true[sample[x]])]
            if smallest:
                total = min(total, low)
            else:
                total += weights[x] * min(low, cap)
        out[n] = total


@kernel
def _likelihoods(tables, near, least, columns, out):  # type: ignore[no-untyped-def]
    """Write the conditional log-likelihood of some samples with each of some columns added, given the odds."""
    sample, odds, weights = near.sample, near.gaps, near.weights
    Q = odds.shape[1]
    for n in range(len(columns)):
        table, own, cells = _cells(tables, columns[n], sample)
        # Exponentials relative to the largest of their row, made at a cell's first visit: most cells have no sample.
        factors = np.empty(table.shape)
        largest = np.full(len(table), np.nan)
        total = 0.0
        for x in range(len(sample)):
            cell = np.uint64(cells[x])
            if np.isnan(largest[cell]):
                largest[cell] = table[cell].max()
                for c in range(Q):
                    factors[cell, c] = np.exp(table[cell, c] - largest[cell])
            mass = 0.0
            for c in range(Q):
                mass += odds[x, c] * factors[cell, c]
            true = own[cell, np.uint64(tables.true[sample[x]])] - largest[cell] + least[x]
            if tables.two_tables:
                mass += np.exp(true)
            total += weights[x] * (true - np.log(max(mass, LEAST_SUM)))
        out[n] = total
