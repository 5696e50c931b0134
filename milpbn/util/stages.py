"""The current stage of the work, and a progress line that shows it if nothing else was shown for five seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from milpbn.util.progress_line import LINE

#: Seconds without output after which a line with the stage appears.
HEARTBEAT = 5.0

#: Shortest time in seconds between two lines of work that counts its steps.
STEP = 1.0

_stage = ""
#: `time.monotonic` value that counts as second 0 while stages are shown; None otherwise.
_began: float | None = None
#: Number of nested `shown` blocks that are active; the outermost one shows the stages.
_depth = 0


def enter(stage: str) -> None:
    """Set the current stage, such as ``tables 64 of 4000``."""
    global _stage
    _stage = stage


def tell(stage: str) -> None:
    """Set the current stage of work that counts its steps; show it if the last line is `STEP` seconds old."""
    enter(stage)
    if _began is not None and time.monotonic() >= LINE.shown_at + STEP:
        _show(_began)


def _show(began: float) -> None:
    LINE.show(f"{time.monotonic() - began:8.1f}s  {_stage}")


def current() -> str:
    """Return the current stage; empty before the first one."""
    return _stage


@contextmanager
def shown(started: float | None = None, *, wanted: bool = True) -> Iterator[None]:
    """Show a line with the time and the stage whenever nothing has been shown for `HEARTBEAT` seconds.

    At the end of the block the last progress line is kept, and other output comes below it. `started` is the
    `time.monotonic` value that counts as second 0, by default now; without `wanted` no lines are shown.
    """
    global _began, _depth
    began = time.monotonic() if started is None else started
    _depth += 1
    ended = threading.Event()
    if wanted and _depth == 1:
        LINE.shown_at = _began = began

    def beat() -> None:
        while not ended.wait(max(0.05, LINE.shown_at + HEARTBEAT - time.monotonic())):
            if _stage and time.monotonic() >= LINE.shown_at + HEARTBEAT:
                _show(began)

    if wanted and _depth == 1:
        threading.Thread(target=beat, name="milpbn-heartbeat", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        _depth -= 1
        if _depth == 0:
            _began = None
        LINE.end()
