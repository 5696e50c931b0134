"""The bound without kernels holds for every structure, and is smaller than the trivial one."""

from __future__ import annotations

import numpy as np
import pytest
from running import optimum, random_data

import milpbn
from milpbn.network.structure import Structure
from milpbn.problem import first_bound as module
from milpbn.problem.first_bound import first_bound
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score
from milpbn.problem.trivial_bound import loose_bound


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


def test_it_is_better_than_the_trivial_bound() -> None:
    data = milpbn.read_table("instance:tic-tac-toe").dataset("train").merged
    problem = build_problem(data, Score(name="sm"), for_milp=False)
    bound = first_bound(problem, Structure.naive_bayes(data.names))
    assert bound < 0.5 * loose_bound(problem.score, data, problem.rules, None)


def test_each_step_may_be_the_last() -> None:
    data = random_data([3, 7], n_features=3, n_classes=2, max_states=3, n_samples=20)
    problem = build_problem(data, Score(name="sm"), for_milp=False)
    start = Structure.naive_bayes(data.names)
    assert first_bound(problem, start) <= first_bound(problem, start, lambda: True) < np.inf


def test_large_problems_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_data([3, 7], n_features=3, n_classes=2, max_states=3, n_samples=20)
    problem = build_problem(data, Score(name="sm"), for_milp=False)
    monkeypatch.setattr(module, "MOST_PRODUCTS", 10)
    assert first_bound(problem, Structure.naive_bayes(data.names)) == np.inf
