"""Child processes that are kept for the next job, since a child needs half a second for its imports."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from milpbn.solvers.support.process import POLL_SECONDS, Exit, OutputReader, kill, supervise

#: Seconds that a child gets to end its job by itself after it is asked to stop.
GRACE = 1.5
#: Seconds that a child waits for another job before it ends.
IDLE = 60.0

#: Messages to a child besides its jobs and replies; its question to the parent, and its message at the end of a job.
STOP, ASK, ANSWER = "stop", "ask", "answer"
#: Called with the name and the arguments of a child's other messages.
Receive = Callable[[str, tuple[Any, ...]], object]


@dataclass(frozen=True)
class Reply:
    """What a child is told after it has asked (`ASK`)."""

    value: object


class Child:
    """A Python process that does one job after another.

    Its program is run with the parent's `sys.path`. It reads jobs and `STOP` from standard input and writes messages,
    pairs of a name and arguments, to standard output; `ANSWER` ends a job. All are pickled. It ends when its input
    ends.
    """

    def __init__(self, program: str) -> None:
        self.path = list(sys.path)
        #: Number of jobs that it was given.
        self.jobs = 0
        #: Held while a message is written: replies and requests to stop come from two threads.
        self._sending = threading.Lock()
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115
        start = "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); " + program
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", start],  # -P: no module of the current folder is imported
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            start_new_session=True,
        )
        self._send([os.path.abspath(entry) for entry in sys.path])

    def run(self, job: object, receive: Receive, stop: Callable[[], bool]) -> tuple[list[Any], Exit]:
        """Do a job; return its answer, a list that is empty if the child has ended without one, and how it ended.

        `receive` is called with every message but the answer, in another thread. Its exceptions are raised here. A
        child that asks (`ASK`) is sent what it returns, as a `Reply`. `stop` is called about twenty times a second;
        when it returns True, the child is asked to stop, and killed together with its own children if it does not.
        """
        self.jobs += 1
        self._printed.seek(0)  # the child's stderr has the same position in the file
        self._printed.truncate()
        self._send(job)

        def received(what: str, arguments: tuple[Any, ...]) -> None:
            if what == ASK:
                self._send(Reply(receive(*arguments)))
            else:
                receive(what, arguments)

        reader = _MessageReader(self._process, received)
        ended = supervise(self._process, reader, stop=stop, interrupt=lambda: self._send(STOP), grace=GRACE)
        return reader.answer, ended

    def last_words(self) -> str:
        """Return the last line that the child printed during its job; empty if there is none."""
        self._printed.seek(0)
        lines = self._printed.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def is_usable(self) -> bool:
        """Whether the process lives and would find the same modules as a new one."""
        return self._process.poll() is None and self.path == sys.path

    def end(self) -> None:
        """Kill the process."""
        kill(self._process)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for file in (self._process.stdin, self._process.stdout, self._printed):
            with contextlib.suppress(OSError):  # a message may still be in the buffer
                file.close()

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        # If the child has ended, the pipe is closed; `supervise` then reports its end.
        with self._sending, contextlib.suppress(OSError, ValueError):
            pickle.dump(message, self._process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()


class _MessageReader(OutputReader):
    """Reads messages until the answer, or until the child ends."""

    def __init__(
        self, process: subprocess.Popen[bytes], receive: Callable[[str, tuple[Any, ...]], None]
    ) -> None:
        super().__init__(lambda message: receive(*message))
        self._process = process
        self._finished = threading.Event()
        self.answer: list[Any] = []

    def has_finished(self) -> bool:
        return self._finished.is_set()

    def wait_for_child(self, process: subprocess.Popen[bytes]) -> None:
        self._finished.wait(POLL_SECONDS)

    def run(self) -> None:
        assert self._process.stdout is not None
        # A killed child may leave an incomplete message.
        with contextlib.suppress(EOFError, OSError, ValueError, pickle.UnpicklingError):
            while not self.has_finished():
                what, arguments = pickle.load(self._process.stdout)
                if what == ANSWER:
                    self.answer.extend(arguments)
                    self._finished.set()
                else:
                    self.pass_on((what, arguments))


#: Children without a job, by the kind of their jobs.
_idle: dict[object, Child] = {}
_lock = threading.Lock()


@contextlib.contextmanager
def child_for(kind: object, program: str, *, new: bool = False) -> Iterator[Child]:
    """Yield a child for one job; it is kept for the next job of the same kind, unless the block raises an exception.

    With `new`, a process is started even if one is waiting.
    """
    with _lock:
        child = None if new else _idle.pop(kind, None)
    if child is not None and not child.is_usable():
        child.end()
        child = None
    child = child or Child(program)
    try:
        yield child
    except BaseException:
        child.end()
        raise
    other: Child | None = child
    if child.is_usable():
        with _lock:
            other = _idle.pop(kind, None)
            _idle[kind] = child
    if other is not None:
        other.end()


@atexit.register
def _end_all() -> None:
    with _lock:
        while _idle:
            _idle.popitem()[1].end()


def _forget_all() -> None:
    """Forget the children; for a forked copy of this process, which must not talk to those of the original."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
