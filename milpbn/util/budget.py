"""Budgets: the time and memory that a run, or a part of it, may use, and whether somebody asked it to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from milpbn.errors import NoIncumbentError
from milpbn.util import interrupts, memory, stages
from milpbn.util.clock import within

T = TypeVar("T")


class Limit(StrEnum):
    """What stopped a run before its end; only with the reasons in `LIMITED`."""

    TIME = "time"
    """The time limit, which includes the time for data and coefficients."""

    NODE = "node"
    """The solver's own limit on nodes or iterations, or the end of the root bound where only that was asked for."""

    MEMORY = "memory"
    """The memory limit, the machine's memory, or the maximum size of a certificate; the result's detail says which."""

    GAP = "gap"
    """The gap that was asked for (``--gap-rel``, ``--gap-abs``) is reached, but it does not prove an optimum."""

    GAP_SE = "gap-se"
    """The gap is at most the number of standard errors of ``--gap-se``; it does not prove an optimum."""

    USER = "user"
    """Ctrl-C, SIGTERM, or the caller's function `interrupted`."""

    @property
    def words(self) -> str:
        """What happened to the search, as the rest of a sentence that begins with "The search"."""
        return {
            Limit.TIME: "came to its time limit",
            Limit.NODE: "came to its limit on nodes",
            Limit.MEMORY: "ran out of memory",
            Limit.GAP: "came to the gap that was asked for",
            Limit.GAP_SE: "came to the gap in standard errors that was asked for",
            Limit.USER: "was interrupted",
        }[self]


class Budget:
    """The time and memory of a run or of a part of it. Any thread may call any method.

    Memory has one limit in a process (`milpbn.util.memory.limited`), and so have signals (`milpbn.util.interrupts`).
    The work may take so many seconds since it `began`, a `time.monotonic` value, by default now. `cancelled` returns
    whether the caller wants it to end. When the `whole` is used up of which this is a part, so is this one.
    """

    def __init__(
        self,
        seconds: float | None = None,
        *,
        began: float | None = None,
        cancelled: Callable[[], bool] | None = None,
        whole: Budget | None = None,
    ) -> None:
        #: `time.monotonic` values at which it began, and at which the time is over; None without a limit.
        self.began = time.monotonic() if began is None else began
        ends = [] if seconds is None else [self.began + seconds]
        if whole is not None and whole.deadline is not None:
            ends.append(whole.deadline)
        self.deadline: float | None = min(ends, default=None)
        #: Seconds before the deadline at which `stop` says that the time is over, for what comes after.
        self.reserve = 0.0
        #: What ended it; None before that.
        self.stopped: Limit | None = None
        #: Returns whether the work has reached its aim, which ends it, too.
        self.reached: Callable[[], bool] = lambda: False
        self._cancelled = cancelled or (lambda: False)
        self._whole, self._closed = whole, False

    def left(self) -> float:
        """Return the seconds until the deadline; inf without one."""
        return math.inf if self.deadline is None else self.deadline - time.monotonic()

    def at_most(self, seconds: float) -> Budget:
        """Return the budget of a part that begins now and may take so many seconds."""
        return Budget(seconds, whole=self)

    def share(self, part: float, most: float = math.inf) -> Budget:
        """Return the budget of a part that may take this share of the time left, and at most `most` seconds."""
        seconds = min(part * max(0.0, self.left()), most)
        return self if seconds == math.inf else self.at_most(seconds)

    def end(self, limit: Limit) -> None:
        """End it; the first limit counts."""
        self.stopped = self.stopped or limit

    def close(self) -> None:
        """Stop all work that still asks, because nobody waits for it any more; `stopped` stays what it is."""
        self._closed = True

    def stop(self) -> Limit | None:
        """Return what tells the work to stop now; None if it may go on."""
        if self.stopped is None:
            self.stopped = self._found()
        return self.stopped or (Limit.USER if self._closed else None)

    def over(self) -> bool:
        """Return whether to stop now, for work that need not know why."""
        return self.stop() is not None

    def _found(self) -> Limit | None:
        # A part asks its whole first, which then knows what stopped the part, and alone looks at signals and memory.
        if self._whole is not None and (limit := self._whole.stop()) is not None:
            return limit
        alone = self._whole is None
        if (alone and interrupts.requested()) or self._cancelled():
            return Limit.USER
        if self.left() <= self.reserve:
            return Limit.TIME
        if alone and memory.exceeded():
            return Limit.MEMORY
        return Limit.GAP if self.reached() else None

    def check(self, doing: str, stage: str = "", *, reading: bool = False) -> None:
        """Raise an exception if work before the first structure has to stop, and enter a stage of progress.

        `doing` is the current work for the error message, such as "the tables of 40 parent sets were computed", and
        `stage` the same in a few words, for lines of progress (`milpbn.util.stages`). `NoIncumbentError` if the time is
        over, or the memory limit is nearly reached. KeyboardInterrupt if a signal was noted (`milpbn.util.interrupts`).
        With `reading`, the message names neither parents nor compiling, which matter only after the data are read.
        """
        if stage:
            stages.enter(stage)
        limit = self.stop()
        if limit is Limit.USER:
            raise KeyboardInterrupt
        if limit is Limit.TIME:
            cure = "" if reading else " (a first run compiles for up to a minute), or reduce --max-parents"
            raise NoIncumbentError(
                f"The time limit ended while {doing}, before any structure was scored; allow more time{cure}."
            )
        if limit is Limit.MEMORY:
            raise NoIncumbentError(
                f"The memory limit was nearly reached while {doing}, before any structure was scored; raise it, "
                f"{'' if reading else 'reduce --max-parents, '}or take fewer features or rows."
            )

    def before(self, work: Callable[[], T], doing: str) -> T:
        """Return the result of reading or merging data, which does not ask whether to stop.

        Without a limit of time or memory the work runs in the calling thread. It raises what `check` raises if the work
        has not ended `GRACE` seconds after the budget. `doing` is as for `check`.
        """
        if self.deadline is None and memory.memory_limit() is None:
            return work()
        done: list[T] = []
        found: list[Limit] = []

        def stopping() -> bool:
            # `over` would end the budget, even if the work ends in time and its memory is free again.
            found.extend(filter(None, [self._found()]))
            return bool(found)

        within(lambda: done.append(work()), stopping, name="milpbn-work")
        if not done:
            self.end(found[0])
            self.check(doing, reading=True)
        return done[0]
