"""Keeps exceptions of event receivers out of the native threads of solvers, where they would end the process."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from milpbn.solvers.base import MilpEvents

#: Seconds between two calls of `MilpEvents.stopping`.
POLL_SECONDS = 0.05


class GuardedEvents:
    """Passes events on; after the first exception it passes nothing on, and tells the solver to stop."""

    def __init__(self, events: MilpEvents) -> None:
        self._events = events
        self._error: BaseException | None = None

    def point(self, x: NDArray[np.float64], source: str, objective: float | None = None) -> None:
        """Report a feasible point; see `MilpEvents.point`."""
        self.call(lambda: self._events.point(x, source, objective))

    def bound(self, value: float) -> None:
        """Report a valid upper bound; see `MilpEvents.bound`."""
        self.call(lambda: self._events.bound(value))

    def nodes(self, count: int) -> None:
        """Report the number of nodes; see `MilpEvents.nodes`."""
        self.call(lambda: self._events.nodes(count))

    def stopping(self) -> bool:
        """Whether to stop: because the receiver returns True, or because it raised an exception."""
        return bool(self.call(self._events.stopping, failed=True))

    def call(self, action: Callable[[], object], failed: object = None) -> object:
        """Return the action's return value, or `failed` if this or an earlier action raised; never raise."""
        if self._error is None:
            try:
                return action()
            except BaseException as error:  # raised again by `reraise`
                self._error = error
        return failed

    def reraise(self) -> None:
        """Raise the stored exception, if there is one."""
        if self._error is not None:
            raise self._error


def run_stoppable(
    solve: Callable[[], object], events: GuardedEvents, interrupt: Callable[[], object]
) -> None:
    """Solve in another thread, so that this one can handle signals and interrupt the solver during a long LP.

    An exception of the solver is raised here, then one of the events. `interrupt` may be called again and again.
    """
    errors: list[BaseException] = []

    def run() -> None:
        try:
            solve()
        except BaseException as error:  # raised again below
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL_SECONDS)
            if events.stopping():
                interrupt()
    finally:
        while thread.is_alive():
            interrupt()
            thread.join(POLL_SECONDS)
    if errors:
        raise errors[0]
    events.reraise()
