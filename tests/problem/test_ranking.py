"""The gains by which parent sets are ranked, and which sets are kept."""

from __future__ import annotations

import numpy as np
import pytest
from running import heavy_enough, random_data

from milpbn.network.structure import Structure
from milpbn.problem import ranking
from milpbn.problem.candidates import admitted_sets, build_candidates
from milpbn.problem.conflicts import resolve
from milpbn.problem.constraints import Constraints
from milpbn.problem.duals import add_gradient, empty_duals, weigh
from milpbn.problem.problem import build_problem
from milpbn.problem.ranking import Ranking, best_sets, criterion
from milpbn.problem.scores.spec import Score
from milpbn.problem.screening import small_sets

SCORES = [
    Score(p=0.9, max_parents=3),
    Score(name="sbm", p=0.9, max_parents=3, class_parents=False),
    Score(name="cll", max_parents=3, hybrid=0.1, penalty=0.2),
    Score(p=0.9, max_parents=3, leave_one_out=True),
    Score(name="hard-margin", max_parents=3),
    Score(name="mdl", max_parents=3),
    Score(name="aicc", max_parents=2),
    Score(name="bdeu", max_parents=2, parent_sets="all"),
]


def small_case(score, k, rules=None, n_features=5):
    """The problem over the small sets of random data, what is admitted, and the problem over all sets."""
    data = heavy_enough(random_data(3, n_features=n_features, n_samples=90), score)
    rules = rules or Constraints()
    indices, _ = resolve(rules, data.names, score)
    admitted = admitted_sets(n_features, score, indices)
    small = small_sets(data.names, admitted, k, None)
    return (
        build_problem(data, score, rules, listed=(indices, small)),
        admitted,
        build_problem(data, score, rules),
    )


@pytest.fixture(params=[1, 10**9], ids=["blocks of one domain", "one block"])
def block(request, monkeypatch):
    monkeypatch.setattr(ranking, "BLOCK_WORK", request.param)


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize("score", SCORES, ids=str)
def test_the_best_by_gain_are_kept(score):
    k = 8
    problem, admitted, whole = small_case(score, k)
    eta = problem.indicator(problem.choice(Structure.naive_bayes(problem.candidates.names)))
    at = Ranking(problem, eta)
    kept, ranked = best_sets(at, admitted, k, lambda: False)
    gains = at.gains(whole.candidates)
    assert at.small_gains() == pytest.approx(at.gains(problem.candidates))
    full, small = whole.candidates, problem.candidates
    others = 0
    for i, sets in enumerate(kept.sets):
        assert set(small.sets[i]) <= set(sets) <= set(full.sets[i])
        assert len(sets) == max(len(small.sets[i]), min(k, len(full.sets[i])))
        a = int(full.offsets[i])
        left = [gains[a + x] for x, s in enumerate(full.sets[i]) if s not in sets]
        taken = [gains[a + x] for x, s in enumerate(full.sets[i]) if s in sets and s not in small.sets[i]]
        assert not left or not taken or min(taken) >= max(left) - 1e-9
        others += (len(full.sets[i]) - len(small.sets[i])) * (len(small.sets[i]) < k)
    assert ranked == others
    assert criterion(problem) == ("linear gain" if score.is_margin else "local score")


@pytest.mark.parametrize("score", SCORES[:4], ids=str)
def test_a_gain_is_the_derivative_of_the_softened_score(score):
    """The gains are those that the engine's own product with all coefficients gives, at a point of small sets."""
    problem, _, whole = small_case(score, 8)
    rng = np.random.default_rng(0)
    eta = np.concatenate([rng.dirichlet(np.ones(len(sets))) for sets in problem.candidates.sets])
    places = [whole.candidates.position(i, s) for i, sets in enumerate(problem.candidates.sets) for s in sets]
    point = np.zeros(whole.candidates.n_sets)
    point[places] = eta
    duals, out = empty_duals(whole.margins.tables), whole.linear.copy()
    weigh(whole.margins.tables, whole.margins.softening, whole.margins.logits(point), 0.3, duals)
    add_gradient(whole.margins.tables, duals, np.ones(len(out), dtype=bool), out, False)
    assert Ranking(problem, eta, 0.3).gains(whole.candidates) == pytest.approx(out)


def test_what_stops_early_keeps_the_small_sets_and_the_best_so_far(monkeypatch):
    monkeypatch.setattr(ranking, "BLOCK_WORK", 1)
    score = Score(p=0.9, max_parents=3)
    problem, admitted, _ = small_case(score, 9, n_features=6)
    at = Ranking(problem, problem.indicator(problem.choice(Structure.naive_bayes(problem.candidates.names))))
    counts = []
    for blocks in (0, 1, 5, 1000):
        stopped = (iter([False] * blocks + [True]) for _ in range(2))
        (kept, ranked), (again, _) = (best_sets(at, admitted, 9, answers.__next__) for answers in stopped)
        assert kept.sets == again.sets
        assert all(set(a) <= set(b) for a, b in zip(problem.candidates.sets, kept.sets, strict=True))
        counts.append(ranked)
    assert counts[0] == 0
    assert counts == sorted(set(counts))


def test_required_forbidden_and_fixed_arcs():
    rules = Constraints(required=(("X1", "X2"),), forbidden=(("X3", "X4"),), fixed={"X5": ("X1", "X2", "C")})
    problem, admitted, whole = small_case(Score(p=0.9, max_parents=3), 4, rules)
    at = Ranking(problem, problem.indicator(problem.candidates.offsets[:-1]))
    kept, _ = best_sets(at, admitted, 4, lambda: False)
    for i, sets in enumerate(kept.sets):
        assert set(sets) <= set(whole.candidates.sets[i])
    assert kept.sets[4] == ((0, 1, 5),)
    assert all(0 in s for s in kept.sets[1])


def test_tables_that_no_classifier_could_hold_are_not_ranked(monkeypatch):
    monkeypatch.setattr(ranking, "MAX_TABLE_ENTRIES", 1)
    problem, admitted, _ = small_case(Score(p=0.9, max_parents=3), 7)
    at = Ranking(problem, problem.indicator(problem.candidates.offsets[:-1]))
    kept, ranked = best_sets(at, admitted, 7, lambda: False)
    assert (kept.sets, ranked) == (problem.candidates.sets, 0)


def test_all_sets_are_kept_if_they_fit():
    names, score = ("X1", "X2", "X3", "C"), Score(p=0.9, max_parents=3)
    data = random_data(1)
    admitted = admitted_sets(3, score, resolve(Constraints(), names, score)[0])
    small = small_sets(names, admitted, 100, None)
    problem = build_problem(data, score, listed=(resolve(Constraints(), names, score)[0], small))
    at = Ranking(problem, problem.indicator(problem.candidates.offsets[:-1]))
    assert best_sets(at, admitted, 100, lambda: False)[0].sets == build_candidates(names, score).sets
