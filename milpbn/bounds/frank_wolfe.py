"""The Lagrangian bound of a margin score, minimised by pairwise Frank-Wolfe steps on the softened score.

The score f(eta) = linear @ eta + sum_m w_m min(gamma, min_c alpha_{m,c} @ eta) is concave. For any weights lambda_m in
the simplex over {gamma, competing classes},

    b(lambda) = gamma sum_m w_m lambda_{m,0} + max over structures of (linear + sum w_m lambda_{m,c} alpha_{m,c}) @ eta

is at least the score of every structure. The weights of the softened score at a point eta of the hull of all
structures are such a lambda; the maximising structures are the vertices that the point is made of. The conditional
log-likelihood is its own softened score, at temperature 1 with gamma = 0, and pays minus the entropies of lambda.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from milpbn.bounds.kernels import add_gradient, curvature_here, slope_at, weigh
from milpbn.bounds.oracle import heaviest_structure
from milpbn.bounds.point import (
    BEST_TEMPERATURE,
    BEST_VERTICES,
    BOUND,
    CACHED,
    CONSTANT,
    FOUND,
    LINEAR,
    RELAXED,
    STEPS,
    TEMPERATURE,
    VERTICES,
    combine,
    refresh,
)

#: Temperatures relative to gamma: the first, and the lowest.
FIRST_TEMPERATURE, LOWEST_TEMPERATURE = 0.2, 1e-6
#: The logits are recomputed from the vertices every so many steps, so that rounding does not add up.
REFRESH = 64
#: Of what a split can bring, so much may be left to be gained.
PART = 0.2
#: Why `take_steps` returned.
PAUSED, PRUNED, CONVERGED, INFEASIBLE = 0, 1, 2, 3
#: Every so many steps the shares of all vertices are corrected.
CORRECT = 4


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
    groups, places = duals.size[0], duals.size[1]
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
            combine(model, point.vertices[v], np.ones(V), point.cache[v], parallel)
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
                combine(model, choice, ones, point.cache[n], parallel)
            new = n if same < 0 else same
            for m in range(point.logits.shape[0]):
                for c in range(point.logits.shape[1]):
                    point.direction[m, c] = point.cache[new, m, c] - point.cache[worst, m, c]
        else:
            combine(model, changed[:x], factors[:x], point.direction, parallel)
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
