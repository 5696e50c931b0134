"""Faults in the middle of a command: full and read-only disks, lost folders, broken solvers, killed child processes.

Each ends in a sentence. A search also shows its incumbent and its bound.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import click
import pulp
import pytest
from cli_common import QUICK, load, outputs, run, toy_rows, write_csv

from milpbn.errors import InputError
from milpbn.solvers.registry import find_solver
from milpbn.solvers.support import kept_child, process
from milpbn.solving.engines.native import NativeEngine
from milpbn.solving.report import Report
from milpbn.util import memory

pytestmark = pytest.mark.filterwarnings("ignore::milpbn.errors.MilpbnWarning")
#: A search that the root bound does not close.
OPEN = ("corral", "--p", "0.9")
NATIVE = ("--backend", "native", "--threads", "1", "--p", "0.9")


def require_solver(name: str) -> None:
    solver = find_solver(name)
    assert solver is not None
    try:
        solver.version()
    except InputError as error:
        pytest.skip(str(error))


@pytest.fixture
def table(tmp_path):
    return write_csv(tmp_path / "toy.csv", toy_rows())


def mounted(folder: Path, *options: str) -> None:
    done = subprocess.run(["mount", *options, str(folder)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("needs the right to mount")


@pytest.fixture
def disk(tmp_path):
    """A disk of 64 kB."""
    if sys.platform != "linux" or os.getuid() != 0:
        pytest.skip("needs the right to mount")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted(folder, "-t", "tmpfs", "-o", "size=64k", "none")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def full(disk):
    """A disk without a free byte."""
    with (disk / "filler").open("wb", buffering=0) as file:
        assert file.write(bytes(10**6)) < 10**6
    return disk


def sentence(done: Any, code: int = 2) -> str:
    """Return the last line of a run that failed with an exit code."""
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    return last


def state_of(pid: str) -> str:
    """Return the state of a process; empty if it has ended."""
    command = ["ps", "-o", "stat=", "-p", pid]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()[:1]


def assert_found(done: Any) -> None:
    """Check that the closing block has an incumbent and a bound."""
    assert re.search(r"^incumbent  [\d.]+$", done.stdout, re.M)
    assert re.search(r"^bound      [\d.]+", done.stdout, re.M)
    assert "structure" in done.stdout


@pytest.mark.parametrize("option", ["output", "classifier", "certificate", "trace"])
def test_a_search_on_a_full_disk_shows_what_it_found(full, table, option):
    done = run("solve", table, *NATIVE, f"--{option}", full / "file.npz")
    assert "No space left on device" in sentence(done)
    assert_found(done)
    assert {path.name for path in full.iterdir()} <= {"filler", "file.npz" if option == "trace" else "filler"}


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("learn tan TABLE --output", "accuracy"),
        ("learn tan TABLE --classifier", "accuracy"),
        ("compare TABLE --learners naive-bayes,tan --time-limit 60 --output", "naive-bayes"),
        ("export TABLE -q --output", ""),
    ],
)
def test_other_commands_on_a_full_disk_show_what_they_found(full, table, words, shown):
    name = "m.lp" if words.startswith("export") else "file.json"
    done = run(words.replace("TABLE", str(table)), full / name)
    assert "No space left on device" in sentence(done)
    assert shown in done.stdout
    assert [path.name for path in full.iterdir()] == ["filler"]


def test_a_solver_without_room_for_its_model_leaves_incumbent_and_bound(full, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(full))
    done = run("solve", *OPEN, "--backend", "cbc", "--threads", "1")
    assert re.search("cannot get its model: .*No space left on device", sentence(done, 4))
    assert_found(done)
    # The folder of empty lock files stays.
    assert {path.name for path in full.iterdir()} <= {"filler", f"milpbn-{os.getuid()}"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_device_that_is_full_takes_no_trace(table):
    done = run("solve", table, *QUICK, "--trace", "/dev/full")
    assert "The trace file /dev/full cannot be written (No space left on device)." in sentence(done)
    assert_found(done)


@pytest.mark.parametrize("verb", ["solve", "learn tan", "export"])
def test_a_read_only_folder_is_refused_before_the_work(disk, table, verb):
    mounted(disk, "-o", "remount,ro")
    done = run(*verb.split(), table, "--output", disk / "m.lp")
    assert "Read-only file system); choose another path." in sentence(done)
    assert done.stdout == ""


def test_a_folder_that_is_removed_in_the_middle_of_a_search(tmp_path, table, monkeypatch):
    folder, update = tmp_path / "out", Report.update
    folder.mkdir()

    def removing(self: Report) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        update(self)

    monkeypatch.setattr(Report, "update", removing)
    done = run(
        "solve",
        table,
        *NATIVE,
        *outputs(folder, output="r.json", classifier="c.json", certificate="p.npz", trace="t.jsonl"),
    )
    assert "its folder does not exist; create it first." in sentence(done)
    assert_found(done)
    folder.mkdir()
    done = run("solve", table, *NATIVE, "--trace", folder / "t.jsonl")
    assert "t.jsonl cannot be written (No such file or directory)." in sentence(done)
    assert_found(done)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("learn tan TABLE", "accuracy"),
        ("compare TABLE --learners naive-bayes,tan", "naive-bayes"),
    ],
)
def test_a_folder_that_is_removed_while_another_command_runs(tmp_path, table, monkeypatch, words, shown):
    folder = tmp_path / "out"
    folder.mkdir()
    monkeypatch.setattr(f"milpbn.cli.{words.split()[0]}.show_notes", lambda *a, **k: shutil.rmtree(folder))
    done = run(words.replace("TABLE", str(table)), "--output", folder / "r")
    assert "its folder does not exist" in sentence(done)
    assert shown in done.stdout


@pytest.fixture
def cbc(tmp_path, monkeypatch):
    """Return a function that replaces CBC by a shell script; it tells its version as CBC does."""

    def replaced(script: str) -> None:
        path = tmp_path / "cbc"
        path.write_text(
            '#!/bin/sh\ncase "$*" in *model.mps*) ;; *) echo "Version: 2.10.3"; exit 0;; esac\n' + script
        )
        path.chmod(0o755)
        monkeypatch.setattr(pulp.PULP_CBC_CMD, "pulp_cbc_path", str(path))

    return replaced


@pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")
def test_a_solver_that_is_missing_is_a_sentence(tmp_path, table, monkeypatch):
    monkeypatch.setattr(pulp.PULP_CBC_CMD, "pulp_cbc_path", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "There is no CBC for this machine; install it" in sentence(run("solve", table, "--backend", "cbc"))


@pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")
def test_a_solver_that_hangs_is_killed_at_the_time_limit(tmp_path, cbc):
    cbc("trap '' INT TERM\nsleep 600 & echo $! >> " + str(tmp_path / "pids") + "\nwait\nsleep 600\n")
    output = tmp_path / "r.json"
    done = run("solve", *OPEN, "--backend", "cbc", "--time-limit", "4", "--output", output)
    assert done.exit_code == 0, done.output
    assert_found(done)
    assert load(output)["status"]["limit"] == "time"
    end = time.monotonic() + 20.0
    for pid in (tmp_path / "pids").read_text().split():
        while state_of(pid) not in ("", "Z"):
            assert time.monotonic() < end, "a child of the solver is left"
            time.sleep(0.05)


@pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")
@pytest.mark.parametrize(
    "script",
    [
        "head -c 3000 /dev/urandom",
        "while [ $# -gt 1 ]; do shift; done; head -c 3000 /dev/urandom > $1; echo 'Result - Optimal solution found'",
        "while [ $# -gt 1 ]; do shift; done; printf 'Optimal - objective value -1e9\\n' > $1",
        "kill -SEGV $$",
    ],
    ids=["garbage", "garbage-file", "false-optimum", "crash"],
)
def test_a_solver_that_answers_nonsense_leaves_incumbent_and_bound(tmp_path, cbc, script):
    cbc(script + "\n")
    output, classifier = tmp_path / "r.json", tmp_path / "c.json"
    done = run("solve", *OPEN, "--backend", "cbc", "--output", output, "--classifier", classifier)
    assert_found(done)
    result = load(output)
    if "Optimal" not in script:
        assert "backend cbc" in sentence(done, 4)
        assert result["status"]["reason"] == "error"
    # What looks like an answer is either refused or believed in nothing.
    assert done.exit_code == {"error": 4, "feasible": 0}[result["status"]["reason"]]
    assert result["objective"] <= 261.134801 <= result["bound"]
    assert load(classifier)["structure"] == result["structure"]


@pytest.fixture
def crashing(monkeypatch):
    """A function after whose call every process of a solver gets a segmentation fault, so many seconds into its job."""

    def crash(after: float) -> None:
        original = process.supervise

        def supervise(child: subprocess.Popen[bytes], *arguments: Any, **named: Any) -> process.Exit:
            def kill() -> None:
                if child.poll() is None:
                    os.kill(child.pid, signal.SIGSEGV)

            timer = threading.Timer(after, kill)
            timer.start()
            try:
                return original(child, *arguments, **named)
            finally:
                timer.cancel()

        monkeypatch.setattr(process, "supervise", supervise)
        monkeypatch.setattr(kept_child, "supervise", supervise)

    return crash


@pytest.mark.parametrize(
    ("backend", "after"),
    [
        # HiGHS runs in a child that is kept, as those below do, and CBC is a program of its own.
        *(("highs", 0.0), ("highs", 0.7), ("cbc", 0.7)),
        *((backend, 0.01) for backend in ("scip", "cpsat", "pulp:highs", "pulp:cbc")),
    ],
)
def test_a_solver_that_crashes_leaves_incumbent_and_bound(backend, after, tmp_path, crashing):
    require_solver(backend)
    crashing(after)
    output = tmp_path / "r.json"
    done = run("solve", *OPEN, "--backend", backend, "--threads", "1", "--output", output)
    said = sentence(done, 4)
    assert f"The solver of the backend {backend} crashed (killed by the signal SIGSEGV" in said
    assert "another --backend" in said
    assert_found(done)
    result = load(output)
    assert (result["status"]["reason"], result["status"]["limit"]) == ("error", None)
    assert result["objective"] <= 261.134801 <= result["bound"]
    assert set(result["structure"]) >= {"class"}


def test_a_solver_that_crashes_on_local_scores_leaves_what_it_had(tmp_path, crashing):
    crashing(0.0)
    scores, output = tmp_path / "s.jkl", tmp_path / "r.json"
    scores.write_text("2\na 2\n-5.5 0\n-1 1 b\nb 2\n-6 0\n-2 1 a\n", encoding="utf-8")
    done = run("solve", scores, "--backend", "highs", "--no-root-bound", "--output", output)
    assert "backend highs crashed" in sentence(done, 4)
    result = load(output)
    assert (result["status"]["reason"], result["objective"]) == ("error", -7.0)


def test_a_search_near_its_memory_limit_stops_with_what_it_has(tmp_path, table, monkeypatch):
    used, engine = [0], NativeEngine.run

    def branching(*arguments: Any) -> Any:
        used[0] = 10 * 2**30
        return engine(*arguments)

    monkeypatch.setattr(NativeEngine, "run", branching)
    monkeypatch.setattr(memory, "used_memory", lambda: used[0])
    monkeypatch.setattr(memory, "MEASURE_EVERY", 0.0)
    output = tmp_path / "r.json"
    done = run("solve", "corral", *NATIVE, "--memory-limit", "4GiB", "--output", output)
    assert done.exit_code == 0, done.output
    assert "stopped: the memory limit of 4.0 GiB is nearly reached" in done.stdout
    assert_found(done)
    status = load(output)["status"]
    assert (status["reason"], status["limit"]) == ("feasible", "memory")


def test_a_forecast_beyond_the_memory_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "used_memory", lambda: 400_000_000)
    for verb in (
        ("solve", "waveform-21", "--backend", "highs"),
        ("export", "waveform-21", "--output", tmp_path / "m.lp"),
    ):
        done = run(*verb, "--max-parents", "3", "--memory-limit", "600MB")
        assert "within the memory limit of 572.2 MiB; " in sentence(done)
        assert "reduce --max-parents to 2" in sentence(done)


@pytest.mark.parametrize("size", ["2 GiB", "2gib", "2147483648", "2.147483648e9", "2097152K", "2.0G"])
def test_sizes_are_read_as_people_write_them(size):
    from milpbn.cli.types import SIZE

    assert SIZE.convert(size, None, None) in (2**31, 2_097_152_000, 2_000_000_000)


@pytest.mark.parametrize("size", ["", "GiB", "-1GiB", "0", "1e99", "4 parsec", "nan", "1e9e9"])
def test_what_is_no_size_is_refused(size):
    from milpbn.cli.types import SIZE

    with pytest.raises(click.BadParameter, match="is not a size such as 4GiB or 500MB"):
        SIZE.convert(size, None, None)
