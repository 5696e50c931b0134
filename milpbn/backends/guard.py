"""Keep exceptions of event receivers out of solvers' native threads, where they would end the process."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from milpbn.backends.base import Events


class GuardedEvents:
    """Passes events on; after the first exception only asks the solver to stop, until `reraise`."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._error: BaseException | None = None

    def point(self, x: NDArray[np.float64], source: str) -> None:
        """Report a feasible point; see `Events.point`."""
        self.call(lambda: self._events.point(x, source))

    def bound(self, value: float) -> None:
        """Report a valid upper bound; see `Events.bound`."""
        self.call(lambda: self._events.bound(value))

    def nodes(self, count: int) -> None:
        """Report the number of nodes; see `Events.nodes`."""
        self.call(lambda: self._events.nodes(count))

    def stopping(self) -> bool:
        """Whether to stop: because the receiver says so, or because it failed."""
        return bool(self.call(self._events.stopping, failed=True))

    def call(self, action: Callable[[], object], failed: object = None) -> object:
        """Return what an action returns, or `failed` once any action has raised; never raises."""
        if self._error is None:
            try:
                return action()
            except BaseException as error:  # raised again by `reraise`
                self._error = error
        return failed

    def reraise(self) -> None:
        """Raise the first exception, if there was one."""
        if self._error is not None:
            raise self._error
