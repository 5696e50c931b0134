"""Results of runs: the list of the best structures, calls of the caller's function, and the note on compilation."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from running import copied_feature, dataset, optimum, random_data

import milpbn
from milpbn.certificate.exact.check import check as check_exactly
from milpbn.certificate.verify.check import verify
from milpbn.claims.reasons import Limit
from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score
from milpbn.solving import report
from milpbn.solving.progress import closing_block
from milpbn.util.clock import Stopwatch

SCORE = Score(p=0.9)


def best(data: Dataset, n_best: int, **options) -> Result:
    return milpbn.solve(data, SCORE, **{"n_best": n_best, "verbose": False, "threads": 1, **options})


def test_one_structure_is_no_list() -> None:
    assert best(random_data(3), 1).alternatives is None


def test_copies_of_a_feature_give_different_structures_of_the_same_score() -> None:
    """Ties are listed one by one. On states in which the copies differ, the classifiers do, too."""
    data = copied_feature()
    claim = best(data, 8).alternatives
    assert claim is not None
    assert claim.optimal
    expected = [value for value, _ in optimum(data, SCORE, most=8).ranked]
    assert [one.objective for one in claim.structures] == pytest.approx(expected, rel=1e-6)
    assert len({one.structure for one in claim.structures}) == 8


def test_all_structures_of_a_small_problem_are_listed() -> None:
    data = random_data(4, n_features=1)
    claim = best(data, 50).alternatives
    assert claim is not None
    assert claim.exhausted
    assert claim.bound is None
    assert claim.asked == 50
    assert len(claim.structures) == 3  # no arc, and one in either direction


@pytest.mark.parametrize(
    ("score", "within"),
    [(SCORE, 1.5), (Score(name="cll"), 0.5), *((Score(name=n), 2.0) for n in ("bdeu", "mdl", "aic", "ll"))],
    ids=lambda value: getattr(value, "name", ""),
)
def test_all_structures_within_a_distance_are_listed(score: Score, within: float, tmp_path: Path) -> None:
    data = random_data([7, 7], n_features=3, n_samples=40)
    ranked = [value for value, _ in optimum(data, score, most=2000).ranked]
    options = {"verbose": False, "threads": 1, "within": within}
    result = milpbn.solve(data, score, output=tmp_path / "r.json", **options)
    claim = result.alternatives
    assert claim is not None
    assert claim.optimal
    listed = [one.objective for one in claim.structures]
    assert listed == pytest.approx(
        [value for value in ranked if value >= ranked[0] - within - 1e-9], rel=1e-9
    )
    assert claim.bound == pytest.approx(max(listed[0] - within, ranked[len(listed)]), abs=1e-5)
    assert Result.load(tmp_path / "r.json").alternatives == claim
    ties = milpbn.solve(data, score, **{**options, "within": 0}).alternatives
    assert len(ties.structures) == sum(value >= ranked[0] - 1e-6 for value in ranked)
    few = milpbn.solve(data, score, n_best=2, **options).alternatives
    assert [one.objective for one in few.structures] == pytest.approx(listed[:2])


@pytest.mark.parametrize(
    "options", [{"root_only": True}, {"interrupted": lambda: True}], ids=lambda options: next(iter(options))
)
def test_a_search_that_is_stopped_keeps_the_list_so_far_with_a_bound(options) -> None:
    data = random_data(8, n_features=5, n_samples=60)
    result = best(data, 6, **options)
    claim = result.alternatives
    if result.structure is None:
        return
    assert claim is not None
    assert not claim.exhausted
    assert claim.structures[0].objective == result.objective
    assert claim.bound is not None
    assert claim.bound <= result.bound
    expected = [value for value, _ in optimum(data, SCORE, most=7).ranked]
    listed = [one.objective for one in claim.structures]
    others = [value for value in expected if not any(math.isclose(value, z, rel_tol=1e-9) for z in listed)]
    assert claim.bound >= max(others, default=-np.inf) - 1e-9


def test_a_gap_is_that_of_the_last_structure() -> None:
    data = random_data(8, n_features=5, n_samples=60)
    whole = best(data, 6)
    result = best(data, 6, gap_abs=5.0)
    claim = result.alternatives
    assert claim is not None
    assert claim.cutoff is not None
    assert claim.bound - claim.cutoff <= 5.0 + 1e-6
    assert (result.nodes or 0) <= whole.nodes
    if result.limit is not None:
        assert result.limit is Limit.GAP


def test_the_result_is_that_of_a_search_for_one(tmp_path: Path) -> None:
    data = random_data(9, n_features=4, n_samples=50)
    result = best(data, 3, output=tmp_path / "r.json")
    plain = best(data, 1)
    assert result.objective == pytest.approx(plain.objective, rel=1e-9)
    assert result.reason == plain.reason == "optimal"
    assert Result.load(tmp_path / "r.json").alternatives == result.alternatives


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_best": 0}, "between 1 and 1000, got 0"),
        ({"n_best": 1001}, "between 1 and 1000, got 1001"),
        ({"n_best": 2.5}, "n_best"),
        ({"within": -1}, "at least 0, got -1"),
        ({"n_best": 3, "subset": 5}, r"best structures .* --subset"),
        ({"within": 3, "screen": 2}, r"best structures .* --screen"),
        ({"n_best": 3, "backend": "highs"}, "the backends native and branch-and-cut, not with highs"),
        ({"within": 3, "score": "aicc"}, "leave out --n-best .* sm, sbm, cll, ll, mdl, aic, bdeu"),
    ],
)
def test_what_cannot_be_listed_is_refused(options, words: str) -> None:
    with pytest.raises(InputError, match=words):
        milpbn.solve(random_data(1), **{"score": SCORE, "verbose": False, **options})


def rescored_list(data: Dataset, score: Score, result: Result) -> list[float]:
    """Check that every listed structure has its own score, best first, and the result is the first; return them."""
    claim = result.alternatives
    assert claim is not None
    scores = [one.objective for one in claim.structures]
    assert scores == [rescore(data, one.structure, score) for one in claim.structures]
    assert scores == sorted(scores, reverse=True)
    assert (result.structure, result.objective) == (claim.structures[0].structure, scores[0])
    return scores


def test_listed_scores_are_those_of_the_structures_although_the_incumbent_was_good_enough(
    tmp_path: Path,
) -> None:
    """The first incumbent is within the gap of an optimum: 40.003993, where two structures have 40.003999594."""
    rows = [(0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 1, 0), (2, 2, 1, 1)]
    data = dataset(rows, weights=[0.5, 10000, 0.5, 1e-6])
    score = Score(gamma=0.004, max_parents=1)
    options = {"n_best": 5, "threads": 1, "random_state": 254, "verbose": False}
    result = milpbn.solve(data, score, certificate=tmp_path / "p.npz", **options)
    assert rescored_list(data, score, result)[:3] == pytest.approx(
        [40.003999594, 40.003999594, 40.003992751], abs=1e-8
    )
    assert verify(result, tmp_path / "p.npz", data).listed == 5


def test_nodes_of_structures_that_break_a_rule_cast_no_doubt_on_the_arcs_of_optima(tmp_path: Path) -> None:
    """With 20 of 13 structures nothing is pruned, and single structures with too many children have large bounds."""
    data = dataset([(0, 0, 0), (1, 1, 1), (0, 2, 2), (0, 0, 0)])
    score, rules = Score(gamma=30, max_parents=3), Constraints(max_children={"*": 1})
    options = {"n_best": 20, "threads": 1, "verbose": False, "certificate": tmp_path / "p.npz"}
    result = milpbn.solve(data, score, constraints=rules, **options)
    claim = result.alternatives
    assert claim is not None
    assert claim.exhausted
    assert len(claim.structures) == 13
    assert result.proved is not None
    assert ("C", "X2") in result.proved.inside
    assert verify(result, tmp_path / "p.npz", data).listed == 13
    check_exactly(result.to_dict(), tmp_path / "p.npz", data)


def test_a_list_that_cannot_be_filled_does_not_try_every_choice_that_exceeds_a_child_limit() -> None:
    data = random_data(2, n_features=6)
    rules = Constraints(max_children={"C": 0, "X1": 1})
    result = best(data, 500, constraints=rules, time_limit=60)
    claim = result.alternatives
    assert claim is not None
    assert claim.exhausted
    assert (result.nodes or 0) < 1000


@pytest.mark.parametrize("n_best", [1, 3])
def test_a_single_structure_is_bounded_by_its_score(n_best: int, tmp_path: Path) -> None:
    """Rounding errors of dual weights at equal margins exceed the gap of an optimum here; those of scores do not."""
    data = random_data(8, n_features=2, max_states=2, n_samples=12)
    score = Score(p=0.6, max_parents=1, class_parents=False, smoothing=1e-12, smoothing_towards="marginal")
    options = {"n_best": n_best, "threads": 1, "verbose": False, "certificate": tmp_path / "p.npz"}
    result = milpbn.solve(data, score, **options)
    assert result.reason == "optimal"
    assert result.limit is None
    verify(result, tmp_path / "p.npz", data)
    check_exactly(result.to_dict(), tmp_path / "p.npz", data)


def test_a_time_limit_holds_for_long_lists_and_the_bound_does_not_wait_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "monotonic", time.process_time)  # what runs beside the test takes no time then
    data = random_data(5, n_features=5, n_samples=60)
    best(data, 2)  # compiles
    limit = 1.0
    result = best(data, 300, time_limit=limit)
    claim = result.alternatives
    assert claim is not None
    assert len(claim.structures) == 300
    assert result.seconds.total < 2 * limit
    assert claim.bound is not None
    assert claim.bound < SCORE.gamma * 60 - 1.0  # the bound without search


def test_a_start_may_have_arcs_that_a_list_forbids() -> None:
    """Arcs of a feature with one state would give every structure many twins."""
    data = dataset([(0, 0, 0), (0, 1, 1), (0, 1, 0), (0, 0, 0)], n_states=(1, 2, 2))
    start = Structure(data.names, ((2,), (0, 2), ()))
    claim = best(data, 50, start=start).alternatives
    assert claim is not None
    assert claim.exhausted
    assert all(0 not in own for one in claim.structures for own in one.structure.parents)


def test_constraints_hold_for_every_structure() -> None:
    data = random_data(6, n_features=4, n_samples=40)
    rules = Constraints(required=(("X1", "X2"),), max_children={"X3": 0})
    claim = best(data, 10, constraints=rules).alternatives
    assert claim is not None
    for one in claim.structures:
        parents = one.structure.to_mapping()
        assert "X1" in parents["X2"]
        assert all("X3" not in own for own in parents.values())


QUICK = {"threads": 1, "verbose": False}


@pytest.mark.parametrize("backend", ["native", "highs"])
def test_every_call_has_a_valid_result(backend: str) -> None:
    seen: list[milpbn.Result] = []
    threads = set()

    def note(result: milpbn.Result) -> None:
        threads.add(threading.current_thread())
        seen.append(result)

    result = milpbn.solve(random_data(3), backend=backend, on_change=note, **QUICK)
    assert threads == {threading.current_thread()}
    assert {r.reason for r in seen} == {"running"}
    assert (seen[-1].objective, seen[-1].structure) == (result.objective, result.structure)
    assert all((r.classifier is None) == (r.structure is None) for r in seen)
    objectives = [r.objective for r in seen if r.objective is not None]
    bounds = [r.bound for r in seen if r.bound is not None]
    assert objectives == sorted(objectives)
    assert bounds == sorted(bounds, reverse=True)


def test_true_stops_the_search() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (300, 15)), rng.integers(0, 3, 300)
    result = milpbn.solve((X, y), on_change=lambda r: r.structure is not None, **QUICK)
    assert (result.reason, result.limit) == ("feasible", "user")


def test_an_exception_ends_the_search() -> None:
    def fail(result: milpbn.Result) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        milpbn.solve(random_data(3), on_change=fail, **QUICK)


@pytest.mark.parametrize("average", [1, 2])
def test_only_the_search_with_the_best_setting_calls_it(average: int) -> None:
    seen: list[milpbn.Result] = []
    result = milpbn.solve_selected(
        random_data(3), grid="p=.6,.9", average=average, on_change=lambda r: seen.append(r), **QUICK
    )
    assert {r.score for r in seen} == {result.score}


@pytest.mark.parametrize(
    ("seconds", "limit", "told"), [(3.0, Limit.TIME, True), (0.5, Limit.TIME, False), (9.0, None, False)]
)
def test_the_note_is_for_time_limits(
    seconds: float, limit: Limit | None, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stopwatch, "since", lambda self, start: seconds)
    notes = report._compiling(limit, 0.0, 10.0)
    assert bool(notes) == told
    result = milpbn.solve(random_data(3))
    block = closing_block(replace(result, notes=(*result.notes, *notes)))
    assert ("Compiling kernels took 3 of 10 seconds" in block) == told
