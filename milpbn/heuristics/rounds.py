"""A round of a climb as one kernel: on small data the Python between the kernels takes longer than they do."""

from __future__ import annotations

import numpy as np

from milpbn.heuristics.tuning import TUNING
from milpbn.problem.changes import add_up_margins, within_reach
from milpbn.problem.products import add_columns
from milpbn.util.compiled import kernel

LEAST_GAIN = TUNING.least_gain


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
        near, decided = within_reach(tables, logits, away, np.full(len(away), -1.0), reach)
        values = np.empty(n)
        add_up_margins(tables, near, softening.cap, False, column[sets], values)
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
