"""Signals that ask a run to stop: raised as KeyboardInterrupt, or during a run only noted.

An exception that a signal handler raises inside another library's callback is printed and forgotten, and half of
a computation may be lost; a run therefore asks for the note and ends in its own time.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_noted = threading.Event()
_raised = threading.Event()
#: Blocks of `deferred` that this process is in, one inside the other.
_depth = 0


def install() -> None:
    """Let Ctrl-C (SIGINT) and SIGTERM interrupt this process as described; for the main thread."""
    _raised.clear()
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)


def requested() -> bool:
    """Return whether a signal was noted in this run."""
    return _noted.is_set()


def raised() -> bool:
    """Return whether a signal was raised as KeyboardInterrupt since `install`: whatever else follows is its fault."""
    return _raised.is_set()


@contextmanager
def deferred() -> Iterator[None]:
    """Only note the first signal within this block; a second one raises all the same.

    Blocks may be nested, as where a comparison runs one search after the other: the note is kept until the outermost
    one ends.
    """
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            _noted.clear()


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _depth > 0 and not _noted.is_set():
        _noted.set()
    else:
        _raised.set()
        raise KeyboardInterrupt
