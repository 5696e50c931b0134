"""The root bound is never below an optimum, and reduced-cost fixing keeps every optimum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from running import LEAVING_OUT, MARGINS, SHRUNK, all_choices, heavy_enough, optimum, random_data, scores_of

from milpbn import solve
from milpbn.certificate.format import Proof
from milpbn.engine.events import EventLog
from milpbn.engine.reduction import restricted
from milpbn.engine.root import Root, model_of, root_bound
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score

ALL = [
    *MARGINS,
    *LEAVING_OUT,
    *SHRUNK,
    Score(name="cll"),
    Score(name="cll", max_parents=3, penalty="bic"),
]
RULES = [
    Constraints(),
    Constraints(required=(("X1", "X2"),), forbidden=(("X3", "X1"),)),
    Constraints(max_children={"*": 1}, arc_weights={("X2", "X3"): 1.5}),
    Constraints(fixed={"X3": ()}, tiers=(("X1",), ("X2", "C"))),
]
PROBLEMS = list(itertools.product(ALL, RULES))


def scored(problem: Problem):
    """Return every structure that obeys the rules, with the indices of its parent sets and its score."""
    choices = all_choices(problem.candidates)
    for choice, value in zip(choices, scores_of(problem, choices).tolist(), strict=True):
        structure = problem.candidates.structure(choice)
        if problem.rules.over_limit(structure.parents) is None:
            yield choice, structure, value


@pytest.mark.parametrize(("score", "rules"), PROBLEMS, ids=str)
def test_the_bound_holds_and_no_optimum_is_lost(score, rules):
    for seed in range(2):
        data = heavy_enough(random_data(seed, weights=seed % 2 == 1), score)
        problem = build_problem(data, score, rules)
        known = list(scored(problem))
        best = max(value for _, _, value in known)
        start = known[seed * 7 % len(known)][1]
        for reduce in (True, False):
            proof, record = Proof(), EventLog()
            smaller, root = root_bound(problem, start, record, reduce=reduce, proof=proof)
            bounds, told = record.bounds, record.structures
            assert root is not None
            assert bounds == sorted(bounds, reverse=True)
            assert root.bound == bounds[-1] >= best
            assert all(problem.obeys(structure) for structure in told)
            values = [root.value(structure) for structure in (start, *told)]
            assert values == sorted(values)
            last = (start, *told)[-1]
            assert values[-1] == pytest.approx(rescore(problem.data, last, score, problem.rules))
            # Structures that are at least as good as the incumbent keep all their parent sets.
            for choice, structure, value in known:
                if value >= values[-1]:
                    assert root.allowed[choice].all()
                    assert smaller.choice(structure) is not None
            assert smaller.candidates.n_sets == root.allowed.sum()
            assert reduce or smaller is problem
            assert (len(proof.fixings) > 0) == (not root.allowed.all())
            assert 0 in proof.leaves


@pytest.mark.parametrize("score", ALL, ids=str)
def test_proved_arcs_hold_in_every_optimum(score):
    """The fixings are those by the optimum itself."""
    proved = {"in": 0, "out": 0}
    for seed, rules in enumerate(RULES):
        problem = build_problem(random_data(20 + seed % 2, n_samples=40), score, rules)
        known = list(scored(problem))
        best = max(value for _, _, value in known)
        optima = [structure for _, structure, value in known if value >= best - 1e-9 * max(1.0, abs(best))]
        _, root = root_bound(problem, optima[0], EventLog())
        root.fix(optima[0])
        arcs = root.proved_arcs()
        candidates = problem.candidates
        possible = {
            (candidates.names[j], candidates.names[i])
            for i, s in zip(candidates.variable, candidates.flat, strict=True)
            for j in s
        }
        assert {(a, b) for a, b in (*arcs["in"], *arcs["out"])} <= possible
        for structure in optima:
            parents = structure.to_mapping()
            assert all(a in parents[b] for a, b in arcs["in"])
            assert not any(a in parents[b] for a, b in arcs["out"])
        for key in proved:
            proved[key] += len(arcs[key])
    assert min(proved.values()) > 0


def test_stopping_ends_the_steps_and_keeps_the_bound():
    problem = build_problem(random_data(1), Score(p=0.9))
    best = max(value for _, _, value in scored(problem))
    start = Structure.naive_bayes(problem.candidates.names)
    previous = np.inf
    for count in (1, 2, 3, 5, 9):
        asked = itertools.count(1)
        root = Root(problem, start)
        root.run(start, EventLog(lambda a=asked, c=count: next(a) > c))
        assert best <= root.bound <= previous
        previous = root.bound
    few = Root(problem, start)
    few.run(start, EventLog(), max_steps=1)
    assert few.bound >= best


def test_problems_without_a_bound_are_refused():
    data = random_data(4)
    start = Structure.naive_bayes(data.names)
    for score in (Score(name="hard-margin"), Score(name="mdl")):
        problem = build_problem(data, score)
        with pytest.raises(ValueError, match="margins"):
            model_of(problem)
        smaller, root = root_bound(problem, start, EventLog())
        assert (smaller, root) == (problem, None)
    outside = build_problem(data, Score(), Constraints(forbidden=(("C", "X1"),)))
    with pytest.raises(ValueError, match="outside"):
        Root(outside, start)


@pytest.mark.parametrize("name", ["sm", "sbm", "mdl", "aicc"])
def test_a_restricted_problem_has_the_same_scores(name):
    problem = build_problem(random_data(1, n_samples=40), Score(name=name, max_parents=3))
    keep = np.random.default_rng(0).random(problem.candidates.n_sets) < 0.6
    keep[problem.candidates.offsets[:-1]] = True
    smaller = restricted(problem, keep)
    assert smaller.candidates.n_sets == keep.sum()
    seen = 0
    for choice, structure, value in scored(smaller):
        whole = problem.choice(structure)
        assert whole is not None
        assert keep[whole].all()
        assert (np.cumsum(keep)[whole] - 1 == choice).all()
        assert value == pytest.approx(problem.value(problem.indicator(whole)))
        seen += 1
    assert seen > 10
    if smaller.margins is not None:
        columns = np.isin(problem.margins.columns, np.flatnonzero(keep))
        np.testing.assert_array_equal(smaller.margins.alpha, problem.margins.alpha[:, :, columns])


@pytest.mark.parametrize("name", ["ll", "mdl", "aic", "bdeu"])
@pytest.mark.parametrize("max_parents", [2, 3])
def test_the_root_of_branch_and_cut_solves_small_decomposable_scores(name, max_parents):
    data = random_data(3)
    score = Score(name=name, class_parents=False, max_parents=max_parents)
    best = optimum(data, score)
    for backend in ("auto", "highs"):
        result = solve(data, score, backend=backend, root_only=True, threads=1, verbose=False)
        assert (result.bound_source, result.reason) == ("certified", "optimal")
        assert result.bound == pytest.approx(best.objective)
        assert result.bound >= best.objective - 1e-12 * abs(best.objective)
        assert result.structure.parents in best.structures


@pytest.mark.parametrize("score", ALL, ids=str)
def test_the_switches_leave_the_optimum_unchanged(score):
    """One of three settings for each kind of score; test_api_properties has all combinations of the switches."""
    data = random_data(5, n_samples=24)
    best = optimum(data, score)
    # Without the root bound nothing is reduced.
    options = ({}, {"root_bound": False}, {"reduce": False, "warm_start": False})[ALL.index(score) % 3]
    result = solve(data, score, backend="highs", threads=1, verbose=False, **options)
    assert result.reason == "optimal"
    assert result.objective == pytest.approx(best.objective, abs=1e-6)
    assert result.bound >= best.objective - 1e-9
