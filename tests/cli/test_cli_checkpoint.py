"""A search that SIGTERM stops goes on by the same command, and its certificate verifies."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_common import load, refused, succeed, write_csv
from running import random_data

from milpbn.util.checkpoints import load_checkpoint

SCRIPT = shutil.which("milpbn", path=str(Path(sys.executable).parent))
pytestmark = pytest.mark.skipif(sys.platform == "win32" or SCRIPT is None, reason="POSIX signals")


def table(folder: Path, seed: int = 1) -> Path:
    """Write a table whose search takes some hundred nodes."""
    data = random_data(seed, n_features=9, n_samples=200)
    rows = [[f"s{code}" for code in row] for row in data.codes.tolist()]
    return write_csv(folder / "table.csv", rows, ",".join(data.names))


def test_a_search_that_sigterm_stops_goes_on(tmp_path):
    output, proof, state = tmp_path / "result.json", tmp_path / "proof.npz", tmp_path / "state.npz"
    command = ["solve", table(tmp_path), "--p", "0.9", "--threads", "1", "--checkpoint", state]
    command += ["--output", output, "--certificate", proof, "--trace", tmp_path / "trace.jsonl"]
    process = subprocess.Popen(
        [SCRIPT, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    # The second word of a line of progress is the number of nodes; it is a dash before the tree search.
    while (line := process.stderr.readline()) and not [*line.split(), "", ""][1].isdigit():
        pass
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "Traceback" not in stderr
    first, found = load(output), load_checkpoint(state, "search", 2**30)
    assert found is not None
    assert first["status"]["limit"] == "user"

    assert "Going on from the checkpoint" in succeed(*command, "--resume", "--threads", "2").output
    result = load(output)
    assert result["status"]["reason"] == "optimal"
    assert result["seconds"]["total"] > first["seconds"]["total"]
    lines = [json.loads(text) for text in (tmp_path / "trace.jsonl").read_text().splitlines()]
    assert [[x["seconds"], x["incumbent"], x["bound"]] for x in lines][-1] == result["trace"][-1]
    assert lines[0]["seconds"] == first["trace"][0][0]
    succeed("verify", output, tmp_path / "table.csv", "--certificate", proof)


def test_a_checkpoint_of_other_data_ends_with_2(tmp_path):
    state = tmp_path / "state.npz"
    command = ("--p", "0.9", "--threads", "1", "--checkpoint", state, "-q")
    succeed("solve", table(tmp_path), *command, "--time-limit", "0.5")
    content = state.read_bytes()
    done = refused("solve", table(tmp_path, seed=2), *command)
    assert "belongs to a search on other data; name another file" in done.output
    assert "would overwrite" in refused("solve", table(tmp_path), *command, "--output", state).output
    absent = refused("solve", table(tmp_path), "--checkpoint", tmp_path / "no.npz", "--resume", "-q")
    assert "There is no checkpoint" in absent.output
    assert state.read_bytes() == content
