"""Local search: all moves are scored exactly, exactly the admissible ones are made, and no climb lowers the score."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from running import all_choices, optimum, random_data

from milpbn.errors import InputError
from milpbn.heuristics.local_search import LocalSearch, best_neighbours, search
from milpbn.heuristics.starts import plain_starts
from milpbn.network.structure import Structure, topological_order
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.registry import SCORES
from milpbn.problem.scores.spec import Score
from milpbn.util.threads import threads_used


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


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_the_kernel_sums_the_logits_of_a_structure_to_the_last_digit(leave_one_out: bool) -> None:
    """The kernel's sums for samples beyond one block, and the value that they give, are those by NumPy."""
    data = random_data([81, 9], n_samples=700, n_classes=3)
    problem = build_problem(data, Score(p=0.9, max_parents=3, leave_one_out=leave_one_out))
    current = LocalSearch(problem, Structure.empty(problem.candidates.names))
    rng = np.random.default_rng(5)
    for _ in range(3):
        current.perturb(rng, 3)
        eta = problem.indicator(current.choice)
        assert (current._logits == problem.margins.logits(eta)).all()
        assert current.value == problem.value(eta)


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
@pytest.mark.parametrize(
    "constraints", [None, Constraints(max_children={"*": 1}, arc_weights={("X1", "X2"): 0.7})], ids=str
)
def test_climbing_ends_at_a_local_optimum(name: str, constraints: Constraints | None) -> None:
    """Assert that no change of one variable's parents gains, with all changes scored from the data."""
    for seed in (4, 5):
        problem = make_problem(name, seed, constraints)
        rng = np.random.default_rng(seed)
        current = LocalSearch(problem, Structure.empty(problem.candidates.names))
        for _ in range(3):
            before = current.value
            after = current.climb(rng)
            assert after >= before
            assert after == pytest.approx(
                rescore(problem.data, current.structure, problem.score, problem.rules), abs=1e-8
            )
            for i, sets in enumerate(problem.candidates.sets):
                for s in sets:
                    parents = list(current.structure.parents)
                    parents[i] = s
                    if topological_order(parents) is None:
                        continue
                    other = Structure(current.structure.names, tuple(parents))
                    if problem.obeys(other):
                        assert rescore(problem.data, other, problem.score, problem.rules) <= after + 1e-8
            current.perturb(rng, 3)


@pytest.mark.parametrize("name", [name for name in SCORES if name not in ("hard-margin", "aicc")])
@pytest.mark.parametrize("seed", range(3))
def test_no_change_gains_more_than_its_supergradient(name: str, seed: int) -> None:
    """The score is concave: f(z') <= f(z) + g (z' - z) for every other structure z', not only for neighbours."""
    problem = make_problem(name, seed, Constraints(arc_weights={("X1", "X2"): 0.7}))
    if problem.margins is None:
        assert LocalSearch(problem, Structure.empty(problem.candidates.names)).supergradient() is None
        return
    every = all_choices(problem.candidates)
    scores = np.array([problem.value(problem.indicator(choice)) for choice in every])
    rng = np.random.default_rng(seed)
    for k in rng.choice(len(every), 10):
        current = LocalSearch(problem, problem.candidates.structure(every[k]))
        supergradient = current.supergradient()
        gains = supergradient[every].sum(axis=1) - supergradient[every[k]].sum()
        assert (scores - scores[k] <= gains + 1e-6).all()
        assert (gains <= 1e-9).any()  # it rules something out


def test_only_wanted_sets_are_scored() -> None:
    problem = make_problem("sm", 3)
    current = LocalSearch(problem, Structure.naive_bayes(problem.candidates.names))
    for i in range(4):
        everything = current.scores(i)
        wanted = np.random.default_rng(i).random(len(everything)) < 0.5
        some = current.scores(i, wanted)
        np.testing.assert_array_equal(some[wanted], everything[wanted])
        assert np.isneginf(some[~wanted]).all()


@pytest.mark.parametrize("name", [name for name in SCORES if Score(name=name).is_margin])
def test_threads_change_no_score(name: str) -> None:
    problem = make_problem(name, 2)
    start = Structure.naive_bayes(problem.candidates.names)
    one, many = (LocalSearch(problem, start) for _ in range(2))
    many.parallel = True  # of its own accord only with far more data
    with threads_used(3):
        for i in range(4):
            np.testing.assert_array_equal(one.scores(i), many.scores(i))


def test_search_reports_every_improvement() -> None:
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
        best = search(problem, plain_starts(problem))
        hits += best is not None and rescore(problem.data, best, problem.score) >= (
            optimum(problem.data, problem.score).objective - 1e-9
        )
    assert hits >= 7


def test_search_stops_at_once_but_keeps_its_best() -> None:
    problem = make_problem("sm", 5)
    start = Structure.naive_bayes(problem.candidates.names)
    assert search(problem, [start], stopping=lambda: True) == start
    assert search(problem, []) is None


def test_starts_outside_the_candidates_are_skipped() -> None:
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
def test_first_incumbent_obeys_the_constraints(name: str, constraints: Constraints) -> None:
    problem = make_problem(name, 7, constraints)
    best = search(problem, plain_starts(problem))
    assert best is not None
    assert problem.obeys(best)


def test_first_incumbent_is_at_least_the_start() -> None:
    problem = make_problem("sm", 8)
    start = Structure(problem.candidates.names, ((3,), (0, 3), (1, 3), ()))
    best = search(problem, plain_starts(problem, start), stopping=lambda: True)
    assert rescore(problem.data, best, problem.score) >= rescore(problem.data, start, problem.score)
    outside = Structure(problem.candidates.names, ((), (0, 2, 3), (), (0, 2)))
    limited = build_problem(problem.data, replace(problem.score, max_parents=1))
    with pytest.raises(InputError, match="start"):
        search(limited, plain_starts(limited, outside))


def test_starts_that_aicc_is_not_defined_for_are_refused() -> None:
    """Structures with k >= M - 1 parameters have no score and cannot be starts or incumbents."""
    data = random_data(9, n_samples=14)
    problem = build_problem(data, Score(name="aicc", max_parents=3))
    start = Structure(data.names, ((1, 2, 3), (2, 3), (3,), ()))
    assert rescore(data, start, problem.score) == -np.inf
    assert not problem.obeys(start)
    with pytest.raises(InputError, match="start"):
        search(problem, plain_starts(problem, start))
    best = search(problem, plain_starts(problem))
    assert np.isfinite(rescore(data, best, problem.score))


def turned_subtrees(structure: Structure, n_features: int):
    """Yield every structure that re-rooting a subtree and attaching it elsewhere, or nowhere, can make."""
    parents = [list(s) for s in structure.parents]
    above = [next((j for j in s if j < n_features), None) for s in parents[:n_features]]
    for u in range(n_features):
        path = [u]
        while above[path[-1]] is not None:
            path.append(above[path[-1]])
            turned = [list(s) for s in parents]
            for child, parent in itertools.pairwise(path):
                turned[parent] = [child, *(j for j in parents[parent] if j == n_features)]
            below = {path[-1]}
            while more := {i for i, j in enumerate(above) if j in below} - below:
                below |= more
            for v in [None, *range(n_features)]:
                if v not in below:
                    for label in ([], [n_features]):
                        turned[u] = [*([] if v is None else [v]), *label]
                        moved = tuple(tuple(sorted(s)) for s in turned)
                        if topological_order(list(moved)) is not None:
                            yield Structure(structure.names, moved)


EXCHANGE_SCORES = [
    Score(p=0.99, class_parents=False),
    Score(p=0.99),
    Score(name="sbm", p=0.99, hybrid=0.1),
    Score(name="cll"),
]


@pytest.mark.parametrize("score", EXCHANGE_SCORES, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_no_subtree_exchange_gains_after_a_climb(seed: int, score: Score) -> None:
    data = random_data([82, seed], n_features=6, n_samples=60, n_classes=2 + seed % 3)
    rules = Constraints(arc_weights={("X1", "X2"): 0.7}, forbidden=(("X1", "X3"),)) if seed % 2 else None
    problem = build_problem(data, score, rules)
    looked_at = 0
    for start in (Structure.empty(problem.candidates.names), Structure.naive_bayes(problem.candidates.names)):
        current = LocalSearch(problem, start)
        value = current.climb(np.random.default_rng(seed))
        for other in turned_subtrees(current.structure, 6):
            choice = problem.choice(other)
            if choice is not None:
                looked_at += 1
                assert problem.value(problem.indicator(choice)) <= value + 1e-8
    assert looked_at > 20


def test_subtree_exchanges_improve_where_single_changes_do_not() -> None:
    further = 0
    for seed in range(12):
        problem = build_problem(random_data([83, seed], n_features=7, n_samples=80), Score(p=0.99))
        values = []
        for exchanges in (False, True):
            current = LocalSearch(problem, Structure.naive_bayes(problem.candidates.names))
            current.exchanges_subtrees = current.exchanges_subtrees and exchanges
            values.append(current.climb(np.random.default_rng(0)))
            assert current.value == pytest.approx(problem.rescore(current.structure))
        assert values[1] >= values[0] - 1e-9
        further += values[1] > values[0] + 1e-6
    assert further > 0


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


@pytest.mark.parametrize("name", ["sm", "sbm"])
def test_a_round_as_one_kernel_changes_what_one_variable_after_another_does(name: str) -> None:
    """Both ways of a climb's round end with the same parent sets and logits, after as many passes."""
    passes = 0
    for seed in range(6):
        problem = make_problem(name, seed, Constraints(arc_weights={("X1", "X2"): 0.7}))
        ends = []
        for compiled in (True, False):
            current = LocalSearch(problem, Structure.empty(problem.candidates.names))
            assert current._compiled
            current._compiled = compiled
            rng = np.random.default_rng(seed)
            current.perturb(rng, 3)
            ends.append((current.climb(rng), current.choice.tolist(), current.passes, rng.random()))
        assert ends[0] == ends[1]
        passes += ends[0][2]
    assert passes > 20
