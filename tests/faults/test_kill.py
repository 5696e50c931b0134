"""A few instants of `faults.kill`, which sends signals to commands at random times and checks what they leave."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.skipif(not (ROOT / "benchmarks").exists(), reason="benchmarks are not there")
def test_signals_at_random_instants_leave_whole_files_and_no_process(tmp_path: Path) -> None:
    output = tmp_path / "kill.json"
    command = [
        sys.executable, "tests/faults/kill.py", "export", "jkl", "--count", "2", "--output", str(output),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    tally = json.loads(output.read_text())["cells"]["export jkl"]
    assert tally["instants"] == 2
    assert tally["files_checked"] >= 1
    assert tally["failures"] == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.skipif(not (ROOT / "benchmarks").exists(), reason="benchmarks are not there")
def test_killed_searches_on_workers_end_at_the_optimum(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    output = tmp_path / "kill_cluster.json"
    command = [
        sys.executable, "tests/faults/kill_cluster.py", "--runs", "1", "--kills", "1", "--output", str(output),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = json.loads(output.read_text())["runs"]
    assert sum(run["kills"].values()) >= 1
    assert run["failures"] == []
