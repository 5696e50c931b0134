"""Local search: exact scores of all moves, exactly the admissible ones, and no climb that loses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from running import optimum, random_data

from milpbn.errors import InputError
from milpbn.learners.first_incumbent import first_incumbent
from milpbn.learners.local_search import LocalSearch, search
from milpbn.network.structure import Structure, topological_order
from milpbn.scores.constraints import Constraints
from milpbn.scores.problem import Problem, build_problem
from milpbn.scores.rescore import rescore
from milpbn.scores.spec import SCORES, Score


def make_problem(name: str, seed: int, constraints: Constraints | None = None) -> Problem:
    data = random_data([81, seed], n_samples=40, weights=bool(seed % 2), n_classes=2 + seed % 3)
    options = {"penalty": 0.2, "hybrid": 0.1} if name == "sbm" else {}
    return build_problem(data, Score(name=name, max_parents=3, **options), constraints)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("seed", range(3))
def test_scores_of_all_moves_are_those_of_rescoring(name: str, seed: int) -> None:
    problem = make_problem(name, seed, Constraints(arc_weights={("X1", "X2"): 0.7}))
    rng = np.random.default_rng(seed)
    current = LocalSearch(problem, Structure.empty(problem.candidates.names))
    for _ in range(4):
        for i in range(4):
            values, admissible = current.scores(i), current.admissible(i)
            assert len(values) == len(problem.candidates.sets[i])
            for k, s in enumerate(problem.candidates.sets[i]):
                parents = list(current.structure.parents)
                parents[i] = s
                assert admissible[k] == (topological_order(parents) is not None)
                if admissible[k]:
                    structure = Structure(current.structure.names, tuple(parents))
                    expected = rescore(problem.data, structure, problem.score, problem.rules)
                    assert values[k] == pytest.approx(expected, rel=1e-9, abs=1e-8)
        i = int(rng.integers(4))
        allowed = np.flatnonzero(current.admissible(i))
        k = int(rng.choice(allowed))
        before = current.scores(i)[k]
        current.move(i, k)
        assert current.value == pytest.approx(before, rel=1e-9, abs=1e-8)
        assert current.structure.parents[i] == problem.candidates.sets[i][k]


def test_child_limits_bound_the_moves() -> None:
    problem = make_problem("mdl", 1, Constraints(max_children={"X1": 1, "C": 0}))
    rng = np.random.default_rng(2)
    current = LocalSearch(problem, Structure.empty(problem.candidates.names))
    refused = 0
    for _ in range(12):
        for i in range(4):
            for k, allowed in enumerate(current.admissible(i)):
                parents = list(current.structure.parents)
                parents[i] = problem.candidates.sets[i][k]
                acyclic = topological_order(parents) is not None
                obeys = acyclic and problem.obeys(Structure(current.structure.names, tuple(parents)))
                assert allowed == obeys
                refused += acyclic and not obeys
        current.perturb(rng, 2)
        assert problem.obeys(current.structure)
    assert refused > 0


@pytest.mark.parametrize("name", SCORES)
def test_climbing_ends_at_a_local_optimum(name: str) -> None:
    problem = make_problem(name, 4)
    current = LocalSearch(problem, Structure.empty(problem.candidates.names))
    before = current.value
    after = current.climb(np.random.default_rng(0))
    assert after >= before
    assert after == pytest.approx(rescore(problem.data, current.structure, problem.score), abs=1e-8)
    for i in range(4):
        assert np.where(current.admissible(i), current.scores(i), -np.inf).max() <= after + 1e-8


def test_search_tells_of_every_improvement() -> None:
    for seed in range(4):
        problem = make_problem("sm", seed)
        told: list[float] = []

        def found(structure: Structure, problem: Problem = problem, told: list[float] = told) -> None:
            told.append(rescore(problem.data, structure, problem.score))

        best = search(problem, [Structure.empty(problem.candidates.names)], found=found)
        assert told == sorted(told)
        assert told[-1] == rescore(problem.data, best, problem.score)
        optimal = optimum(problem.data, problem.score).objective
        assert told[-1] <= optimal + 1e-9
        again = search(problem, [Structure.empty(problem.candidates.names)])
        assert again == best


def test_search_usually_finds_the_optimum_of_tiny_problems() -> None:
    hits = 0
    for seed in range(10):
        problem = make_problem("sm", seed)
        best = first_incumbent(problem)
        hits += best is not None and rescore(problem.data, best, problem.score) >= (
            optimum(problem.data, problem.score).objective - 1e-9
        )
    assert hits >= 7


def test_search_stops_at_once_but_keeps_its_best() -> None:
    problem = make_problem("sm", 5)
    start = Structure.naive_bayes(problem.candidates.names)
    assert search(problem, [start], stopping=lambda: True) == start
    assert search(problem, []) is None


def test_starts_outside_are_passed_over() -> None:
    problem = make_problem("sm", 6, Constraints(forbidden=(("C", "X1"),)))
    start = Structure.naive_bayes(problem.candidates.names)
    assert not problem.obeys(start)
    assert search(problem, [start]) is None
    with pytest.raises(ValueError, match="outside the problem's candidates"):
        LocalSearch(problem, start)


@pytest.mark.parametrize(
    "constraints",
    [
        Constraints(),
        Constraints(required=(("X2", "X1"), ("X3", "X2"))),
        Constraints(max_children={"*": 1, "C": 1}),
        Constraints(fixed={"C": ("X1", "X2")}),
        Constraints(forbidden=(("C", "X1"), ("C", "X2"))),
    ],
    ids=["free", "required", "children", "fixed", "forbidden"],
)
@pytest.mark.parametrize("name", ["sm", "aicc", "bdeu"])
def test_first_incumbent_obeys(name: str, constraints: Constraints) -> None:
    problem = make_problem(name, 7, constraints)
    best = first_incumbent(problem)
    assert best is not None
    assert problem.obeys(best)


def test_first_incumbent_is_at_least_the_start() -> None:
    problem = make_problem("sm", 8)
    start = Structure(problem.candidates.names, ((3,), (0, 3), (1, 3), ()))
    best = first_incumbent(problem, start, stopping=lambda: True)
    assert rescore(problem.data, best, problem.score) >= rescore(problem.data, start, problem.score)
    outside = Structure(problem.candidates.names, ((), (0, 2, 3), (), (0, 2)))
    limited = build_problem(problem.data, replace(problem.score, max_parents=1))
    with pytest.raises(InputError, match="start"):
        first_incumbent(limited, outside)


def test_starts_that_aicc_is_not_defined_for() -> None:
    """k >= M - 1 has no score: no start, no incumbent, and no proof of optimality."""
    data = random_data(9, n_samples=14)
    problem = build_problem(data, Score(name="aicc", max_parents=3))
    start = Structure(data.names, ((1, 2, 3), (2, 3), (3,), ()))
    assert rescore(data, start, problem.score) == -np.inf
    assert not problem.obeys(start)
    with pytest.raises(InputError, match="start"):
        first_incumbent(problem, start)
    best = first_incumbent(problem)
    assert np.isfinite(rescore(data, best, problem.score))
