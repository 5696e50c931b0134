"""Newton steps over the hull of all structures: the maxima of second-order models of the softened score.

A Frank-Wolfe step spends its time on the gradient over all parent sets; a call of the oracle is cheap. So a Newton step
models the score at the point by its gradient and its curvature over the parent sets in use. Pairwise Frank-Wolfe steps
maximise the model (second-order conditional gradients, Carderera and Pokutta 2020).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.dual.curvature import add_scaled, curvature
from milpbn.engine.dual.pairs import curvature_along, curvature_of, slope_after
from milpbn.engine.dual.point import Model, Point, Subproblem, combine, copy
from milpbn.engine.relaxation.oracle import heaviest_structure, weight_of
from milpbn.engine.tuning import TUNING
from milpbn.problem.duals import curvature_here, slope_at
from milpbn.util.compiled import also_kernel, kernel

#: Parameters under names that kernels can read; see `milpbn.engine.tuning`.
PART_OF_GAIN, STEPS_PER_VERTEX = TUNING.steps.part_of_gain, TUNING.steps.steps_per_vertex
MOST_NEW, NEWTON_WORTH = TUNING.steps.most_new, TUNING.steps.newton_worth
SMALLEST_SHARE = TUNING.steps.smallest_share
LINE_STEPS, LINE_ACCURACY = TUNING.steps.line_steps, TUNING.steps.line_accuracy


@kernel(inner=True)
def _add_row(H, slots, v, n, products):  # type: ignore[no-untyped-def]
    """Write the products u' H v of vertex v with all n vertices u."""
    size = len(H)
    curved = np.zeros(size + 1)
    for i in range(slots.shape[1]):
        if slots[v, i] < size:
            row = np.uint64(slots[v, i])
            for x in range(size):
                curved[x] += H[row, np.uint64(x)]
    for u in range(n):
        total = 0.0
        for i in range(slots.shape[1]):
            total += curved[np.uint64(slots[u, i])]
        products[v, u] = total
        products[u, v] = total


@kernel(inner=True)
def _change(slots, shares, old, n, size):  # type: ignore[no-untyped-def]
    """Return the difference in eta between two convex combinations of n vertices, shape (size,)."""
    change = np.zeros(size + 1)
    for v in range(n):
        by = shares[v] - old[v]
        if by != 0.0:
            for i in range(slots.shape[1]):
                change[slots[v, i]] += by
    return change[:size]


@kernel(linked=True, inner=True, fastmath={"nnan", "nsz"})
def _extremes(merit, shares, n):  # type: ignore[no-untyped-def]
    """Return which of n vertices has the largest merit, and which of those with a share the smallest."""
    # Without places, and without regard for NaN, this loop is vectorised.
    most, least = -np.inf, np.inf
    for v in range(n):
        own = merit[v] if shares[v] > 0.0 else np.inf
        most = merit[v] if merit[v] > most else most
        least = own if own < least else least
    up, down = 0, 0
    while merit[up] != most and up < n - 1:
        up += 1
    while (merit[down] != least or shares[down] <= 0.0) and down < n - 1:
        down += 1
    return up, down


@kernel(linked=True, inner=True)
def _move_best(products, merit, shares, up, down, n):  # type: ignore[no-untyped-def]
    """Move the share between two vertices that gains most in the model, and update the merits of all n."""
    gain = merit[up] - merit[down]
    curve = products[up, up] + products[down, down] - 2 * products[up, down]
    move = shares[down] if curve * shares[down] <= gain else gain / curve
    shares[up] += move
    shares[down] -= move
    to_row, from_row = products[up], products[down]
    for v in range(n):
        merit[v] -= move * (to_row[v] - from_row[v])


@kernel(inner=True)
def _model_slopes(H, change, gradient, entries, slopes):  # type: ignore[no-untyped-def]
    """Write the model's gradient after a change of eta: the gradient minus H times the change, at the entries."""
    size = len(entries)
    curved = np.zeros(size)
    for y in range(size):
        if change[y] != 0.0:
            row = H[y]
            for x in range(size):
                curved[x] += row[x] * change[y]
    for x in range(size):
        slopes[entries[x]] = gradient[entries[x]] - curved[x]


@kernel
def _maximise_model(  # type: ignore[no-untyped-def]
    oracle, forced, n_forced, gradient, H, entries, slot, used, vertices, old, shares, n
):
    """Move shares between vertices, and add vertices, towards the maximum of the model.

    Parameters
    ----------
    gradient : float64 array, shape (P,)
        Gradient of the softened score.
    H : float64 array, shape (size, size)
        Curvature of the softened score (minus its Hessian) over the parent sets `entries`.
    entries, slot : int64 arrays, shapes (size,) and (P,)
        The parent sets in use, except the only one of a variable; and the row in H of each parent set, `size` for those
        without a row.
    used : bool array, shape (P,)
        Parent sets that new vertices may contain.
    vertices : int64 array, shape (room, V)
        The first n are the vertices of the point; new ones follow.
    old, shares : float64 arrays, shape (room,)
        The point's shares, 0 for new vertices; and the array that receives the new shares.
    n : int
        Number of vertices of the point.

    Returns
    -------
    n, change
        Number of vertices, with the new ones, and the change of eta at `entries`, float64 array, shape (size,).
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
    products = np.empty((room, room))
    multiplied = np.zeros(room, dtype=np.bool_)
    slopes = gradient.copy()
    answer = np.empty(V, dtype=np.int64)
    gap, first_gap = 0.0, -1.0
    for _ in range(STEPS_PER_VERTEX * room):
        up, down = _extremes(merit, shares, n)
        if first_gap < 0.0 or merit[up] - merit[down] < 0.5 * gap:
            change = _change(slots, shares, old, n, size)
            _model_slopes(H, change, gradient, entries, slopes)
            heaviest_structure(oracle, slopes, used, forced, n_forced, answer)
            value = weight_of(slopes, answer)
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
        if merit[up] <= merit[down]:
            break
        for v in (up, down):
            if not multiplied[v]:
                _add_row(H, slots, v, n, products)
                multiplied[v] = True
        _move_best(products, merit, shares, up, down, n)
    return n, _change(slots, shares, old, n, size)


@kernel
def _entries_in_use(oracle, column, vertices, n, choice, used, slot):  # type: ignore[no-untyped-def]
    """Mark the parent sets of n vertices and a choice in `used`, and number those of variables with two or more.

    Return the numbered parent sets, in the order of their numbers in `slot`, and their columns.
    """
    V = vertices.shape[1]
    for p in range(len(used)):
        used[p] = False
    for v in range(n):
        for i in range(V):
            used[vertices[v, i]] = True
    for i in range(V):
        used[choice[i]] = True
    entries = np.empty(len(used), dtype=np.int64)
    columns = np.empty(len(used), dtype=np.int64)
    size = 0
    for i in range(V):
        own = 0
        for p in range(oracle.offsets[i], oracle.offsets[i + 1]):
            own += used[p]
        if own < 2:
            continue
        for p in range(oracle.offsets[i], oracle.offsets[i + 1]):
            if used[p]:
                entries[size], columns[size] = p, column[p]
                size += 1
    for p in range(len(slot)):
        slot[p] = size
    for x in range(size):
        slot[entries[x]] = x
    return entries[:size], columns[:size]


@kernel
def _count(allowed):  # type: ignore[no-untyped-def]
    n = 0
    for p in range(len(allowed)):
        n += allowed[p]
    return n


@kernel
def _slope(change, entries, weights):  # type: ignore[no-untyped-def]
    total = 0.0
    for x in range(len(entries)):
        total += change[x] * weights[entries[x]]
    return total


@kernel
def _move_shares(vertices, old, shares, step, n):  # type: ignore[no-untyped-def]
    """Move the old shares part of the way to the new ones; drop tiny ones; return the number of vertices."""
    kept = 0
    total = 0.0
    for v in range(n):
        share = old[v] + step * (shares[v] - old[v])
        if share > SMALLEST_SHARE:
            copy(vertices[kept], vertices[v])
            old[kept] = share
            total += share
            kept += 1
    for v in range(kept):
        old[v] /= total
    return kept


@kernel
def step_length(  # type: ignore[no-untyped-def]  # numba infers the types
    tables, pairs, softening, duals, logits, direction, temperature, slope, linear_slope, longest
):
    """Return a step in (0, longest] that achieves most of the softened score's possible gain along `direction`.

    Parameters
    ----------
    duals : Duals
        Dual weights at the logits.
    logits, direction : float64 arrays, shape (M, Q)
        Joint log-probabilities at the start of the line, and their change per unit step.
    temperature : float
        Temperature of the softening, in nats.
    slope, linear_slope : float
        Slope of the softened score at the start, and that of its linear terms.
    """
    dense = len(pairs.weights) > 0
    if dense:
        curvature = curvature_along(pairs, duals.value, direction, temperature)
    else:
        curvature = curvature_here(tables, duals, direction, temperature)
    step = longest if curvature * longest <= slope else slope / curvature
    low, high = 0.0, longest
    for _ in range(LINE_STEPS):
        if dense:
            first, second = slope_after(pairs, softening, logits, direction, step, temperature)
        else:
            first, second = slope_at(tables, softening, logits, direction, step, temperature)
        first += linear_slope
        if abs(first) <= LINE_ACCURACY * slope or (first > 0 and step == longest):
            break
        if first > 0:
            low = step
        else:
            high = step
        newton = step + first / second if second > 0 else (low if first < 0 else high)
        inner = 0.1 * (high - low)
        step = newton if low + inner < newton < high - inner else 0.5 * (low + high)
        if first > 0 and high == longest and newton >= longest:
            step = longest
    return step


@also_kernel
def newton_step(
    model: Model,
    node: Subproblem,
    point: Point,
    gradient: NDArray[np.float64],
    choice: NDArray[np.int64],
    temperature: float,
    parallel: bool,
) -> float:
    """Move the point towards the maximum of the second-order model.

    The gradient, shape (P,), of the softened score and the point's dual weights are those at the temperature, in nats;
    `choice`, shape (V,), is the oracle's answer to it. Return the share of the way to the maximum that the point moved;
    0 if no Newton step was taken.
    """
    n = point.state.vertices
    room = min(n + MOST_NEW, len(point.shares))
    if n >= room:
        return 0.0
    used = np.empty(len(gradient), dtype=np.bool_)
    slot = np.empty(len(gradient), dtype=np.int64)
    entries, columns = _entries_in_use(model.oracle, model.column, point.vertices, n, choice, used, slot)
    if len(entries) == 0 or len(entries) * len(entries) > NEWTON_WORTH * _count(node.allowed):
        return 0.0
    if len(model.pairs.weights):
        H = curvature_of(model.pairs, point.duals.value, columns, temperature)
    else:
        H = curvature(model.tables, point.duals, columns, temperature, parallel)
    for v in range(n, room):
        point.shares[v] = 0.0
    shares = np.zeros(room)
    vertices = point.vertices[:room]
    n, change = _maximise_model(
        model.oracle,
        node.forced,
        node.n_forced,
        gradient,
        H,
        entries,
        slot,
        used,
        vertices,
        point.shares,
        shares,
        n,
    )
    slope = _slope(change, entries, gradient)
    if slope <= 0.0:
        return 0.0
    combine(model, entries, change, point.direction, parallel)
    step = move_along_direction(model, point, temperature, slope, _slope(change, entries, node.linear), 1.0)
    point.state.vertices = _move_shares(point.vertices, point.shares, shares, step, n)
    return step


@also_kernel
def move_along_direction(
    model: Model, point: Point, temperature: float, slope: float, linear_slope: float, longest: float
) -> float:
    """Move a point along its `direction` by the length of a line search, and return the length; see `step_length`."""
    logits, direction = point.logits, point.direction
    step = step_length(
        model.tables,
        model.pairs,
        model.softening,
        point.duals,
        logits,
        direction,
        temperature,
        slope,
        linear_slope,
        longest,
    )
    add_scaled(point.logits, step, point.direction)
    point.state.linear += step * linear_slope
    return step
