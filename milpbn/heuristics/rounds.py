"""A round of a climb as one kernel, and the gains of changes that are given up once they cannot gain.

On small data the Python between the kernels takes longer than they do.
"""

from __future__ import annotations

import numpy as np

from milpbn.heuristics.tuning import TUNING
from milpbn.problem.changes import _margins, _within_reach
from milpbn.problem.products import add_columns, apart, number_cells_of
from milpbn.util.compiled import kernel
from milpbn.util.extrema import maximum, minimum

LEAST_GAIN = TUNING.least_gain
#: Samples between two looks at what a change can still gain.
BLOCK = 256


@kernel(inner=True)
def _mark_descendants(first, members, choice, variable, below):  # type: ignore[no-untyped-def]  # numba infers the types
    """Mark a variable and its descendants, given the parent sets of all variables, in `below`, shape (V,)."""
    for i in range(len(choice)):
        below[i] = i == variable
    more = True
    while more:
        more = False
        for i in range(len(choice)):
            for x in range(first[choice[i]], first[choice[i] + 1]):
                if below[members[x]] and not below[i]:
                    below[i] = more = True


@kernel(inner=True)
def _used(column, sets):  # type: ignore[no-untyped-def]
    """Return the columns of those parent sets that have coefficients."""
    columns = column[sets]
    return columns[columns >= 0]


@kernel
def improve(  # type: ignore[no-untyped-def]
    tables, spreads, softening, linear, offsets, first, members, column, slopes, order, choice, logits, known
):
    """Give each variable of `order` the parent set with the best score, one after the other.

    Only parent sets that close no cycle and have a larger slope than the present one are scored. The members of set p
    are ``members[first[p] : first[p + 1]]``. `choice` (shape (V,)) and `logits` (M, Q) are changed. ``known[-1]``
    counts the moves, and ``known[p]`` is its value when p did not gain: until the next move, p is not scored again.
    Return the numbers of moves and of variables that were looked at.
    """
    below = np.empty(len(choice), dtype=np.bool_)
    moves, looked = known[-1], 0
    wide = np.where(column >= 0, spreads[column], 0.0)
    for i in order:
        now = choice[i]
        sets = np.empty(offsets[i + 1] - offsets[i], dtype=np.int64)
        sets[0], n, marked, some, reach = now, 1, False, False, softening.cap + wide[now]
        for p in range(offsets[i], offsets[i + 1]):
            if slopes[p] <= slopes[now] + LEAST_GAIN:
                continue
            if not marked:
                _mark_descendants(first, members, choice, i, below)
                marked = True
            free = True
            for x in range(first[p], first[p + 1]):
                free = free and not below[members[x]]
            if free:
                some, reach = True, max(reach, softening.cap + wide[p])
                if known[p] != known[-1]:
                    sets[n] = p
                    n += 1
        looked += some
        if n == 1:
            continue
        sets, rest = sets[:n], linear[np.delete(choice, i)].sum()
        away = _used(column, choice[i : i + 1])
        near, decided = _within_reach(tables, logits, away, np.full(len(away), -1.0), reach)
        values = np.empty(n)
        _margins(tables, near, softening.cap, False, column[sets], values)
        values = (linear[sets] + rest) + (values + decided * softening.cap)
        best = np.argmax(values)
        if values[best] > values[0] + LEAST_GAIN:
            new = _used(column, sets[best : best + 1])
            add_columns(tables, away, np.full(len(away), -1.0), logits, False)
            add_columns(tables, new, np.full(len(new), 1.0), logits, False)
            choice[i] = sets[best]
            known[-1] += 1
        known[sets] = known[-1]
    return known[-1] - moves, looked


@kernel(fastmath={"nnan", "nsz"})
def add_gains(  # type: ignore[no-untyped-def]
    tables, cap, logits, order, now, left, added, factors, columns, reach, gains
):
    """Add to `gains` what each of n columns gains in the samples' part of the score once others are added.

    The samples come by their index in `order`, the smallest margins first. Sample ``order[x]`` adds ``now[x]`` per unit
    of weight to the present score; what the samples from x on can gain at most is ``left[x]``, shape (M + 1,). A column
    whose gain cannot exceed `LEAST_GAIN` any more gets -inf. `added`, `factors` and `reach` are as in `_within_reach`.
    """
    # Unsigned indices into flat arrays need no check for negatives, so the loops are vectorised.
    Q = np.uint64(logits.shape[1])
    given, values, nothing = (
        logits.reshape(logits.size),
        tables.values.reshape(tables.values.size),
        np.zeros(Q),
    )
    some, own = np.empty(BLOCK * logits.shape[1]), np.empty(BLOCK)
    near, weights, before = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK), np.empty(BLOCK)
    cells = np.empty(BLOCK, dtype=np.uint32)
    for first in range(0, len(order), BLOCK):
        sample = order[first : first + BLOCK]
        for x in range(len(sample)):
            base, place = np.uint64(x) * Q, np.uint64(sample[x]) * Q
            own[x] = given[place + np.uint64(tables.true[sample[x]])]
            for c in range(Q):
                some[base + c] = given[place + c]
        for y in range(len(added)):
            f, d, start = factors[y], tables.domain[added[y]], np.uint64(tables.start[added[y]])
            number_cells_of(tables.codes, tables.rows, tables.strides, d, sample, cells)
            far = np.uint64(apart(tables.two_tables, tables.sizes[d])) * Q
            for x in range(len(sample)):
                row, base = (start + np.uint64(cells[x])) * Q, np.uint64(x) * Q
                own[x] += f * values[row + far + np.uint64(tables.true[sample[x]])]
                for c in range(Q):
                    some[base + c] += f * values[row + c]
        n, common = 0, 0.0
        for x in range(len(sample)):
            base, to, m = np.uint64(x) * Q, np.uint64(n) * Q, sample[x]
            some[base + np.uint64(tables.true[m])] = -np.inf
            highest = -np.inf
            for c in range(Q):
                highest = maximum(highest, some[base + c])
            if own[x] - highest >= reach:
                common += tables.weights[m] * (cap - now[first + x])
                continue
            for c in range(Q):
                some[to + c] = own[x] - some[base + c]
            near[n], weights[n], before[n] = m, tables.weights[m], now[first + x]
            n += 1
        hopeful = False
        for k in range(len(columns)):
            if gains[k] == -np.inf:
                continue
            table, start, far, total = nothing, np.uint64(0), np.uint64(0), common
            if columns[k] >= 0:
                d, table, start = tables.domain[columns[k]], values, np.uint64(tables.start[columns[k]])
                far = np.uint64(apart(tables.two_tables, tables.sizes[d])) * Q
                number_cells_of(tables.codes, tables.rows, tables.strides, d, near[:n], cells)
            else:
                cells[:n] = 0
            for x in range(n):
                row, base = (start + np.uint64(cells[x])) * Q, np.uint64(x) * Q
                low = np.inf
                for c in range(Q):
                    low = minimum(low, some[base + c] - table[row + c])
                low += table[row + far + np.uint64(tables.true[near[x]])]
                total += weights[x] * (min(low, cap) - before[x])
            gains[k] += total
            if gains[k] + left[first + len(sample)] <= LEAST_GAIN:
                gains[k] = -np.inf
            else:
                hopeful = True
        if not hopeful:
            return
