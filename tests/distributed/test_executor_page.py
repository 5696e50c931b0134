"""The commands for one machine of docs/many-machines.md run as they stand there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from page_steps import blocks

pytest.importorskip("distributed")

#: What a shell needs before the block: the programs of this environment, and that nothing stays.
BEFORE = """
set -e
dask() { exec "$PYTHON" -m dask "$@"; }
milpbn() { "$PYTHON" -m milpbn "$@"; }
trap 'kill $(jobs -p)' EXIT
"""
WAIT = "while [ ! -e scheduler.json ]; do sleep .1; done"


@pytest.mark.slow
def test_the_commands_for_one_machine_run(tmp_path: Path) -> None:
    (block,) = [block.text for block in blocks("docs/many-machines.md") if block.language == "sh"]
    done = subprocess.run(
        ["bash", "-c", BEFORE + block.replace("&\nmilpbn", f"&\n{WAIT}\nmilpbn")],
        cwd=tmp_path,
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "optimal" in done.stdout
    assert len(json.loads((tmp_path / "stability.json").read_text())["runs"]) == 8
    assert {path.name for path in tmp_path.iterdir()} >= {"search.ckpt", "proof.npz", "comparison.npz"}
