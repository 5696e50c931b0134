"""Temporary folders for the files of solvers; a folder that a killed process has left is removed by the next one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from milpbn.util.locks import can_lock, claim, is_at, lock

#: Beginning of the names of these folders.
PREFIX = "milpbn-scratch-"

#: The folders of this process.
_in_use: set[Path] = set()


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield the path of a new temporary folder, which is removed with its contents when the block ends.

    First, the folders of this user that no process has locked (`milpbn.util.locks`) are removed.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if (held := claim(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(held)
    folder, file = _created()
    _in_use.add(folder)
    try:
        yield folder
    finally:
        _in_use.discard(folder)
        shutil.rmtree(folder, ignore_errors=True)
        if file is not None:
            os.close(file)


def remove_all() -> None:
    """Remove all folders of this process, which ends now although a thread still uses them."""
    for folder in list(_in_use):
        shutil.rmtree(folder, ignore_errors=True)


def _created() -> tuple[Path, int | None]:
    """Create a folder; return its path, and the descriptor that holds its lock."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        if not can_lock():
            return folder, None
        # Before it is locked, another process may take it for an abandoned one; it then removes it, and unlocks.
        with suppress(FileNotFoundError):
            file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            lock(file, wait=True)
            if is_at(file, folder):
                return folder, file
            os.close(file)
