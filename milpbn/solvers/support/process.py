"""Runs a solver as a child process, reads its output line by line, and makes sure that it never outlives its run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from milpbn.errors import InputError, SolverError

#: Seconds between two checks of the child and of `stop`.
POLL_SECONDS = 0.05
#: Seconds between two interrupts; solvers may miss an interrupt between two of their phases.
INTERRUPT_SECONDS = 0.25
#: Program of the watcher process, which kills the child when this process ends.
_WATCH = "import os, signal, sys; sys.stdin.buffer.read(); os.killpg(int(sys.argv[1]), signal.SIGKILL)"
#: Marker that is written after the child's last line; no solver prints it.
_LAST_LINE = "\x04 the child has ended \x04"


@dataclass(frozen=True)
class Exit:
    """How a child process, or its job, ended."""

    #: Exit status of the process, negative for a signal; 0 if it has finished its job and waits for another.
    code: int
    #: Whether it was asked to stop before it ended by itself.
    stopped: bool


def crash_of(backend: str, code: int, words: str = "") -> SolverError:
    """Return the error for a solver whose process ended without an answer, from `Exit.code` and its last line."""
    how = f"ended without an answer (exit status {code}"
    if code < 0:
        with contextlib.suppress(ValueError):
            how = f"crashed (killed by the signal {signal.Signals(-code).name}"
    said = f"; its last words: {words!r}" if words else ""
    return SolverError(
        f"The solver of the backend {backend} {how}{said}). Solve again with another --backend, or install "
        "another version of this one."
    )


def run_process(
    command: Sequence[str], *, on_line: Callable[[str], None], stop: Callable[[], bool], grace: float = 1.0
) -> Exit:
    """Run a command in a session of its own, so that Ctrl-C in the terminal reaches only this process.

    `on_line` is called with every line of standard output and error, in another thread; its exceptions are raised here.
    `stop` is called about twenty times a second, in the calling thread. When it returns True, the child is interrupted
    (SIGINT), and after `grace` seconds killed together with all its children. It is also killed if an exception ends
    this function. Raises OSError if the program cannot be started.
    """
    output, terminal = _channel()
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, start_new_session=True
        )
    except OSError:
        os.close(output)
        os.close(terminal)
        raise
    try:
        reader = _LineReader(output, terminal, on_line)
        with _killed_with_us(process):
            return supervise(process, reader, stop=stop, interrupt=lambda: _interrupt(process), grace=grace)
    finally:
        os.close(terminal)


@contextlib.contextmanager
def _killed_with_us(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill the child if this process ends within the block, in whatever way; only where there are process groups.

    A small watcher process waits for the end of its input, which comes when this process ends.
    """
    if os.name != "posix":
        yield
        return
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WATCH, str(process.pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with watcher:
        try:
            yield
        finally:
            watcher.kill()


def supervise(
    process: subprocess.Popen[bytes],
    reader: OutputReader,
    *,
    stop: Callable[[], bool],
    interrupt: Callable[[], None],
    grace: float,
) -> Exit:
    """Wait for a child process in a session of its own; parameters and behaviour are those of `run_process`.

    A process that has finished its job (`OutputReader.has_finished`) is left alive.
    """
    stopped: float | None = None
    interrupted = -INTERRUPT_SECONDS
    try:
        reader.start()
        while process.poll() is None and not reader.has_finished():
            now = time.monotonic()
            if stopped is None and (reader.error is not None or stop()):
                stopped = now
            if stopped is not None:
                if now - stopped >= grace:
                    break
                if now - interrupted >= INTERRUPT_SECONDS:
                    interrupted = now
                    interrupt()
            reader.wait_for_child(process)
    finally:
        if not reader.has_finished():
            kill(process)
        reader.child_ended()
        # A grandchild outside the process group could keep the output open; so the wait has a limit.
        reader.join(5.0)
    if reader.error is not None:
        raise reader.error
    return Exit(process.returncode or 0, stopped is not None)


class OutputReader(threading.Thread):
    """Passes the output of a child process on until it ends, and keeps the first exception."""

    def __init__(self, receive: Callable[[Any], None]) -> None:
        super().__init__(daemon=True)
        self._receive = receive
        self.error: BaseException | None = None

    def has_finished(self) -> bool:
        """Whether the child has finished its job and waits for another."""
        return False

    def wait_for_child(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the end of the child, but at most `POLL_SECONDS`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(POLL_SECONDS)

    def child_ended(self) -> None:
        """Take note that the child has ended, or its job; called once, by the thread that waits."""

    def pass_on(self, item: object) -> None:
        """Pass an item to the receiver, unless the receiver has failed before."""
        if self.error is None:
            try:
                self._receive(item)
            except BaseException as error:  # raised again by the thread that waits
                self.error = error


class _LineReader(OutputReader):
    """Reads lines from a pseudo-terminal until the marker line that `child_ended` writes into it.

    This process keeps the child's side of the terminal open until the marker is read. If the end were noticed by the
    error of a closed terminal, the error could come before the last lines.
    """

    def __init__(self, output: int, terminal: int, on_line: Callable[[str], None]) -> None:
        super().__init__(on_line)
        self._output = output
        self._terminal = terminal

    def child_ended(self) -> None:
        # This call waits while unread lines fill the terminal's buffer.
        with contextlib.suppress(OSError):
            os.write(self._terminal, f"{_LAST_LINE}\n".encode())

    def run(self) -> None:
        with (
            open(self._output, encoding="utf-8", errors="replace", newline="\n") as lines,
            contextlib.suppress(OSError),
        ):
            for line in lines:
                text, ended, _ = line.rstrip().partition(_LAST_LINE)
                if text or not ended:
                    self.pass_on(text)
                if ended:
                    break


def _channel() -> tuple[int, int]:
    """Return two file descriptors: one to read from, and one for the child to write to.

    They belong to a pseudo-terminal where the system has them. Most programs buffer 4 kB before they write to a pipe;
    then bounds would arrive minutes late.
    """
    try:
        import pty

        return pty.openpty()
    except (ImportError, OSError):
        return os.pipe()


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if os.name == "posix":
            process.send_signal(signal.SIGINT)
        else:
            process.terminate()


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill all processes that are left in the child's process group, whose id is the child's, and reap the child."""
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


@contextlib.contextmanager
def temporary_files(solver: str) -> Iterator[None]:
    """Make a temporary file that cannot be written within the block, as on a full disk, a failure of the solver."""
    try:
        yield
    except InputError as error:
        raise SolverError(f"{solver} cannot get its model: {error}") from error


def open_log(path: Path | None) -> contextlib.AbstractContextManager[TextIO | None]:
    """Open the file for a solver's own log, or raise InputError; without a path, return a context that does nothing."""
    if path is None:
        return contextlib.nullcontext()
    try:
        return open(path, "w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise InputError(
            f"The log file {path} cannot be written ({error.strerror or error}); "
            "choose a folder that exists and is writable."
        ) from error
