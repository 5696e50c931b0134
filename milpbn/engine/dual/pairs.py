"""The coefficients of the samples and classes that matter at a node, as one dense matrix for the steps.

Near the cap, a node has a few thousand pairs of a sample and a competing class, and a few hundred parent sets. Steps on
a matrix with a row for every parent set and a column for every pair read memory in order, where family tables are
looked up number by number. The matrix is filled once for each selection of pairs and parent sets.

The matrix is float32, and only steers the steps: no bound of theirs prunes a node. When they end, the bound at the
point that they found is computed from the float64 tables of the whole node (`milpbn.engine.dual.point.evaluate`).
Products with the matrix are summed in float64, the curvature in float32.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.problem.duals import SPARSE, SPARSE_LIKELY
from milpbn.problem.family_tables import Tables
from milpbn.problem.products import apart, number_cells
from milpbn.util.compiled import kernel
from milpbn.util.extrema import maximum

#: Pairs that products take at a time, so that the numbers of a block stay in the cache while rows are read.
BLOCK = 2048
#: Rows of the curvature that are computed at a time, each block up to its diagonal only: the matrix is symmetric.
ROWS = 64
#: A dual weight on gamma that is a smaller share of the sample's weight counts as 0 in the curvature.
LEAST_SOFT = 1e-6


class Pairs(NamedTuple):
    """Pairs of a sample and a competing class, and the log-margins that parent sets add to them."""

    #: What each of K parent sets adds to the log-margin of each of N pairs, shape (K, N).
    alpha: NDArray[np.float32]
    #: The parent sets, shape (K,).
    entries: NDArray[np.int64]
    #: The pairs of sample g are ``first[g] <= t < first[g + 1]``. If there are no samples, the steps use the tables.
    #: Shape (G + 1,).
    first: NDArray[np.int64]
    #: Weights of the samples, shape (G,).
    weights: NDArray[np.float64]


def no_pairs() -> Pairs:
    """Return the pairs of a model whose steps use the tables: none."""
    return Pairs(
        np.empty((0, 0), dtype=np.float32),
        np.empty(0, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.empty(0),
    )


@kernel
def mark_near(tables, softening, logits, width, inside):  # type: ignore[no-untyped-def]  # numba infers the types
    """Mark the pairs whose log-margin exceeds neither the cap nor the sample's smallest by more than `width`.

    Logits and `inside`, a bool array, have shape (M, Q). Pairs that are marked already stay marked.
    """
    for m in range(logits.shape[0]):
        y = tables.true[m]
        own = logits[m, y]
        highest = -np.inf
        for c in range(logits.shape[1]):
            highest = maximum(highest, -np.inf if c == y else logits[m, c])
        near = min(softening.cap, own - highest) + width
        if own - highest > near:
            continue
        for c in range(logits.shape[1]):
            if c != y and own - logits[m, c] <= near:
                inside[m, c] = True


@kernel
def fill(tables, columns, codes, label, true, alpha):  # type: ignore[no-untyped-def]
    """Write to `alpha`, shape (K, N), what each of K columns of the tables adds to the log-margin of each of N pairs.

    `columns`, shape (K,), are in the order of their domains. Pair t consists of a sample of class `true[t]` with the
    codes ``codes[:, t]``, and of the competing class `label[t]`.
    """
    n = len(label)
    Q = np.uint32(tables.values.shape[1])
    flat = tables.values.reshape(tables.values.size)
    cells, own = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint32)
    before = -1
    for x in range(len(columns)):
        k = columns[x]
        d = tables.domain[k]
        if d != before:
            before = d
            number_cells(codes, tables.rows, tables.strides, d, 0, n, cells)
            far = np.uint32(apart(tables.two_tables, tables.sizes[d])) * Q
            for t in range(n):
                row = cells[t] * Q
                own[t] = row + far + true[t]
                cells[t] = row + label[t]
        table = np.uint64(tables.start[k]) * np.uint64(Q)
        out = alpha[x]
        for t in range(n):
            out[t] = np.float32(flat[table + np.uint64(own[t])] - flat[table + np.uint64(cells[t])])


def pairs_of(
    tables: Tables,
    sample: NDArray[np.int64],
    label: NDArray[np.int64],
    entries: NDArray[np.int64],
    room: NDArray[np.float32],
) -> Pairs:
    """Return pairs of a sample and a competing class, and the parent sets among `entries` that have coefficients.

    The pairs, shape (N,), are in the order of their samples. The matrix takes its memory from `room`, a vector.
    """
    columns = np.searchsorted(tables.columns, entries)
    columns = columns[np.argsort(tables.domain[columns], kind="stable")]
    alpha = room[: len(columns) * len(sample)].reshape(len(columns), len(sample))
    true = tables.true.take(sample).astype(np.uint32)
    fill(tables, columns, tables.codes.take(sample, axis=1), label.astype(np.uint32), true, alpha)
    begins = np.flatnonzero(np.diff(sample, prepend=-1))
    first = np.append(begins, len(sample))
    return Pairs(alpha, tables.columns[columns], first, tables.weights[sample[begins]])


@kernel(inner=True)
def add_rows(pairs, rows, factors, margins):  # type: ignore[no-untyped-def]
    """Add ``factors[x]`` times the row ``rows[x]`` of the matrix to `margins`, shape (1, N)."""
    n = margins.shape[1]
    alpha, out = pairs.alpha.reshape(pairs.alpha.size), margins.reshape(n)
    # Unsigned indices need no check for negatives, so the loop is vectorised: 5 times as fast.
    for begin in range(0, n, BLOCK):
        first = np.uint64(begin)
        for x in range(len(rows)):
            row, f = np.uint64(rows[x] * n + begin), factors[x]
            for t in range(np.uint64(min(BLOCK, n - begin))):
                out[first + t] += f * alpha[row + t]


@kernel(inner=True, fastmath={"reassoc", "contract", "nsz"})
def add_products(pairs, value, alive, out):  # type: ignore[no-untyped-def]
    """Add the products of rows of the matrix with the pairs' dual weights to `out`, shape (P,), where `alive`."""
    n = pairs.alpha.shape[1]
    alpha = pairs.alpha.reshape(pairs.alpha.size)
    for begin in range(0, n, BLOCK):
        first = np.uint64(begin)
        for x in range(len(pairs.entries)):
            if alive[pairs.entries[x]]:
                row = np.uint64(x * n + begin)
                product = 0.0
                for t in range(np.uint64(min(BLOCK, n - begin))):
                    product += value[first + t] * alpha[row + t]
                out[pairs.entries[x]] += product


@kernel(inner=True)
def weigh_pairs(pairs, softening, margins, temperature, value):  # type: ignore[no-untyped-def]
    """Write the dual weight w lambda of every pair; return score, constant and soft weight as `duals.weigh` does."""
    cap = softening.cap
    reach = (SPARSE_LIKELY if softening.smooth else SPARSE) * temperature
    score, constant, soft = 0.0, 0.0, 0.0
    for g in range(len(pairs.weights)):
        low = cap
        for t in range(pairs.first[g], pairs.first[g + 1]):
            low = min(low, margins[0, t])
        zero = np.exp((low - cap) / temperature) if cap - low < reach else 0.0
        total, spread = zero, zero * (cap - low)
        for t in range(pairs.first[g], pairs.first[g + 1]):
            away = margins[0, t] - low
            e = 0.0
            if away < reach:
                e = np.exp(-away / temperature) if away > 0.0 else 1.0
                total += e
                spread += e * away
            value[t] = e
        w = pairs.weights[g]
        soft += w * (total - 1.0) / total
        for t in range(pairs.first[g], pairs.first[g + 1]):
            value[t] *= w / total
        if softening.smooth:
            entropy = temperature * np.log(total)
            score += w * (low - entropy)
            constant += w * (cap * zero / total - entropy - spread / total)
        else:
            score += w * low
            constant += w * cap * zero / total
    return score, constant, soft


@kernel(inner=True)
def _scale(pairs, value, places, factors, means):  # type: ignore[no-untyped-def]
    """List the pairs that add to the curvature, with the numbers that make the columns of its factor Z from slopes.

    A sample adds w times the covariance of its slopes s under the dual weights lambda, where gamma has the slope 0 and
    the weight 1 - a. With a = sum lambda_c and s0 = sum lambda_c s_c, this is Z Z' for a Z with one column for each
    pair, sqrt(w lambda_c) (s_c - s0 / (1 + sqrt(1 - a))).

    Return the number of columns, and `several`. Column j is of the pair ``places[j]``. Those before `several` are each
    the only one of a sample, and the slope times ``factors[j]``. The others come sample by sample: ``factors[j]`` is
    sqrt(w lambda_c), and ``abs(means[j])`` the factor of s_c in the sum s0 / (1 + sqrt(1 - a)). A negative ``means[j]``
    marks the last column of a sample.
    """
    n = 0
    for alone in (True, False):
        several = n
        for g in range(len(pairs.weights)):
            w, used, mass = pairs.weights[g], 0, 0.0
            for t in range(pairs.first[g], pairs.first[g + 1]):
                if value[t] > 0.0:
                    used += 1
                    mass += value[t]
            gamma = max(0.0, 1.0 - mass / w)
            # A sample with one class and no weight on gamma has no curvature.
            if used == 0 or alone != (used == 1) or (alone and gamma < LEAST_SOFT):
                continue
            for t in range(pairs.first[g], pairs.first[g + 1]):
                if value[t] > 0.0:
                    places[n] = t
                    factors[n] = np.sqrt(value[t] * (gamma if alone else 1.0))
                    means[n] = value[t] / (w * (1.0 + np.sqrt(gamma)))
                    n += 1
            if not alone:
                means[n - 1] = -means[n - 1]
    return n, several


@kernel(inner=True)
def curvature_of(pairs, value, rows, temperature):  # type: ignore[no-untyped-def]
    """Return minus the Hessian of the softened score over some rows, float64 array, shape (n, n); -1 is a row of 0."""
    N = pairs.alpha.shape[1]
    places = np.empty(N + 1, dtype=np.int64)
    factors, means = np.empty(N + 1, dtype=np.float32), np.empty(N + 1, dtype=np.float32)
    used, several = _scale(pairs, value, places, factors, means)
    n = len(rows)
    Z = np.zeros((n, used), dtype=np.float32)
    for x in range(n):
        if rows[x] < 0:
            continue
        row, out = pairs.alpha[rows[x]], Z[x]
        for j in range(several):
            out[j] = factors[j] * row[np.uint64(places[j])]
        begin, mean = several, np.float32(0.0)
        for j in range(several, used):
            slope = row[np.uint64(places[j])]
            out[j] = slope
            mean += abs(means[j]) * slope
            if means[j] < 0.0:
                for i in range(begin, j + 1):
                    out[i] = factors[i] * (out[i] - mean)
                begin, mean = j + 1, np.float32(0.0)
    H = np.empty((n, n))
    for a in range(0, n, ROWS):
        b = min(n, a + ROWS)
        block = np.dot(Z[a:b], Z[:b].T)
        for x in range(a, b):
            for y in range(x + 1):
                H[x, y] = block[x - a, y] / temperature
                H[y, x] = H[x, y]
    return H


@kernel(inner=True)
def curvature_along(pairs, value, direction, temperature):  # type: ignore[no-untyped-def]
    """Return minus the second derivative of the softened score along `direction`, shape (1, N)."""
    total = 0.0
    for g in range(len(pairs.weights)):
        mean, square = 0.0, 0.0
        for t in range(pairs.first[g], pairs.first[g + 1]):
            mean += value[t] * direction[0, t]
            square += value[t] * direction[0, t] * direction[0, t]
        total += square - mean * mean / pairs.weights[g]
    return total / temperature


@kernel(inner=True)
def slope_after(pairs, softening, margins, direction, step, temperature):  # type: ignore[no-untyped-def]
    """Return the first and minus the second derivative of the softened score along `direction`, after a step."""
    cap = softening.cap
    reach = (SPARSE_LIKELY if softening.smooth else SPARSE) * temperature
    first, second = 0.0, 0.0
    for g in range(len(pairs.weights)):
        low = np.inf
        for t in range(pairs.first[g], pairs.first[g + 1]):
            low = min(low, margins[0, t] + step * direction[0, t])
        if low > cap + reach:
            continue
        low = min(low, cap)
        total = np.exp((low - cap) / temperature) if cap - low < reach else 0.0
        mean, square = 0.0, 0.0
        for t in range(pairs.first[g], pairs.first[g + 1]):
            away = margins[0, t] + step * direction[0, t] - low
            if away < reach:
                e = np.exp(-away / temperature) if away > 0.0 else 1.0
                total += e
                mean += e * direction[0, t]
                square += e * direction[0, t] * direction[0, t]
        mean /= total
        first += pairs.weights[g] * mean
        second += pairs.weights[g] * (square / total - mean * mean)
    return first, second / temperature
