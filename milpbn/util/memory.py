"""The machine's memory, the limit of a run, and a check that an allocation fits into them.

A limit (`limited`) is met in three ways. What is forecast to need more is refused (`require_memory`). A search plans
with what is left (`available_memory`). And what was not forecast is measured (`exceeded`): a run that comes near the
limit stops as at a time limit, with what it has found.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from milpbn.errors import InputError

#: Share of a limit at which a run is stopped. What is left is for what it allocates until it has stopped.
STOP_AT = 0.9
#: Seconds between two measurements of the memory in use.
MEASURE_EVERY = 0.2
#: Smallest limit in bytes: Python, its libraries and the compiled kernels need most of it (benchmarks/memory.py).
LEAST = 2**29

_limits: list[int] = []
_measured_at, _exceeded = -1.0, False


@contextmanager
def limited(most: int | None) -> Iterator[None]:
    """Limit the memory of this process and its child processes within the block, in all threads, to `most` bytes.

    None adds no limit. Of several limits the smallest holds. `InputError` if the limit is less than `LEAST`.
    """
    if most is None:
        yield
        return
    if most < LEAST:
        raise InputError(
            f"The memory limit of {format_bytes(most)} is less than {format_bytes(LEAST)}, which the program and its "
            "libraries need; set a larger one, for example 4GiB."
        )
    global _measured_at
    _measured_at = -1.0
    _limits.append(most)
    try:
        yield
    finally:
        _limits.remove(most)


def memory_limit() -> int | None:
    """Return the limit of this process in bytes, None without one."""
    return min(_limits, default=None)


def exceeded() -> bool:
    """Return whether the memory in use has come near the limit; measured every `MEASURE_EVERY` seconds at most."""
    global _measured_at, _exceeded
    limit = memory_limit()
    if limit is None:
        return False
    now = time.monotonic()
    if now >= _measured_at + MEASURE_EVERY:
        _measured_at = now
        _exceeded = (used_memory() or 0) > STOP_AT * limit
    return _exceeded


class Growth:
    """The memory that this process takes from now on, on a machine that it shares with others.

    It may take half as much as is still free. So any number of processes leave some, although none knows the others. If
    there is such a limit, the process may have `most` bytes in memory in all.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most, self._before, self._measured_at = most, used_memory() or 0, time.monotonic()

    def over(self) -> bool:
        """Return whether that is used up; measured every `MEASURE_EVERY` seconds at most, and False in between."""
        if time.monotonic() < self._measured_at + MEASURE_EVERY:
            return False
        self._measured_at = time.monotonic()
        used, free = used_memory() or 0, available_memory()
        own = None if self._most is None else STOP_AT * self._most - used
        return used - self._before >= min((x for x in (free, own) if x is not None), default=math.inf) / 2


def used_memory() -> int | None:
    """Return the number of bytes that this process and all its child processes have in memory; None if unknown.

    Where the system has no ``/proc``, it is the peak of this process alone.
    """
    try:
        return _resident("self")
    except OSError:
        return peak_memory()


def _resident(process: str) -> int:
    """Return the bytes of a process and its descendants, by its folder in ``/proc``."""
    folder = Path("/proc", process)
    total = int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    for thread in (folder / "task").iterdir():
        with suppress(OSError):  # the thread or the child may have ended
            for child in (thread / "children").read_text().split():
                with suppress(OSError, IndexError):
                    total += _resident(child)
    return total


def available_memory() -> int | None:
    """Return the number of bytes that can be allocated now, within all limits; None if that is unknown."""
    limits = []
    limit = memory_limit()
    if limit is not None:
        limits.append(max(0, int(STOP_AT * limit) - (used_memory() or 0)))
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
            limits.append(int(maximum) - int(Path("/sys/fs/cgroup/memory.current").read_text()) + _cached())
    return min(limits) if limits else None


def _cached() -> int:
    """Return the bytes of files that the cgroup keeps in memory, and drops when memory is needed."""
    for line in Path("/sys/fs/cgroup/memory.stat").read_text().splitlines():
        if line.startswith("inactive_file "):
            return int(line.split()[1])
    return 0


def format_bytes(size: float) -> str:
    """Return a size with a unit, such as ``1.2 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def require_memory(needed: int, what: str, remedy: str | Callable[[], str]) -> None:
    """Check that `needed` bytes of memory are available.

    `InputError` if fewer bytes are available; `what` is the subject of its sentence, and `remedy` (or its result) the
    advice that ends it.
    """
    available = available_memory()
    if available is not None and needed > available:
        limit = memory_limit()
        within = "" if limit is None else f" within the memory limit of {format_bytes(limit)}"
        raise InputError(
            f"{what} would need {format_bytes(needed)} of memory, but {format_bytes(available)} are available{within}; "
            f"{remedy if isinstance(remedy, str) else remedy()}."
        )


def peak_memory() -> int | None:
    """Return the largest number of bytes that this process has had in memory; None if that is unknown."""
    try:
        import resource
    except ImportError:
        return None
    # The unit is kilobytes, except on macOS, where it is bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
