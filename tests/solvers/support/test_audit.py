"""A wrong answer of a solver ends the run with a sentence, not with a result; one backend for each kind of error."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from backend_cases import without_rows
from running import random_data

import milpbn
from milpbn.errors import SolverError
from milpbn.milp.milp import Milp
from milpbn.solvers.base import IgnoredEvents, MilpEvents, Outcome, Settings, Solver
from milpbn.solvers.highs import HighsSolver
from milpbn.solvers.support import canary
from milpbn.solvers.support.repair import polish

SCORE = milpbn.Score(p=0.9)
OPTIONS = {"backend": "highs", "threads": 1, "verbose": False, "root_bound": False}


def honest(milp: Milp, start, settings: Settings, events: MilpEvents) -> Outcome:
    return HONEST(HighsSolver(), milp, start, settings, events)


HONEST = HighsSolver.solve_here  # in this process


class Relay:
    """Passes on the answers of an honest solver, some of them changed."""

    def __init__(self, events: MilpEvents, **changed) -> None:
        self.events, self.changed = events, changed

    def point(self, x, source, objective=None) -> None:
        x, objective = self.changed.get("point", lambda *a: a)(x, objective)
        self.events.point(x, source, objective)

    def bound(self, value) -> None:
        self.events.bound(self.changed.get("bound", lambda v: v)(value))

    def nodes(self, count) -> None:
        self.events.nodes(count)

    def stopping(self) -> bool:
        return self.events.stopping()


def too_low_a_bound(milp, start, settings, events) -> Outcome:
    return honest(milp, start, settings, Relay(events, bound=lambda v: v - 0.05))


def late_low_bound(milp, start, settings, events) -> Outcome:
    outcome = honest(milp, start, settings, events)
    events.bound(milp.objective(start) - 0.01)
    return outcome


def false_optimum(milp, start, settings, events) -> Outcome:
    """Call a point that is worse than the start optimal, without a bound."""
    worst = {}
    honest(
        _reversed(milp),
        None,
        settings,
        Relay(IgnoredEvents(), point=lambda x, z: worst.update(x=x) or (x, z)),
    )
    events.point(polish(milp, worst["x"]), "liar")
    return Outcome(finished=True)


def stop_at_the_start(milp, start, settings, events) -> Outcome:
    """Call the start optimal, as HiGHS 1.16.0 does, although the bound is another number."""
    events.point(start, "liar")
    events.bound(milp.objective(start) + 1.0)
    return Outcome(finished=True)


def wrong_objective(milp, start, settings, events) -> Outcome:
    return honest(milp, start, settings, Relay(events, point=lambda x, z: (x, z + 0.01)))


def wrong_tau(milp, start, settings, events) -> Outcome:
    """Return points whose margins tau are larger than their parent sets allow."""

    def lift(x, objective):
        x = x + np.where(milp.integer, 0.0, 0.01) * (milp.c > 0)
        return x, milp.objective(x)

    return honest(milp, start, settings, Relay(events, point=lift, bound=lambda v: v + 10))


def cyclic_point(milp, start, settings, events) -> Outcome:
    """Return the best point of the MILP without the rows that exclude cycles."""
    return honest(without_rows(milp, "a_"), None, settings, events)


def nan_point(milp, start, settings, events) -> Outcome:
    events.point(np.where(milp.integer, start, np.nan), "liar")
    return Outcome(limit="node")


def nan_bound(milp, start, settings, events) -> Outcome:
    events.bound(float("nan"))
    return Outcome(limit="node")


def infeasible(milp, start, settings, events) -> Outcome:
    return Outcome(finished=True, infeasible=True, detail="infeasible")


LIES = {
    "a bound below the start": (too_low_a_bound, r"but the bound on all scores is|no solution exceeds"),
    "a bound that sinks below the incumbent": (late_low_bound, r"but the bound on all scores is|exceeds"),
    "a worse point called optimal": (false_optimum, "although its start has"),
    "an optimum that its own bound denies": (stop_at_the_start, "although its own bound is"),
    "a point's objective": (wrong_objective, "says that a point has the objective"),
    "margins beyond the rows": (wrong_tau, "whose parent sets score"),
    "a cyclic point": (cyclic_point, "cyclic graph"),
    "a point that is not a number": (nan_point, "not a vector of finite numbers"),
    "a bound that is not a number": (nan_bound, "bound is not a number"),
    "infeasible": (infeasible, "says that there is no solution"),
}


def _reversed(milp: Milp) -> Milp:
    """The program whose optimum is the worst choice of parent sets by their margins' rows."""
    c = np.where(milp.integer, -1.0 - np.arange(milp.n_columns) % 7, 0.0)
    return replace(milp, c=c, lower=np.where(milp.integer, milp.lower, np.maximum(milp.lower, -1e3)))


@pytest.fixture
def data():
    return random_data(51, n_features=3, n_samples=30)


def lie(monkeypatch: pytest.MonkeyPatch, solve) -> None:
    monkeypatch.setattr(HighsSolver, "solve", lambda self, *arguments: solve(*arguments))
    monkeypatch.setattr(HighsSolver, "examined_in_child", False)


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget which backends have been examined."""
    monkeypatch.setattr(canary, "PASSED", set())


@pytest.mark.parametrize("what", LIES)
def test_every_wrong_answer_of_a_solver_is_refused(what: str, data, monkeypatch: pytest.MonkeyPatch) -> None:
    solve, words = LIES[what]
    monkeypatch.setattr(canary, "PASSED", {"highs"})
    lie(monkeypatch, solve)
    with pytest.raises(SolverError, match=words):
        milpbn.solve(data, SCORE, **OPTIONS)


@pytest.mark.parametrize("what", LIES)
def test_the_canaries_detect_most_wrong_solvers_in_advance(
    what: str, data, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tiny models detect all lies except two that their runs cannot show: a false objective and a cyclic point."""
    told = []

    def watched(milp, start, settings, events) -> Outcome:
        told.append(milp.n_columns)
        if start is None:
            start = next((c.start for c in canary.canaries() if c.milp.n_columns == milp.n_columns), None)
            if start is None:
                start = worst_point(milp)
        return LIES[what][0](milp, start, settings, events)

    lie(monkeypatch, watched)
    with pytest.raises(SolverError):
        milpbn.solve(data, SCORE, **OPTIONS)
    if what not in ("a point's objective", "a cyclic point"):
        assert max(told) <= 13


def worst_point(milp: Milp) -> np.ndarray:
    x = np.zeros(milp.n_columns)
    for r in np.flatnonzero(milp.row_lower == 1.0):
        x[milp.A[[r]].indices[-1]] = 1.0
    return polish(milp, x)


def test_a_wrong_infeasible_is_refused_without_a_start(data, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run knows a structure, even if the solver did not get it as a start."""
    monkeypatch.setattr(canary, "PASSED", {"highs"})
    lie(monkeypatch, infeasible)
    with pytest.raises(SolverError, match="no structure obeys"):
        milpbn.solve(data, SCORE, warm_start=False, **OPTIONS)


def test_a_wrong_answer_on_the_command_line_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from milpbn.cli.app import app

    lie(monkeypatch, infeasible)
    done = CliRunner().invoke(app, ["solve", "corral", "-q", "--backend", "highs", "--no-root-bound"])
    assert done.exit_code == 4
    assert "choose another --backend" in done.output
    assert "unexpectedly" not in done.output


def test_the_canaries_optima_are_those_of_enumeration() -> None:
    for one in canary.canaries():
        milp = one.milp
        n = int(milp.integer.sum())
        assert milp.integer[:n].all()
        points = (
            polish(milp, np.array([*bits, *[0.0] * (milp.n_columns - n)]))
            for bits in product((0.0, 1.0), repeat=n)
        )
        best = max(milp.objective(x) for x in points if milp.violation(x) <= 1e-9)
        assert best == pytest.approx(one.optimum, abs=1e-12)
        if one.start is not None:
            assert milp.violation(one.start) <= 1e-12
            assert milp.objective(one.start) < one.optimum - 0.1


def test_solvers_are_examined_once(data, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def watched(milp, *rest) -> Outcome:
        sizes.append(milp.n_columns)
        return honest(milp, *rest)

    lie(monkeypatch, watched)
    for _ in range(2):
        assert milpbn.solve(data, SCORE, **OPTIONS).optimal
    assert sizes[:4] == [7, 7, 13, 10]
    assert len(sizes) == 6


def test_cpsats_faulty_presolve_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """OR-Tools 9.15 with the presolve step that the project switches off (google/or-tools#5293)."""
    pytest.importorskip("ortools")
    from importlib.metadata import version

    if not version("ortools").startswith("9.15"):
        pytest.skip("other versions of OR-Tools may be sound")
    from milpbn.solvers.cpsat import CpSatSolver

    backend: Solver = CpSatSolver()
    faulty = {"presolve_inclusion_work_limit": "100000000"}

    def solve(milp, start, settings, events) -> Outcome:
        return backend.solve(milp, start, Settings(deadline=settings.deadline, options=faulty), events)

    monkeypatch.setattr(canary, "SECONDS", 120.0)
    canary.PASSED.add(backend.name)  # not in the child process, which does not see the option
    with pytest.raises(SolverError, match=r"exceeds 0\.36\d*, but one reaches 0\.82"):
        canary.examine(backend, solve, Settings(), IgnoredEvents())


def test_backends_in_child_processes_are_examined_there(data, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ortools")
    assert not canary.PASSED
    milpbn.solve(data, SCORE, backend="cpsat", threads=1, verbose=False, root_bound=False)
    assert set(canary.PASSED) == {"cpsat"}
