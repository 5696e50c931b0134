"""The machine's memory, and a check that an allocation fits into it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from milpbn.errors import InputError


def available_memory() -> int | None:
    """Return the number of bytes that can be allocated now, within cgroup limits; None if that is unknown."""
    limits = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(int(line.split()[1]) * 1024)
    except OSError:
        with suppress(ValueError, OSError, AttributeError):
            limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):
        maximum = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if maximum != "max":
            limits.append(int(maximum) - int(Path("/sys/fs/cgroup/memory.current").read_text()))
    return min(limits) if limits else None


def format_bytes(size: float) -> str:
    """Return a size with a unit, such as ``1.2 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def require_memory(needed: int, what: str, remedy: str) -> None:
    """Check that `needed` bytes of memory are available.

    Parameters
    ----------
    needed : int
        Forecast of the memory, in bytes.
    what : str
        Subject of the error message, such as "reading the file".
    remedy : str
        Advice that ends the message.

    Raises
    ------
    InputError
        If fewer bytes are available.
    """
    available = available_memory()
    if available is not None and needed > available:
        raise InputError(
            f"{what} would need {format_bytes(needed)} of memory, but {format_bytes(available)} are available; "
            f"{remedy}."
        )


def peak_memory() -> int | None:
    """Return the largest number of bytes that this process has had in memory; None if that is unknown."""
    try:
        import resource
    except ImportError:
        return None
    # The unit is kilobytes, except on macOS, where it is bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
