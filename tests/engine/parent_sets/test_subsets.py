"""Dynamic programming over subsets of variables against enumeration, and against branch and cut."""

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import oracle
import pytest
from running import predicate, problem_of, random_constraints, random_data
from test_search_of_parent_sets import drawn, enumerated, solved, weaken

from milpbn import Score, solve
from milpbn.claims.reasons import Reason
from milpbn.engine.parent_sets.search import Search
from milpbn.engine.parent_sets.sets import list_sets
from milpbn.engine.parent_sets.subsets import SubsetProgram
from milpbn.errors import InputError
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Rules
from milpbn.problem.local import LocalScores
from milpbn.solving.engines import branch_and_cut
from milpbn.solving.engines.base import BY_SUBSETS
from milpbn.solving.local_scores import solve_local_scores
from milpbn.solving.progress import closing_block
from milpbn.util.budget import Budget


def larger(seed: int) -> LocalScores:
    """Return random local scores of 8 to 14 variables, each with up to 60 parent sets among some of the others."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 15))
    sets, scores = [], []
    for i in range(n):
        near = rng.permutation([j for j in range(n) if j != i])[: int(rng.integers(2, n))]
        some = {tuple(sorted(rng.permutation(near)[: rng.integers(0, 4)].tolist())) for _ in range(60)}
        listed = sorted(some | {()} if rng.random() < 0.8 else some)
        sets.append(tuple(listed))
        scores += list(-40 * rng.random(len(listed)) + [6.0 * len(s) for s in listed])
    return LocalScores(Candidates(tuple(f"v{i}" for i in range(n)), tuple(sets)), np.array(scores))


@pytest.mark.parametrize("rank", [np.uint16, np.uint32])
@pytest.mark.parametrize("seed", range(400, 440))
def test_cheapest_structure_and_bound(seed, rank):
    """The bound holds in exact arithmetic, with sets that are not allowed and variables that are not on cycles."""
    problem, rng = replace(drawn(seed, n_extra=seed % 2), rules=Rules()), np.random.default_rng(seed)
    sets, in_eta, _ = list_sets(problem.candidates, problem.linear, dominated=True)
    allowed = rng.random(sets.n_sets) < rng.choice([0.6, 0.9, 1.0])
    if not (np.bincount(sets.child[allowed], minlength=sets.n_variables) > 0).all():
        allowed[:] = True
    program = SubsetProgram(sets, allowed)
    program._rank = np.dtype(rank)
    solution = program.solve(Budget(), parallel=bool(seed % 3))
    place = np.argsort(in_eta)
    chosen = [place[list(choice)] for _, choice in enumerated(problem)]
    exact = [sum(map(Fraction, sets.costs[c].tolist())) for c in chosen if allowed[c].all()]
    if not exact:
        assert solution.bound == np.inf
        return
    assert tuple(in_eta[solution.choice]) in {tuple(choice) for _, choice in enumerated(problem)}
    assert allowed[solution.choice].all()
    found = sum(map(Fraction, sets.costs[solution.choice].tolist()))
    assert float(found - min(exact)) <= 1e-12 * float(found)
    assert Fraction(solution.bound) <= min(exact)
    assert solution.bound == pytest.approx(float(min(exact)), rel=1e-12)


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(100, 1000), marks=pytest.mark.slow)])
def test_branch_and_cut_finds_the_same(seeds, monkeypatch):
    for seed in seeds:
        scores, how = larger(seed), {"verbose": False, "random_state": seed}
        other = solved(problem_of(scores.candidates, scores.scores), seed=seed)
        with monkeypatch.context() as patch:
            weaken(patch, seed)
            score, _, outcome = solved(
                problem_of(scores.candidates, scores.scores), seed=seed, threads=1 + seed % 3
            )
        assert outcome.proved_by == ""
        if outcome.infeasible:
            assert other[2].infeasible
            continue
        found = solve_local_scores(scores, **how)
        assert found.detail == other[2].proved_by == BY_SUBSETS
        assert f"optimal ({BY_SUBSETS})" in closing_block(found)
        assert found.objective == other[0] == pytest.approx(score, rel=1e-12)
        assert found.objective <= found.bound <= found.objective + 1e-9 * abs(found.objective)


def test_an_error_in_a_thread_ends_the_search(monkeypatch):
    weaken(monkeypatch, 0)
    plain = Search._bounded

    def bounded(self, node):
        if self.relaxation is not first[0]:
            raise ArithmeticError("a helper fails")
        time.sleep(0.02)  # so that the helpers get nodes
        return plain(self, node)

    def begin(self):
        first[:] = [self.relaxation]
        plain_begin(self)

    first, plain_begin = [], Search.begin
    monkeypatch.setattr(Search, "_bounded", bounded)
    monkeypatch.setattr(Search, "begin", begin)
    with pytest.raises(ArithmeticError, match="a helper"):
        solved(problem_of(larger(1).candidates, larger(1).scores), threads=3)


@pytest.mark.parametrize("seed", range(30))
def test_constraints_that_parent_sets_express(seed):
    """Limits of children are left to branch and cut."""
    rng = np.random.default_rng(seed)
    data = random_data([seed, 5], n_features=3, n_samples=40, weights=bool(seed % 2))
    rules = random_constraints(rng, data.names)
    name, both = str(rng.choice(["ll", "mdl", "aic", "bdeu"])), {"max_parents": 2, "parent_sets": "all"}
    weights = {(data.names.index(a), data.names.index(b)): w for (a, b), w in rules.arc_weights.items()}

    def bonus(parents):
        return sum(w for (j, i), w in weights.items() if j in parents[i])

    best = oracle.enumerate_best(data, name, allowed=predicate(data.names, rules), bonus=bonus, **both)
    try:
        found = solve(data, Score(name, **both), constraints=rules, verbose=False)
    except InputError:
        assert best.objective == -np.inf
        return
    if best.objective == -np.inf:
        assert found.reason is Reason.INFEASIBLE
        return
    assert found.objective == pytest.approx(best.objective, abs=1e-9)
    assert found.optimal
    assert found.detail == ("" if rules.max_children else BY_SUBSETS)


@pytest.mark.parametrize("asked", range(1, 30, 4))
def test_a_stopped_search_keeps_structure_and_bound(asked, monkeypatch):
    """After some questions whether to stop; later ones fall into the dynamic program."""
    monkeypatch.setattr("milpbn.engine.parent_sets.subsets.AT_ONCE", 100)
    scores, left = larger(3), iter(range(asked))
    best = solve_local_scores(scores, verbose=False)
    found = solve_local_scores(scores, verbose=False, interrupted=lambda: next(left, None) is None)
    assert (found.reason, str(found.limit), found.detail) == ("feasible", "user", "")
    assert found.objective <= best.objective <= best.bound <= found.bound


def test_what_needs_too_much_is_left_to_branch_and_cut(monkeypatch):
    problem = problem_of(larger(7).candidates, larger(7).scores)
    score, _, outcome = solved(problem)
    assert outcome.proved_by == BY_SUBSETS
    for name, value in {"MOST_SECONDS": 1e-6, "MOST_MEMORY": 1e-9}.items():
        with monkeypatch.context() as patch:
            patch.setattr(branch_and_cut, name, value)
            other, _, outcome = solved(problem)
            assert (outcome.finished, outcome.proved_by) == (True, "")
            assert other == pytest.approx(score, rel=1e-12)
    monkeypatch.setattr(branch_and_cut, "ROUND_SECONDS", 1e-9)  # the rounds at the root come first
    monkeypatch.setattr("milpbn.engine.parent_sets.cutting.ROUNDS", 1)
    assert solved(problem)[2].proved_by == BY_SUBSETS
