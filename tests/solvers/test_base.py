"""The contract of every backend, tested for each that is installed."""

from __future__ import annotations

import importlib.metadata
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from backend_cases import (
    BACKENDS,
    DIRECT,
    HARD_OBJECTIVE,
    SCORES,
    Recorder,
    hard_formulation,
    installed,
    naive_bayes,
    optimum,
    small_formulation,
    stop_after,
)

from milpbn.errors import InputError
from milpbn.milp.formulation import Formulation
from milpbn.solvers import highs
from milpbn.solvers.base import Settings

OPTIONS = {
    "highs": ("mip_max_nodes", "1000", "mip_max_nodes", "many"),
    "cbc": ("strong", "7", "strong", "many"),
    "cpsat": ("linearization_level", "2", "linearization_level", "many"),
    "scip": ("separating/maxrounds", "3", "separating/maxrounds", "many"),
    "pulp:highs": ("mip_max_nodes", "1000", "mip_max_nodes", "many"),
    "pulp:cbc": ("strong", "7", "strong", "many"),
    "pulp:scip": ("separating/maxrounds", "3", "separating/maxrounds", "many"),
}


@pytest.fixture(scope="module")
def hard() -> Formulation:
    return hard_formulation()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", BACKENDS)
def test_optimum_and_events_agree_with_scipy(name: str, score: str) -> None:
    backend = installed(name)
    milp = replace(small_formulation(score, 0).milp, constant=-12.5)
    recorder = Recorder(milp)
    outcome = backend.solve(milp, None, Settings(), recorder)
    expected = optimum(milp)
    assert outcome.finished
    assert not outcome.infeasible
    recorder.check(expected)
    tolerance = 1e-6 * max(1.0, abs(expected))
    assert recorder.objective == pytest.approx(expected, abs=tolerance)
    assert min(recorder.bounds) <= recorder.objective + tolerance


@pytest.mark.parametrize("name", BACKENDS)
def test_warm_starts_with_negative_and_positive_objectives_lead_to_the_optimum(name: str) -> None:
    backend = installed(name)
    for score, seed in (("mdl", 1), ("sm", 2)):
        formulation = small_formulation(score, seed)
        recorder = Recorder(formulation.milp)
        outcome = backend.solve(formulation.milp, naive_bayes(formulation), Settings(seed=3), recorder)
        assert outcome.finished
        recorder.check(optimum(formulation.milp))
        assert recorder.objective == pytest.approx(optimum(formulation.milp), rel=1e-6, abs=1e-6)


#: PuLP's CBC is the same program in the same child process as PuLP's HiGHS, and seconds of it bring nothing new.
STOPPED = [pytest.param(n, marks=pytest.mark.slow if n == "pulp:cbc" else ()) for n in BACKENDS]


#: Solvers that have taken a given start within the 3 seconds that they get for it.
TAKE_STARTS = ("highs", "cbc", "scip")


@pytest.mark.parametrize("name", STOPPED)
def test_deadline_is_met_and_neither_a_start_is_lost_nor_anything_left_behind(
    name: str, hard: Formulation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = installed(name)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    recorder = Recorder(hard.milp)
    start = naive_bayes(hard) if name in TAKE_STARTS else None
    begin = time.monotonic()
    deadline = begin + (1.0 if start is None else 3.0)
    outcome = backend.solve(hard.milp, start, Settings(deadline=deadline), recorder)
    assert outcome.limit == "time"
    assert not outcome.finished
    # The model takes minutes; the slack is for slow machines.
    assert time.monotonic() - begin < 15
    assert list(tmp_path.iterdir()) == []
    assert min(recorder.bounds, default=np.inf) >= HARD_OBJECTIVE
    for x in recorder.points:
        assert hard.milp.violation(x) <= 1e-6
    assert start is None or recorder.objective >= hard.milp.objective(start) - 1e-6


@pytest.mark.parametrize("name", STOPPED)
def test_stops_when_asked_to(name: str, hard: Formulation) -> None:
    backend = installed(name)
    begin = time.monotonic()
    recorder = Recorder(hard.milp, stop_after(2.0 if name == "scip" else 0.5))
    outcome = backend.solve(hard.milp, None, Settings(), recorder)
    assert outcome.limit == "user"
    assert min(recorder.bounds, default=np.inf) >= HARD_OBJECTIVE
    assert time.monotonic() - begin < 15


@pytest.mark.parametrize("name", OPTIONS)
def test_options_and_log_reach_the_solver(name: str, tmp_path: Path) -> None:
    backend = installed(name)
    formulation = small_formulation("sm", 4)
    key, good, bad_key, bad = OPTIONS[name]
    log = tmp_path / "solver.log"
    recorder = Recorder(formulation.milp)
    outcome = backend.solve(formulation.milp, None, Settings(options={key: good}, log=log), recorder)
    recorder.check(optimum(formulation.milp))
    assert outcome.limit in (None, "gap", "user")
    assert log.read_text()
    for options in ({bad_key: bad}, {"no_such_option": "1"}):
        with pytest.raises(InputError, match="does not take the solver option"):
            backend.solve(formulation.milp, None, Settings(options=options), Recorder(formulation.milp))


@pytest.mark.parametrize("name", ["cbc", "cpsat", "scip", "pulp:highs"])
def test_a_log_file_that_cannot_be_written_is_refused(name: str, tmp_path: Path) -> None:
    backend = installed(name)
    milp = small_formulation("mdl", 0).milp
    with pytest.raises(InputError, match="cannot be written"):
        backend.solve(milp, None, Settings(log=tmp_path / "missing" / "log"), Recorder(milp))


@pytest.mark.parametrize("name", BACKENDS)
def test_an_infeasible_program_is_reported(name: str) -> None:
    backend = installed(name)
    milp = small_formulation("mdl", 0).milp
    lower = milp.lower.copy()
    lower[:2] = 1.0  # two parent sets of the first feature at once
    recorder = Recorder(replace(milp, lower=lower))
    outcome = backend.solve(recorder.milp, None, Settings(), recorder)
    assert outcome.infeasible
    assert outcome.finished
    assert recorder.points == []


@pytest.mark.parametrize("name", DIRECT)
def test_two_threads_find_the_optimum(name: str) -> None:
    backend = installed(name)
    milp = small_formulation("sm", 6).milp
    recorder = Recorder(milp)
    assert backend.solve(milp, None, Settings(threads=2), recorder).finished
    recorder.check(optimum(milp))


@pytest.mark.parametrize("name", ["highs", "pulp:highs"])
def test_versions_of_highs_that_return_wrong_optima_are_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = installed(name)
    version = importlib.metadata.version("highspy")
    [required] = [r for r in importlib.metadata.requires("milpbn") or () if r.startswith("highspy")]
    assert all(f"!={number}" in required for number in highs.BROKEN)
    assert "HiGHS" in backend.version()
    monkeypatch.setattr(highs, "BROKEN", ("1.0.0", version))
    with pytest.raises(
        InputError, match=f"HiGHS {version} returns wrong optima.*'highspy!=1.0.0,!={version}'"
    ):
        backend.version()


# These come last, because they end the child process that the tests before them share.


@pytest.mark.parametrize("name", ["cbc", "cpsat", "scip", "pulp:highs"])
def test_an_error_in_the_events_is_raised_and_stops_the_run(name: str) -> None:
    backend = installed(name)

    class Failing(Recorder):
        def point(self, x: np.ndarray, source: str, objective: float | None = None) -> None:
            raise ZeroDivisionError("receiver")

    milp = small_formulation("sm", 5).milp
    with pytest.raises(ZeroDivisionError, match="receiver"):
        backend.solve(milp, None, Settings(), Failing(milp))


@pytest.mark.parametrize("name", ["cbc", "cpsat", "scip", "pulp:highs"])
def test_an_interrupt_in_this_process_ends_the_run(name: str, hard: Formulation) -> None:
    backend = installed(name)
    asked = []

    def interrupt() -> bool:
        asked.append(True)
        if len(asked) > 5:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        backend.solve(hard.milp, None, Settings(), Recorder(hard.milp, interrupt))
