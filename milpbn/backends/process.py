"""Run a solver as a child process whose output is followed line by line and which never outlives its run."""

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

from milpbn.errors import InputError

#: Seconds between two looks at the child and at `stop`.
POLL_SECONDS = 0.05
#: Seconds between two interrupts: solvers overlook one that arrives between two phases.
INTERRUPT_SECONDS = 0.25
#: What the process runs that outlives this one, if only to kill its child.
_WATCH = "import os, signal, sys; sys.stdin.buffer.read(); os.killpg(int(sys.argv[1]), signal.SIGKILL)"
#: What is written after a child's last line; no solver prints it.
_LAST_LINE = "\x04 the child has ended \x04"


@dataclass(frozen=True)
class Exit:
    """How a child process ended.

    Attributes
    ----------
    code : int
        Its exit status, negative for a signal.
    stopped : bool
        It was asked to stop before it ended by itself.
    """

    code: int
    stopped: bool


def run_process(
    command: Sequence[str],
    *,
    on_line: Callable[[str], None],
    stop: Callable[[], bool],
    grace: float = 1.0,
) -> Exit:
    """Run a command in a session of its own, so that a Ctrl-C at the terminal reaches only this process.

    Once `stop` says so the child is interrupted (SIGINT), and after `grace` seconds killed together with
    all its children. It is killed too when this function is left by an exception.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    on_line : callable
        Gets every line of standard output and error, from another thread. What it raises is raised here.
    stop : callable
        Asked about twenty times a second, in the calling thread.
    grace : float
        Seconds between the first interrupt and the kill.

    Returns
    -------
    Exit

    Raises
    ------
    OSError
        If the program cannot be started.
    """
    output, terminal = _channel()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
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
    """Within this block a child does not outlive this process, however that ends: where there are process groups.

    A small process of its own waits for the end of its input, which is the end of this process.
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
    """Wait for a child process in a session of its own; parameters and behaviour as `run_process`."""
    stopped: float | None = None
    interrupted = -INTERRUPT_SECONDS
    try:
        reader.start()
        while process.poll() is None:
            now = time.monotonic()
            if stopped is None and (reader.error is not None or stop()):
                stopped = now
            if stopped is not None:
                if now - stopped >= grace:
                    break
                if now - interrupted >= INTERRUPT_SECONDS:
                    interrupted = now
                    interrupt()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(POLL_SECONDS)
    finally:
        _kill(process)
        reader.child_ended()
        # A grandchild that left the group could hold the output open: do not wait for it for ever.
        reader.join(5.0)
    if reader.error is not None:
        raise reader.error
    return Exit(process.returncode, stopped is not None)


class OutputReader(threading.Thread):
    """Passes on what a child process says, until it ends, and keeps the first exception."""

    def __init__(self, receive: Callable[[Any], None]) -> None:
        super().__init__(daemon=True)
        self._receive = receive
        self.error: BaseException | None = None

    def child_ended(self) -> None:
        """Nothing more will be said: called once, by the thread that waits."""

    def pass_on(self, item: object) -> None:
        """Hand an item to the receiver, unless it has failed before."""
        if self.error is None:
            try:
                self._receive(item)
            except BaseException as error:  # raised again by the thread that waits
                self.error = error


class _LineReader(OutputReader):
    """Reads lines from a terminal until the end of the child, which is written into it like a last line.

    Until that line has been read this process holds the child's end open, too. A reader that is told of the
    end by the error of a closed terminal may be told so before it has had the last lines.
    """

    def __init__(self, output: int, terminal: int, on_line: Callable[[str], None]) -> None:
        super().__init__(on_line)
        self._output = output
        self._terminal = terminal

    def child_ended(self) -> None:
        # What the reader has left to read may fill the terminal, so it may take a moment to write this.
        with contextlib.suppress(OSError):
            os.write(self._terminal, f"{_LAST_LINE}\n".encode())

    def run(self) -> None:
        with (
            open(self._output, encoding="utf-8", errors="replace", newline="\n") as lines,
            contextlib.suppress(OSError),
        ):
            for line in lines:
                said, ended, _ = line.rstrip().partition(_LAST_LINE)
                if said or not ended:
                    self.pass_on(said)
                if ended:
                    break


def _channel() -> tuple[int, int]:
    """Return descriptors to read from and to give to the child.

    A pseudo-terminal where there are any: into a pipe most programs write only when 4 kB have gathered, so
    that their bounds would arrive minutes late.
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


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the child's process group, which has the child's id, and reap the child."""
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def open_log(path: Path | None) -> contextlib.AbstractContextManager[TextIO | None]:
    """Open the file that gets a solver's own log; a context without effect if there is none.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    if path is None:
        return contextlib.nullcontext()
    try:
        return open(path, "w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise InputError(
            f"The log file {path} cannot be written ({error.strerror or error}); "
            "choose a folder that exists and is writable."
        ) from error
