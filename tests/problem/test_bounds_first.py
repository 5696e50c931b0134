"""The bound without kernels holds for every structure, and is smaller than the trivial one."""

from __future__ import annotations

import numpy as np
import pytest
from running import optimum, random_data

import milpbn
from milpbn.data.dataset import Dataset, Variable
from milpbn.network.structure import Structure
from milpbn.problem import bounds as module
from milpbn.problem.bounds import first_bound, loose_bound
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score


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
