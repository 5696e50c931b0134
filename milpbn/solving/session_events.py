"""What one stage or engine of a run reports: structures, bounds and nodes, under its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from milpbn.claims.reasons import BoundSource
from milpbn.engine.events import SavedState
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget

if TYPE_CHECKING:
    from milpbn.solving.state import Session


class SessionEvents:
    """The `Events` of one stage or engine: its reports go to the session under its name."""

    def __init__(
        self, session: Session, source: str, bound_source: BoundSource | None, budget: Budget
    ) -> None:
        self._session, self._source, self._bound_source = session, source, bound_source
        self.budget, self.nodes = budget, session.nodes

    def offer(self, structure: Structure) -> Structure:
        """Make a structure the incumbent if it is better; return the incumbent."""
        return self._session.offer(structure, self._source)

    def bound(self, value: float) -> None:
        """Report an upper bound on the score of every structure."""
        if self._bound_source is not None:
            self._session.bound(value, self._bound_source)

    def formulated(self, shared: float, span: float) -> None:
        """Report what the tolerances of the MILP solver are relative to."""
        self._session.produce(shared=shared, span=span)

    def resumable(self, state: Callable[[], SavedState | None]) -> None:
        """Give the run the function that returns the state of the search."""
        self._session.produce(search=state)
