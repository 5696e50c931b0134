"""The progress line in a terminal, in a notebook and in a pipe."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from types import ModuleType
from typing import Any

import pytest

from milpbn.cli import PipeSafeStream
from milpbn.solving.progress import HEADER, Progress
from milpbn.util.progress_line import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def rows(text: str) -> list[str]:
    """Return the lines on the screen; a carriage return goes back to the beginning of its line."""
    screen = []
    for row in text.split("\n"):
        shown = ""
        for part in row.split("\r"):
            shown = part + shown[len(part) :]
        screen.append(shown.rstrip())
    return screen


def test_a_terminal_has_one_line_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    line = ProgressLine(stream)
    line.show("a long line of progress")
    line.show("short")
    assert rows(stream.getvalue()) == ["short"]
    line.keep("Warning: something")
    line.show("after it")
    line.show("at last")
    line.end()
    line.end()
    assert rows(stream.getvalue()) == ["Warning: something", "at last", ""]


def test_a_line_is_no_longer_than_the_terminal_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = Terminal()
    ProgressLine(stream).show("x" * 30)
    assert rows(stream.getvalue()) == ["x" * 19]


def test_a_pipe_has_plain_lines() -> None:
    stream = io.StringIO()
    line = ProgressLine(stream)
    for text in ("one", "two"):
        line.show(text)
    line.keep("three")
    line.end()
    assert stream.getvalue() == "one\ntwo\nthree\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_does_not_end_a_search() -> None:
    done = False
    with (
        contextlib.suppress(OSError),
        open("/dev/full", "w", buffering=1) as stream,
    ):  # closing it is an error
        for line in (ProgressLine(stream), ProgressLine(PipeSafeStream(stream))):
            line.show("one")
            line.keep("two")
            line.end()
        print("three", file=PipeSafeStream(stream), flush=True)
        done = True
    assert done


def test_a_search_in_a_terminal_has_a_header_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    line = ProgressLine(stream)
    line.show("     0.1s  reading")
    progress = Progress(line)
    progress.line(0.2, None, 1.0, 9.0, "start")
    progress.line(0.3, 4, 2.0, 8.0, "local search")
    assert rows(stream.getvalue())[0] == HEADER
    assert rows(stream.getvalue())[1].split() == [
        "0.3s",
        "4",
        "2.000000",
        "8.000000",
        "75.000",
        "%",
        "local",
        "search",
    ]
    assert len(rows(stream.getvalue())) == 2


def test_a_notebook_has_one_output_that_is_updated(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    told: list[tuple[str, str]] = []

    class Handle:
        def update(self, data: dict[str, str], **_: Any) -> None:
            told.append(("update", data["text/plain"]))

    def display(data: dict[str, str], **options: Any) -> Handle:
        assert options == {"raw": True, "display_id": True}
        told.append(("display", data["text/plain"]))
        return Handle()

    module = ModuleType("IPython.display")
    module.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    line = ProgressLine()
    line.show("one")
    line.show("two")
    line.keep("kept")
    line.show("three")
    line.end()
    assert told == [("display", "one"), ("update", "two"), ("display", "three")]
    assert capfd.readouterr().err == "kept\n"
