"""Time limits and interrupts: the results of runs that are stopped early; no test looks at a real clock."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from running import optimum, random_data

import milpbn
from milpbn.claims.result import is_optimal
from milpbn.errors import InputError, NoIncumbentError
from milpbn.learners.base import Control, Learned, Learner
from milpbn.network.structure import Structure
from milpbn.problem import products
from milpbn.problem.bounds import loose_bound, trivial_bound
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import build_problem
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.registry import SCORES
from milpbn.problem.scores.spec import Score
from milpbn.solving import api, progress
from milpbn.solving import reductions as solving
from milpbn.solving.selection import select
from milpbn.util import clock, stages
from milpbn.util.budget import Budget
from milpbn.util.progress_line import ProgressLine

QUICK = {"threads": 1, "verbose": False}


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every search begin over parent sets with one parent."""
    monkeypatch.setattr(solving, "SMALL_TABLES", 0)
    monkeypatch.setattr(solving, "SMALL_TABLES_WITHIN_LIMIT", 0)


@pytest.fixture
def tables_take_for_ever(sketched: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the time limit end while the tables of all parent sets are computed."""
    calls = []

    def build(*arguments: Any, **options: Any) -> Any:
        calls.append(options)
        if len(calls) > 1:
            raise NoIncumbentError("The time limit ended.")
        return build_problem(*arguments, **options)

    monkeypatch.setattr(solving, "build_problem", build)


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("seed", range(2))
def test_a_search_among_fewer_parent_sets_first_changes_no_optimum(name: str, seed: int) -> None:
    data = random_data([81, seed], n_samples=25, weights=bool(seed))
    score = Score(name=name, max_parents=2 + seed)
    constraints = [Constraints(), Constraints(required=(("X1", "X2"),), forbidden=(("X3", "X1"),))][seed]
    result = milpbn.solve(data, score, constraints=constraints, **QUICK)
    best = optimum(data, score, constraints).objective
    assert result.optimal
    assert is_optimal(result.objective, best)
    assert result.bound >= best - 1e-6 * max(1.0, abs(best))


@pytest.mark.usefixtures("tables_take_for_ever")
@pytest.mark.parametrize("name", ["sm", "sbm", "cll"])
def test_without_all_tables_there_is_a_structure_with_a_bound(name: str) -> None:
    data = random_data(82, n_features=4, n_samples=40, weights=True)
    score = Score(name=name, max_parents=3, penalty=0.1)
    result = milpbn.solve(data, score, **QUICK)
    assert (result.reason, result.limit) == ("feasible", "time")
    assert result.score.max_parents == 3
    assert result.objective == pytest.approx(rescore(data, result.structure, score))
    assert result.objective > rescore(data, Structure.empty(data.names), score)
    assert result.bound >= optimum(data, score).objective
    assert result.classifier is not None


@pytest.mark.usefixtures("tables_take_for_ever")
def test_without_all_tables_a_start_is_kept_whatever_its_parents() -> None:
    data = random_data(83, n_features=4, n_samples=40)
    score = Score(p=0.9, max_parents=3)
    start = Structure(data.names, ((4,), (0, 4), (0, 1, 4), (0, 4), ()))
    result = milpbn.solve(data, score, start=start, **QUICK)
    assert result.limit == "time"
    assert result.objective >= rescore(data, start, score) * (1 - 1e-12)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("seed", range(6))
def test_the_bound_without_tables_holds(name: str, seed: int) -> None:
    data = random_data([84, seed], n_samples=20, weights=seed % 2 == 0)
    margin = Score(name=name).is_margin
    options: dict[str, Any] = (
        {"penalty": ["bic", 0.3][seed % 2], "hybrid": 0.5 * (seed % 3)} if margin else {}
    )
    score = Score(name=name, max_parents=1 + seed % 3, **options)
    constraints = Constraints(arc_weights={("C", "X1"): 2.0, ("X1", "X2"): -1.0, ("X2", "X3"): 0.5})
    rules = build_problem(data, score, constraints).rules
    assert loose_bound(score, data, rules, None) >= optimum(data, score, constraints).objective


def test_the_bound_without_tables_holds_with_negative_penalties() -> None:
    """Half the logarithm of a total weight below one is negative, so every parameter raises the score."""
    data = random_data(85, n_samples=4)
    light = milpbn.data.Dataset(data.name, data.variables, data.codes, np.full(4, 0.01))
    for score in (Score(name="mdl"), Score(penalty="bic")):
        assert loose_bound(score, light, build_problem(light, score).rules, None) == np.inf


@pytest.mark.parametrize("name", ["sm", "cll", "hard-margin"])
def test_the_trivial_bound_holds_when_it_is_stopped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_data(86, n_features=10, max_states=4, n_samples=1500)
    assert data.merged.n_samples > 2 * products.BLOCK
    monkeypatch.setattr(products, "SLICE", 1)
    monkeypatch.setattr("milpbn.util.threads._most", [1])
    problem = build_problem(data, Score(name=name))
    asked = iter([False] + [True] * 1000)
    full, part = trivial_bound(problem), trivial_bound(problem, lambda: next(asked))
    none = trivial_bound(problem, lambda: True)
    assert full <= part <= none
    assert part < none or name == "cll"
    if name == "sm":
        assert none == pytest.approx(problem.score.gamma * data.weights.sum())
    assert (none == np.inf) == (name == "hard-margin")


def test_the_callers_function_can_interrupt() -> None:
    data = random_data(87, n_features=5, n_samples=60)
    result = milpbn.solve(data, Score(p=0.99, max_parents=3), interrupted=lambda: True, **QUICK)
    assert result.limit == "user"
    assert result.structure is not None
    assert result.bound >= result.objective


def test_a_selection_keeps_what_was_tried_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def build(*arguments: Any, **options: Any) -> Any:
        calls.append(options)
        if len(calls) > 1:
            raise NoIncumbentError("The time limit ended.")
        return build_problem(*arguments, **options)

    monkeypatch.setattr(solving, "build_problem", build)
    data = random_data(88, n_samples=60)
    chosen = select(data, Score(), p_values=(0.9,), max_parents_values=(1, 2), **QUICK)
    assert [(t.max_parents, t.splits) for t in chosen.trials] == [(1, 1)]
    assert not chosen.interrupted


@pytest.mark.parametrize(("rows", "features", "states"), [(1, 2, 2), (60, 3, 3), (500, 40, 2), (300, 90, 5)])
def test_merged_rows_are_the_different_ones_in_order(rows: int, features: int, states: int) -> None:
    """Many columns do not fit into one number."""
    rng = np.random.default_rng([89, rows])
    codes = rng.integers(-1, states, (rows, features)).astype(np.int32)
    codes[rows // 2 :] = codes[: rows - rows // 2]
    labels = tuple(map(str, range(states)))
    variables = tuple(milpbn.data.Variable(f"X{j}", labels) for j in range(features))
    data = milpbn.data.Dataset("many", variables, codes, rng.random(rows))
    expected, place = np.unique(codes, axis=0, return_inverse=True)
    assert np.array_equal(data.merged.codes, expected)
    assert data.merged.weights == pytest.approx(np.bincount(place.ravel(), data.weights))


# Work that never checks whether to stop.


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """An event that work waits for; it is set only when the test is over."""
    monkeypatch.setattr(clock, "GRACE", 0.0)
    released = threading.Event()
    yield released
    released.set()


def test_work_that_ignores_the_stop_is_not_waited_for(deaf: threading.Event) -> None:
    assert clock.within(deaf.wait, lambda: True, name="deaf") is None


def test_reading_without_end_stops_at_the_limit(
    deaf: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "read_table", lambda source: deaf.wait())
    with pytest.raises(NoIncumbentError, match="read"):
        milpbn.solve("corral", time_limit=1e-6, **QUICK)


def test_what_work_returns_or_raises_comes_back() -> None:
    assert Budget().before(lambda: 8, "it was counted") == 8
    assert Budget(1e18).before(lambda: 9, "it was counted") == 9
    assert clock.within(lambda: 7, lambda: False, name="seven") == 7

    def refuse() -> int:
        raise InputError("No.")

    with pytest.raises(InputError, match="No"):
        clock.within(refuse, lambda: False, name="refuse")


def test_a_problem_that_nobody_waits_for_is_not_built_to_the_end(
    sketched: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "GRACE", 0.05)
    building, given_up = threading.Event(), threading.Event()

    def build(*arguments: Any, budget: Budget, **options: Any) -> Any:
        if threading.current_thread() is threading.main_thread():  # the problem over the small parent sets
            return build_problem(*arguments, budget=budget, **options)
        building.set()
        try:
            while True:
                budget.check("tables were made")
                building.wait(0.01)
        finally:
            given_up.set()

    monkeypatch.setattr(solving, "build_problem", build)
    result = milpbn.solve("corral", interrupted=building.is_set, **QUICK)
    assert result.limit == "user"
    assert given_up.wait(60)


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_learner_that_ignores_the_stop_is_not_waited_for(deaf: threading.Event, interrupted: bool) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Deaf(Learner):
        name = "deaf"
        summary = reference = ""

        def _fit(self, data: milpbn.data.Dataset, control: Control, budget: Budget) -> Learned:
            deaf.wait()
            raise AssertionError

    control = Control(time_limit=None if interrupted else 1e-9, interrupted=lambda: interrupted)
    with pytest.raises(KeyboardInterrupt if interrupted else NoIncumbentError):
        Deaf().fit(random_data(1), control)


@pytest.mark.parametrize(
    "work",
    [
        # The handler waits for compiled code, here for a quarter of an hour.
        'hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)',
        # The signal is noted, but no code checks for it.
        "with interrupts.deferred(): threading.Event().wait(900)",
    ],
)
def test_a_signal_without_a_reaction_ends_the_process(work: str) -> None:
    program = f"""
import hashlib, os, signal, threading
from milpbn.util import interrupts
interrupts.UNHEARD = 0.1
interrupts.install()
interrupts.guard()
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
{work}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (130, "Error: Interrupted before there was anything to keep.\n")


def test_a_signal_with_a_reaction_does_not_end_the_process() -> None:
    program = """
import signal, time
from milpbn.util import interrupts
interrupts.UNHEARD = 0.05
interrupts.install()
interrupts.guard()
with interrupts.deferred():
    signal.raise_signal(signal.SIGINT)
    while not interrupts.requested():
        pass
    time.sleep(1)
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    time.sleep(1)
print("end")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


# What is shown.


def test_a_line_of_progress_names_the_stage_where_nothing_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "HEARTBEAT", -1.0)
    stream = io.StringIO()
    shown = progress.Progress(ProgressLine(stream))
    stages.enter("tables 3 of 9 parent sets")
    shown.line(1.0, None, 2.0, 3.0, "start")
    shown.line(2.0, None, 2.0, 3.0, "start")
    ends = [line.split("%")[-1].strip() for line in stream.getvalue().splitlines()[1:]]
    assert ends == ["start", "tables 3 of 9 parent sets"]


def test_lines_that_stay_leave_out_bounds_that_follow_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    shown = progress.Progress(ProgressLine(stream))
    monkeypatch.setattr(progress, "PAUSE", 1e9)
    shown.line(1.0, 1, 2.0, 9.0, "start")
    shown.line(1.0, 2, 2.0, 8.0, "bound")
    shown.line(1.1, 3, 3.0, 8.0, "local search")
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    shown.line(1.2, 4, 3.0, 7.0, "bound")
    assert [line.split()[1] for line in stream.getvalue().splitlines()[1:]] == ["1", "3", "4"]


def test_a_stage_is_shown_where_no_line_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stages, "HEARTBEAT", 0.0)
    said: list[str] = []
    shown = threading.Event()
    monkeypatch.setattr(stages.LINE, "show", lambda text: (said.append(text), shown.set()))
    with stages.shown():
        stages.enter("reading")
        assert shown.wait(60)
    assert said[0].endswith("s  reading")


def test_every_stage_of_a_search_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    monkeypatch.setattr(stages, "enter", names.append)
    milpbn.solve("corral", Score(p=0.9), **QUICK)
    milpbn.solve("corral", Score(p=0.9, max_parents=1), backend="highs", root_bound=False, **QUICK)
    kinds = {"tables" if name.startswith("tables ") else name for name in names}
    assert {"reading", "discretising", "parent sets", "tables", "trivial bound", "local search"} <= kinds
    assert {"root bound", "branch and bound", "model", "highs"} <= kinds


# The generated tables.


def generated() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "generated.py"
    if not path.exists():
        pytest.skip("benchmarks are not there")
    spec = importlib.util.spec_from_file_location("generated", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_feature_of_the_wide_table_is_constant_after_mdl(tmp_path: Path) -> None:
    generated().wide_continuous().to_csv(tmp_path / "wide.csv", index=False)
    data = milpbn.read_table(tmp_path / "wide.csv").dataset("all")
    assert (data.n_samples, data.n_features, data.n_classes) == (2300, 57, 2)
    assert (data.n_states[:-1] > 1).all()


@pytest.mark.slow
def test_three_parents_on_the_wide_table_meet_the_time_limit(tmp_path: Path) -> None:
    generated().wide_continuous().to_csv(tmp_path / "wide.csv", index=False)
    data = milpbn.read_table(tmp_path / "wide.csv").dataset("all")
    score = Score(max_parents=3)
    result = milpbn.solve(data, score, time_limit=20, **QUICK)
    assert result.limit == "time"
    bayes = rescore(data, Structure.naive_bayes(data.names), score)
    assert bayes < result.objective <= result.bound <= score.gamma * 2300 * (1 + 1e-9)
    assert result.objective == pytest.approx(rescore(data, result.structure, score))
