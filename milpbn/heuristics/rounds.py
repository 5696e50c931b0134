"""A round of a climb as one kernel, for problems without rules on more than one family and without a smooth minimum.

On small data the kernels of one variable's scores take less time than the Python between them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from milpbn.heuristics.tuning import TUNING
from milpbn.problem.changes import _margins, _within_reach
from milpbn.problem.problem import Problem
from milpbn.problem.products import SLICE, add_columns
from milpbn.util.compiled import kernel

#: A copy that kernels can read.
LEAST_GAIN = TUNING.least_gain


@kernel(inner=True)
def _mark_descendants(first, members, choice, variable, below):  # type: ignore[no-untyped-def]  # numba infers the types
    """Mark a variable and its descendants, given the parent sets of all variables, in `below`, shape (V,)."""
    for i in range(len(choice)):
        below[i] = False
    below[variable] = True
    more = True
    while more:
        more = False
        for i in range(len(choice)):
            if below[i]:
                continue
            for x in range(first[choice[i]], first[choice[i] + 1]):
                if below[members[x]]:
                    below[i] = more = True


@kernel(inner=True)
def _used(column, sets):  # type: ignore[no-untyped-def]
    """Return the columns of those parent sets that have coefficients."""
    columns = column[sets]
    return columns[columns >= 0]


@kernel
def improve(  # type: ignore[no-untyped-def]
    tables, spreads, softening, linear, offsets, first, members, column, slopes, order, choice, logits
):
    """Give each variable of `order` the parent set with the best score, one after the other.

    Only parent sets that close no cycle are scored, and only those whose slope, shape (P,), is larger than the present
    one's. The members of parent set p are ``members[first[p] : first[p + 1]]``. `choice`, shape (V,), and `logits`,
    shape (M, Q), are changed. Return the numbers of variables that were changed and that were scored.
    """
    below = np.empty(len(choice), dtype=np.bool_)
    moves, scored = 0, 0
    for i in order:
        now = choice[i]
        sets = np.empty(offsets[i + 1] - offsets[i], dtype=np.int64)
        n, at, marked = 0, 0, False
        for p in range(offsets[i], offsets[i + 1]):
            free = p == now
            if not free and slopes[p] > slopes[now] + LEAST_GAIN:
                if not marked:
                    _mark_descendants(first, members, choice, i, below)
                    marked = True
                free = True
                for x in range(first[p], first[p + 1]):
                    free = free and not below[members[x]]
            if free:
                at = n if p == now else at
                sets[n] = p
                n += 1
        if n < 2:
            continue
        scored += 1
        sets = sets[:n]
        rest = 0.0
        for j in range(len(choice)):
            rest += linear[choice[j]] if j != i else 0.0
        reach = softening.cap
        for k in _used(column, sets):
            reach = max(reach, softening.cap + spreads[k])
        away = _used(column, choice[i : i + 1])
        near, decided = _within_reach(tables, logits, away, np.full(len(away), -1.0), reach)
        values = np.empty(n)
        _margins(tables, near, softening.cap, False, column[sets], values)
        for x in range(n):
            values[x] = (linear[sets[x]] + rest) + (values[x] + decided * softening.cap)
        best = np.argmax(values)
        if values[best] > values[at] + LEAST_GAIN:
            new = _used(column, sets[best : best + 1])
            add_columns(tables, away, np.full(len(away), -1.0), logits, False)
            add_columns(tables, new, np.full(len(new), 1.0), logits, False)
            choice[i] = sets[best]
            moves += 1
    return moves, scored


def improve_each(
    problem: Problem,
    slopes: NDArray[np.float64],
    order: NDArray[np.int64],
    choice: NDArray[np.int64],
    logits: NDArray[np.float64],
    stopping: Callable[[], bool],
) -> tuple[int, int]:
    """Call `improve` for some variables at a time until it is `stopping`; return the sums of its answers."""
    candidates, margins = problem.candidates, problem.margins
    assert margins is not None
    each = max(1, SLICE // (logits.size * int(np.diff(candidates.offsets).max())))
    moves, scored = 0, 0
    for begin in range(0, len(order), each):
        if stopping():
            break
        more = improve(
            margins.tables,
            margins.spreads,
            margins.softening,
            problem.linear,
            candidates.offsets,
            candidates.firsts,
            candidates.arcs[0],
            problem.column,
            slopes,
            order[begin : begin + each],
            choice,
            logits,
        )
        moves, scored = moves + more[0], scored + more[1]
    return moves, scored
