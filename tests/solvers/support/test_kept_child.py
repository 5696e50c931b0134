"""Child processes that solve several models: nothing passes from one to the next, and what has died is replaced."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from backend_cases import Recorder
from telling import Telling

from milpbn.errors import SolverError
from milpbn.milp.milp import Milp
from milpbn.solvers.base import Settings
from milpbn.solvers.support import kept_child


@pytest.fixture(autouse=True)
def no_examination(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("milpbn.solvers.support.canary.PASSED", {Telling.name})


def tell(
    task: str = "", log: Path | None = None, stop: Callable[[], bool] = lambda: False
) -> tuple[int, str, str]:
    """Return the process, the current folder and a variable of the environment that a job has seen."""
    settings = Settings(options={"do": task}, log=log)
    outcome = Telling().solve(tiny(), None, settings, Recorder(tiny(), stop))
    if outcome.detail == "killed":
        return 0, "", ""
    process, folder, colour = outcome.detail.split(" ")
    return int(process), folder, colour


def tiny() -> Milp:
    """Return a model of one column."""
    return Milp(
        c=np.ones(1),
        constant=0.0,
        A=sp.csr_array((0, 1)),
        row_lower=np.zeros(0),
        row_upper=np.zeros(0),
        lower=np.zeros(1),
        upper=np.ones(1),
        integer=np.ones(1, dtype=bool),
        column_names=["x"],
        row_names=[],
        name="tiny",
    )


def test_a_child_is_kept_and_every_job_has_surroundings_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    process, folder, colour = tell("leave a file")
    assert colour == "None"
    assert not Path(folder).exists()
    monkeypatch.setenv("COLOUR", "blue")
    tell("print", log=tmp_path / "log")
    assert (tmp_path / "log").read_text() == "printed by the solver\n"
    again, other, colour = tell()
    assert (again, colour) == (process, "blue")
    assert other != folder
    assert (tmp_path / "log").read_text() == "printed by the solver\n"


def test_a_child_that_has_died_is_replaced() -> None:
    process, *_ = tell()
    os.kill(process, signal.SIGKILL)
    again, *_ = tell()
    assert again != process
    # A child that dies of its second job may have died of the first one.
    assert tell("die when used")[0] != again


def test_a_crash_in_a_new_child_is_the_solvers_and_shows_no_earlier_output() -> None:
    tell("print")
    with pytest.raises(SolverError, match=r"telling crashed \(killed by the signal SIGKILL\)\."):
        tell("die")


def test_an_exception_in_the_child_is_the_solvers_failure() -> None:
    with pytest.raises(SolverError, match=r"telling failed: KeyError: 'inside'\."):
        tell("raise")


def test_a_child_that_has_stopped_when_asked_is_kept_and_one_that_was_killed_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process, *_ = tell()
    assert tell("wait", stop=lambda: True)[0] == process
    assert tell()[0] == process
    monkeypatch.setattr(kept_child, "GRACE", 0.1)
    assert tell("hang", stop=lambda: True) == (0, "", "")
    assert tell()[0] != process


@pytest.mark.parametrize(("seconds", "limit"), [(0.05, "time"), (None, "user")])
def test_a_child_that_the_deadline_stopped_met_a_time_limit(seconds: float | None, limit: str) -> None:
    deadline = None if seconds is None else time.monotonic() + seconds
    settings = Settings(options={"do": "wait"}, deadline=deadline)
    outcome = Telling().solve(tiny(), None, settings, Recorder(tiny(), lambda: seconds is None))
    assert outcome.limit == limit


def test_another_search_path_needs_a_new_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    process, *_ = tell()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert tell()[0] != process


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_copy_of_this_process_has_no_children() -> None:
    tell()
    assert kept_child._idle
    copy = os.fork()
    if copy == 0:
        os._exit(len(kept_child._idle))
    assert os.waitpid(copy, 0)[1] == 0
