"""Signals that ask a run to stop: raised where Python can raise, and remembered where it cannot.

An exception that a signal handler raises inside another library's callback is printed and forgotten; the note
taken here is not.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import NoReturn

_requested = threading.Event()


def install() -> None:
    """Let Ctrl-C (SIGINT) and SIGTERM raise KeyboardInterrupt and leave a note; for the main thread."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)


def requested() -> bool:
    """Return whether such a signal has come since `install`."""
    return _requested.is_set()


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _requested.set()
    raise KeyboardInterrupt
