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
from numpy.typing import NDArray

from milpbn.bounds.kernels import add_gradient, weigh
from milpbn.bounds.newton import go, newton_step
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
    Model,
    Node,
    Point,
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


def take_steps(
    model: Model,
    node: Node,
    point: Point,
    target: float,
    share: float,
    before: float,
    n_steps: int,
    newton: bool,
    parallel: bool,
) -> int:
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
    numbers, counts = point.numbers, point.counts
    smooth = model.softening.smooth
    gradient = np.empty(len(model.linear))
    choice = np.empty(point.vertices.shape[1], dtype=np.int64)
    lowest = LOWEST_TEMPERATURE * model.softening.cap
    for _ in range(n_steps):
        if counts[STEPS] % REFRESH == REFRESH - 1:
            refresh(model, point, parallel)
        temperature = 1.0 if smooth else float(numbers[TEMPERATURE])
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
        here = score + float(numbers[LINEAR]) + model.offset
        constant += model.offset
        numbers[RELAXED] = max(float(numbers[RELAXED]), here)
        bound = constant + most + model.slack
        n = int(counts[VERTICES])
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
        distance = float(numbers[BOUND] - numbers[RELAXED])
        enough = PART * (before - float(numbers[RELAXED]))
        if share:
            enough = max(enough, share * (float(numbers[BOUND]) - target))
        if distance <= enough:
            return CONVERGED
        worst, same, worst_score, mean = _compare(gradient, point.vertices, point.shares, n, choice, value)
        if not smooth:
            # What the softening gives away is kept in balance with what further steps can gain.
            numbers[TEMPERATURE] = _next_temperature(
                model,
                temperature,
                constant + mean - here,
                value - mean,
                float(numbers[MOVED]),
                n == 1 and same == 0,
            )
        slope = value - worst_score
        if worst == same or slope <= 0.0:
            if smooth or temperature <= lowest:
                return CONVERGED
            continue
        if newton:
            numbers[MOVED] = newton_step(model, node, point, gradient, choice, temperature, parallel)
            if numbers[MOVED] > 0.0:
                continue
        numbers[MOVED] = 0.0
        if same < 0 and n == len(point.shares):
            return CONVERGED
        _pairwise_step(model, point, choice, worst, same, temperature, slope, parallel)
    return PAUSED


@njit(cache=True, nogil=True)
def _compare(gradient, vertices, shares, n, choice, value):  # type: ignore[no-untyped-def]  # numba infers the types
    """Compare n vertices with the oracle's answer, which weighs `value`.

    Returns
    -------
    worst, same : int
        The vertex that should give share to the answer, and the one that is the answer, or -1.
    worst_weight, mean : float
        The first's weight, and the mean of all.
    """
    worst, same = 0, -1
    worst_weight, worst_merit = np.inf, np.inf
    mean = 0.0
    for v in range(n):
        weight = 0.0
        equal = True
        for i in range(vertices.shape[1]):
            weight += gradient[vertices[v, i]]
            equal = equal and vertices[v, i] == choice[i]
        if equal:
            same = v
        # A vertex with little share has little to give.
        merit = (weight - value) * np.sqrt(shares[v])
        if merit < worst_merit:
            worst, worst_weight, worst_merit = v, weight, merit
        mean += shares[v] * weight
    return worst, same, worst_weight, mean


def _next_temperature(
    model: Model, temperature: float, waste: float, to_gain: float, moved: float, converged: bool
) -> float:
    """Return the temperature of the next step, given what the softening gives away and what steps can gain."""
    cap = model.softening.cap
    if converged:
        factor = 0.2
    elif waste > TOO_MUCH * to_gain:
        factor = FAST
    elif waste > to_gain:
        factor = SLOW
    elif waste < TOO_LITTLE * to_gain and moved < SHORT:
        return min(FIRST_TEMPERATURE * cap, RISE * temperature)
    else:
        return temperature
    return max(LOWEST_TEMPERATURE * cap, factor * temperature)


def _pairwise_step(
    model: Model,
    point: Point,
    choice: NDArray[np.int64],
    worst: int,
    same: int,
    temperature: float,
    slope: float,
    parallel: bool,
) -> None:
    """Move share from one vertex to the oracle's answer, which is vertex `same`, or new if that is -1."""
    n = int(point.counts[VERTICES])
    away = point.vertices[worst]
    different = away != choice
    into, out = choice[different], away[different]
    signs = np.repeat([1.0, -1.0], len(into))
    linear_slope = float(model.linear[into].sum() - model.linear[out].sum())
    combine(model, np.concatenate([into, out]), signs, point.direction, parallel)
    longest = float(point.shares[worst])
    step = go(model, point, temperature, slope, linear_slope, longest)
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
    point.counts[VERTICES] = n
