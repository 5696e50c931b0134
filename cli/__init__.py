"""The command line: a thin layer over the Python API, one module per verb.

Modules here import NumPy, and everything that needs it, only inside the functions that do the work, so that
``--help`` appears at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import warnings
from typing import Any, NoReturn, TextIO, cast

from milpbn.errors import BoundWarning, DataWarning, MilpbnWarning
from milpbn.util import interrupts
from milpbn.util.progress_line import LINE

#: Seconds that a solver gets, after it was told to stop, to remove its files before the process ends.
SHUTDOWN_GRACE = 0.5


def main() -> NoReturn:
    """Run ``milpbn`` on the arguments of this process and end the process with its exit code.

    The time limit counts from this call. SIGTERM and SIGHUP do the same as Ctrl-C: the best structure so far is kept.
    """
    started = time.monotonic()
    interrupts.install()
    interrupts.guard()
    try:
        from milpbn.cli.app import app
    except KeyboardInterrupt:
        os._exit(130)
    _prepare_streams()
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # the user can do nothing about warnings of other libraries
        warnings.simplefilter("always", MilpbnWarning)
        for category in (DataWarning, BoundWarning):  # the verbs print the same sentences as notes
            warnings.simplefilter("ignore", category)
        warnings.showwarning = _show_warning
    try:
        code = app.run(obj=started)
        interrupts.ignore(*interrupts.SIGNALS)  # the work is done, and its exit code stands
        _flush_streams()
    except KeyboardInterrupt:  # a second signal, while the first one was answered
        os._exit(130)
    _end(code)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    LINE.keep(f"Warning: {message}")


def _end(code: int) -> NoReturn:
    """End the process, even if a solver that ignores requests to stop still runs in a thread."""
    deadline = time.monotonic() + SHUTDOWN_GRACE
    others = [
        t for t in threading.enumerate() if t is not threading.current_thread() and t.name != interrupts.GUARD
    ]
    for thread in others:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        from milpbn.util.scratch import remove_all

        remove_all()
        os._exit(code)  # an ordinary exit would destroy the interpreter while the solver still uses it
    sys.exit(code)


class PipeSafeStream:
    """A text stream that discards what it cannot write, as to a closed pipe or a full disk, without an error."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text, or discard it, and return its length."""
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, if that is possible."""
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _prepare_streams() -> None:
    """Make stdout accept any label and stderr survive what it cannot write; replace streams that are closed already."""
    if sys.stdout is None:
        sys.stdout = _null_stream()
    if sys.stderr is None:
        sys.stderr = _null_stream()
    with contextlib.suppress(AttributeError):
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.stderr = cast(TextIO, PipeSafeStream(sys.stderr))


def _flush_streams() -> None:
    """Flush both streams; what cannot be written is lost."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


def _null_stream() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")
