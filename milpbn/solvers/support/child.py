"""Solvers that run in a child process of this Python.

There are two reasons. The wheels of highspy and ortools both contain a library named ``libhighs.so.1``, so the one that
is imported second fails (highspy 1.15, ortools 9.15). And solvers that PuLP runs in this process could not be stopped.
A child process can be killed together with its own children, and its crash does not end this process.
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

from milpbn.errors import MilpbnError, SolverError
from milpbn.milp.milp import Milp
from milpbn.solvers.base import MilpEvents, Outcome, Settings, Solver
from milpbn.solvers.support.canary import examine, has_passed, passed
from milpbn.solvers.support.process import OutputReader, open_log, supervise

#: Seconds that a child gets to end by itself after it is asked to stop.
GRACE = 1.5

#: The program of the child. It first reads the parent's search path, without which it might not find this package.
_START = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from milpbn.solvers.support.child import main; main()"
)


class ChildSolver(Solver):
    """A solver whose method `solve_here` runs in a child process.

    The child is asked to stop when `MilpEvents.stopping` returns True or the deadline is over, and killed if it does
    not stop. It ends by itself when this process dies.
    """

    examined_in_child = True
    #: Whether the solver's log is its printed output, and not a file that it writes itself.
    prints_log: ClassVar[bool] = False

    @abstractmethod
    def solve_here(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: MilpEvents
    ) -> Outcome:
        """Maximise the MILP in this process; see `Solver.solve`."""

    def solve(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: MilpEvents
    ) -> Outcome:
        """Maximise the MILP; see `Solver.solve`."""
        answer: list[Outcome | BaseException] = []

        def receive(message: tuple[str, tuple[Any, ...]]) -> None:
            what, arguments = message
            if what == "answer":
                answer.append(arguments[0])
            elif what == "passed":
                passed(self)
            else:
                getattr(events, what)(*arguments)

        def stop() -> bool:
            return settings.remaining() == 0.0 or events.stopping()

        with contextlib.ExitStack() as stack:
            printed: IO[Any] = stack.enter_context(tempfile.TemporaryFile())
            log = stack.enter_context(open_log(settings.log)) if self.prints_log else None
            # The child has its own current and temporary folder, since solvers leave files in these.
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
            # If the child dies before it has read the model, the pipe is closed; `supervise` then reports its end.
            with contextlib.suppress(OSError):
                pickle.dump([os.path.abspath(entry) for entry in sys.path], process.stdin)
                job = (self, milp, start, settings, not has_passed(self))
                pickle.dump(job, process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
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
        # A killed child may leave an incomplete message.
        with contextlib.suppress(EOFError, OSError, ValueError, pickle.UnpicklingError):
            while True:
                self.pass_on(pickle.load(self._process.stdout))


def _close_quietly(pipe: IO[bytes]) -> None:
    """Close a pipe whose reader may have ended before reading everything."""
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
    """Sends events to the parent, and receives its request to stop."""

    def __init__(self, channel: IO[bytes]) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._stop = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        # The input ends when the parent ends. The parent can then no longer remove this process's folder and kill the
        # solver's own children; so this process does both.
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

    def point(self, x: NDArray[np.float64], source: str, objective: float | None = None) -> None:
        self.send("point", x, source, objective)

    def bound(self, value: float) -> None:
        self.send("bound", value)

    def nodes(self, count: int) -> None:
        self.send("nodes", count)

    def stopping(self) -> bool:
        return self._stop.is_set()


def main() -> None:
    """Solve the job that standard input contains; the main function of the child process."""
    solver, milp, start, settings, is_new = pickle.load(sys.stdin.buffer)
    # Printed output of solvers must not get between the messages: it goes to standard error.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    events = _ParentEvents(channel)
    answer: Outcome | BaseException
    try:
        if is_new and examine(solver, solver.solve_here, settings, events):
            events.send("passed")
        answer = solver.solve_here(milp, start, settings, events)
    except MilpbnError as error:
        answer = error
    except Exception as error:
        answer = SolverError(f"{solver.name} failed: {type(error).__name__}: {error}.")
    events.send("answer", answer)
    sys.stdout.flush()
    with contextlib.suppress(OSError, TypeError):
        # The solver's log may still be in the buffers of the C library.
        ctypes.CDLL(None).fflush(None)
    # End without waiting for the solver's threads and destructors.
    os._exit(0)
