"""CBC's log, its traps, and the process around it."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from pathlib import Path

import pytest
from backend_cases import installed

from milpbn.solvers.cbc import CbcLog, _outcome
from milpbn.solvers.support.process import Exit, run_process
from milpbn.solving.local_scores import solve_local_scores

LOG = """\
Continuous objective value is -541.823 - 0.00 seconds
Cbc0038I Solution found of -360.361
Cbc0028I Starting sub-tree for CbcHeuristicLocalAfterFPump - maximum nodes 200
Cbc0010I After 0 nodes, 1 on tree, 1e+50 best solution, best possible -430.25 (0.03 seconds)
Cbc0001I Search completed - best objective -414.402668043969, took 300 iterations and 24 nodes (0.03 seconds)
Cbc0029I Ending sub-tree for CbcHeuristicLocalAfterFPump
Cbc0012I Integer solution of -414.40267 found by feasibility pump after 0 iterations and 0 nodes (0.04 seconds)
Cbc0010I After 100 nodes, 17 on tree, -414.49353 best solution, best possible -470.34788 (0.38 seconds)
"""
END = """\
Cbc0001I Search completed - best objective -414.4935342197148, took 11639 iterations and 284 nodes (0.84 seconds)

Result - Optimal solution found

Objective value:                -414.49353422
Enumerated nodes:               284
"""
STOPPED = """\
Cbc0027I Exiting on user event
Cbc0005I Partial search - best objective -1228.5719 (best possible -1240.6824), took 31814 iterations and 546 nodes
Result - User ctrl-cuser ctrl-c
Objective value:                -1228.57194679
Lower bound:                    -1240.682
"""


def read(text: str) -> CbcLog:
    log = CbcLog()
    for line in text.splitlines():
        log.feed(line)
    return log


def test_bounds_are_rounded_outwards_and_sub_trees_are_skipped() -> None:
    log = read(LOG)
    assert log.bound == pytest.approx(-470.34788, abs=1e-5)
    assert log.bound <= -470.34788 - 4.9e-6
    assert (log.nodes, log.completed, log.optimal) == (100, False, False)


@pytest.mark.parametrize(
    ("result", "limit"),
    [
        ("Stopped on solution limit", "node"),
        ("Stopped on node limit", "node"),
        ("Stopped on time limit", "time"),
        ("Optimal solution found (within gap tolerance)", "gap"),
    ],
)
def test_what_stopped_a_run_is_in_its_result(result: str, limit: str) -> None:
    assert _outcome(read(f"Result - {result}"), "", Exit(0, stopped=False), True, "").limit == limit


def test_the_first_bound_has_six_digits() -> None:
    log = CbcLog()
    assert log.feed("Continuous objective value is -1240.68 - 0.01 seconds")
    assert -1240.69 < log.bound <= -1240.685 + 1e-9
    assert not log.feed("Continuous objective value is -1240.68 - 0.01 seconds")


def test_the_log_of_a_completed_search_is_read() -> None:
    log = read(LOG + END)
    assert log.completed
    assert log.optimal
    assert log.nodes == 284


def test_the_log_of_a_stopped_search_is_read() -> None:
    log = read(STOPPED)
    assert not log.optimal
    assert not log.completed
    assert log.nodes == 546
    # Not the last line's -1240.682, which is rounded to less than the true bound.
    assert -1240.6826 < log.bound < -1240.6824
    assert log.result == "User ctrl-c"


@pytest.mark.parametrize(
    "line",
    [
        "Cbc0010I After 0 nodes, 1 on tree, 1e+50 best solution, best possible -1e+50 (0.03 seconds)",
        "Cbc0005I Partial search - best objective 1e+50 (best possible 1e+50), took 0 iterations and 0 nodes",
        "Cuts at root node changed objective from -541.823 to -1.79769e+308",
        "Lower bound:                    -nan",
        "Cbc0013I At root node, 9 cuts changed objective from -12 to -11 in 10 passes",
    ],
)
def test_lines_without_a_usable_bound_are_ignored(line: str) -> None:
    log = CbcLog()
    assert not log.feed(line)
    assert log.bound == -math.inf


def test_within_gap_is_not_optimal() -> None:
    assert not read("Result - Optimal solution found (within gap tolerance)").optimal


def test_a_child_that_ignores_the_stop_is_killed_with_its_children(tmp_path: Path) -> None:
    marker = tmp_path / "alive"
    grandchild = f"import time, pathlib\nwhile True: pathlib.Path({str(marker)!r}).touch(); time.sleep(0.05)"
    script = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        f"subprocess.Popen([sys.executable, '-c', {grandchild!r}])\n"
        "print('ready')\n"
        "time.sleep(60)\n"
    )
    lines: list[str] = []
    ended = run_process(
        [sys.executable, "-c", script],
        on_line=lines.append,
        stop=lambda: bool(lines) and marker.exists(),
        grace=0.3,
    )
    assert ended.stopped
    assert ended.code < 0
    marker.unlink()
    time.sleep(0.3)
    assert not marker.exists()


def test_a_child_that_obeys_the_stop_may_finish() -> None:
    # A background job of a shell ignores the interrupt, and so do all processes that it starts.
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print('ready')\n"
        "try: time.sleep(60)\n"
        "except KeyboardInterrupt: print('bye'); sys.exit(3)\n"
    )
    lines: list[str] = []
    ended = run_process(
        [sys.executable, "-c", script], on_line=lines.append, stop=lambda: bool(lines), grace=20.0
    )
    assert ended.stopped
    assert ended.code == 3
    assert lines == ["ready", "bye"]


def test_lines_arrive_while_the_child_runs() -> None:
    # Without flush: a terminal is line-buffered, a pipe is not.
    script = "import time; print('first'); time.sleep(60)"
    lines: list[str] = []
    run_process([sys.executable, "-c", script], on_line=lines.append, stop=lambda: bool(lines), grace=0.1)
    assert lines[0] == "first"


def test_every_line_arrives_before_the_end_is_reported() -> None:
    # A grandchild keeps the terminal open, and the last line has no newline.
    lines: list[str] = []
    command = ["sh", "-c", "sleep 30 & seq 3000; printf 'last word'"]
    begin = time.monotonic()
    ended = run_process(command, on_line=lines.append, stop=lambda: False)
    assert lines == [*map(str, range(1, 3001)), "last word"]
    assert ended.code == 0
    assert time.monotonic() - begin < 4


def test_an_error_of_the_reader_ends_the_child() -> None:
    def fail(line: str) -> None:
        raise ZeroDivisionError(line)

    with pytest.raises(ZeroDivisionError, match="first"):
        run_process(
            [sys.executable, "-c", "import time; print('first'); time.sleep(60)"],
            on_line=fail,
            stop=lambda: False,
            grace=0.1,
        )


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_a_child_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    child = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    parent = (
        "import sys; from milpbn.solvers.support.process import run_process; "
        f"run_process([sys.executable, '-c', {child!r}], on_line=lambda line: None, stop=lambda: False)"
    )
    process = subprocess.Popen([sys.executable, "-P", "-c", parent])
    deadline = time.monotonic() + 30
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    pid = int((tmp_path / "pid").read_text())
    time.sleep(0.5)
    process.kill()
    process.wait()
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()


#: Local scores by variable: their sum is at most 1.4.
FRACTIONAL = """5
V0 6
-1.0 0
0.5 2 V1 V3
0.5 2 V3 V4
-0.3 1 V4
0.0 2 V2 V3
0.4 2 V2 V4
V1 6
0.0 0
-0.5 1 V3
0.4 2 V0 V2
0.1 2 V2 V4
0.3 2 V0 V4
-0.2 1 V2
V2 5
-0.2 0
0.5 2 V0 V4
-0.2 1 V1
0.0 2 V3 V4
0.2 2 V0 V3
V3 2
0.3 0
0.0 2 V0 V2
V4 2
-0.3 0
0.4 2 V1 V2
"""


@pytest.mark.parametrize("backend", ["cbc", "pulp:cbc"])
def test_a_point_that_preprocessing_made_fractional_is_not_the_last_word(
    backend: str, tmp_path: Path
) -> None:
    """CBC 2.10.3 calls a point optimal in which V4 has two fifths of one parent set and three of another."""
    installed(backend)
    path = tmp_path / "s.jkl"
    path.write_text(FRACTIONAL)
    result = solve_local_scores(path, backend=backend, root_bound=False, verbose=False)
    assert result.optimal
    assert result.objective == pytest.approx(1.4)
    how = {"solver_options": {"preprocess": "on"}, "root_bound": False, "verbose": False}
    processed = solve_local_scores(path, backend=backend, **how)
    assert processed.objective <= 1.4 + 1e-9
