"""Atomic writing: a file is replaced by a complete new one, or not at all.

The new file is written beside the old one, under a temporary name that begins with `PREFIX` and a number. A process
that is killed leaves it there. The next one that writes the same file removes it: a temporary file that no process has
locked (`milpbn.util.locks`) is not in use.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from milpbn.errors import InputError, MilpbnWarning, warn
from milpbn.util.locks import can_lock, is_at, lock, remove_abandoned

#: Beginning of the names of temporary files.
PREFIX = ".milpbn"
#: Largest number of temporary files for one target whose names are tried in turn; then a name is drawn at random.
MOST_NAMES = 100


class _Checked(Exception):  # noqa: N818  # it is not an error
    """Ends a block of `atomic_path` before the file is replaced."""


def check_writable(path: str | os.PathLike[str]) -> None:
    """Check that a path can be written, so that long work does not fail when its result is saved.

    `InputError` if `atomic_path` raises it for this path.
    """
    with suppress(_Checked), atomic_path(path):
        raise _Checked


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces ``path`` when the block ends without an exception.

    Readers see the old file or the new one, never a part of it. An interrupted block leaves no file behind; what a
    killed process leaves is removed when the same file is written again. The temporary file is in the same folder, and
    its name ends like the target's, because many writers choose the format by the suffix. Links are followed. The block
    should write only this file. `InputError` if the folder is missing or not writable, the path is a folder or a
    device, or the disk is full.
    """
    target = Path(os.path.realpath(path))
    if _is_open_file(path) or (os.path.exists(target) and not os.path.isfile(target)):
        raise InputError(f"Cannot write {str(path)!r}, which is not a regular file; name a file instead.")
    if not os.path.isdir(target.parent):
        raise InputError(f"Cannot write {str(path)!r}: its folder does not exist; create it first.")
    temporary = _Temporary(target)
    try:
        yield temporary.create()
        os.replace(temporary.path, target)
        temporary.replaced = True
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"Cannot write {str(path)!r} ({reason}); choose another path.") from error
    finally:
        temporary.close()


def _is_open_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a path, or a link on its way, is an open file such as ``/dev/stdout``, which nothing replaces."""
    path = os.path.abspath(path)
    for _ in range(40):  # as many links as Linux follows
        if re.fullmatch("/(dev|proc/.+)/fd", os.path.realpath(os.path.dirname(path))):
            return True
        if not os.path.islink(path):
            break
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return False


class _Temporary:
    """A temporary file beside its target; an interrupt may come between any two steps of its creation."""

    def __init__(self, target: Path) -> None:
        self._target, self._file = target, -1
        self.path, self.replaced = target, False

    def create(self) -> Path:
        """Create the file, lock it, and return its path."""
        if not can_lock():
            self.path = self._target.with_name(f"{PREFIX}-{secrets.token_hex(6)}-{self._target.name}")
            self.path.touch(exist_ok=False)
            return self.path
        for number in chain(range(MOST_NAMES), [secrets.token_hex(6)]):
            self.path = self._target.with_name(f"{PREFIX}{number}-{self._target.name}")
            remove_abandoned(self.path)
            try:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            except FileExistsError:
                continue  # in use
            # Before it is locked, another process may take it for an abandoned one; it then removes it, and unlocks.
            lock(self._file, wait=True)
            if is_at(self._file, self.path):
                return self.path
            self._release()
        raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))

    def close(self) -> None:
        """Remove the file unless it has replaced its target."""
        # After it has, another process may have taken the temporary name.
        if not self.replaced and self.path != self._target:
            if self._file < 0 and can_lock():
                remove_abandoned(self.path)
            elif self._file < 0 or is_at(self._file, self.path):
                with suppress(OSError):
                    self.path.unlink()
        self._release()

    def _release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def save_or_warn(save: Callable[[], None], going_on: str) -> None:
    """Write a file in the middle of long work; if `save` raises InputError, warn, and let the work go on.

    `going_on` is what goes on, for the warning: "The search".
    """
    try:
        save()
    except InputError as error:
        warn(f"{error} {going_on} goes on.", MilpbnWarning)


def atomic_write_text(path: str | os.PathLike[str], text: str) -> None:
    r"""Write a UTF-8 text file with ``\n`` line ends atomically; see `atomic_path`.

    `InputError` if the file cannot be written.
    """
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
