"""Locks on files and folders. The operating system releases them when their process ends, in whatever way.

What is locked is in use; what is not locked was left by a process that was killed, and may be removed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def can_lock() -> bool:
    """Return whether this system has such locks."""
    return fcntl is not None


def lock(file: int, *, wait: bool = False) -> bool:
    """Lock an open file or folder, given its descriptor, until it is closed; with `wait`, wait until the lock is free.

    Return False if another process or thread holds the lock, and where the system or the file system has no locks.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def is_at(file: int, path: str | os.PathLike[str]) -> bool:
    """Return whether a path still names an open file or folder, which may have been moved or removed meanwhile."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def claim(path: str | os.PathLike[str]) -> int | None:
    """Open an existing file or folder and lock it; return its descriptor, or None if that is not possible.

    None means that the path is missing, a link, unreadable, or in use, or that there are no locks.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, AttributeError):
        return None
    # Another process may have removed it, and made a new one, before it was locked here.
    if lock(file) and is_at(file, path):
        return file
    os.close(file)
    return None


def remove_abandoned(path: Path) -> None:
    """Remove a file if no process holds its lock; one that cannot be removed stays."""
    file = claim(path)
    if file is not None:
        with suppress(OSError):
            path.unlink()
        os.close(file)
