"""Redundant margin rows: for every structure, the rows that are left out follow from the rows that are kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from running import all_choices, random_data

from milpbn.milp.formulation import formulate
from milpbn.milp.sample_rows import competing_rows, margin_block
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.scores.spec import Score


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
