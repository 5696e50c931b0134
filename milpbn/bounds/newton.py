"""Newton steps over the hull of all structures: the softened score's second-order model, maximised in the entries.

The gradient over all entries is what a Frank-Wolfe step pays for, an answer of the oracle costs next to nothing. So
the score is modelled at the point, by its gradient and its curvature over few entries, and the model is maximised by
pairwise Frank-Wolfe steps of its own (conditional gradients of second order: Carderera and Pokutta 2020).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from milpbn.bounds.line_search import step_length
from milpbn.bounds.oracle import heaviest_structure
from milpbn.bounds.point import LINEAR, VERTICES, column_of, combine
from milpbn.scores.products import cell_of, is_two_rows

#: Places of dual weights whose slopes are in memory at a time.
BLOCK = 4096
#: The steps on the model end when this share of what they could gain at first is left,
PART_OF_GAIN = 0.05
#: or after so many for every vertex.
STEPS_PER_VERTEX = 20
#: New vertices in one step, at most.
MOST_NEW = 100
#: The curvature over n entries pays if n n is at most so many times the entries that have a gradient.
WORTH = 120


@njit(cache=True, nogil=True)
def curvature(model, duals, columns, temperature):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return minus the Hessian of the softened score over some columns, float64 array, shape (n, n).

    Parameters
    ----------
    model : Model
        What is maximised.
    duals : Duals
        The softened score's weights.
    columns : int64 array, shape (n,)
        Columns of the tables, -1 for an entry whose coefficients are 0.
    temperature : float
        Of the softening.
    """
    tables = model.tables
    n = len(columns)
    groups, places = duals.size[0], duals.size[1]
    # Slopes are weighed by the square root of their sample's weights; the last place of a sample is gamma's.
    root = np.empty(places, dtype=np.float32)
    share = np.empty(places, dtype=np.float32)
    for g in range(groups):
        last = duals.first[g + 1] - 1
        w = tables.weights[duals.sample[last]]
        for t in range(duals.first[g], last):
            root[t] = np.sqrt(-duals.value[t])
            share[t] = -duals.value[t] / w
        root[last] = np.sqrt(max(0.0, w - duals.value[last]))
    H = np.zeros((n, n), dtype=np.float32)
    a = 0
    while a < groups:
        # As many samples as fit into a block.
        b = a + 1
        while b < groups and duals.first[b + 1] - duals.first[a] <= BLOCK:
            b += 1
        begin = duals.first[a]
        Z = np.zeros((n, duals.first[b] - begin), dtype=np.float32)
        for x in range(n):
            if columns[x] >= 0:
                _slopes(tables, duals, columns[x], a, b, root, share, Z[x])
        H += np.dot(Z, Z.T)
        a = b
    return H.astype(np.float64) / temperature


@njit(cache=True, nogil=True)
def _slopes(tables, duals, k, a, b, root, share, out):  # type: ignore[no-untyped-def]
    """Write the slopes of one column's log-margins, less their mean under the weights, of the groups a to b."""
    d, start = tables.domain[k], np.uint64(tables.start[k])
    two_rows = is_two_rows(tables, d)
    one = tables.codes[tables.rows[d, 0]]
    two = tables.codes[tables.rows[d, 1]] if two_rows else one
    s = np.uint64(tables.strides[d, 0])
    t = np.uint64(tables.strides[d, 1]) if two_rows else np.uint64(0)
    begin = duals.first[a]
    for g in range(a, b):
        first, last = duals.first[g], duals.first[g + 1] - 1
        m = duals.sample[last]
        cell = s * np.uint64(one[m]) + t * np.uint64(two[m]) if two_rows else np.uint64(cell_of(tables, d, m))
        values = tables.values[start + cell]
        own = values[duals.label[last]]
        mean = np.float32(0.0)
        for x in range(first, last):
            slope = np.float32(own - values[duals.label[x]])
            out[x - begin] = slope
            mean += share[x] * slope
        for x in range(first, last):
            out[x - begin] = root[x] * (out[x - begin] - mean)
        out[last - begin] = root[last] * mean


@njit(cache=True, nogil=True)
def _add_row(H, slots, v, n, products):  # type: ignore[no-untyped-def]
    """Write the products of vertex v with all n vertices under H."""
    curved = np.zeros(len(H))
    for i in range(slots.shape[1]):
        if slots[v, i] >= 0:
            curved += H[slots[v, i]]
    for u in range(n):
        total = 0.0
        for i in range(slots.shape[1]):
            if slots[u, i] >= 0:
                total += curved[slots[u, i]]
        products[v, u] = total
        products[u, v] = total


@njit(cache=True, nogil=True)
def _change(slots, shares, old, n_old, n, size):  # type: ignore[no-untyped-def]
    """Return the difference of two convex combinations, shape (size,)."""
    change = np.zeros(size)
    for v in range(n):
        by = shares[v] - old[v] if v < n_old else shares[v]
        for i in range(slots.shape[1]):
            if slots[v, i] >= 0:
                change[slots[v, i]] += by
    return change


@njit(cache=True, nogil=True)
def newton_step(model, node, point, gradient, choice, temperature, parallel):  # type: ignore[no-untyped-def]
    """Go towards the maximum of the second-order model; return how much of the way was gone.

    Parameters
    ----------
    model, node, point
        The point's `duals` are its weights at `temperature`.
    gradient : float64 array, shape (P,)
        Of the softened score.
    choice : int64 array, shape (V,)
        The oracle's answer to it.
    temperature : float
        Of the softening.
    parallel : bool
        Use threads.
    """
    V = point.vertices.shape[1]
    n = point.counts[VERTICES]
    room = min(n + MOST_NEW, point.vertices.shape[0])
    if n >= room:
        return 0.0
    # The entries that the point or the oracle's answer has, of variables that have two of them.
    used = np.zeros(len(gradient), dtype=np.bool_)
    for v in range(n):
        for i in range(V):
            used[point.vertices[v, i]] = True
    for i in range(V):
        used[choice[i]] = True
    offsets = model.oracle.offsets
    slot = np.full(len(gradient), -1, dtype=np.int64)
    entries = np.empty(used.sum(), dtype=np.int64)
    size = 0
    for i in range(V):
        own = 0
        for p in range(offsets[i], offsets[i + 1]):
            own += used[p]
        if own < 2:
            continue
        for p in range(offsets[i], offsets[i + 1]):
            if used[p]:
                slot[p] = size
                entries[size] = p
                size += 1
    entries = entries[:size]
    if size == 0 or size * size > WORTH * node.allowed.sum():
        return 0.0
    columns = np.array([column_of(model, p) for p in entries])
    H = curvature(model, point.duals, columns, temperature)
    slots = np.empty((room, V), dtype=np.int64)
    shares = np.zeros(room)
    shares[:n] = point.shares[:n]
    merit = np.zeros(room)
    for v in range(n):
        for i in range(V):
            slots[v, i] = slot[point.vertices[v, i]]
            merit[v] += gradient[point.vertices[v, i]]
    products = np.empty((room, room))
    known = np.zeros(room, dtype=np.bool_)
    slopes = gradient.copy()
    answer = choice.copy()
    before = n
    gap, first_gap = -1.0, -1.0
    for _ in range(STEPS_PER_VERTEX * room):
        up, down = 0, -1
        for v in range(n):
            if merit[v] > merit[up]:
                up = v
            if shares[v] > 0.0 and (down < 0 or merit[v] < merit[down]):
                down = v
        if merit[up] - merit[down] < 0.5 * gap or gap < 0.0:
            if gap >= 0.0:
                change = _change(slots, shares, point.shares, before, n, size)
                slopes[entries] = gradient[entries] - np.dot(H, change)
                heaviest_structure(model.oracle, slopes, used, node.forced, node.n_forced, answer)
            value = 0.0
            for i in range(V):
                value += slopes[answer[i]]
            gap = value - np.dot(shares[:n], merit[:n])
            if first_gap < 0.0:
                first_gap = gap
            elif gap <= PART_OF_GAIN * first_gap:
                break
            if value > merit[up] + 1e-9 * abs(value):
                if n == room:
                    break
                point.vertices[n] = answer
                for i in range(V):
                    slots[n, i] = slot[answer[i]]
                merit[n] = value
                up = n
                n += 1
        gain = merit[up] - merit[down]
        if gain <= 0.0:
            break
        for v in (up, down):
            if not known[v]:
                _add_row(H, slots, v, n, products)
                known[v] = True
        curve = products[up, up] + products[down, down] - 2 * products[up, down]
        move = shares[down] if curve * shares[down] <= gain else gain / curve
        shares[up] += move
        shares[down] -= move
        for v in range(n):
            merit[v] -= move * (products[up, v] - products[down, v])
    # Part of the way there, or all of it.
    change = _change(slots, shares, point.shares, before, n, size)
    slope = np.dot(change, gradient[entries])
    if slope <= 0.0:
        return 0.0
    linear_slope = np.dot(change, model.linear[entries])
    combine(model, entries, change, point.direction, parallel)
    step = step_length(model, point, temperature, slope, linear_slope, 1.0)
    point.logits[:] += step * point.direction
    point.numbers[LINEAR] += step * linear_slope
    kept = 0
    total = 0.0
    for v in range(n):
        old = point.shares[v] if v < before else 0.0
        share = old + step * (shares[v] - old)
        if share > 1e-12:
            point.vertices[kept] = point.vertices[v]
            point.shares[kept] = share
            total += share
            kept += 1
    point.shares[:kept] /= total
    point.counts[VERTICES] = kept
    return step
