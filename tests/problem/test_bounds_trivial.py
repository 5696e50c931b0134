"""The trivial bound, which needs no search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from running import heavy_enough, optimum, random_data

from milpbn.problem.bounds import trivial_bound
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
