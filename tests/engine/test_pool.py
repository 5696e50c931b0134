"""The list of the K best structures: what it keeps, its cutoff, and the bound on all others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from running import all_choices, random_data

from milpbn.engine.pool import BELOW_ALL, Pool
from milpbn.network.structure import Structure
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score
from milpbn.util.budget import Budget


def choice(*sets: int) -> np.ndarray:
    return np.array(sets, dtype=np.int64)


def test_the_k_best_are_kept_once_each() -> None:
    pool = Pool(2)
    assert pool.cutoff == BELOW_ALL
    for sets, value in (((0, 4), 1.0), ((1, 4), 3.0), ((1, 4), 3.0), ((2, 4), 2.0), ((3, 4), 0.5)):
        pool.offer(choice(*sets), value)
    assert [(found.tolist(), value) for found, value in pool.best()] == [([1, 4], 3.0), ([2, 4], 2.0)]
    assert pool.full
    assert pool.cutoff == 2.0


def test_structures_far_from_the_best_one_are_left_out() -> None:
    pool = Pool(3, reach=1.0)
    for place, value in enumerate((1.0, 1.5, 3.0, 2.0, 2.5)):
        pool.offer(choice(place, 4), value)
    assert [value for _, value in pool.best()] == [3.0, 2.5, 2.0]
    assert pool.cutoff == 2.0
    pool.offer(choice(5, 4), 3.2)
    assert [value for _, value in pool.best()] == [3.2, 3.0, 2.5]
    assert pool.cutoff == 2.5
    pool.offer(choice(6, 4), 4.3)
    assert not pool.full
    assert pool.cutoff == pool.others(-math.inf) == 3.3


def test_the_bound_on_others_leaves_out_nodes_that_hold_a_listed_structure_only() -> None:
    pool = Pool(2)
    pool.offer(choice(0, 4), 5.0)
    pool.leaf(choice(0, 4), 5.1)
    assert pool.others(-math.inf) == -math.inf
    assert pool.everything(-math.inf) == 5.1
    pool.offer(choice(1, 4), 3.0)
    pool.leaf(choice(1, 4), 3.1)
    assert pool.others(-math.inf) == 3.0  # structures below the cutoff may have been left out
    assert pool.others(4.0) == 4.0
    pool.offer(choice(2, 4), 4.0)
    assert pool.others(-math.inf) == 4.0
    pool.leaf(choice(3, 4), 4.5)  # its structure was never offered
    assert pool.others(-math.inf) == 4.5
    assert pool.everything(-math.inf) == 5.1


def test_a_structure_that_leaves_the_list_counts_among_the_others() -> None:
    pool = Pool(1)
    pool.offer(choice(0, 4), 1.0)
    pool.leaf(choice(0, 4), 7.0)  # a loose bound
    assert pool.others(-math.inf) == 1.0
    pool.offer(choice(1, 4), 2.0)
    assert pool.others(-math.inf) == 7.0


@pytest.mark.parametrize("score", [Score(p=0.9), Score(name="cll", max_parents=3), Score(name="sbm", p=0.8)])
def test_neighbours_of_the_list_are_offered_until_none_is_better(score: Score) -> None:
    """The list then has every structure that some listed one reaches by one change, and that is good enough."""
    problem = build_problem(random_data(7, n_features=3), score)
    start = problem.choice(Structure.naive_bayes(problem.data.names))
    pool = Pool(6)
    pool.offer(start, problem.value(problem.indicator(start)))
    score = lambda found: problem.value(problem.indicator(found))  # noqa: E731
    while pool.explore(problem, score, 2, Budget(), parallel=False):
        pass
    listed = {tuple(found.tolist()): value for found, value in pool.best()}
    assert len(listed) == 6
    for found in all_choices(problem.candidates):
        value = problem.value(problem.indicator(found))
        near = any((found != np.array(other)).sum() == 1 for other in listed)
        if near and value > pool.cutoff + 1e-9:
            assert listed[tuple(found.tolist())] == pytest.approx(value, rel=1e-12)
