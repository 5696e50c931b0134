"""Atomic writing: a file is replaced by a complete new one, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from milpbn.errors import InputError


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

    Readers see the old file or the new one, never a part of it, and an interrupted block leaves no file behind.
    The temporary file is in the same folder, and its name ends like the target's, because many writers choose
    the format by the suffix. Links are followed. The block should write only this file.

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
    temporary = target.with_name(f".{secrets.token_hex(6)}-{target.name}")
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"Cannot write {str(path)!r} ({reason}); choose another path.") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def atomic_write_text(path: str | os.PathLike[str], text: str) -> None:
    r"""Write a UTF-8 text file with ``\n`` line ends atomically; see `atomic_path`.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
