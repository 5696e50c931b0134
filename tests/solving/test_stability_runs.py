"""Searches on bootstrap samples: the samples, the searches, and files that are continued."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from running import optimum, random_data

import milpbn
from milpbn.claims.stability import SampleRun, Stability
from milpbn.errors import InputError, NoIncumbentError
from milpbn.problem.scores.spec import Score
from milpbn.solving import stability as module
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.solving.stability import Searches, bootstrap

SCORE = Score(p=0.9)
DATA = random_data([4, 4], n_features=3, n_samples=30, weights=True)


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "compile_all", lambda **_: 0)


def test_a_sample_has_as_many_rows_and_the_same_states() -> None:
    plain = replace(DATA, weights=np.ones(30))
    drawn = [bootstrap(plain, 0, number) for number in range(1, 200)]
    assert all(sample.weights.sum() == 30 for sample in drawn)
    assert all(sample.variables == plain.variables for sample in drawn)
    # A row is left out with probability (1 - 1/30)^30.
    left_out = np.mean([30 - len(sample.weights) for sample in drawn]) / 30
    assert left_out == pytest.approx((1 - 1 / 30) ** 30, abs=0.02)
    assert not np.array_equal(drawn[0].codes, drawn[1].codes)
    again = bootstrap(plain, 0, 1)
    assert np.array_equal(again.codes, drawn[0].codes)
    assert np.array_equal(again.weights, drawn[0].weights)


def test_the_weight_of_a_row_counts_as_often_as_it_is_drawn() -> None:
    sample = bootstrap(DATA, 3, 1)
    whole = {tuple(row): weight for row, weight in zip(DATA.codes.tolist(), DATA.weights, strict=True)}
    assert len(whole) < len(DATA.codes) or all(
        (weight / whole[tuple(row)]) % 1 == pytest.approx(0.0, abs=1e-9)
        for row, weight in zip(sample.codes.tolist(), sample.weights, strict=True)
    )


def test_every_run_is_the_optimum_of_its_sample() -> None:
    found = milpbn.stability(DATA, SCORE, samples=5, random_state=2)
    assert set(found.runs) == {1, 2, 3, 4, 5}
    assert found.n_proved == 5
    counts: dict[tuple[str, str], int] = {}
    for number, run in {0: found.all_rows, **found.runs}.items():
        data = DATA if number == 0 else bootstrap(DATA, 2, number)
        assert run.objective == pytest.approx(optimum(data, SCORE).objective, rel=1e-6)
        for arc in run.arcs if number else ():
            counts[arc] = counts.get(arc, 0) + 1
    for share in found.shares():
        directions = [(share.parent, share.child)]
        if "C" not in directions[0]:
            directions.append((share.child, share.parent))
        assert share.count == sum(counts.get(arc, 0) for arc in directions)


def test_a_file_is_continued_with_more_samples_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.json"
    first = milpbn.stability(DATA, SCORE, samples=2, output=path)
    searched = []

    def run(self: Searches, number: int) -> SampleRun:
        searched.append(number)
        return SampleRun(structure=None, failure="not searched")

    monkeypatch.setattr(Searches, "run", run)
    more = milpbn.stability(DATA, SCORE, samples=4, output=path)
    assert searched == [3, 4]
    assert more.runs[1] == replace(first.runs[1], seconds=more.runs[1].seconds)
    assert Stability.from_dict(module.parse_object(path.read_text()), "The file").runs == more.runs
    with pytest.raises(InputError, match="runs with other data, options, backend or seed"):
        milpbn.stability(DATA, Score(p=0.8), samples=4, output=path)
    other = tmp_path / "r.json"
    other.write_text("{}")
    with pytest.raises(InputError, match="exists and is of another kind"):
        milpbn.stability(DATA, SCORE, output=other)


def test_an_interrupt_keeps_what_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Searches.run
    monkeypatch.setattr(Searches, "run", lambda self, k: None if k == 3 else plain(self, k))
    found = milpbn.stability(DATA, SCORE, samples=9, output=tmp_path / "s.json")
    assert set(found.runs) == {1, 2}
    assert "2 of 9 bootstrap samples searched" in str(found)


def test_a_sample_that_fails_does_not_end_the_others() -> None:
    """A row of a weight below 1 cannot be left out, unless the sample draws it more often."""
    searches = Searches(Question(DATA, replace(SCORE, leave_one_out=True)), Options(verbose=False))
    run = searches.run(1)
    assert run is not None
    assert run.structure is None
    assert "weight" in run.failure
    with pytest.raises(InputError):
        searches.run(0)


@pytest.mark.slow
def test_processes_find_the_same() -> None:
    one, two = (milpbn.stability(DATA, SCORE, samples=4, n_jobs=n) for n in (1, 2))
    assert [run.structure for _, run in sorted(one.runs.items())] == [
        run.structure for _, run in sorted(two.runs.items())
    ]


@pytest.mark.parametrize("options", [{"samples": 0}, {"n_jobs": 0}])
def test_impossible_numbers_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InputError, match="At least 1 sample and 1 process"):
        milpbn.stability(DATA, SCORE, **options)


def test_near_the_memory_limit_the_finished_runs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(module, "exceeded", lambda: len(lines) >= 2)
    monkeypatch.setattr(module, "memory_limit", lambda: 2**30)
    found = milpbn.stability(DATA, SCORE, samples=5, report=lines.append)
    assert (found.asked, set(found.runs)) == (5, {1, 2})
    assert lines[-1] == "stopped near the memory limit of 1.0 GiB"


def test_a_sample_that_memory_stopped_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = Searches(Question(DATA, SCORE), Options(threads=1, verbose=False))
    found = milpbn.solve(DATA, SCORE, threads=1, verbose=False)
    stopped = replace(found, reason="feasible", limit="memory", bound=found.bound + 1)
    monkeypatch.setattr(module, "maximise", lambda *_, **__: stopped)
    assert searches.run(1) is None

    def fail(*_: object, **__: object) -> None:
        raise NoIncumbentError("no memory")

    monkeypatch.setattr(module, "maximise", fail)
    assert searches.run(1).failure == "no memory"
    monkeypatch.setattr(module, "exceeded", lambda: True)
    assert searches.run(1) is None
