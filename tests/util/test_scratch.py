"""Temporary folders, and what killed processes leave of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from milpbn.util.scratch import PREFIX, remove_all, scratch_folder


def test_a_folder_of_a_killed_process_is_removed_and_one_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import os, signal; from milpbn.util.scratch import scratch_folder\n"
        "with scratch_folder() as folder:\n"
        "    (folder / 'sub').mkdir(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"TMPDIR": str(tmp_path)}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert [path.name.startswith(PREFIX) for path in tmp_path.iterdir()] == [True]
    with scratch_folder() as first:
        assert [*tmp_path.iterdir()] == [first]
        with scratch_folder() as second:
            (second / "model.mps").write_text("")
            assert sorted(tmp_path.iterdir()) == sorted([first, second])
        assert [*tmp_path.iterdir()] == [first]
    assert [*tmp_path.iterdir()] == []


def test_a_process_that_ends_at_once_removes_its_folders() -> None:
    with scratch_folder() as folder:
        (folder / "model.mps").write_text("")
        remove_all()
        assert not folder.exists()
