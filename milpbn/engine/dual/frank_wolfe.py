"""The Lagrangian bound of a margin score, minimised by Newton and Frank-Wolfe steps on the softened score.

The score f(eta) = linear @ eta + sum_m w_m min(gamma, min_c alpha_{m,c} @ eta) is concave. For any dual weights
lambda_m in the simplex over {gamma, competing classes},

    b(lambda) = gamma sum_m w_m lambda_{m,0} + max over structures of (linear + sum w_m lambda_{m,c} alpha_{m,c}) @ eta

is at least the score of every structure. The dual weights of the softened score at a point eta of the hull of all
structures are such a lambda. Each step adds the maximising structure to the vertices of the point. The conditional
log-likelihood is its own softened score, at temperature 1 with gamma = 0; the weighted entropies of the lambda_m are
subtracted from its bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.dual.newton import SMALLEST_SHARE, move_along_direction, newton_step
from milpbn.engine.dual.pairs import add_products, weigh_pairs
from milpbn.engine.dual.point import Model, Point, Subproblem, combine, copy, copy_vertices, refresh, rounding
from milpbn.engine.relaxation.oracle import heaviest_structure
from milpbn.engine.tuning import TUNING
from milpbn.problem.duals import add_gradient, weigh
from milpbn.util.compiled import also_kernel, kernel

#: Parameters under names that kernels can read; see `milpbn.engine.tuning`.
REFRESH, LEFT_TO_BRANCHING = TUNING.steps.refresh, TUNING.steps.left_to_branching
FIRST_TEMPERATURE, LOWEST_TEMPERATURE = TUNING.temperature.first, TUNING.temperature.lowest
GOOD_STEP, FASTEST_FALL = TUNING.temperature.good_step, TUNING.temperature.fastest_fall
MOST_WASTE, TARGET_WASTE = TUNING.temperature.most_waste, TUNING.temperature.target_waste
HIGH_WASTE, FAST_FALL = TUNING.temperature.high_waste, TUNING.temperature.fast_fall
SLOW_FALL = TUNING.temperature.slow_fall
LOW_WASTE, SHORT_STEP = TUNING.temperature.low_waste, TUNING.temperature.short_step
RISE, CONVERGED_FALL = TUNING.temperature.rise, TUNING.temperature.converged_fall
#: Why `take_steps` returned.
PAUSED, PRUNED, CONVERGED, INFEASIBLE = 0, 1, 2, 3


class Goal(NamedTuple):
    """When steps end, besides their number."""

    #: They end when the bound is at most this,
    target: float
    #: when bound and score at the point differ by at most this share of the bound's distance to the target,
    share: float
    #: or by at most the share `StepTuning.left_to_branching` of the distance from this, the parent's bound, to the
    #: score at the point.
    before: float


def take_steps(
    model: Model, node: Subproblem, point: Point, goal: Goal, n_steps: int, newton: bool, parallel: bool
) -> int:
    """Move a point by steps until it reaches the goal or n_steps are taken, each a product with all coefficients.

    With `newton`, take Newton steps where they are worthwhile (`milpbn.engine.dual.newton`), and pairwise ones
    elsewhere. `parallel` uses threads; the compiled steps ignore it. Return the reason for the end: `PAUSED` (n_steps
    taken), `PRUNED` (target reached), `CONVERGED`, or `INFEASIBLE` (the node has no structure).
    """
    state = point.state
    smooth = model.softening.smooth
    gradient = np.empty(len(model.linear))
    choice = np.empty(point.vertices.shape[1], dtype=np.int64)
    lowest = LOWEST_TEMPERATURE * model.softening.cap
    for _ in range(n_steps):
        if state.steps % REFRESH == REFRESH - 1:
            refresh(model, node, point, parallel)
        temperature = 1.0 if smooth else state.temperature
        here, constant, value, most = _ask_oracle(model, node, point, gradient, choice, temperature, parallel)
        if most == -np.inf:
            state.bound = -np.inf
            return INFEASIBLE
        n = state.vertices
        if constant + most < state.bound:
            _keep_bound(point, gradient, constant, constant + most, temperature)
            if state.bound <= goal.target:
                return PRUNED
        enough = may_be_left(state, goal)
        if state.bound - state.relaxed <= enough:
            return CONVERGED
        worst, same, worst_score, mean = _compare(gradient, point.vertices, point.shares, n, choice, value)
        slope = value - worst_score
        converged = worst == same or slope <= 0.0
        if not smooth:
            # The temperature keeps the loss by the softening in balance with what further steps can gain.
            waste = constant + mean - here
            state.temperature = _next_temperature(
                model.softening.cap, temperature, waste, value - mean, state.moved, enough, converged
            )
        if converged:
            if smooth or temperature <= lowest:
                return CONVERGED
            continue
        if newton:
            state.moved = newton_step(model, node, point, gradient, choice, temperature, parallel)
            if state.moved > 0.0:
                continue
        state.moved = 0.0
        if same < 0 and n == len(point.shares):
            return CONVERGED
        entries, signs, linear_slope = _difference(node.linear, point.vertices[worst], choice)
        combine(model, entries, signs, point.direction, parallel)
        step = move_along_direction(model, point, temperature, slope, linear_slope, point.shares[worst])
        state.vertices = _shift(point.vertices, point.shares, n, worst, same, choice, step)
    return PAUSED


@also_kernel
def _ask_oracle(
    model: Model,
    node: Subproblem,
    point: Point,
    gradient: NDArray[np.float64],
    choice: NDArray[np.int64],
    temperature: float,
    parallel: bool,
) -> tuple[float, float, float, float]:
    """Compute the gradient at a point, and the structure that maximises it; count the step.

    Return the score at the point, the part of the bound that does not depend on the structure, and the weight of the
    choice and an upper bound on the weight of every structure (`heaviest_structure`).
    """
    state = point.state
    copy(gradient, node.linear)
    pairs, duals = model.pairs, point.duals
    if len(pairs.weights):
        score, constant, soft = weigh_pairs(pairs, model.softening, point.logits, temperature, duals.value)
        duals.size[1] = point.logits.shape[1]
        add_products(pairs, duals.value, node.allowed, gradient)
    else:
        score, constant, soft = weigh(model.tables, model.softening, point.logits, temperature, duals)
        add_gradient(model.tables, duals, node.allowed, gradient, parallel)
    value, most, acyclic = heaviest_structure(
        model.oracle, gradient, node.allowed, node.forced, node.n_forced, choice
    )
    state.steps += 1
    if acyclic:
        copy(point.found, choice)
        state.found = True
    offset = model.offset + node.constant
    here = score + state.linear + offset
    constant += offset + rounding(model, point.duals, constant, soft, temperature)
    if most > -np.inf:
        state.relaxed = max(state.relaxed, here)
    return here, constant, value, most


@also_kernel
def _keep_bound(
    point: Point, gradient: NDArray[np.float64], constant: float, bound: float, temperature: float
) -> None:
    """Make the bound at a point the best one."""
    state, n = point.state, point.state.vertices
    state.bound, state.constant, state.best_temperature = bound, constant, temperature
    copy(point.gradient, gradient)
    state.best_vertices = n
    copy_vertices(point.vertices, point.shares, n, point.best_vertices, point.best_shares)


#: `take_steps` compiled as one kernel, for one thread. It is twice as fast on small problems, whose searches take a
#: million steps, but compiles for about ten seconds. The root uses the version in Python and does not wait for it.
take_compiled_steps = kernel(take_steps)


@kernel
def _compare(gradient, vertices, shares, n, choice, value):  # type: ignore[no-untyped-def]  # numba infers the types
    """Compare the weights of n vertices with that of the oracle's answer, `value`.

    Return the vertex whose share should move to the answer, the one that equals the answer, or -1, the weight of the
    first, and the mean weight of all vertices.
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
        # A vertex with a small share can move only little.
        merit = (weight - value) * np.sqrt(shares[v])
        if merit < worst_merit:
            worst, worst_weight, worst_merit = v, weight, merit
        mean += shares[v] * weight
    return worst, same, worst_weight, mean


@kernel(linked=True)
def may_be_left(state, goal):  # type: ignore[no-untyped-def]
    """Return the difference between bound and score at a point at which the steps end."""
    enough = LEFT_TO_BRANCHING * (goal.before - state.relaxed)
    if goal.share > 0.0:
        enough = max(enough, goal.share * (state.bound - goal.target))
    return enough


@kernel
def _next_temperature(cap, temperature, waste, to_gain, moved, enough, converged):  # type: ignore[no-untyped-def]
    """Return the temperature of the next step, given the waste by the softening and what steps can still gain.

    The point is `converged` if no step gains at this temperature. The rule is explained in
    `milpbn.engine.step_tuning.TemperatureTuning`.
    """
    factor = 1.0
    if converged:
        factor = CONVERGED_FALL
    elif moved >= GOOD_STEP:
        if waste > MOST_WASTE * to_gain and waste > max(0.0, TARGET_WASTE * enough):
            factor = max(FASTEST_FALL, TARGET_WASTE * enough / waste)
    elif waste > HIGH_WASTE * to_gain:
        factor = FAST_FALL
    elif waste > to_gain:
        factor = SLOW_FALL
    elif waste < LOW_WASTE * to_gain and moved < SHORT_STEP:
        factor = RISE
    return min(max(factor * temperature, LOWEST_TEMPERATURE * cap), max(temperature, FIRST_TEMPERATURE * cap))


@kernel
def _difference(linear, away, choice):  # type: ignore[no-untyped-def]
    """Return the parent sets in which a choice and a vertex differ, their signs, and the sum of their linear terms."""
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
    """Move share from the worst vertex to a choice, and return the number of vertices.

    The choice is vertex `same`, or becomes a new vertex if that is -1.
    """
    emptied = step == shares[worst] or shares[worst] - step <= SMALLEST_SHARE
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
