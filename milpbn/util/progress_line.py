"""The progress line: updated in place in a terminal and in a notebook, and a new line each time in a pipe.

It uses neither colours nor a hidden cursor, so that a killed process leaves the terminal in its normal state.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from typing import IO, Any

from milpbn.util.printing import printable


class ProgressLine:
    """A line on a stream, which the next line replaces where that is possible; every thread may use it.

    The stream is by default `sys.stderr` at the time of writing, or the output of the notebook's cell.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._width: int | None = None  # width of the terminal's current line, which has no line end yet
        self._output: Any = None  # the notebook's output that the next line updates
        #: `time.monotonic` value at which a line was last written.
        self.shown_at = 0.0

    def show(self, text: str) -> None:
        """Write a line that the next one may replace."""
        text = printable(text)
        with self._lock:
            self.shown_at = time.monotonic()
            stream = self._stream or sys.stderr
            if self._stream is None and in_notebook():
                self._update({"text/plain": text})
            elif self._in_terminal():
                self._width = _columns(stream) - 1
                self._print("\r" + text[: self._width].ljust(self._width), end="")
            else:
                self._print(text)

    def keep(self, text: str) -> None:
        """Write a line that is not replaced."""
        text = printable(text, keep="\n")
        with self._lock:
            self.shown_at = time.monotonic()
            start = "" if self._width is None else "\r"
            self._print(start + text.ljust(self._width or 0))
            self._width = self._output = None

    @property
    def replaces(self) -> bool:
        """Whether a new line replaces the last one, so that any number of lines may be shown."""
        return (self._stream is None and in_notebook()) or self._in_terminal()

    def _in_terminal(self) -> bool:
        return (self._stream or sys.stderr).isatty()

    def end(self) -> None:
        """Keep the last line, so that other output comes below it."""
        with self._lock:
            if self._width is not None:
                self._print("")
            self._width = self._output = None

    def _print(self, text: str, end: str = "\n") -> None:
        """Write text; a full disk, or a terminal that is gone, must not end a search."""
        with contextlib.suppress(OSError):
            print(text, end=end, file=self._stream or sys.stderr, flush=True)

    def _update(self, data: dict[str, str]) -> None:
        from IPython.display import display

        if self._output is None:
            self._output = display(data, raw=True, display_id=True)
        else:
            self._output.update(data, raw=True)


#: The progress line of this process.
LINE = ProgressLine()


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    return "ipykernel" in sys.modules


def _columns(stream: IO[str]) -> int:
    """Return the width of a terminal in characters."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns
