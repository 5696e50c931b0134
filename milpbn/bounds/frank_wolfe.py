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
from numba.extending import register_jitable

from milpbn.bounds.kernels import add_gradient, weigh
from milpbn.bounds.newton import SMALLEST, go, newton_step
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
    copy,
    copy_vertices,
    refresh,
    rounding,
)
from milpbn.compiled import kernel

#: Temperatures relative to gamma: the first, and the lowest.
FIRST_TEMPERATURE, LOWEST_TEMPERATURE = 0.2, 1e-6
#: The logits are recomputed from the vertices every so many steps, so that rounding does not add up.
REFRESH = 64
#: Of what a split can bring, so much may be left to be gained.
PART = 0.2
#: Why `take_steps` returned.
PAUSED, PRUNED, CONVERGED, INFEASIBLE = 0, 1, 2, 3
#: After a Newton step that went GOOD of its way or more, the temperature falls, to FASTEST of itself at most, where
#: the softening gives away more than HALF of what steps can gain and more than AIM of what may be left in the end.
GOOD, HALF, AIM, FASTEST = 0.6, 0.5, 0.7, 0.4
#: After other steps what the softening gives away is at most TOO_MUCH times, and about, what steps can gain, or the
#: temperature falls by one of two factors.
TOO_MUCH, FAST, SLOW = 3.0, 0.6, 0.85
#: It rises where that is less than TOO_LITTLE of it and a step went no further than SHORT of its way.
TOO_LITTLE, SHORT, RISE = 0.3, 0.1, 1.2


@register_jitable
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
        Use threads; the compiled steps take no notice.

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
            refresh(model, node, point, parallel)
        temperature = 1.0 if smooth else numbers[TEMPERATURE]
        score, constant = weigh(model.tables, model.softening, point.logits, temperature, point.duals)
        copy(gradient, node.linear)
        add_gradient(model.tables, point.duals, node.allowed, gradient, parallel)
        value, most, acyclic = heaviest_structure(
            model.oracle, gradient, node.allowed, node.forced, node.n_forced, choice
        )
        counts[STEPS] += 1
        if most == -np.inf:
            numbers[BOUND] = -np.inf
            return INFEASIBLE
        if acyclic:
            copy(point.found, choice)
            counts[FOUND] = 1
        offset = model.offset + node.constant
        here = score + numbers[LINEAR] + offset
        constant += offset + rounding(model, point.duals)
        numbers[RELAXED] = max(numbers[RELAXED], here)
        bound = constant + most
        n = counts[VERTICES]
        if bound < numbers[BOUND]:
            numbers[BOUND] = bound
            numbers[CONSTANT] = constant
            numbers[BEST_TEMPERATURE] = temperature
            copy(point.gradient, gradient)
            counts[BEST_VERTICES] = n
            copy_vertices(point.vertices, point.shares, n, point.best_vertices, point.best_shares)
            if bound <= target:
                return PRUNED
        enough = may_be_left(numbers, target, share, before)
        if numbers[BOUND] - numbers[RELAXED] <= enough:
            return CONVERGED
        worst, same, worst_score, mean = _compare(gradient, point.vertices, point.shares, n, choice, value)
        slope = value - worst_score
        converged = worst == same or slope <= 0.0
        if not smooth:
            # What the softening gives away is kept in balance with what further steps can gain.
            waste = constant + mean - here
            numbers[TEMPERATURE] = _next_temperature(
                model.softening.cap, temperature, waste, value - mean, numbers[MOVED], enough, converged
            )
        if converged:
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
        entries, signs, linear_slope = _difference(node.linear, point.vertices[worst], choice)
        combine(model, entries, signs, point.direction, parallel)
        longest = point.shares[worst]
        step = go(model, point, temperature, slope, linear_slope, longest)
        counts[VERTICES] = _shift(point.vertices, point.shares, n, worst, same, choice, step)
    return PAUSED


#: The same on one thread, without the interpreter between the kernels: twice as fast on small problems, where the
#: search takes a million steps, but some ten seconds of compilation, which the root does without.
take_compiled_steps = kernel(take_steps)


@kernel
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


@kernel
def may_be_left(numbers, target, share, before):  # type: ignore[no-untyped-def]
    """Return by how much bound and score at a point may differ in the end; see `take_steps`."""
    enough = PART * (before - numbers[RELAXED])
    if share > 0.0:
        enough = max(enough, share * (numbers[BOUND] - target))
    return enough


@kernel
def _next_temperature(cap, temperature, waste, to_gain, moved, enough, converged):  # type: ignore[no-untyped-def]
    """Return the temperature of the next step, given what the softening gives away and what steps can gain.

    A point is `converged` where no step leads anywhere at this temperature.
    """
    factor = 1.0
    if converged:
        factor = 0.2
    elif moved >= GOOD:
        if waste > HALF * to_gain and waste > max(0.0, AIM * enough):
            factor = max(FASTEST, AIM * enough / waste)
    elif waste > TOO_MUCH * to_gain:
        factor = FAST
    elif waste > to_gain:
        factor = SLOW
    elif waste < TOO_LITTLE * to_gain and moved < SHORT:
        factor = RISE
    return min(max(factor * temperature, LOWEST_TEMPERATURE * cap), max(temperature, FIRST_TEMPERATURE * cap))


@kernel
def _difference(linear, away, choice):  # type: ignore[no-untyped-def]
    """Return the entries of a choice and of a vertex that the other lacks, their signs, and their linear terms' sum."""
    entries = np.empty(2 * len(choice), dtype=np.int64)
    signs = np.empty(2 * len(choice))
    n = 0
    total = 0.0
    for i in range(len(choice)):
        if away[i] != choice[i]:
            entries[n], signs[n] = choice[i], 1.0
            entries[n + 1], signs[n + 1] = away[i], -1.0
            total += linear[choice[i]] - linear[away[i]]
            n += 2
    return entries[:n], signs[:n], total


@kernel
def _shift(vertices, shares, n, worst, same, choice, step):  # type: ignore[no-untyped-def]
    """Move share from a vertex to a choice, vertex `same` or a new one if that is -1; return their number."""
    emptied = step == shares[worst] or shares[worst] - step <= SMALLEST
    shares[worst] -= step
    if same < 0:
        copy(vertices[n], choice)
        shares[n] = 0.0
        same = n
        n += 1
    shares[same] += step
    if emptied:
        n -= 1
        copy(vertices[worst], vertices[n])
        shares[worst] = shares[n]
    return n
