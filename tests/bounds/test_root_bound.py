"""The project's own bound: never below an optimum, whatever the weights; deletions lose no better structure."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import optimum, random_data

from milpbn import solve
from milpbn.bounds.frank_wolfe import FrankWolfe
from milpbn.bounds.oracle import StructureOracle
from milpbn.bounds.reduction import deletable, restricted
from milpbn.bounds.root import root_bound
from milpbn.network.structure import Structure, topological_order
from milpbn.scores.constraints import Constraints
from milpbn.scores.problem import Problem, build_problem
from milpbn.scores.spec import Score

SCORES = [
    Score(p=0.9, class_parents=False),
    Score(p=0.9),
    Score(p=0.6, penalty=0.3),
    Score(p=0.99, max_parents=3),
    Score(name="sbm", p=0.9),
    Score(name="sbm", p=0.99, max_parents=3, hybrid=0.05),
    Score(p=0.95, max_parents=1),
]
RULES = [
    Constraints(),
    Constraints(required=(("X1", "X2"),), forbidden=(("X3", "X1"),)),
    Constraints(max_children={"*": 1}, arc_weights={("X2", "X3"): 1.5}),
    Constraints(fixed={"X3": ()}, tiers=(("X1",), ("X2", "C"))),
]


def all_structures(problem: Problem):
    """Every acyclic choice of entries of eta that obeys the rules."""
    candidates = problem.candidates
    blocks = [range(a, b) for a, b in itertools.pairwise(candidates.offsets)]
    for choice in itertools.product(*blocks):
        if topological_order([candidates.flat[p] for p in choice]) is not None:
            structure = candidates.structure(choice)
            if problem.obeys(structure):
                yield np.array(choice), structure


def problems(seed: int):
    for score, rules in itertools.product(SCORES, RULES):
        yield build_problem(random_data(seed, weights=seed % 2 == 1), score, rules)


@pytest.mark.parametrize("seed", range(3))
def test_the_oracle_is_a_bound_and_without_relaxation_the_maximum(seed):
    rng = np.random.default_rng(seed)
    for problem in problems(seed):
        oracle = StructureOracle(problem.candidates)
        choices = [choice for choice, _ in all_structures(problem)]
        for _ in range(3):
            weights = rng.normal(size=problem.candidates.n_sets) * 100
            best = max(float(weights[c].sum()) for c in choices)
            answer = oracle(weights)
            assert answer.bound >= best
            if oracle.branching and not problem.rules.max_children and answer.acyclic:
                assert answer.value == pytest.approx(best)
                assert answer.bound == pytest.approx(best)


@pytest.mark.parametrize("seed", range(3))
def test_entries_of_heavy_structures_have_heavy_bounds(seed):
    rng = np.random.default_rng(seed)
    for problem in problems(seed):
        oracle = StructureOracle(problem.candidates)
        choices = [choice for choice, _ in all_structures(problem)]
        weights = rng.normal(size=problem.candidates.n_sets) * 100
        values = np.array([weights[c].sum() for c in choices])
        threshold = float(np.quantile(values, 0.7))
        bounds = oracle.heaviest_with(weights, threshold)
        for choice, value in zip(choices, values, strict=True):
            if value >= threshold:
                assert (bounds[choice] >= value).all()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), which=st.integers(0, len(SCORES) - 1))
def test_no_dual_weights_give_a_bound_below_the_optimum(seed, which):
    rng = np.random.default_rng(seed)
    problem = build_problem(random_data(seed % 7), SCORES[which])
    margins = problem.margins
    assert margins is not None
    assert margins.gamma is not None
    M, R, K = margins.alpha.shape
    simplex = rng.dirichlet(np.full(R + 1, 0.3), size=M)
    duals = margins.weights[:, None] * simplex
    gradient = problem.linear.copy()
    gradient[margins.columns] += duals[:, 1:].ravel() @ margins.alpha.reshape(M * R, K)
    bound = margins.gamma * duals[:, 0].sum() + StructureOracle(problem.candidates)(gradient).bound
    best = max(problem.value(problem.indicator(choice)) for choice, _ in all_structures(problem))
    assert bound >= best - 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_steps_bound_the_optimum_from_above_and_delete_no_better_structure(seed):
    for problem in problems(seed):
        known = list(all_structures(problem))
        values = [problem.value(problem.indicator(choice)) for choice, _ in known]
        start = known[seed % len(known)][1]
        bounds: list[float] = []
        steps = FrankWolfe(problem, start)
        outcome = steps.run(stopping=lambda: False, bounded=bounds.append, max_iterations=60)
        assert outcome.bound == min(bounds)
        assert outcome.bound >= max(values)
        assert outcome.relaxed <= outcome.bound
        incumbent = values[seed % len(values)]
        gone = deletable(steps.oracle, steps.best_gradient, steps.best_constant, incumbent)
        for (choice, _), value in zip(known, values, strict=True):
            if value >= incumbent:
                assert not gone[choice].any()


def test_a_restricted_problem_scores_alike():
    problem = build_problem(random_data(1), Score(p=0.9))
    keep = np.random.default_rng(0).random(problem.candidates.n_sets) < 0.6
    keep[problem.candidates.offsets[:-1]] = True
    smaller = restricted(problem, keep)
    for choice, structure in all_structures(smaller):
        whole = problem.choice(structure)
        assert whole is not None
        assert smaller.value(smaller.indicator(choice)) == pytest.approx(
            problem.value(problem.indicator(whole))
        )


@pytest.mark.parametrize("name", ["ll", "mdl", "aic", "bdeu"])
def test_one_branching_solves_decomposable_scores_over_forests(name):
    data = random_data(3)
    score = Score(name=name, class_parents=False)
    found: list[Structure] = []
    bounds: list[float] = []
    problem = build_problem(data, score)
    root_bound(
        problem,
        None,
        stopping=lambda: False,
        bounded=bounds.append,
        found=lambda structure: found.append(structure),
    )
    best = optimum(data, score)
    assert bounds == [pytest.approx(best.objective)]
    assert found[0].parents in best.structures


@pytest.mark.parametrize("score", SCORES, ids=str)
def test_the_switches_leave_the_optimum_unchanged(score):
    data = random_data(5, n_samples=24)
    best = optimum(data, score)
    for options in ({}, {"reduce": False}, {"root_bound": False}, {"warm_start": False}):
        result = solve(data, score, threads=1, verbose=False, **options)
        assert result.reason == "optimal"
        assert result.objective == pytest.approx(best.objective, abs=1e-6)
        assert result.bound >= best.objective - 1e-9
