"""The Lagrangian bound of a margin score, minimised by Newton and Frank-Wolfe steps on the softened score.

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

from milpbn.bounds.kernels import add_gradient, weigh
from milpbn.bounds.line_search import step_length
from milpbn.bounds.newton import newton_step
from milpbn.bounds.oracle import heaviest_structure
from milpbn.bounds.point import (
    BEST_TEMPERATURE,
    BEST_VERTICES,
    BOUND,
    CONSTANT,
    FOUND,
    LINEAR,
    MOVED,
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
#: What the softening gives away is at most TOO_MUCH times, and about, what steps can gain, or the temperature falls
#: by one of two factors.
TOO_MUCH, FAST, SLOW = 3.0, 0.6, 0.85
#: It rises where that is less than TOO_LITTLE of it and a step went no further than SHORT of its way.
TOO_LITTLE, SHORT, RISE = 0.3, 0.1, 1.2


@njit(cache=True, nogil=True)
def take_steps(model, node, point, target, share, before, n_steps, newton, parallel):  # type: ignore[no-untyped-def]
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
    newton : bool
        Take Newton steps where they pay (`milpbn.bounds.newton`); otherwise pairwise ones only.
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
    signs = np.ones(2 * V)
    signs[1::2] = -1.0
    highest = FIRST_TEMPERATURE * model.softening.cap
    lowest = LOWEST_TEMPERATURE * model.softening.cap
    for _ in range(n_steps):
        if counts[STEPS] % REFRESH == REFRESH - 1:
            refresh(model, point, parallel)
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
            elif waste > TOO_MUCH * to_gain:
                numbers[TEMPERATURE] = max(lowest, FAST * temperature)
            elif waste > to_gain:
                numbers[TEMPERATURE] = max(lowest, SLOW * temperature)
            elif waste < TOO_LITTLE * to_gain and numbers[MOVED] < SHORT:
                numbers[TEMPERATURE] = min(highest, RISE * temperature)
        slope = value - worst_score
        if worst == same or slope <= 0.0:
            if temperature <= lowest or model.softening.smooth:
                return CONVERGED
            continue
        if newton:
            numbers[MOVED] = newton_step(model, node, point, gradient, choice, temperature, parallel)
            if numbers[MOVED] > 0.0:
                continue
        numbers[MOVED] = 0.0
        if same < 0 and n == len(point.shares):
            return CONVERGED
        x = 0
        linear_slope = 0.0
        for i in range(V):
            away = point.vertices[worst, i]
            if away != choice[i]:
                changed[x], changed[x + 1] = choice[i], away
                linear_slope += model.linear[choice[i]] - model.linear[away]
                x += 2
        combine(model, changed[:x], signs[:x], point.direction, parallel)
        longest = point.shares[worst]
        step = step_length(model, point, temperature, slope, linear_slope, longest)
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
        counts[VERTICES] = n
    return PAUSED
