"""Limits and interrupts for work before the first incumbent, and pauses between saves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from milpbn.errors import NoIncumbentError
from milpbn.util import interrupts, memory, stages

#: Seconds that work may take to stop after it is asked to; later it is no longer waited for.
GRACE = 0.7
#: Share of the time limit for choosing options by validation; the rest is for the work with the chosen options.
SELECTION_SHARE = 0.5
#: Share of the time limit for parameters of the found structure that are fitted after the search.
PARAMETERS_SHARE = 0.2

#: A pause between two saves is at least this many times as long as the last save, so that saves take 5 % of the time.
PAUSES = 20

T = TypeVar("T")


class Stopwatch:
    """When at least one thread was inside its ``with`` block, by the wall clock."""

    def __init__(self) -> None:
        self._lock, self._inside, self._began = threading.Lock(), 0, 0.0
        self._spans: list[tuple[float, float]] = []

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._began = time.monotonic()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._spans.append((self._began, time.monotonic()))

    def since(self, start: float) -> float:
        """Return the seconds inside after a `time.monotonic` value, also while a thread still is inside."""
        with self._lock:
            spans = [*self._spans, *([(self._began, time.monotonic())] if self._inside else [])]
        return sum(max(0.0, end - max(begin, start)) for begin, end in spans)


class Pause:
    """The pause between two saves of the same file: short at first, then twice as long each time.

    Parameters
    ----------
    first, longest : float
        Seconds of the first pause, and of the longest one unless a save takes long (`PAUSES`).

    Attributes
    ----------
    took : float
        Seconds that the last save took.
    """

    def __init__(self, first: float, longest: float) -> None:
        self._seconds, self._longest = min(first, longest), longest
        self._began, self.took = time.monotonic(), 0.0

    def over(self) -> bool:
        """Return whether the next save is due."""
        return time.monotonic() - self._began > self._seconds

    @contextmanager
    def after(self) -> Iterator[None]:
        """Begin a pause after the block, which saves, even if it fails."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self._began = time.monotonic()
            self.took = self._began - begun
            self._seconds = max(min(2 * self._seconds, self._longest), PAUSES * self.took)


def check_deadline(deadline: float | None, doing: str, stage: str = "") -> None:
    """Raise an exception if a limit is reached or a signal has arrived, and enter a stage of progress.

    Parameters
    ----------
    deadline : float or None
        `time.monotonic` value at which to give up; None without a limit.
    doing : str
        The current work, for the error message: "the tables of 40 parent sets were computed".
    stage : str
        The current work in a few words, for lines of progress; see `milpbn.util.stages`.

    Raises
    ------
    NoIncumbentError
        If the deadline has passed, or the memory limit is nearly reached.
    KeyboardInterrupt
        If a signal was noted (`milpbn.util.interrupts`).
    """
    if stage:
        stages.enter(stage)
    if interrupts.requested():
        raise KeyboardInterrupt
    if deadline is not None and time.monotonic() >= deadline:
        raise NoIncumbentError(
            f"The time limit ended while {doing}, before any structure was scored; allow more time (a first run "
            "compiles for up to a minute), or reduce --max-parents."
        )
    if memory.exceeded():
        raise _out_of_memory(doing)


def _out_of_memory(doing: str) -> NoIncumbentError:
    return NoIncumbentError(
        f"The memory limit was nearly reached while {doing}, before any structure was scored; raise it, reduce "
        "--max-parents, or take fewer features or rows."
    )


def within(work: Callable[[], T], stopping: Callable[[], bool], *, name: str) -> T | None:
    """Run work in a thread and return its result, or None if it is still running `GRACE` seconds after it should stop.

    Parameters
    ----------
    work : callable
        The work. The process waits for its thread before it ends, because kernels may be compiling in it, and the
        interpreter must not end meanwhile.
    stopping : callable
        Returns whether the work should stop; the work calls it, too.
    name : str
        Name of the thread.
    """
    answers: list[T] = []
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # raised again in the calling thread
            failures.append(error)

    thread = threading.Thread(target=guarded, name=name)
    thread.start()
    stopped_at = None
    while thread.is_alive():
        thread.join(0.05)
        if stopped_at is None and stopping():
            stopped_at = time.monotonic()
        if stopped_at is not None and time.monotonic() - stopped_at > GRACE:
            break
    if failures:
        raise failures[0]
    return answers[0] if answers else None


def before(deadline: float | None, work: Callable[[], T], doing: str) -> T:
    """Return the result of work that does not check the deadline itself, such as reading a file.

    Parameters
    ----------
    deadline : float or None
        `time.monotonic` value at which to give up. Without a limit of time or memory the work runs in the calling
        thread.
    work : callable
        The work.
    doing : str
        The current work, as for `check_deadline`.

    Raises
    ------
    NoIncumbentError
        If the work has not ended `GRACE` seconds after the deadline, or after the memory limit is nearly reached.
    """
    if deadline is None and memory.memory_limit() is None:
        return work()

    def stopping() -> bool:
        return (deadline is not None and time.monotonic() >= deadline) or memory.exceeded()

    done: list[T] = []
    within(lambda: done.append(work()), stopping, name="milpbn-work")
    if not done:
        check_deadline(deadline, doing)
        raise _out_of_memory(doing)  # by now, some of it may be free again
    return done[0]
