"""Atomic writing: a file is replaced by a complete new one, or not at all.

The new file is written beside the old one, under a temporary name that begins with `PREFIX` and a number. A process
that is killed leaves it there. The next one that writes the same file removes it: a temporary file that no process has
locked (`milpbn.util.locks`) is not in use.
"""

from __future__ import annotations

import errno
import os
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

    Raises
    ------
    InputError
        If `atomic_path` raises it for this path.
    """
    with suppress(_Checked), atomic_path(path):
        raise _Checked


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces ``path`` when the block ends without an exception.

    Readers see the old file or the new one, never a part of it. An interrupted block leaves no file behind; what a
    killed process leaves is removed when the same file is written again. The temporary file is in the same folder, and
    its name ends like the target's, because many writers choose the format by the suffix. Links are followed. The block
    should write only this file.

    Parameters
    ----------
    path : str or path-like
        Path of the file to write.

    Yields
    ------
    Path
        Path of an empty file to write to.

    Raises
    ------
    InputError
        If the folder is missing or not writable, the path is a folder or a device, or the disk is full.
    """
    target = Path(os.path.realpath(path))
    if os.path.exists(target) and not os.path.isfile(target):
        raise InputError(f"Cannot write {str(path)!r}, which is not a regular file; name a file instead.")
    if not os.path.isdir(target.parent):
        raise InputError(f"Cannot write {str(path)!r}: its folder does not exist; create it first.")
    temporary, file = None, None
    try:
        temporary, file = _created(target)
        yield temporary
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"Cannot write {str(path)!r} ({reason}); choose another path.") from error
    finally:
        # After the file has its place, another process may have taken the temporary name.
        if temporary is not None and (file is None or is_at(file, temporary)):
            with suppress(OSError):
                temporary.unlink()
        if file is not None:
            os.close(file)


def _created(target: Path) -> tuple[Path, int | None]:
    """Create a temporary file beside the target; return its path, and the descriptor that holds its lock."""
    if not can_lock():
        path = target.with_name(f"{PREFIX}-{secrets.token_hex(6)}-{target.name}")
        path.touch(exist_ok=False)
        return path, None
    for number in chain(range(MOST_NAMES), [secrets.token_hex(6)]):
        path = target.with_name(f"{PREFIX}{number}-{target.name}")
        remove_abandoned(path)
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            continue  # in use
        # Before it is locked, another process may take it for an abandoned one; it then removes it, and unlocks.
        lock(file, wait=True)
        if is_at(file, path):
            return path, file
        os.close(file)
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))


def save_or_warn(save: Callable[[], None], going_on: str) -> None:
    """Write a file in the middle of long work; if that fails, warn, and let the work go on.

    Parameters
    ----------
    save : callable
        Writes the file; raises InputError if it cannot be written.
    going_on : str
        What goes on, for the warning: "The search".
    """
    try:
        save()
    except InputError as error:
        warn(f"{error} {going_on} goes on.", MilpbnWarning)


def atomic_write_text(path: str | os.PathLike[str], text: str) -> None:
    r"""Write a UTF-8 text file with ``\n`` line ends atomically; see `atomic_path`.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
