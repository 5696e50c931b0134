"""Backends whose solver runs in a child process of this Python.

Two reasons: the wheels of highspy and ortools each bring a library of the name ``libhighs.so.1``, so that
whichever is imported second fails (highspy 1.15, ortools 9.15); and solvers that PuLP drives in-process
cannot be stopped. A child can be killed, and takes its own children and a crash with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from abc import abstractmethod
from dataclasses import replace
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from milpbn.backends.base import Backend, Events, Outcome, Settings
from milpbn.backends.process import OutputReader, open_log, supervise
from milpbn.errors import MilpbnError, SolverError
from milpbn.model.milp import Milp

#: Seconds a child gets to end by itself once it was asked to.
GRACE = 1.5

#: The child may not find this package by itself: it gets the parent's search path first.
_START = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from milpbn.backends.child import main; main()"
)


class ChildBackend(Backend):
    """A backend that is solved in a child process by `solve_here`.

    The child is asked to stop when `Events.stopping` says so or the deadline is over, and killed if it does
    not. It ends by itself when this process dies.
    """

    #: Whether the solver's log is what it prints, rather than a file it writes itself.
    prints_log: ClassVar[bool] = False

    @abstractmethod
    def solve_here(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: Events
    ) -> Outcome:
        """Maximise the MILP in this process; see `Backend.solve`."""

    def solve(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: Events
    ) -> Outcome:
        """Maximise the MILP; see `Backend.solve`."""
        answer: list[Outcome | BaseException] = []

        def receive(message: tuple[str, tuple[Any, ...]]) -> None:
            what, arguments = message
            if what == "answer":
                answer.append(arguments[0])
            else:
                getattr(events, what)(*arguments)

        def stop() -> bool:
            return settings.remaining() == 0.0 or events.stopping()

        with contextlib.ExitStack() as stack:
            printed: IO[Any] = stack.enter_context(tempfile.TemporaryFile())
            log = stack.enter_context(open_log(settings.log)) if self.prints_log else None
            # Its own folder, for what solvers leave behind in the current or the temporary one.
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="milpbn-"))
            if settings.log is not None:
                settings = replace(settings, log=settings.log.absolute())
            process = subprocess.Popen(
                [sys.executable, "-c", _START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=printed if log is None else log,
                cwd=folder,
                env=os.environ | {"TMPDIR": folder, "TMP": folder, "TEMP": folder},
                start_new_session=True,
            )
            stack.enter_context(process)
            assert process.stdin is not None
            stack.callback(_close_quietly, process.stdin)
            # If the child dies while it is told the model, its end of the pipe is closed: see below.
            with contextlib.suppress(OSError):
                pickle.dump([os.path.abspath(entry) for entry in sys.path], process.stdin)
                pickle.dump((self, milp, start, settings), process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
                process.stdin.flush()
            ended = supervise(
                process,
                _MessageReader(process, receive),
                stop=stop,
                interrupt=lambda: _ask_to_stop(process),
                grace=GRACE,
            )
            if not answer and ended.stopped:
                return Outcome(limit="time" if settings.remaining() == 0.0 else "user", detail="killed")
            if not answer:
                raise SolverError(f"{self.name} ended with exit status {ended.code}{_last_words(printed)}.")
        if isinstance(answer[0], BaseException):
            raise answer[0]
        return answer[0]


class _MessageReader(OutputReader):
    def __init__(self, process: subprocess.Popen[bytes], receive: Any) -> None:
        super().__init__(receive)
        self._process = process

    def run(self) -> None:
        assert self._process.stdout is not None
        # A killed child may leave half a message.
        with contextlib.suppress(EOFError, OSError, ValueError, pickle.UnpicklingError):
            while True:
                self.pass_on(pickle.load(self._process.stdout))


def _close_quietly(pipe: IO[bytes]) -> None:
    """Close a pipe whose reader may have gone before it took the last word."""
    with contextlib.suppress(OSError):
        pipe.close()


def _ask_to_stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError, ValueError):
        process.stdin.write(b"s")
        process.stdin.flush()


def _last_words(printed: IO[bytes]) -> str:
    """Return the last line that a child printed, for an error message."""
    printed.seek(0)
    lines = printed.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f" ({last})" if last else ""


class _ParentEvents:
    """Sends events to the parent, and hears from it when to stop."""

    def __init__(self, channel: IO[bytes]) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._stop = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        # The end of the input is the end of the parent, who would have removed the folder it made for this
        # process and killed the solver's own children.
        while sys.stdin.buffer.read(1):
            self._stop.set()
        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
        if os.name == "posix":
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    def send(self, what: str, *arguments: object) -> None:
        with self._lock:
            pickle.dump((what, arguments), self._channel, protocol=pickle.HIGHEST_PROTOCOL)
            self._channel.flush()

    def point(self, x: NDArray[np.float64], source: str) -> None:
        self.send("point", x, source)

    def bound(self, value: float) -> None:
        self.send("bound", value)

    def nodes(self, count: int) -> None:
        self.send("nodes", count)

    def stopping(self) -> bool:
        return self._stop.is_set()


def main() -> None:
    """Solve what standard input tells, in a child process."""
    backend, milp, start, settings = pickle.load(sys.stdin.buffer)
    # What solvers print must not mix with the messages.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    events = _ParentEvents(channel)
    answer: Outcome | BaseException
    try:
        answer = backend.solve_here(milp, start, settings, events)
    except MilpbnError as error:
        answer = error
    except Exception as error:
        answer = SolverError(f"{backend.name} failed: {type(error).__name__}: {error}.")
    events.send("answer", answer)
    sys.stdout.flush()
    with contextlib.suppress(OSError, TypeError):
        # The solver's log may still be in C's buffers.
        ctypes.CDLL(None).fflush(None)
    # Solvers' threads and destructors have nothing left to do.
    os._exit(0)
