"""Newton steps over the hull of all structures: the softened score's second-order model, maximised in the entries.

The gradient over all entries is what a Frank-Wolfe step pays for, an answer of the oracle costs next to nothing. So
the score is modelled at the point, by its gradient and its curvature over few entries, and the model is maximised by
pairwise Frank-Wolfe steps of its own (conditional gradients of second order: Carderera and Pokutta 2020).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from milpbn.bounds.kernels import Duals
from milpbn.bounds.line_search import step_length
from milpbn.bounds.oracle import heaviest_structure
from milpbn.bounds.point import LINEAR, VERTICES, Model, Node, Point, combine
from milpbn.scores.products import Tables, cell_of, is_two_rows
from milpbn.threads import in_parts

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
#: A vertex with less share is dropped.
SMALLEST = 1e-12


def curvature(
    tables: Tables, duals: Duals, columns: NDArray[np.int64], temperature: float, parallel: bool
) -> NDArray[np.float64]:
    """Return minus the Hessian of the softened score over some columns, float64 array, shape (n, n).

    Parameters
    ----------
    tables : Tables
        Coefficients.
    duals : Duals
        The softened score's weights.
    columns : int64 array, shape (n,)
        Columns of the tables, -1 for an entry whose coefficients are 0.
    temperature : float
        Of the softening.
    parallel : bool
        Use threads.
    """
    groups, places = int(duals.size[0]), int(duals.size[1])
    root = np.empty(places, dtype=np.float32)
    share = np.empty(places, dtype=np.float32)
    _factors(tables.weights, duals, root, share)
    H = np.zeros((len(columns), len(columns)))
    first = duals.first[: groups + 1]
    a = 0
    while a < groups:
        # As many samples as fit into a block, but at least one.
        b = max(a + 1, int(np.searchsorted(first, first[a] + BLOCK, side="right")) - 1)
        Z = np.zeros((len(columns), int(first[b] - first[a])), dtype=np.float32)

        def fill(begin: int, end: int, a: int = a, b: int = b, Z: NDArray[np.float32] = Z) -> None:
            _slopes(tables, duals, columns, begin, end, a, b, root, share, Z)

        in_parts(fill, len(columns), parallel)
        H += Z @ Z.T
        a = b
    return H / temperature


@njit(cache=True, nogil=True)
def _factors(weights, duals, root, share):  # type: ignore[no-untyped-def]  # numba infers the types
    """Write what slopes are multiplied by: the root of their sample's weights; the last of a sample is gamma's."""
    for g in range(duals.size[0]):
        last = duals.first[g + 1] - 1
        w = weights[duals.sample[last]]
        for t in range(duals.first[g], last):
            root[t] = np.sqrt(-duals.value[t])
            share[t] = -duals.value[t] / w
        root[last] = np.sqrt(max(0.0, w - duals.value[last]))


@njit(cache=True, nogil=True)
def _slopes(tables, duals, columns, begin, end, a, b, root, share, Z):  # type: ignore[no-untyped-def]
    """Write the slopes of some columns' log-margins, less their mean under the weights, of the groups a to b."""
    base = duals.first[a]
    for n in range(begin, end):
        k = columns[n]
        if k < 0:
            continue
        out = Z[n]
        d, start = tables.domain[k], np.uint64(tables.start[k])
        two_rows = is_two_rows(tables, d)
        one = tables.codes[tables.rows[d, 0]]
        two = tables.codes[tables.rows[d, 1]] if two_rows else one
        s = np.uint64(tables.strides[d, 0])
        t = np.uint64(tables.strides[d, 1]) if two_rows else np.uint64(0)
        for g in range(a, b):
            first, last = duals.first[g], duals.first[g + 1] - 1
            m = duals.sample[last]
            cell = (
                s * np.uint64(one[m]) + t * np.uint64(two[m])
                if two_rows
                else np.uint64(cell_of(tables, d, m))
            )
            values = tables.values[start + cell]
            own = values[duals.label[last]]
            mean = np.float32(0.0)
            for x in range(first, last):
                slope = np.float32(own - values[duals.label[x]])
                out[x - base] = slope
                mean += share[x] * slope
            for x in range(first, last):
                out[x - base] = root[x] * (out[x - base] - mean)
            out[last - base] = root[last] * mean


@njit(cache=True, nogil=True)
def _add_row(H, slots, v, n, products):  # type: ignore[no-untyped-def]
    """Write the products of vertex v with all n vertices under H."""
    size = len(H)
    curved = np.zeros(size + 1)
    for i in range(slots.shape[1]):
        if slots[v, i] < size:
            row = H[slots[v, i]]
            for x in range(size):
                curved[x] += row[x]
    for u in range(n):
        total = 0.0
        for i in range(slots.shape[1]):
            total += curved[np.uint64(slots[u, i])]
        products[v, u] = total
        products[u, v] = total


@njit(cache=True, nogil=True)
def _change(slots, shares, old, n, size):  # type: ignore[no-untyped-def]
    """Return the difference of two convex combinations of n vertices, shape (size,)."""
    change = np.zeros(size + 1)
    for v in range(n):
        by = shares[v] - old[v]
        if by != 0.0:
            for i in range(slots.shape[1]):
                change[slots[v, i]] += by
    return change[:size]


@njit(cache=True, nogil=True)
def _maximise_model(  # type: ignore[no-untyped-def]
    oracle, forced, n_forced, gradient, H, entries, slot, used, vertices, old, shares, n
):
    """Move shares, and add vertices, towards the maximum of the model.

    Parameters
    ----------
    oracle, forced, n_forced
        As for `heaviest_structure`.
    gradient : float64 array, shape (P,)
        Of the softened score.
    H : float64 array, shape (size, size)
        Its curvature over `entries`, int64 array, shape (size,).
    entries, slot : int64 arrays, shapes (size,) and (P,)
        The entries that are not the only one of their variable, and their places in H, `size` for all others.
    used : bool array, shape (P,)
        What vertices may be made of.
    vertices : int64 array, shape (room, V)
        The first n are the point's; new ones are added.
    old, shares : float64 arrays, shape (room,)
        The point's shares, 0 beyond the n-th, and where the new ones go.
    n : int
        Number of vertices.

    Returns
    -------
    n : int
        Number of vertices now.
    change : float64 array, shape (size,)
        By how much the entries' shares change.
    """
    room, V = vertices.shape
    size = len(entries)
    slots = np.empty((room, V), dtype=np.int64)
    merit = np.zeros(room)
    for v in range(n):
        shares[v] = old[v]
        for i in range(V):
            slots[v, i] = slot[vertices[v, i]]
            merit[v] += gradient[vertices[v, i]]
    curved = np.empty(size)
    products = np.empty((room, room))
    known = np.zeros(room, dtype=np.bool_)
    slopes = gradient.copy()
    answer = np.empty(V, dtype=np.int64)
    gap, first_gap = 0.0, -1.0
    for _ in range(STEPS_PER_VERTEX * room):
        up, down = 0, 0
        most, least = -np.inf, np.inf
        for v in range(n):
            if merit[v] > most:
                up, most = v, merit[v]
            if merit[v] < least and shares[v] > 0.0:
                down, least = v, merit[v]
        if first_gap < 0.0 or merit[up] - merit[down] < 0.5 * gap:
            change = _change(slots, shares, old, n, size)
            for x in range(size):
                curved[x] = 0.0
            for y in range(size):
                if change[y] != 0.0:
                    row = H[y]
                    for x in range(size):
                        curved[x] += row[x] * change[y]
            for x in range(size):
                slopes[entries[x]] = gradient[entries[x]] - curved[x]
            heaviest_structure(oracle, slopes, used, forced, n_forced, answer)
            value = 0.0
            for i in range(V):
                value += slopes[answer[i]]
            gap = value
            for v in range(n):
                gap -= shares[v] * merit[v]
            if first_gap < 0.0:
                first_gap = gap
            elif gap <= PART_OF_GAIN * first_gap:
                break
            if value > merit[up] + 1e-9 * abs(value):
                if n == room:
                    break
                for i in range(V):
                    vertices[n, i] = answer[i]
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
        rise, fall = products[up], products[down]
        for v in range(n):
            merit[v] -= move * (rise[v] - fall[v])
    return n, _change(slots, shares, old, n, size)


def newton_step(
    model: Model,
    node: Node,
    point: Point,
    gradient: NDArray[np.float64],
    choice: NDArray[np.int64],
    temperature: float,
    parallel: bool,
) -> float:
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
    n = int(point.counts[VERTICES])
    room = min(n + MOST_NEW, len(point.shares))
    if n >= room:
        return 0.0
    # The entries that the point or the oracle's answer has, of variables that have two of them.
    used = np.zeros(len(gradient), dtype=bool)
    used[point.vertices[:n]] = True
    used[choice] = True
    variable = model.oracle.variable
    entries = np.flatnonzero(used)
    entries = entries[np.bincount(variable[entries])[variable[entries]] > 1]
    size = len(entries)
    if size == 0 or size * size > WORTH * np.count_nonzero(node.allowed):
        return 0.0
    slot = np.full(len(gradient), size, dtype=np.int64)
    slot[entries] = np.arange(size)
    H = curvature(model.tables, point.duals, model.column[entries], temperature, parallel)
    vertices = point.vertices[:room]
    old, shares = np.zeros(room), np.zeros(room)
    old[:n] = point.shares[:n]
    n, change = _maximise_model(
        model.oracle, node.forced, node.n_forced, gradient, H, entries, slot, used, vertices, old, shares, n
    )
    # Part of the way there, or all of it.
    slope = float(change @ gradient[entries])
    if slope <= 0.0:
        return 0.0
    linear_slope = float(change @ model.linear[entries])
    combine(model, entries, change, point.direction, parallel)
    step = go(model, point, temperature, slope, linear_slope, 1.0)
    shares = old[:n] + step * (shares[:n] - old[:n])
    kept = np.flatnonzero(shares > SMALLEST)
    point.vertices[: len(kept)] = vertices[kept]
    point.shares[: len(kept)] = shares[kept] / shares[kept].sum()
    point.counts[VERTICES] = len(kept)
    return step


def go(
    model: Model, point: Point, temperature: float, slope: float, linear_slope: float, longest: float
) -> float:
    """Move a point along its `direction` as far as pays, and return how far; see `step_length`."""
    step = float(
        step_length(
            model.tables,
            model.softening,
            point.duals,
            point.logits,
            point.direction,
            temperature,
            slope,
            linear_slope,
            longest,
        )
    )
    np.multiply(point.direction, step, out=point.direction)
    np.add(point.logits, point.direction, out=point.logits)
    point.numbers[LINEAR] += step * linear_slope
    return step
