"""The bounds that need no search hold for every structure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from running import heavy_enough, optimum, random_data

import milpbn
from milpbn.data.dataset import Dataset, Variable
from milpbn.network.structure import Structure
from milpbn.problem import bounds as module
from milpbn.problem.bounds import first_bound, loose_bound, trivial_bound
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.registry import SCORES
from milpbn.problem.scores.spec import Score


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("seed", range(6))
def test_no_structure_is_better(name: str, seed: int) -> None:
    options = {"penalty": 0.3, "hybrid": 0.1} if seed in (3, 5) and Score(name=name).is_margin else {}
    options |= {"leave_one_out": True} if seed > 3 and Score(name=name).kind.takes("leave_one_out") else {}
    score = Score(name=name, max_parents=1 + seed % 3, **options)
    data = heavy_enough(random_data([41, seed], n_samples=30, weights=bool(seed % 2)), score)
    constraints = Constraints(arc_weights={("C", "X1"): 2.0, ("X1", "X2"): -1.0})
    best = optimum(data, score, constraints).objective
    bound = trivial_bound(build_problem(data, score, constraints))
    assert bound >= best
    assert np.isfinite(bound)


@pytest.mark.parametrize("name", ["sm", "sbm"])
def test_the_trivial_bound_is_at_most_gamma_per_sample(name: str) -> None:
    data = random_data(5, n_samples=40, weights=True)
    for p in (0.501, 0.9, 0.999):
        score = Score(name=name, p=p)
        bound = trivial_bound(build_problem(data, score))
        assert bound <= score.gamma * data.weights.sum() * (1 + 1e-9)


def test_the_trivial_bound_is_at_most_0_for_the_conditional_log_likelihood() -> None:
    """Without the limit 0, the best margin of each sample would give more than probability 1."""
    data = random_data(9, n_features=6, n_samples=12)
    assert trivial_bound(build_problem(data, Score(name="cll", smoothing=0.01))) == pytest.approx(
        0.0, abs=1e-9
    )


def test_the_trivial_bound_is_exact_if_there_is_no_choice() -> None:
    data = random_data(6)
    score = Score()
    constraints = Constraints(fixed={"X1": ("C",), "X2": ("X1", "C"), "X3": ("C",), "C": ()})
    best = optimum(data, score, constraints).objective
    assert trivial_bound(build_problem(data, score, constraints)) == pytest.approx(best, rel=1e-9)


def test_the_trivial_bound_equals_its_formula() -> None:
    data = random_data(7, n_classes=4, weights=True)
    problem = build_problem(data, Score(p=0.9))
    margins, candidates = problem.margins, problem.candidates
    eta = np.eye(candidates.n_sets)[:, margins.columns]
    total = 0.0
    for m in range(margins.n_samples):
        rows = eta @ margins.alpha[m].T  # (P, R)
        best = [
            rows[a:b].max(axis=0) for a, b in zip(candidates.offsets, candidates.offsets[1:], strict=False)
        ]
        total += margins.weights[m] * min(margins.softening.cap, np.sum(best, axis=0).min())
    assert trivial_bound(problem) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("name", ["sm", "sbm", "hard-margin"])
def test_samples_are_independent(name: str) -> None:
    """The bound on all samples is the sum, or the minimum, of the bounds on single samples."""
    data = random_data(8, n_samples=50, weights=True)
    problem = build_problem(data, Score(name=name))
    margins = problem.margins
    alone = []
    for m in range(margins.n_samples):
        only = np.where(np.arange(margins.n_samples) == m, margins.weights, 0.0)
        one = replace(margins, tables=margins.tables.weighted(only))
        alone.append(trivial_bound(replace(problem, margins=one)))
    expected = min(alone) if name == "hard-margin" else sum(alone)
    assert trivial_bound(problem) == pytest.approx(expected, abs=1e-6)


def test_a_variable_that_must_have_the_class_cannot_add_zero() -> None:
    """A required arc leaves a feature no set without coefficients. The bound falls and remains valid."""
    data = random_data(9, n_samples=30)
    score = Score(p=0.99)
    required = Constraints(required=(("C", "X1"), ("C", "X2"), ("C", "X3")))
    bound = trivial_bound(build_problem(data, score, required))
    assert bound < trivial_bound(build_problem(data, score))
    assert bound >= optimum(data, score, required).objective


@pytest.mark.parametrize("name", ["sm", "sbm", "cll"])
@pytest.mark.parametrize("seed", range(6))
def test_no_structure_scores_more(name: str, seed: int) -> None:
    data = random_data([seed, 7], n_features=3, n_classes=2 + seed % 2, max_states=3, n_samples=20)
    score = Score(
        name=name,
        max_parents=1 + seed % 3,
        class_parents=seed % 2 == 0,
        hybrid=0.5 * (seed % 3 == 2),
        leave_one_out=seed > 2,
    )
    problem = build_problem(data, score, for_milp=False)
    bound = first_bound(problem, Structure.empty(data.names))
    assert bound >= optimum(data, score).objective
    assert np.isfinite(bound)


def test_the_first_bound_is_better_than_the_trivial_one() -> None:
    data = milpbn.read_table("instance:tic-tac-toe").dataset("train").merged
    problem = build_problem(data, Score(name="sm"), for_milp=False)
    bound = first_bound(problem, Structure.naive_bayes(data.names))
    assert bound < 0.5 * loose_bound(problem.score, data, problem.rules, None)


def test_the_steps_may_stop_after_any_and_large_problems_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_data([3, 7], n_features=3, n_classes=2, max_states=3, n_samples=20)
    problem = build_problem(data, Score(name="sm"), for_milp=False)
    start = Structure.naive_bayes(data.names)
    assert first_bound(problem, start) <= first_bound(problem, start, lambda: True) < np.inf
    monkeypatch.setattr(module, "MOST_PRODUCTS", 10)
    assert first_bound(problem, start) == np.inf


def test_the_rounding_of_a_share_near_1_is_not_multiplied_by_a_large_weight() -> None:
    """The class of the first row is certain up to 1e-12; with its weight of 6e8 that is half of the score."""
    variables = (Variable("X", ("a",)), Variable("C", ("c", "d")))
    codes = np.array([[0, 1], [0, 0]], dtype=np.int32)
    data = Dataset("two rows", variables, codes, np.array([6e8, 0.000392]))
    problem = build_problem(data, Score(name="cll", max_parents=1), for_milp=False)
    structure = Structure(data.names, ((1,), ()))
    optimum = -1.008315120429677134532272  # by exact arithmetic
    assert optimum <= first_bound(problem, structure) <= optimum + 1e-9
