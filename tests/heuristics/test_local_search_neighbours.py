"""The best neighbours of a structure, against scores of all structures that differ in one parent set."""

from __future__ import annotations

import numpy as np
import pytest
from running import all_choices, random_data

from milpbn.heuristics.local_search import best_neighbours
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score


@pytest.mark.parametrize("score", [Score(p=0.9), Score(name="hard-margin"), Score(name="mdl")])
@pytest.mark.parametrize("limits", [{}, {"X1": 1, "*": 1}])
def test_neighbours_are_all_structures_with_one_change(score: Score, limits: dict[str, int]) -> None:
    problem = build_problem(random_data(3), score, Constraints(max_children=limits))
    start = Structure.empty(problem.data.names)
    here = problem.choice(start)
    found = {
        tuple(choice.tolist()): value
        for choice, value in best_neighbours(
            problem, start, lambda: -np.inf, 1000, lambda: False, parallel=False
        )
    }
    expected = {
        tuple(choice.tolist()): problem.value(problem.indicator(choice))
        for choice in all_choices(problem.candidates)
        if (choice != here).sum() == 1 and problem.obeys(problem.candidates.structure(choice))
    }
    assert found == pytest.approx(expected)
    cutoff = (
        float(np.median(list(expected.values()))) + 1e-9
    )  # beyond the rounding errors of the median itself
    better = best_neighbours(problem, start, lambda: cutoff, 1000, lambda: False, parallel=False)
    assert {tuple(choice.tolist()) for choice, _ in better} == {
        key for key, value in expected.items() if value > cutoff
    }
    assert not list(best_neighbours(problem, start, lambda: -np.inf, 9, lambda: True, parallel=False))
