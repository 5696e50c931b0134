"""Standard streams that may become unwritable: a closed pipe or terminal, or a full disk, must not end a run."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, TextIO, cast


class PipeSafeStream:
    """A text stream that discards what it cannot write, instead of raising an error."""

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


def prepare_streams() -> None:
    """Make stdout accept any label and stderr survive what it cannot write; replace streams that are closed already."""
    if sys.stdout is None:
        sys.stdout = _null_stream()
    if sys.stderr is None:
        sys.stderr = _null_stream()
    with contextlib.suppress(AttributeError):
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.stderr = cast(TextIO, PipeSafeStream(sys.stderr))


def flush_streams() -> None:
    """Flush both streams; what cannot be written is lost."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


def _null_stream() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")
