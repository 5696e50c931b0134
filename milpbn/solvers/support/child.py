"""Solvers that run in a child process of this Python.

No solver's crash ends this process then, and a solver that does not stop can be killed together with its own children.
Besides, the wheels of highspy and ortools both contain a library named ``libhighs.so.1``, so the one that is imported
second fails (highspy 1.15, ortools 9.15).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import queue
import shutil
import signal
import sys
import tempfile
import threading
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import MilpbnError, SolverError
from milpbn.milp.milp import Milp
from milpbn.problem.rows import RowBlock
from milpbn.solvers.base import MilpEvents, Outcome, Settings, Solver
from milpbn.solvers.support import canary
from milpbn.solvers.support.kept_child import ANSWER, ASK, IDLE, STOP, Reply, child_for
from milpbn.solvers.support.process import crash_of, open_log
from milpbn.util.scratch import scratch_folder

#: The program of the child.
_PROGRAM = "from milpbn.solvers.support.child import main; main()"


class ChildSolver(Solver):
    """A solver whose method `solve_here` runs in a child process.

    The child is asked to stop when `MilpEvents.stopping` returns True or the deadline is over, and killed if it does
    not stop. It ends by itself when this process dies. It is kept for the next model of a solver of this class.
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
        return self.in_child("solve_here", (milp, start), settings, events)

    def in_child(self, method: str, arguments: tuple[Any, ...], settings: Settings, events: Any) -> Outcome:
        """Return what a method of this solver returns in a child process.

        The last two parameters of the method are settings and events; its other arguments are pickled. `events` has
        `stopping`, and what else the method calls of its events. Raises InputError if the method raises one, or the log
        file cannot be written, and SolverError if it raises an exception of another kind, or the child ends by itself.
        """

        def receive(what: str, arguments: tuple[Any, ...]) -> object:
            if what == "passed":
                canary.PASSED.add(self.name)
                return None
            return getattr(events, what)(*arguments)

        def stop() -> bool:
            return settings.remaining() == 0.0 or events.stopping()

        if settings.log is not None:
            settings = replace(settings, log=settings.log.absolute())
        log = settings.log if self.prints_log else None
        with open_log(log):
            pass  # the file can be written, and is empty now
        # Every job has its own current and temporary folder, since solvers leave files in these.
        with scratch_folder() as created:
            folder = str(created)
            environment = os.environ | {"TMPDIR": folder, "TMP": folder, "TEMP": folder}
            is_new = self.name not in canary.PASSED
            job = _Job(self, method, arguments, settings, is_new, folder, environment, log)
            for new in (False, True):
                with child_for(type(self), _PROGRAM, new=new) as child:
                    first = child.jobs == 0
                    answer, ended = child.run(job, receive, stop)
                    words = child.last_words()
                if answer or ended.stopped or first:
                    break
                # A kept child may have died of its earlier jobs, or of waiting; a new one can do this job.
        if not answer and not ended.stopped:
            raise crash_of(self.name, ended.code, words)
        outcome = answer[0] if answer else Outcome(limit="user", detail="killed")
        if isinstance(outcome, BaseException):
            raise outcome
        # The deadline asks the child to stop, too, often a moment before the solver's own time limit.
        by_deadline = outcome.limit == "user" and settings.remaining() == 0.0
        return replace(outcome, limit="time") if by_deadline else outcome


@dataclass(frozen=True)
class _Job:
    """What a child needs to know: a method of a solver with its arguments (`ChildSolver.in_child`), and its place."""

    solver: ChildSolver
    method: str
    arguments: tuple[Any, ...]
    settings: Settings
    #: Whether the solver is not examined yet.
    is_new: bool
    #: Current folder, which the child removes if its parent dies.
    folder: str
    environment: Mapping[str, str]
    #: File for what the solver prints.
    log: Path | None


class _Parent:
    """Receives jobs and requests to stop from the parent, and sends it events."""

    def __init__(self, channel: IO[bytes]) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._folder: str | None = None
        self._replies: queue.Queue[Any] = queue.Queue()
        self.jobs: queue.Queue[_Job] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                message = pickle.load(sys.stdin.buffer)
                if isinstance(message, _Job):
                    self._folder = message.folder
                    self._stop.clear()
                    self.jobs.put(message)
                elif isinstance(message, Reply):
                    self._replies.put(message.value)
                elif message == STOP:
                    self._stop.set()
        # The input ends when the parent ends. The parent can then no longer remove the job's folder and kill the
        # solver's own children; so this process does both.
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
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

    def violated(self, x: NDArray[np.float64]) -> RowBlock | None:
        self.send(ASK, "violated", (x,))
        found: RowBlock | None = self._replies.get()
        return found


def main() -> None:
    """Solve the jobs that standard input contains; the main function of the child process."""
    # Printed output of solvers must not get between the messages: it goes to standard error.
    channel, errors = os.fdopen(os.dup(1), "wb"), os.dup(2)
    parent = _Parent(channel)
    with contextlib.suppress(queue.Empty):
        while True:
            job = parent.jobs.get(timeout=IDLE)
            log = errors if job.log is None else os.open(job.log, os.O_WRONLY | os.O_APPEND)
            _print_to(log)
            os.environ.clear()
            os.environ.update(job.environment)
            tempfile.tempdir = None
            os.chdir(job.folder)
            answer = _answer(job, parent)
            _print_to(errors)
            if log != errors:
                os.close(log)
            os.chdir(os.sep)  # Windows removes no current folder
            del job
            parent.send(ANSWER, answer)
    # End without waiting for the solver's threads and destructors.
    os._exit(0)


def _print_to(file: int) -> None:
    """Let this process, C libraries and the solver's own children print to a file; what waits in buffers, before."""
    sys.stdout.flush()
    sys.stderr.flush()
    with contextlib.suppress(OSError, TypeError):
        ctypes.CDLL(None).fflush(None)
    os.dup2(file, 1)
    os.dup2(file, 2)


def _answer(job: _Job, parent: _Parent) -> Outcome | BaseException:
    """Solve a job; an exception is the answer, too."""
    solver = job.solver
    try:
        if job.is_new and canary.examine(solver, solver.solve_here, job.settings, parent):
            parent.send("passed")
        outcome: Outcome = getattr(solver, job.method)(*job.arguments, job.settings, parent)
        return outcome
    except MilpbnError as error:
        return error
    except Exception as error:
        return SolverError(f"{solver.name} failed: {type(error).__name__}: {error}.")
