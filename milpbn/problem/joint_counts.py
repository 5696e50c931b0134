"""Sums over the joint states of a set of variables, of which terms of decomposable scores are differences.

With n the weight of a joint state that occurs, F is the sum of n log n for the likelihood, and for BDeu that of
log Gamma(a + n) - log Gamma(a), where a is the equivalent sample size divided by the number of all joint states. Then
F(S + i) - F(S) is the log-likelihood, or BDeu, of variable i with the parents S (Heckerman et al. 1995). So one pass
over the rows gives the terms of all members of a set with the others as parents.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.sums import EPS
from milpbn.util.compiled import kernel

#: The summands of smaller whole weights are looked up in a table.
SMALL = 128


class WeightedRows(NamedTuple):
    """The rows of a table, by variable; the last one is a constant, so that a set with it is the set without it.

    `codes` has the shape (V + 1, M), `alpha` is the equivalent sample size of BDeu, 0 for the likelihood, and `slack`
    the largest relative error of a sum.
    """

    codes: NDArray[np.int32]
    states: NDArray[np.int64]
    weights: NDArray[np.float64]
    alpha: float
    slack: float


class Scratch(NamedTuple):
    """Memory of one thread: numbers of joint states by row, and what is known of each state during a pass."""

    ids: NDArray[np.int32]
    number: NDArray[np.int32]
    weight: NDArray[np.float64]
    seen: NDArray[np.int64]
    small: NDArray[np.float64]
    filled: NDArray[np.float64]


def rows_of(data: Dataset, order: NDArray[np.int64], alpha: float) -> WeightedRows:
    """Return the rows with the variables in an order."""
    m = data.n_samples
    codes = np.vstack([data.codes.T[order], np.zeros((1, m), dtype=np.int32)])
    states = np.append(data.n_states[order], 1)
    return WeightedRows(np.ascontiguousarray(codes), states, data.weights, alpha, EPS * (m + 1024))


def scratch_of(rows: WeightedRows, largest: int) -> Scratch:
    """Return the memory for sets of at most `largest` variables."""
    m = len(rows.weights)
    cells = m * int(rows.states.max())  # of numbered joint states and one more variable
    ids = np.zeros((largest + 3, m), dtype=np.int32)
    number, seen = np.full(cells, -1, dtype=np.int32), np.empty(m, dtype=np.int64)
    return Scratch(ids, number, np.zeros(cells), seen, np.empty(SMALL), np.full(1, -1.0))


@kernel(inner=True)
def refine(rows, scratch, source, target, v):  # type: ignore[no-untyped-def]  # numba infers the types
    """Store in `target` the numbers of the joint states that occur of variable v and the set numbered in `source`."""
    old, new, x, r = scratch.ids[source], scratch.ids[target], rows.codes[v], rows.states[v]
    number, seen, n = scratch.number, scratch.seen, 0
    for t in range(len(x)):
        cell = old[t] * r + x[t]
        if number[cell] < 0:
            number[cell] = n
            seen[n] = cell
            n += 1
        new[t] = number[cell]
    for k in range(n):
        number[seen[k]] = -1


@kernel(inner=True)
def total(rows, scratch, source, v, product):  # type: ignore[no-untyped-def]
    """Return F of variable v and the set numbered in `source`, a bound on its error, and how many joint states occur.

    `product` is the number of all joint states. In the last number, a joint state of a weight below 1 counts as its
    weight.
    """
    old, x, r, w = scratch.ids[source], rows.codes[v], rows.states[v], rows.weights
    weight, seen, small, n = scratch.weight, scratch.seen, scratch.small, 0
    for t in range(len(x)):
        cell = old[t] * r + x[t]
        if weight[cell] == 0.0:
            seen[n] = cell
            n += 1
        weight[cell] += w[t]
    a, base = rows.alpha / product, 0.0
    if rows.alpha > 0:
        base = math.lgamma(a)
    if scratch.filled[0] != a:
        scratch.filled[0] = a
        small[0] = 0.0
        for k in range(1, SMALL):
            small[k] = small[k - 1] + math.log(a + k - 1) if rows.alpha > 0 else k * math.log(k)
    found, size, occurring = 0.0, 0.0, 0.0
    for k in range(n):
        own = weight[seen[k]]
        weight[seen[k]] = 0.0
        if own < SMALL and own == math.floor(own):
            term = small[int(own)]
        elif rows.alpha > 0:
            term = math.lgamma(a + own) - base
        else:
            term = own * math.log(own)
        found += term
        occurring += min(1.0, own)
        size += abs(term) + 2 * own
    # A relative error d of x changes log Gamma(x) by at most d (|log Gamma(x)| + x + 2).
    return found, rows.slack * (size + n * (2 * abs(base) + 2 * a + 4)), occurring


@kernel
def total_of(rows, scratch, members, skip):  # type: ignore[no-untyped-def]
    """Return F of all members of an array except the one at `skip`, and a bound on its error."""
    free = len(scratch.ids) - 2
    source, target, product = 0, free, 1.0
    for k in range(len(members)):
        if k != skip:
            refine(rows, scratch, source, target, members[k])
            product *= rows.states[members[k]]
            source, target = target, free + free + 1 - target
    found, error, _ = total(rows, scratch, source, len(rows.states) - 1, product)
    return found, error
