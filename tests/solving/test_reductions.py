"""Searches over a part of the problem: over screened parent sets, over small ones first, and what is claimed of all."""

from __future__ import annotations

import json
import threading
import time

import numpy as np
import pytest
from running import heavy_enough, optimum, random_data

import milpbn
from milpbn import Score, Structure, solve
from milpbn.certificate.format import load_proof
from milpbn.claims.reasons import Limit
from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset, Variable
from milpbn.errors import InputError, NoIncumbentError
from milpbn.problem import undominated
from milpbn.problem.candidates import admitted_sets, build_candidates, count_candidates
from milpbn.problem.constraints import Constraints, Rules
from milpbn.problem.rescore import rescore
from milpbn.solving import enlarging, reductions
from milpbn.solving.progress import closing_block

K = 6
SCORES = [
    Score(p=0.9, max_parents=3),
    Score(p=0.95, max_parents=3, class_parents=False),
    Score(name="sbm", p=0.9, max_parents=3, class_parents=False, hybrid=0.05),
    Score(name="cll", max_parents=3, class_parents=False),
    Score(p=0.9, max_parents=3, class_parents=False, leave_one_out=True),
    Score(p=0.9, max_parents=2),
]


@pytest.fixture
def kept(monkeypatch):
    """The candidates of the problems over kept parent sets that were built."""
    built = []
    make = enlarging.BestSets.built

    def recorded(*arguments):
        problem = make(*arguments)
        built.append(problem.candidates)
        return problem

    monkeypatch.setattr(enlarging.BestSets, "built", recorded)
    return built


def best_over(data, candidates, score, constraints=None) -> float:
    """The best score over all structures of some candidate sets, by enumeration."""
    return optimum(data, score, constraints, candidates.sets).objective


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("score", SCORES, ids=str)
def test_the_best_structure_over_the_kept_sets(kept, score, seed):
    data = heavy_enough(random_data(seed, n_features=4, n_samples=70, weights=seed == 1), score)
    result = solve(data, score, screen=K, threads=1, verbose=False)
    (candidates,) = kept
    best = best_over(data, candidates, score)
    claim = result.screened
    assert claim.optimal
    assert claim.objective == result.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert claim.bound >= best - 1e-9
    assert claim.kept == {n: len(s) for n, s in zip(candidates.names, candidates.sets, strict=True)}
    assert claim.total == count_candidates(4, score) > claim.n_kept
    assert (result.bound, result.proved, result.gap.absolute, result.reason) == (None, None, None, "feasible")
    assert result.trace[-1][1:] == (claim.objective, claim.bound)
    assert Result.from_dict(json.loads(json.dumps(result.to_dict()))).screened == claim
    every = build_candidates(data.names, score)
    assert all({*own} <= {*sets} for own, sets in zip(candidates.sets, every.sets, strict=True))


@pytest.mark.parametrize("backend", ["highs", "cbc"])
@pytest.mark.parametrize("name", ["sm", "hard-margin", "mdl", "ll", "bdeu", "aicc"])
def test_milp_backends(kept, backend, name):
    data = random_data(4, n_features=4, n_samples=80)
    score = Score(name=name, max_parents=3, class_parents=False)
    result = solve(data, score, screen=K, backend=backend, threads=1, verbose=False)
    best = best_over(data, kept[0], score)
    assert result.screened.optimal
    assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert result.screened.criterion == ("linear gain" if score.is_margin else "local score")


def test_nothing_is_left_out_if_all_fit(tmp_path):
    data, score = random_data(5, n_features=4, n_samples=60), Score(p=0.9, max_parents=3)
    result = solve(data, score, screen=1000, threads=1, verbose=False, certificate=tmp_path / "c.npz")
    assert result.optimal
    assert result.screened is None
    assert result.bound == pytest.approx(solve(data, score, threads=1, verbose=False).bound, rel=1e-6)
    header, arrays = load_proof(tmp_path / "c.npz")
    assert header["screened"] is None
    assert not any(key.startswith("kept") for key in arrays)


def test_constraints_and_start(kept):
    data, score = random_data(6, n_features=4, n_samples=80), Score(p=0.9, max_parents=3, class_parents=False)
    rules = Constraints(required=(("X1", "X2"),), forbidden=(("X3", "X4"),), max_children={"*": 2})
    start = Structure(data.names, ((4,), (0, 4), (0, 1, 4), (4,), ()))
    result = solve(data, score, constraints=rules, start=start, screen=3, threads=1, verbose=False)
    assert (0, 1, 4) in kept[0].sets[2]
    best = best_over(data, kept[0], score, rules)
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert result.screened.optimal
    refused = Structure(data.names, ((4,), (4,), (4,), (4,), ()))
    with pytest.raises(InputError, match="In the start, 'X2'"):
        solve(data, score, constraints=rules, start=refused, screen=3, verbose=False)


def test_a_run_without_limits_can_be_repeated():
    data, score = random_data(8, n_features=6, n_samples=80), Score(p=0.9, max_parents=3, class_parents=False)
    one, other = (solve(data, score, screen=12, threads=1, verbose=False) for _ in range(2))
    assert one.structure == other.structure
    assert one.screened == other.screened


def wide(n_features=40, n_samples=600) -> Dataset:
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.integers(0, 3, (n_samples, n_features)), rng.integers(0, 2, n_samples)])
    names = [f"X{i}" for i in range(n_features)] + ["C"]
    states = [3] * n_features + [2]
    variables = tuple(
        Variable(v, tuple(f"s{j}" for j in range(n))) for v, n in zip(names, states, strict=True)
    )
    return Dataset("wide", variables, codes.astype(np.int32), np.ones(n_samples))


@pytest.mark.parametrize("limit", [0.3, 1.0])
def test_short_limits(limit, tmp_path):
    """Whatever stage the limit ends, what is claimed holds: over all sets, or over those that had been kept."""
    began = time.monotonic()
    try:
        result = solve(
            wide(),
            Score(p=0.9, max_parents=3),
            screen=60,
            time_limit=limit,
            threads=1,
            verbose=False,
            certificate=tmp_path / "c.npz",
        )
    except NoIncumbentError:  # a busy machine may not get as far as a structure
        return
    finally:
        assert time.monotonic() - began < limit + 20
    assert result.reason in ("feasible", "no_solution")
    searched = result.searched
    assert searched.bound is None or searched.bound >= (searched.objective or -np.inf)
    if result.screened is not None:
        assert result.screened.ranked <= result.screened.total
        assert max(result.screened.kept.values()) <= 60
    assert Result.from_dict(result.to_dict()).searched == searched


def test_an_interrupt_while_screening_keeps_the_incumbent(monkeypatch):
    ranking, asked = threading.Event(), []
    best_sets = enlarging.best_sets

    def interrupted_here(*arguments):
        ranking.set()
        return best_sets(*arguments)

    monkeypatch.setattr(enlarging, "best_sets", interrupted_here)

    def interrupted():
        asked.append(None)
        return ranking.is_set()

    data = random_data(9, n_features=6, n_samples=90)
    result = solve(
        data, Score(p=0.9, max_parents=3), screen=9, threads=1, verbose=False, interrupted=interrupted
    )
    assert (result.reason, result.limit) == ("feasible", "user")
    assert result.screened is None
    assert result.bound >= result.objective  # the bound that needs no tables holds for all structures


@pytest.mark.parametrize("backend", ["native", "highs"])
def test_no_engine_searches_over_the_small_sets_only(monkeypatch, backend):
    """If the time ends before the problem over the kept sets is built, what is claimed holds for all structures."""

    def too_late(*arguments):
        raise NoIncumbentError("The time limit ended.")

    monkeypatch.setattr(enlarging.BestSets, "built", too_late)
    data, score = random_data(11, n_features=4, n_samples=60), Score(p=0.9, max_parents=3)
    result = solve(data, score, screen=K, backend=backend, threads=1, verbose=False)
    assert (result.reason, result.limit, result.screened) == ("feasible", "time", None)
    assert result.bound >= best_over(data, build_candidates(data.names, score), score)
    assert result.proved is None or result.proved.to_dict() == {"in": [], "out": []}


def test_selection_screens_every_trial(kept):
    data = random_data(10, n_features=5, n_samples=60)
    result = milpbn.solve_selected(
        data,
        Score(class_parents=False),
        p_values=(0.9,),
        max_parents_values=(2, 3),
        screen=8,
        threads=1,
        verbose=False,
        time_limit=60,
    )
    assert len(kept) >= 5
    assert (result.screened is None) == (result.score.max_parents == 2)
    assert all(trial.proved == 0 for trial in result.selection.trials if trial.max_parents == 3)


def test_refusals():
    data = random_data(1)
    for values, words in (({"screen": 0}, "at least 1"), ({"screen": 2, "subset": 5}, "leave out --subset")):
        with pytest.raises(InputError, match=words):
            solve(data, Score(), verbose=False, **values)


def test_too_many_kept_sets_are_refused_before_they_are_ranked(monkeypatch):
    monkeypatch.setattr("milpbn.util.memory.available_memory", lambda: 3_000_000)
    with pytest.raises(InputError, match="keep fewer with --screen"):
        solve(wide(), Score(p=0.9, max_parents=3), screen=500, backend="highs", verbose=False)


@pytest.fixture
def tiny_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches over the sets of one member, then of two, and so on, on tiny problems."""
    monkeypatch.setattr(reductions, "SMALL_TABLES", 0)
    monkeypatch.setattr(reductions, "SMALL_TABLES_WITHIN_LIMIT", 0)
    monkeypatch.setattr(reductions, "GROWTH", 1)


def test_sizes_grow_until_all_sets_are_left() -> None:
    admitted = admitted_sets(180, Score(max_parents=3), Rules())
    assert reductions.small_sizes(admitted, 10_000) == [1, 2]
    assert reductions.small_sizes(admitted, 100_000) == [2]
    assert reductions.small_sizes(admitted, 10**8) == []
    assert reductions.small_sizes(admitted_sets(5, Score(max_parents=2), Rules()), 1) == [1]
    assert reductions.small_sizes(admitted_sets(5, Score(max_parents=1), Rules()), 1) == []


@pytest.mark.parametrize(
    ("score", "constraints"),
    [
        (Score(max_parents=3), Constraints()),
        (Score("cll", max_parents=3, hybrid=0.1), Constraints(required=(("X1", "X2"), ("X3", "X2")))),
        (Score("mdl", max_parents=3, parent_sets="all"), Constraints(max_children={"*": 1})),
        (Score("aicc", max_parents=3), Constraints()),
    ],
)
@pytest.mark.usefixtures("tiny_steps")
def test_the_optimum_is_that_of_one_search(
    score: Score, constraints: Constraints, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = random_data(11, n_features=4, n_samples=60)
    found = milpbn.solve(data, score, constraints=constraints)
    monkeypatch.undo()
    plain = milpbn.solve(data, score, constraints=constraints)
    assert found.optimal
    assert plain.optimal
    assert found.objective == pytest.approx(plain.objective, abs=1e-9)
    assert not any(note.startswith("Only") for note in found.notes)


@pytest.mark.usefixtures("tiny_steps")
def test_a_limit_before_all_sets_are_listed_keeps_a_structure_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, score = random_data(11, n_features=6, n_samples=200), Score(max_parents=3)

    def too_slow(*arguments: object, **options: object) -> None:
        raise NoIncumbentError("The time limit ended.")

    monkeypatch.setattr(reductions, "list_candidates", too_slow)
    result = milpbn.solve(data, score, time_limit=60.0)
    assert (result.reason, result.limit) == ("feasible", Limit.TIME)
    assert result.structure is not None
    assert result.objective == pytest.approx(rescore(data, result.structure, score), abs=1e-9)
    assert result.objective >= max(
        rescore(data, milpbn.Structure.naive_bayes(data.names), score), 0.0
    )  # structures with two parents were searched as well
    block = closing_block(result)
    assert "Only parent sets of at most 2 parents were searched" in block
    assert "--screen 100" in block
    monkeypatch.undo()
    assert milpbn.solve(data, score).objective <= result.bound


def test_dominated_sets_are_left_out_of_small_sets_before_a_limit_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where scoring may take much of a time limit, small sets come first, so that there is a structure in any case."""
    data, score = random_data(11, n_features=5, n_samples=200), Score("mdl", max_parents=3, parent_sets="all")
    plain = milpbn.solve(data, score)
    monkeypatch.setattr(reductions, "SCORED", 1.0)
    monkeypatch.setattr(undominated, "FEW", 0)
    found = milpbn.solve(data, score, time_limit=100.0)
    assert found.optimal
    assert found.objective == pytest.approx(plain.objective, abs=1e-9)
    assert not any(note.startswith("Only") for note in found.notes)

    def too_slow(*arguments: object) -> None:
        raise NoIncumbentError("The time limit ended.")

    monkeypatch.setattr(reductions.Statement, "everything", too_slow)
    ended = milpbn.solve(data, score, time_limit=100.0)
    assert (ended.reason, ended.limit) == ("feasible", Limit.TIME)
    assert ended.objective <= plain.objective <= ended.bound
    assert "Only parent sets of at most 1 parent were searched" in closing_block(ended)
