"""Margin rows that are left out follow from those kept; tangents are upper bounds, exact at their own points."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from running import all_choices, optimum, random_data, run

from milpbn.milp.formulation import formulate
from milpbn.milp.sample_rows import competing_rows, margin_block, tangent_block
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.scores.spec import Score
from milpbn.solvers.rounds import TangentRows


def margins_of(problem: Problem) -> np.ndarray:
    """Return the log-margin of every row (m, r) under every structure, shape (structures, M, R)."""
    margins = problem.margins
    assert margins is not None
    choices = all_choices(problem.candidates)
    eta = np.zeros((len(choices), problem.candidates.n_sets))
    eta[np.arange(len(choices))[:, None], choices] = 1.0
    return np.einsum("mrk,sk->smr", margins.alpha, eta[:, margins.columns])


@pytest.mark.parametrize("name", ["sm", "sbm", "hard-margin"])
def test_the_rows_that_stay_imply_the_others(name: str) -> None:
    left_out = none_left = 0
    for seed in range(40):
        rng = np.random.default_rng([61, seed])
        data = random_data([60, seed], n_classes=2 + seed % 3, n_samples=30)
        gamma = {} if name == "hard-margin" else {"gamma": float(10 ** rng.uniform(-3, 0))}
        score = Score(
            name=name, max_parents=1 + seed % 3, smoothing=float(rng.choice([1.0, 20.0, 200.0])), **gamma
        )
        problem = build_problem(data, score)
        kept = competing_rows(problem.margins, problem.candidates)
        of_all, cap = margins_of(problem), problem.margins.softening.cap
        of_kept = np.where(kept, of_all, np.inf)
        axes = (1, 2) if problem.margins.smallest else 2
        np.testing.assert_allclose(
            np.minimum(of_kept.min(axis=axes), cap),
            np.minimum(of_all.min(axis=axes), cap),
            rtol=0,
            atol=1e-12,
        )
        assert margin_block(problem.margins, 5, kept).matrix.shape[0] == kept.sum()
        left_out += (~kept).sum()
        none_left += (~kept.any(axis=1)).sum()
    assert left_out > 10
    assert name != "sm" or none_left > 10


def test_of_equal_rows_one_stays() -> None:
    """Rows may be equal for all structures, and their margins may be constant."""
    data = random_data(1, n_classes=3, n_samples=24)
    codes = np.zeros_like(data.codes)
    codes[:, -1] = [0, 0, 1, 2] * 6
    problem = build_problem(replace(data, codes=codes), Score(gamma=5.0), merge=False)
    kept = competing_rows(problem.margins, problem.candidates)
    assert kept.any(axis=1).all()
    assert not kept.all()


def test_a_reduced_model_keeps_the_names() -> None:
    problem = build_problem(random_data(3, n_samples=40), Score(gamma=0.1))
    whole, smaller = (formulate(problem, reduce=reduce).milp for reduce in (False, True))
    assert smaller.n_rows < whole.n_rows
    assert smaller.column_names == whole.column_names
    assert set(smaller.row_names) < set(whole.row_names)
    rows = [whole.row_names.index(name) for name in smaller.row_names]
    assert (whole.A[rows] != smaller.A).nnz == 0


def make_problem(seed: int, n_classes: int = 3, max_parents: int = 2) -> Problem:
    data = random_data([81, seed], n_classes=n_classes, n_samples=40, weights=bool(seed % 2))
    return build_problem(data, Score(name="cll", max_parents=max_parents, smoothing=0.1))


def random_point(problem: Problem, rng: np.random.Generator, integral: bool) -> np.ndarray:
    """Return a point of rows (5): each variable's weight of 1 is on one set, or divided at random."""
    blocks = [b - a for a, b in pairwise(problem.candidates.offsets.tolist())]
    if integral:
        return np.concatenate([np.eye(n)[rng.integers(n)] for n in blocks])
    return np.concatenate([rng.dirichlet(np.full(n, 0.3)) for n in blocks])


def log_posteriors(problem: Problem, eta: np.ndarray) -> np.ndarray:
    """Return -log(1 + sum_c exp(-alpha_c @ eta)) of every sample."""
    margins = problem.margins
    return -np.log1p(np.exp(-(margins.alpha @ eta[margins.columns])).sum(axis=1))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_tangents_touch_the_score_and_stay_above_it(n_classes: int) -> None:
    rng = np.random.default_rng(82)
    problem = make_problem(1, n_classes)
    P, M = problem.candidates.n_sets, problem.margins.n_samples
    every = np.arange(M)
    gaps = []
    for n in range(12):
        touched = random_point(problem, rng, integral=bool(n % 2))
        block = tangent_block(problem.margins, P, touched, every, n)
        assert block.names == [f"l_{m}_{n}" for m in every]
        exact = np.append(touched, log_posteriors(problem, touched))
        np.testing.assert_allclose(block.matrix @ exact, block.upper, atol=1e-7)
        for k in range(12):
            eta = random_point(problem, rng, integral=bool(k % 2))
            slack = block.upper - block.matrix @ np.append(eta, log_posteriors(problem, eta))
            assert slack.min() >= -1e-9
            gaps.append(slack.max())
    assert max(gaps) > 0.1


def test_rows_are_added_for_some_samples_only() -> None:
    problem = make_problem(2)
    P = problem.candidates.n_sets
    eta = random_point(problem, np.random.default_rng(83), integral=False)
    whole = tangent_block(problem.margins, P, eta, np.arange(problem.margins.n_samples), 1)
    some = np.array([0, 3, 4])
    part = tangent_block(problem.margins, P, eta, some, 1)
    assert part.names == ["l_0_1", "l_3_1", "l_4_1"]
    width = part.matrix.shape[1]
    np.testing.assert_array_equal(part.matrix.toarray(), whole.matrix.toarray()[some][:, :width])
    np.testing.assert_array_equal(part.upper, whole.upper[some])


@pytest.mark.parametrize("integral", [False, True])
def test_points_above_the_score_are_cut_off_and_no_others(integral: bool) -> None:
    rng = np.random.default_rng(84)
    problem = make_problem(3)
    formulation = formulate(problem, "cluster")
    rows = TangentRows(formulation)
    for _ in range(5):
        x = np.append(random_point(problem, rng, integral), np.zeros(problem.margins.n_samples))
        x[formulation.tau] = log_posteriors(problem, x[: formulation.n_sets])
        assert rows.violated(x, integral=integral) == {}
        m = int(rng.integers(problem.margins.n_samples))
        x[formulation.tau.start + m] += 0.1
        (block,) = rows.violated(x, integral=integral).values()
        assert [name.split("_")[1] for name in block.names] == [str(m)]
        assert block.slack(x)[0] == pytest.approx(-0.1, abs=1e-7)


@pytest.mark.parametrize("max_parents", [1, 2, 3])
@pytest.mark.parametrize("acyclicity", ["order", "cluster"])
def test_rounds_end_at_the_optimum(max_parents: int, acyclicity: str) -> None:
    """The first relaxation overestimates the optimum, and the last bound equals it."""
    problem = make_problem(4, max_parents=max_parents)
    best = optimum(problem.data, problem.score)
    session, _ = run(problem, "highs", acyclicity)
    assert session.structure.parents in best.structures
    assert session.objective == pytest.approx(best.objective, rel=1e-9)
    assert session.best_bound == pytest.approx(best.objective, rel=1e-6)
    bounds = [bound for _, _, bound in session.trace if bound is not None]
    assert bounds[0] > best.objective + 0.1
