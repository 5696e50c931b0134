"""Memory of the machine, and the refusal to allocate more than it has."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from milpbn.errors import InputError


def available_memory() -> int | None:
    """Return the bytes that can be allocated now, cgroup limits included; None where nobody says."""
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
    """Refuse to go on if `needed` bytes are more than the machine can give.

    Raises
    ------
    InputError
        With the forecast, the memory there is, and the remedy.
    """
    available = available_memory()
    if available is not None and needed > available:
        raise InputError(
            f"{what} would need {format_bytes(needed)} of memory, and {format_bytes(available)} are available; "
            f"{remedy}."
        )


def peak_memory() -> int | None:
    """Return the most bytes that this process had in memory so far, or None where the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    # Kilobytes, but for macOS.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
