"""Dual weights: their bounds are never below the optimum, and the kernels agree with the formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from running import (
    LEAVING_OUT,
    MARGINS,
    SHRUNK,
    all_choices,
    heaviest,
    heavy_enough,
    random_data,
    scores_of,
    whole_node,
)
from scipy.optimize import linprog
from scipy.special import logsumexp, softmax

from milpbn.certificate.records import EDGE, Decision
from milpbn.engine.dual.curvature import curvature
from milpbn.engine.dual.frank_wolfe import (
    CONVERGED,
    INFEASIBLE,
    PAUSED,
    PRUNED,
    Goal,
    take_compiled_steps,
    take_steps,
)
from milpbn.engine.dual.pairs import curvature_of, mark_near, weigh_pairs
from milpbn.engine.dual.point import (
    Subproblem,
    empty_point,
    evaluate,
    evaluate_compiled,
    on_pairs,
    on_samples,
    place,
    score_of,
)
from milpbn.engine.relaxation.oracle import BRANCHINGS, oracle_of
from milpbn.engine.root import model_of
from milpbn.engine.tree.node import Restriction
from milpbn.problem.constraints import Constraints
from milpbn.problem.duals import add_gradient, curvature_here, empty_duals, slope_at, weigh
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.scores.registry import SCORES
from milpbn.problem.scores.spec import Score

ALL = [
    *MARGINS,
    *LEAVING_OUT,
    *SHRUNK,
    Score(name="cll"),
    Score(name="cll", max_parents=3, hybrid=0.1, class_parents=False),
]
seeds = st.integers(0, 10_000)


@njit
def dense_curvature(pairs, value, rows, temperature):
    return curvature_of(pairs, value, rows, temperature)


#: Steps with this goal end when they gain nothing, or after their number.
ENDLESS = Goal(-np.inf, 0.0, -np.inf)
scores = st.sampled_from([score for score in ALL if score.name in SCORES])


def bound_of(problem: Problem, simplex) -> float:
    """b(lambda) of dense dual weights, shape (M, R + 1); the first column is gamma (CLL: the true class)."""
    margins = problem.margins
    gradient = problem.linear.copy()
    gradient[margins.columns] += np.einsum("m,mr,mrk->k", margins.weights, simplex[:, 1:], margins.alpha)
    if margins.softening.smooth:
        logs = np.log(simplex, out=np.zeros_like(simplex), where=simplex > 0)
        constant = margins.weights @ (simplex * logs).sum(axis=1)
    else:
        constant = margins.softening.cap * (margins.weights @ simplex[:, 0])
    return constant + heaviest(oracle_of(problem.candidates), gradient)


def point_in_the_hull(rng, choices, n_sets) -> np.ndarray:
    eta = np.zeros(n_sets)
    rows = choices[rng.integers(len(choices), size=int(rng.integers(1, 6)))]
    for row, share in zip(rows, rng.dirichlet(np.full(len(rows), 0.5)), strict=True):
        eta[row] += share
    return eta


@given(seed=seeds, score=scores, sparsity=st.sampled_from([0.05, 0.3, 3.0]))
def test_no_dual_weights_give_a_bound_below_the_optimum(seed, score, sparsity):
    rng = np.random.default_rng(seed)
    problem = build_problem(heavy_enough(random_data(seed % 7, weights=bool(seed % 2)), score), score)
    M, R, _ = problem.margins.alpha.shape
    simplex = rng.dirichlet(np.full(R + 1, sparsity), size=M)
    best = scores_of(problem, all_choices(problem.candidates)).max()
    assert bound_of(problem, simplex) >= best - 1e-9


@given(seed=seeds, score=scores, exponent=st.floats(-9.0, 1.0), inside=st.booleans())
def test_the_weights_at_a_point_are_those_of_the_soft_minimum(seed, score, exponent, inside):
    """Score, constant and gradient of `weigh` and `add_gradient` equal those of dense weights, and give a bound."""
    rng = np.random.default_rng(seed)
    data = random_data(seed % 7, n_classes=2 + seed % 3, weights=bool(seed % 2))
    problem = build_problem(heavy_enough(data, score), score)
    margins, choices = problem.margins, all_choices(problem.candidates)
    if inside:
        eta = point_in_the_hull(rng, choices, problem.candidates.n_sets)
    else:
        eta = rng.normal(size=problem.candidates.n_sets)  # any point of the space will do
    temperature = 1.0 if margins.softening.smooth else 10.0**exponent
    logits = margins.logits(eta)
    duals = empty_duals(margins.tables)
    value, constant, _ = weigh(margins.tables, margins.softening, logits, temperature, duals)
    gradient = problem.linear.copy()
    everything = np.ones(len(gradient), dtype=bool)
    add_gradient(margins.tables, duals, everything, gradient, bool(seed % 2))

    rows = margins.alpha @ eta[margins.columns]
    rows = np.column_stack([np.full(len(rows), margins.softening.cap), rows])
    simplex = softmax(-rows / temperature, axis=1)
    expected = problem.linear.copy()
    expected[margins.columns] += np.einsum("m,mr,mrk->k", margins.weights, simplex[:, 1:], margins.alpha)
    # Weights below exp(-16) are left out.
    tiny = 1e-5 * margins.weights.sum() * max(1.0, np.abs(margins.alpha).max())
    assert gradient == pytest.approx(expected, abs=tiny)
    if margins.softening.smooth:
        assert value == pytest.approx(margins.weights @ -logsumexp(-rows, axis=1), abs=tiny)
        logs = np.log(simplex, out=np.zeros_like(simplex), where=simplex > 0)
        assert constant == pytest.approx(margins.weights @ (simplex * logs).sum(axis=1), abs=tiny)
    else:
        assert value == pytest.approx(margins.weights @ rows.min(axis=1))
        assert constant == pytest.approx(margins.softening.cap * (margins.weights @ simplex[:, 0]), abs=tiny)
    # Although some weights are left out, the sparse weights sum to 1.
    assert (
        constant + heaviest(oracle_of(problem.candidates), gradient)
        >= scores_of(problem, choices).max() - 1e-9
    )


@pytest.mark.parametrize("score", [Score(p=0.9), Score(name="sbm", p=0.9), Score(name="cll")], ids=str)
def test_gradients_equal_finite_differences(score):
    rng = np.random.default_rng(0)
    for seed in range(6):
        problem = build_problem(heavy_enough(random_data(seed, n_samples=30, weights=True), score), score)
        margins, choices = problem.margins, all_choices(problem.candidates)
        start, end = (point_in_the_hull(rng, choices, problem.candidates.n_sets) for _ in range(2))
        logits, direction = margins.logits(start), margins.logits(end) - margins.logits(start)
        temperature = 1.0 if margins.softening.smooth else 0.3

        def softened(t, margins=margins, start=start, end=end, temperature=temperature):
            rows = margins.alpha @ (start + t * (end - start))[margins.columns]
            rows = np.column_stack([np.full(len(rows), margins.softening.cap), rows])
            return -temperature * (margins.weights @ logsumexp(-rows / temperature, axis=1))

        for step in (0.0, 0.4, 1.0):
            first, second = slope_at.py_func(
                margins.tables, margins.softening, logits, direction, step, temperature
            )
            h = 1e-4
            low, here, high = softened(step - h), softened(step), softened(step + h)
            assert first == pytest.approx((high - low) / (2 * h), rel=1e-4, abs=1e-4)
            assert second == pytest.approx((2 * here - high - low) / h**2, rel=1e-2, abs=1e-2)
        duals = empty_duals(margins.tables)
        weigh(margins.tables, margins.softening, logits, temperature, duals)
        _, second = slope_at.py_func(margins.tables, margins.softening, logits, direction, 0.0, temperature)
        curvature = curvature_here.py_func(margins.tables, duals, direction, temperature)
        assert curvature == pytest.approx(second, rel=1e-4, abs=1e-6)


def best_of_the_hull(problem: Problem, choices) -> float:
    """The largest score of a convex combination of structures under SM and SBM, by an LP over their shares."""
    margins = problem.margins
    eta = np.zeros((len(choices), problem.candidates.n_sets))
    for v, row in enumerate(choices):
        eta[v, row] = 1.0
    rows = np.einsum("mrk,vk->mrv", margins.alpha, eta[:, margins.columns])
    M, R, S = rows.shape
    cost = np.concatenate([-eta @ problem.linear, -margins.weights])
    own = np.zeros((M, R, S + M))
    own[:, :, :S] = -rows
    own[np.arange(M), :, S + np.arange(M)] = 1.0
    answer = linprog(
        cost,
        A_ub=own.reshape(M * R, -1),
        b_ub=np.zeros(M * R),
        A_eq=np.concatenate([np.ones(S), np.zeros(M)])[None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * S + [(None, margins.softening.cap)] * M,
    )
    assert answer.status == 0
    return -answer.fun


def restrictions(problem: Problem, oracle, rng):
    """The whole problem, and nodes with forced edges and without some parent sets."""
    restriction = Restriction(np.ones(problem.candidates.n_sets, dtype=bool), ())
    yield restriction
    for a, b in rng.permutation([(0, 1), (0, 2), (1, 2)]).tolist():
        if oracle.kind == BRANCHINGS:
            restriction = restriction.child(oracle, Decision(EDGE, a, b), bool(rng.random() < 0.5))
        gone = rng.random(problem.candidates.n_sets) < 0.15
        restriction = Restriction(restriction.allowed & ~gone, restriction.edges)
        yield restriction


def members(restriction, choices, candidates):
    inside = choices[restriction.allowed[choices].all(axis=1)]
    for a, b in restriction.edges:
        arc = np.array([b in s for s in candidates.flat]), np.array([a in s for s in candidates.flat])
        inside = inside[arc[0][inside[:, a]] | arc[1][inside[:, b]]]
    return inside


#: Scores whose parameters are shrunk have no steps of their own, so they get one kind.
STEPS = [
    pytest.param(score, newton, id=f"{score}-{'newton' if newton else 'pairwise'}", marks=marks)
    for score in ALL
    for newton in (True, False)
    for marks in [() if newton or score in MARGINS else pytest.mark.slow]
]


@pytest.mark.parametrize(("score", "newton"), STEPS)
def test_steps_end_at_the_best_bound_of_every_node(score, newton):
    rules = Constraints(arc_weights={("X1", "X2"): 0.7})
    infeasible = 0
    for seed in (
        (ALL.index(score) + newton) % 2,
    ):  # either kind of steps meets each score, one of them with weights
        rng = np.random.default_rng([seed, int(newton)])
        problem = build_problem(heavy_enough(random_data(seed, weights=seed % 2 == 1), score), score, rules)
        choices, model = all_choices(problem.candidates), model_of(problem)
        values = scores_of(problem, choices)
        for choice, value in zip(choices[::7], values[::7], strict=True):
            logits = np.empty((model.tables.codes.shape[1], model.tables.values.shape[1]))
            assert score_of(model, choice, logits, False) == pytest.approx(value)
        for restriction in restrictions(problem, model.oracle, rng):
            inside = members(restriction, choices, problem.candidates)
            node = Subproblem(
                restriction.allowed,
                restriction.forced(model.oracle.n),
                len(restriction.edges),
                model.linear,
                0.0,
            )
            point = empty_point(model)
            point.gradient[:] = rng.normal(size=model.linear.size)
            # Vertices outside the restriction are left out.
            rows = choices[rng.integers(len(choices), size=3)]
            if not place(model, node, point, rows, np.full(3, 1 / 3), 0.5, False):
                infeasible += 1
                assert not len(inside)
                continue
            # In Python an eighth of the cases, because it takes a hundred times as long.
            plain = ALL.index(score) % 8 == 4 * newton
            steps = take_steps if plain else take_compiled_steps
            status = steps(model, node, point, ENDLESS, 500 if newton else 4000, newton, False)
            assert status in (CONVERGED, PAUSED)
            best = scores_of(problem, inside).max()
            bound, relaxed = point.state.bound, point.state.relaxed
            assert bound >= best
            assert bound >= relaxed - 1e-9
            n = int(point.state.vertices)
            assert point.shares[:n].min() > 0
            assert point.shares[:n].sum() == pytest.approx(1.0)
            assert restriction.allowed[point.vertices[:n]].all()
            eta = np.zeros(model.linear.size)
            np.add.at(eta, point.vertices[:n], point.shares[:n, None])
            assert point.logits == pytest.approx(problem.margins.logits(eta), abs=1e-8)
            assert point.state.linear == pytest.approx(problem.linear @ eta, abs=1e-8)
            if not problem.margins.softening.smooth:
                tight = best_of_the_hull(problem, inside)
                assert bound >= tight - 1e-7 * max(1.0, abs(tight))
                # Branchings may close a cycle through the class if features have parents without it.
                if model.oracle.safe or model.oracle.kind != BRANCHINGS:
                    assert (
                        bound <= tight + 0.005 * problem.margins.softening.cap * problem.margins.weights.sum()
                    )
            else:
                assert bound == pytest.approx(relaxed, rel=2e-3, abs=2e-3)
            # The same point bounds the restriction by the whole model, and any other model that leaves samples out.
            evaluate(model, node, point, False)
            assert point.state.bound == pytest.approx(bound, rel=1e-6, abs=1e-6)
            interpreted = point.state.bound
            evaluate_compiled(model, node, point, False)
            assert point.state.bound == pytest.approx(interpreted, rel=1e-12)
            for width in (0.0, 0.5):
                near = np.zeros(point.logits.shape, dtype=bool)
                mark_near(model.tables, model.softening, point.logits, width, near)
                samples = near.any(axis=1)
                margins = problem.margins.log_margins(eta, point.logits)
                assert (samples == (margins < model.softening.cap + width)).all()
                few = on_samples(model, samples)
                assert point.logits[samples].shape == (few.tables.codes.shape[1], point.logits.shape[1])
                small = empty_point(few)
                assert place(few, node, small, rows, np.full(3, 1 / 3), 0.5, False)
                steps(few, node, small, ENDLESS, 100, newton, False)
                assert small.state.bound >= best
    assert infeasible < 12


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_steps_on_the_matrix_of_pairs_are_those_on_the_tables(leave_one_out):
    """With all pairs. Numbers of the matrix have half the digits."""
    score = Score(p=0.9, leave_one_out=leave_one_out)
    for seed in range(4):
        problem = build_problem(random_data(seed, n_samples=60), score)
        choices, model = all_choices(problem.candidates), model_of(problem)
        node = whole_node(model.oracle, model.linear)
        found = []
        for dense in (False, True):
            point = empty_point(model)
            assert place(model, node, point, choices[:3], np.full(3, 1 / 3), 0.3, False)
            few, used = model, point
            if dense:
                inside = np.ones(point.logits.shape, dtype=bool)
                inside[np.arange(len(inside)), model.tables.true] = False
                room = np.empty(inside.size * len(model.linear), dtype=np.float32)
                assert not len(on_pairs(model, inside, node.allowed, point.logits, room[:1])[0].pairs.weights)
                few, logits = on_pairs(model, inside, node.allowed, point.logits, room)
                assert few.pairs.alpha.shape == (len(model.tables.columns), inside.sum())
                used = point._replace(logits=logits, direction=np.empty_like(logits))
            weigher, value = (weigh_pairs.py_func, used.duals.value) if dense else (weigh, used.duals)
            part = few.pairs if dense else few.tables
            sums = weigher(part, few.softening, used.logits, 0.3, value)
            H = (
                dense_curvature(few.pairs, used.duals.value, few.column, 0.3)
                if dense
                else curvature(few.tables, used.duals, few.column, 0.3, False)
            )
            used.state.temperature = 0.3
            # The second step starts where model and line search of the first one led.
            assert take_compiled_steps(few, node, used, ENDLESS, 2, True, False) == PAUSED
            assert used.state.moved > 0.0
            found.append((sums, H, (used.state.bound, used.state.relaxed)))
        tables, pairs = found
        for a, b, error in zip(pairs, tables, (1e-6, 1e-4, 1e-3), strict=True):
            assert a == pytest.approx(b, rel=error, abs=error)


def test_where_no_pair_is_near_the_steps_use_tables_without_samples():
    """Every sample then has all its weight on gamma, so that the bound of the steps is that of the whole node."""
    problem = build_problem(random_data(0), Score(p=0.9), Constraints(arc_weights={("X1", "X2"): 0.7}))
    choices, model = all_choices(problem.candidates), model_of(problem)
    node, point = whole_node(model.oracle, model.linear), empty_point(model)
    assert place(model, node, point, choices[:3], np.full(3, 1 / 3), 0.3, False)
    inside = np.zeros(point.logits.shape, dtype=bool)
    few, logits = on_pairs(model, inside, node.allowed, point.logits, np.empty(0, dtype=np.float32))
    assert logits.shape == (0, point.logits.shape[1])
    assert (few.column == model.column).all()
    used = point._replace(logits=logits, direction=np.empty_like(logits))
    assert take_compiled_steps(few, node, used, ENDLESS, 100, True, False) == CONVERGED
    everything = model.softening.cap * model.tables.weights.sum() + model.linear[choices].sum(axis=1).max()
    assert used.state.bound == pytest.approx(everything)


def test_steps_end_at_a_target_and_without_structures():
    problem = build_problem(random_data(2), Score(p=0.9))
    choices, model = all_choices(problem.candidates), model_of(problem)
    best = scores_of(problem, choices).max()
    node = whole_node(model.oracle, model.linear)
    point = empty_point(model)
    assert place(model, node, point, choices[:1], np.ones(1), 1.0, False)
    assert take_steps(model, node, point, Goal(best + 3.0, 0.0, -np.inf), 4000, True, False) == PRUNED
    assert best <= point.state.bound <= best + 3.0
    # Three features cannot all be neighbours of each other and have one feature parent each at most.
    triangle = Restriction(node.allowed, ((0, 1), (0, 2), (1, 2)))
    closed = Subproblem(node.allowed, triangle.forced(model.oracle.n), 3, model.linear, 0.0)
    assert not place(model, closed, point, choices, np.full(len(choices), 1 / len(choices)), 1.0, False)
    assert place(model, node, point, choices[:1], np.ones(1), 1.0, False)
    assert take_steps(model, closed, point, Goal(best, 0.0, -np.inf), 10, True, False) == INFEASIBLE
    assert point.state.bound == -np.inf


@pytest.mark.parametrize("newton", [False, True], ids=["pairwise", "newton"])
def test_compiled_steps_and_threads_lead_to_the_same_point(newton):
    for seed in range(4):
        problem = build_problem(random_data(seed, n_samples=60), Score(p=0.99))
        choices, model = all_choices(problem.candidates), model_of(problem)
        node = whole_node(model.oracle, model.linear)
        points = []
        for steps, parallel in ((take_steps, False), (take_steps, True), (take_compiled_steps, False)):
            point = empty_point(model)
            assert place(model, node, point, choices[:1], np.ones(1), 1.0, False)
            assert steps(model, node, point, ENDLESS, 2, newton, parallel) == PAUSED
            points.append(point)
        for point in points[1:]:
            assert point.state.tolist() == pytest.approx(points[0].state.tolist(), rel=1e-5)
            assert point.logits == pytest.approx(points[0].logits, rel=1e-5, abs=1e-5)
