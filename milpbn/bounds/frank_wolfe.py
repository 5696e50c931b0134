"""The Lagrangian bound of a margin score, minimised by pairwise Frank-Wolfe steps on the softened score.

The score f(eta) = linear @ eta + sum_m w_m min(gamma, min_c alpha_{m,c} @ eta) is concave. For any weights lambda_m in
the simplex over {gamma, competing classes},

    b(lambda) = gamma sum_m w_m lambda_{m,0} + max over structures of (linear + sum w_m lambda_{m,c} alpha_{m,c}) @ eta

is at least the score of every structure. The weights of the softened score at a point eta of the hull of all
structures are such a lambda; the maximising structures are the vertices that the point is made of. The conditional
log-likelihood is its own softened score, at temperature 1 with gamma = 0, and pays minus the entropies of lambda.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from milpbn.bounds.kernels import (
    Duals,
    add_gradient,
    curvature_here,
    empty_duals,
    slope_at,
    weigh,
)
from milpbn.bounds.oracle import Oracle, heaviest_structure
from milpbn.scores.products import Softening, Tables, add_columns, total_score

#: Temperatures relative to gamma: the first, and the lowest.
FIRST_TEMPERATURE, LOWEST_TEMPERATURE = 0.2, 1e-6
#: The logits are recomputed from the vertices every so many steps, so that rounding does not add up.
REFRESH = 64
#: Most vertices a point keeps; beyond that the lightest is given up for the new one.
MOST_VERTICES = 600
#: Newton steps need room for the logits of at least so many vertices.
FEWEST_CACHED = 40
#: Of what a split can bring, so much may be left to be gained.
PART = 0.2
#: Why `take_steps` returned.
PAUSED, PRUNED, CONVERGED, INFEASIBLE = 0, 1, 2, 3
#: Places in `Point.numbers` and `Point.counts`.
TEMPERATURE, BOUND, CONSTANT, RELAXED, BEST_TEMPERATURE, LINEAR = 0, 1, 2, 3, 4, 5
VERTICES, BEST_VERTICES, STEPS, FOUND, CACHED = 0, 1, 2, 3, 4
#: Every so many steps the shares of all vertices are corrected.
CORRECT = 4


class Model(NamedTuple):
    """What is maximised, as the kernels take it.

    Attributes
    ----------
    tables : Tables
        Coefficients.
    softening : Softening
        gamma, and whether the score is the conditional log-likelihood.
    oracle : Oracle
        Candidate sets.
    linear : float64 array, shape (P,)
        Terms linear in eta.
    slack : float
        What rounding can take from the dual bound's sums.
    offset : float
        What samples that are left out add to every score, gamma each.
    """

    tables: Tables
    softening: Softening
    oracle: Oracle
    linear: NDArray[np.float64]
    slack: float
    offset: float


class Node(NamedTuple):
    """What a part of the search space allows: entries, and undirected edges that must be there (see `Oracle`)."""

    allowed: NDArray[np.bool_]
    forced: NDArray[np.int64]
    n_forced: int


class Point(NamedTuple):
    """A convex combination of structures, and the best bound met on the way to it.

    Attributes
    ----------
    vertices, shares : arrays, shapes (room, V) and (room,)
        One entry of eta per variable, and the vertex's part of the point.
    logits : float64 array, shape (M, Q)
        Joint log-probabilities at the point.
    numbers, counts : float64 and int64 arrays
        See the constants of this module.
    gradient : float64 array, shape (P,)
        The bound is ``numbers[CONSTANT] + max gradient @ eta``.
    best_vertices, best_shares : arrays
        The point whose weights, at ``numbers[BEST_TEMPERATURE]``, gave the bound.
    found : int64 array, shape (V,)
        The last answer of the oracle that is a structure; ``counts[FOUND]`` says whether there is one.
    direction : float64 array, shape (M, Q)
        Room for a step.
    duals : Duals
        Room for the weights.
    cache : float64 array, shape (room, M, Q)
        Logits of every vertex, valid if ``counts[CACHED]``; with no room there are no Newton steps.
    """

    vertices: NDArray[np.int64]
    shares: NDArray[np.float64]
    logits: NDArray[np.float64]
    numbers: NDArray[np.float64]
    counts: NDArray[np.int64]
    gradient: NDArray[np.float64]
    best_vertices: NDArray[np.int64]
    best_shares: NDArray[np.float64]
    found: NDArray[np.int64]
    direction: NDArray[np.float64]
    duals: Duals
    cache: NDArray[np.float64]


def cache_for(shape: tuple[int, int], memory: float) -> NDArray[np.float64]:
    """Return room for the logits, of a given shape (M, Q), of as many vertices as some bytes hold, or of none."""
    rows = min(MOST_VERTICES, int(memory // (8 * max(1, shape[0] * shape[1]))))
    return np.empty((rows if rows >= FEWEST_CACHED else 0, *shape))


def empty_point(model: Model, memory: float = 0.0) -> Point:
    """Return room for a point, with a cache of at most `memory` bytes; `place` puts one there."""
    V = len(model.oracle.offsets) - 1
    P = len(model.linear)
    M, Q = model.tables.codes.shape[1], model.tables.values.shape[1]
    return Point(
        np.empty((MOST_VERTICES, V), dtype=np.int64),
        np.empty(MOST_VERTICES),
        np.empty((M, Q)),
        np.zeros(6),
        np.zeros(5, dtype=np.int64),
        np.empty(P),
        np.empty((MOST_VERTICES, V), dtype=np.int64),
        np.empty(MOST_VERTICES),
        np.empty(V, dtype=np.int64),
        np.empty((M, Q)),
        empty_duals(model.tables),
        cache_for((M, Q), memory),
    )


@njit(cache=True, nogil=True)
def _column_of(model, entry):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return the column of an entry of eta, or -1 if its coefficients are 0."""
    columns = model.tables.columns
    k = np.searchsorted(columns, entry)
    return k if k < len(columns) and columns[k] == entry else -1


@njit(cache=True, nogil=True)
def _combine(model, entries, factors, logits, parallel):  # type: ignore[no-untyped-def]
    """Write sum_n factors[n] table(entries[n]) to `logits`."""
    columns = np.empty(len(entries), dtype=np.int64)
    used = np.empty(len(entries))
    n = 0
    for x in range(len(entries)):
        k = _column_of(model, entries[x])
        if k >= 0 and factors[x] != 0.0:
            columns[n] = k
            used[n] = factors[x]
            n += 1
    logits[:] = 0.0
    add_columns(model.tables, columns[:n], used[:n], logits, parallel)


@njit(cache=True, nogil=True)
def refresh(model, point, parallel):  # type: ignore[no-untyped-def]
    """Recompute the logits and the linear part of a point from its vertices."""
    eta = np.zeros(len(model.linear))
    n = point.counts[VERTICES]
    for v in range(n):
        for i in range(point.vertices.shape[1]):
            eta[point.vertices[v, i]] += point.shares[v]
    entries = np.flatnonzero(eta)
    _combine(model, entries, eta[entries], point.logits, parallel)
    point.numbers[LINEAR] = np.dot(model.linear[entries], eta[entries])


@njit(cache=True, nogil=True)
def place(model, node, point, vertices, shares, temperature, parallel):  # type: ignore[no-untyped-def]
    """Begin at the part of a point that lies in a node; an empty one begins at the oracle's answer to `gradient`.

    Parameters
    ----------
    model, node, point
        `point.gradient` must hold weights worth asking the oracle about.
    vertices, shares : arrays, shapes (k, V) and (k,)
        Vertices outside the node are left out, and the other shares scaled up.
    temperature : float
        First temperature.
    parallel : bool
        Use threads.

    Returns
    -------
    bool
        False if the node has no structure.
    """
    V = point.vertices.shape[1]
    n = 0
    choice = np.empty(V, dtype=np.int64)
    for v in range(len(shares)):
        inside = True
        for i in range(V):
            choice[i] = vertices[v, i]
            inside = inside and node.allowed[choice[i]]
        if inside and node.n_forced:
            met = 0
            for i in range(V - 1):
                met += node.forced[model.oracle.tail[choice[i]], model.oracle.head[choice[i]]]
            inside = met == node.n_forced
        if inside:
            point.vertices[n] = choice
            point.shares[n] = shares[v]
            n += 1
    if n == 0:
        value, _, _ = heaviest_structure(
            model.oracle, point.gradient, node.allowed, node.forced, node.n_forced, choice
        )
        if value == -np.inf:
            return False
        point.vertices[0] = choice
        point.shares[0] = 1.0
        n = 1
    total = point.shares[:n].sum()
    point.shares[:n] /= total
    point.counts[VERTICES] = n
    point.counts[BEST_VERTICES] = 0
    point.counts[STEPS] = 0
    point.counts[FOUND] = 0
    point.counts[CACHED] = 0
    point.numbers[TEMPERATURE] = temperature
    point.numbers[BOUND] = np.inf
    point.numbers[RELAXED] = -np.inf
    refresh(model, point, parallel)
    return True


@njit(cache=True, nogil=True)
def near_the_cap(model, logits, width):  # type: ignore[no-untyped-def]
    """Return the model and the logits of the samples whose margin is less than gamma + `width`.

    All other samples count with gamma, the most that they can add: any bound of the smaller model is one of the
    model, and the same one as long as their dual weights would lie on gamma alone.
    """
    M, Q = logits.shape
    tables = model.tables
    cap = model.softening.cap
    chosen = np.empty(M, dtype=np.int64)
    n = 0
    outside = 0.0
    for m in range(M):
        own = logits[m, tables.true[m]]
        inside = False
        for c in range(Q):
            if c != tables.true[m] and own - logits[m, c] < cap + width:
                inside = True
                break
        if inside:
            chosen[n] = m
            n += 1
        else:
            outside += tables.weights[m]
    chosen = chosen[:n]
    codes = np.empty((tables.codes.shape[0], n), dtype=np.int32)
    for row in range(tables.codes.shape[0]):
        for x in range(n):
            codes[row, x] = tables.codes[row, chosen[x]]
    few = Tables(
        codes,
        tables.true[chosen],
        tables.rows,
        tables.strides,
        tables.sizes,
        tables.columns,
        tables.domain,
        tables.start,
        tables.values,
        tables.first,
        tables.members,
        tables.weights[chosen],
    )
    small = Model(few, model.softening, model.oracle, model.linear, model.slack, cap * outside)
    return small, logits[chosen]


@njit(cache=True, nogil=True)
def evaluate(model, node, point, parallel):  # type: ignore[no-untyped-def]
    """Go to the point that gave the best bound, and bound the node there anew by the whole model."""
    n = point.counts[BEST_VERTICES]
    if n:
        point.vertices[:n] = point.best_vertices[:n]
        point.shares[:n] = point.best_shares[:n]
        point.counts[VERTICES] = n
    point.counts[CACHED] = 0
    refresh(model, point, parallel)
    temperature = point.numbers[BEST_TEMPERATURE]
    _, constant = weigh(model.tables, model.softening, point.logits, temperature, point.duals)
    point.gradient[:] = model.linear
    add_gradient(model.tables, point.duals, node.allowed, point.gradient, parallel)
    choice = np.empty(point.vertices.shape[1], dtype=np.int64)
    _, most, _ = heaviest_structure(
        model.oracle, point.gradient, node.allowed, node.forced, node.n_forced, choice
    )
    point.numbers[CONSTANT] = constant + model.slack
    point.numbers[BOUND] = point.numbers[CONSTANT] + most


@njit(cache=True, nogil=True)
def score_of(model, choice, logits, parallel):  # type: ignore[no-untyped-def]
    """Return the score of one choice of entries, by the tables; `logits`, shape (M, Q), is overwritten."""
    _combine(model, choice, np.ones(len(choice)), logits, parallel)
    total = total_score(model.tables, model.softening, logits, False)
    for p in choice:
        total += model.linear[p]
    return total


@njit(cache=True, nogil=True)
def _step_length(model, point, temperature, slope, linear_slope, longest):  # type: ignore[no-untyped-def]
    """Return a step in (0, longest] that takes most of what the softened score gains along `direction`."""
    curvature = curvature_here(model.tables, point.duals, point.direction, temperature)
    step = longest if curvature * longest <= slope else slope / curvature
    low, high = 0.0, longest
    for _ in range(6):
        first, second = slope_at(
            model.tables, model.softening, point.logits, point.direction, step, temperature
        )
        first += linear_slope
        if abs(first) <= 0.2 * slope or (first > 0 and step == longest):
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


@njit(cache=True, nogil=True)
def correct(model, node, point, gradient, parallel):  # type: ignore[no-untyped-def]
    """Re-divide the shares of all vertices by a Newton step on the softened score over their simplex."""
    numbers, counts = point.numbers, point.counts
    temperature = 1.0 if model.softening.smooth else numbers[TEMPERATURE]
    n = counts[VERTICES]
    M, Q = point.logits.shape
    duals = point.duals
    weigh(model.tables, model.softening, point.logits, temperature, duals)
    gradient[:] = model.linear
    add_gradient(model.tables, duals, node.allowed, gradient, parallel)
    groups, places = duals.count[0], duals.count[1]
    Z = np.empty((n, places))
    for v in range(n):
        L = point.cache[v]
        for a in range(groups):
            first, last = duals.first[a], duals.first[a + 1] - 1
            m = duals.sample[last]
            own = L[m, duals.label[last]]
            w = model.tables.weights[m]
            mean = 0.0
            for t in range(first, last):
                d = own - L[m, duals.label[t]]
                Z[v, t] = d
                mean -= duals.value[t] * d
            mean /= w
            for t in range(first, last):
                Z[v, t] = np.sqrt(-duals.value[t]) * (Z[v, t] - mean)
            Z[v, last] = np.sqrt(max(0.0, w - duals.value[last])) * mean
    H = np.dot(Z, Z.T) / temperature
    q = np.empty(n)
    for v in range(n):
        total = 0.0
        for p in point.vertices[v]:
            total += gradient[p]
        q[v] = total
    shares = point.shares[:n].copy()
    slope0 = q.copy()
    most = q.max() - q.min()
    for _ in range(20 * n):
        up, down = 0, -1
        for v in range(n):
            if q[v] > q[up]:
                up = v
            if shares[v] > 0.0 and (down < 0 or q[v] < q[down]):
                down = v
        gain = q[up] - q[down]
        if gain <= 0.01 * most or up == down:
            break
        bend = H[up, up] + H[down, down] - 2 * H[up, down]
        move = shares[down] if bend * shares[down] <= gain else gain / bend
        shares[up] += move
        shares[down] -= move
        for v in range(n):
            q[v] -= move * (H[v, up] - H[v, down])
    delta = shares - point.shares[:n]
    slope = np.dot(delta, slope0)
    if slope <= 0.0:
        return
    flat = point.cache[:n].reshape(n, M * Q)
    point.direction[:] = np.dot(delta, flat).reshape(M, Q)
    linear_slope = 0.0
    for v in range(n):
        for p in point.vertices[v]:
            linear_slope += delta[v] * model.linear[p]
    step = _step_length(model, point, temperature, slope, linear_slope, 1.0)
    point.logits[:] += step * point.direction
    numbers[LINEAR] += step * linear_slope
    kept = 0
    total = 0.0
    for v in range(n):
        share = point.shares[v] + step * delta[v]
        if share > 1e-12:
            if kept < v:
                point.vertices[kept] = point.vertices[v]
                point.cache[kept] = point.cache[v]
            point.shares[kept] = share
            total += share
            kept += 1
    point.shares[:kept] /= total
    counts[VERTICES] = kept


@njit(cache=True, nogil=True)
def take_steps(model, node, point, target, share, before, n_steps, parallel):  # type: ignore[no-untyped-def]
    """Step until the bound reaches a target, or bound and point meet, or the number of steps is used up.

    Parameters
    ----------
    model : Model
        What is maximised.
    node : Node
        Where.
    point : Point
        Where the steps begin and end.
    target : float
        A bound of at most this is small enough.
    share : float
        Bound and score at the point may differ by this share of the bound's distance to the target,
    before : float
        and by `PART` of the distance of this bound, that of the part that was split, to the score at the point.
    n_steps : int
        Most steps; each costs one product with the coefficients.
    parallel : bool
        Use threads.

    Returns
    -------
    int
        `PAUSED`, `PRUNED`, `CONVERGED` or `INFEASIBLE`.
    """
    V = point.vertices.shape[1]
    numbers, counts = point.numbers, point.counts
    gradient = np.empty(len(model.linear))
    choice = np.empty(V, dtype=np.int64)
    changed = np.empty(2 * V, dtype=np.int64)
    factors = np.empty(2 * V)
    ones = np.ones(V)
    if len(point.cache) and counts[CACHED] == 0:
        for v in range(counts[VERTICES]):
            _combine(model, point.vertices[v], np.ones(V), point.cache[v], parallel)
        counts[CACHED] = 1
    highest = FIRST_TEMPERATURE * model.softening.cap
    lowest = LOWEST_TEMPERATURE * model.softening.cap
    for _ in range(n_steps):
        temperature = 1.0 if model.softening.smooth else numbers[TEMPERATURE]
        score, constant = weigh(model.tables, model.softening, point.logits, temperature, point.duals)
        gradient[:] = model.linear
        add_gradient(model.tables, point.duals, node.allowed, gradient, parallel)
        value, most, acyclic = heaviest_structure(
            model.oracle, gradient, node.allowed, node.forced, node.n_forced, choice
        )
        counts[STEPS] += 1
        if most == -np.inf:
            numbers[BOUND] = -np.inf
            return INFEASIBLE
        if acyclic:
            point.found[:] = choice
            counts[FOUND] = 1
        here = score + numbers[LINEAR] + model.offset
        constant += model.offset
        numbers[RELAXED] = max(numbers[RELAXED], here)
        bound = constant + most + model.slack
        n = counts[VERTICES]
        if bound < numbers[BOUND]:
            numbers[BOUND] = bound
            numbers[CONSTANT] = constant + model.slack
            numbers[BEST_TEMPERATURE] = temperature
            point.gradient[:] = gradient
            counts[BEST_VERTICES] = n
            point.best_vertices[:n] = point.vertices[:n]
            point.best_shares[:n] = point.shares[:n]
            if bound <= target:
                return PRUNED
        enough = max(share * (numbers[BOUND] - target), PART * (before - numbers[RELAXED]))
        if numbers[BOUND] - numbers[RELAXED] <= enough:
            return CONVERGED
        # The worst vertex gives share to the oracle's answer.
        worst, same = 0, -1
        worst_score = np.inf
        worst_merit = np.inf
        mean = 0.0
        for v in range(n):
            total = 0.0
            equal = True
            for i in range(V):
                p = point.vertices[v, i]
                total += gradient[p]
                equal = equal and p == choice[i]
            if equal:
                same = v
            # A vertex with little share has little to give.
            merit = (total - value) * np.sqrt(point.shares[v])
            if merit < worst_merit:
                worst, worst_score, worst_merit = v, total, merit
            mean += point.shares[v] * total
        to_gain = value - mean
        if not model.softening.smooth:
            # What the softening gives away is kept in balance with what further steps can gain.
            waste = constant + mean - here
            if n == 1 and same == 0:
                numbers[TEMPERATURE] = max(lowest, 0.2 * temperature)
            elif waste > 3.0 * to_gain:
                numbers[TEMPERATURE] = max(lowest, 0.6 * temperature)
            elif waste > to_gain:
                numbers[TEMPERATURE] = max(lowest, 0.85 * temperature)
            elif waste < 0.3 * to_gain:
                numbers[TEMPERATURE] = min(highest, 1.1 * temperature)
        slope = value - worst_score
        if worst == same or slope <= 0.0:
            if temperature <= lowest or model.softening.smooth:
                return CONVERGED
            continue
        cached = len(point.cache) > 0
        if same < 0 and n == (len(point.cache) if cached else len(point.shares)):
            return CONVERGED
        linear_slope = 0.0
        x = 0
        for i in range(V):
            away = point.vertices[worst, i]
            if away != choice[i]:
                changed[x], factors[x] = choice[i], 1.0
                changed[x + 1], factors[x + 1] = away, -1.0
                linear_slope += model.linear[choice[i]] - model.linear[away]
                x += 2
        if cached:
            if same < 0:
                _combine(model, choice, ones, point.cache[n], parallel)
            new = n if same < 0 else same
            for m in range(point.logits.shape[0]):
                for c in range(point.logits.shape[1]):
                    point.direction[m, c] = point.cache[new, m, c] - point.cache[worst, m, c]
        else:
            _combine(model, changed[:x], factors[:x], point.direction, parallel)
        longest = point.shares[worst]
        step = _step_length(model, point, temperature, slope, linear_slope, longest)
        point.logits[:] += step * point.direction
        numbers[LINEAR] += step * linear_slope
        if same < 0:
            point.vertices[n] = choice
            point.shares[n] = 0.0
            same = n
            n += 1
        point.shares[same] += step
        point.shares[worst] -= step
        if step == longest or point.shares[worst] <= 1e-15:
            n -= 1
            point.vertices[worst] = point.vertices[n]
            point.shares[worst] = point.shares[n]
            if cached:
                point.cache[worst] = point.cache[n]
        counts[VERTICES] = n
        if cached and counts[STEPS] % CORRECT == 0 and n > 2:
            correct(model, node, point, gradient, parallel)
        if counts[STEPS] % REFRESH == 0:
            refresh(model, point, parallel)
    return PAUSED
