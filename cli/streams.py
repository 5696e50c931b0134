"""Standard streams that outlive their readers: a run must not be lost because nobody watches it."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, TextIO, cast


class Patient:
    """A text stream that falls silent when its reader has gone, in place of raising `BrokenPipeError`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or pretend to."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._stream = _nowhere()
            return len(text)

    def flush(self) -> None:
        """Flush, or pretend to."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._stream = _nowhere()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def prepare_streams() -> None:
    """Make stdout take any label, and stderr survive its reader; a closed stream leads nowhere."""
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()
    with contextlib.suppress(AttributeError):
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.stderr = cast(TextIO, Patient(sys.stderr))


def flush_streams() -> None:
    """Flush both streams; what cannot be written is lost."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")
