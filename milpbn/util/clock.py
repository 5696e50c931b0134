"""Work in a thread that may have to be left alone, pauses between saves, and shares of a time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

#: Seconds that work may take to stop after it is asked to; later it is no longer waited for.
GRACE = 0.7
#: Seconds between two looks at work in a thread.
POLL = 0.05
#: Share of the time limit for choosing options by validation; the rest is for the work with the chosen options.
SELECTION_SHARE = 0.5
#: Share of the time limit for parameters of the found structure that are fitted after the search.
PARAMETERS_SHARE = 0.2
#: Share of the time limit for the bound over all samples after a search over a subset of them.
ALL_SAMPLES_SHARE = 0.1

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

    `first` and `longest` are the seconds of the first pause, and of the longest one unless a save takes long
    (`PAUSES`); `took` are those of the last save.
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


def within(
    work: Callable[[], T],
    stopping: Callable[[], bool],
    *,
    name: str,
    tick: Callable[[], None] = lambda: None,
    interrupt: Callable[[], bool] = lambda: False,
    daemon: bool = False,
) -> T | None:
    """Run work in a thread and return its result, or None if it is still running `GRACE` seconds after it should stop.

    A thread that has not ended by then keeps running, and nobody waits for it.

    Parameters
    ----------
    stopping : callable
        Returns whether the work should stop; the work calls it, too.
    name : str
        Name of the thread.
    tick : callable
        Called about every `POLL` seconds until the work has ended, or sooner if it waits for less.
    interrupt : callable
        Called on Ctrl-C in this thread; returns whether to wait for the end of the work all the same.
    daemon : bool
        Whether the process may end before the thread. It must not where kernels may be compiling in it: the interpreter
        would crash.

    Raises
    ------
    KeyboardInterrupt
        After an `interrupt` that returned False.
    Exception
        What the work raised.
    """
    answers: list[T] = []
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # raised again in the calling thread
            failures.append(error)

    thread = threading.Thread(target=guarded, name=name, daemon=daemon)
    thread.start()
    stopped_at = None
    while thread.is_alive():
        try:
            tick()
            thread.join(POLL)
        except KeyboardInterrupt:
            if not interrupt():
                raise
        if stopped_at is None and stopping():
            stopped_at = time.monotonic()
        if stopped_at is not None and time.monotonic() - stopped_at > GRACE:
            break
    if failures:
        raise failures[0]
    return answers[0] if answers else None
