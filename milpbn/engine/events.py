"""The interface by which a running search reports its results and learns whether to stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from milpbn.network.structure import Structure
from milpbn.util.archives import Source
from milpbn.util.budget import Budget

#: In a saved state, prefixes of the arrays of the open nodes and of the proof, and an array that every state has.
NODE, PROOF, CHILDREN = "node.", "proof.", "search.children"


class SavedState(Protocol):
    """The state of a search at one moment, which a checkpoint keeps; nothing in it changes any more."""

    @property
    def count(self) -> int:
        """Number of nodes so far."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, at most."""

    def arrays(self) -> Mapping[str, Source]:
        """Return everything as arrays by name."""


class Events(Protocol):
    """The listener of a search, and its budget. Any thread may call its methods."""

    #: Asked often whether the search has to stop (deadline, interrupt, gap reached).
    budget: Budget

    def offer(self, structure: Structure) -> Structure:
        """Take a structure that is better than all earlier ones; return the incumbent, which may be better still."""
        ...

    def bound(self, value: float) -> None:
        """Take an upper bound on the score of every structure."""

    def formulated(self, shared: float, span: float) -> None:
        """Take what the tolerances of the MILP solver behind the bounds are relative to; see `solver_tolerance`."""

    def nodes(self, count: int) -> None:
        """Take the number of branch-and-bound nodes so far."""

    def resumable(self, state: Callable[[], SavedState | None]) -> None:
        """Take a function that returns the state of the search for a checkpoint, or None if there is none yet."""


class EventLog:
    """A listener that records all events, for callers that run the engine directly.

    `stopping` returns whether the search has to stop now. The best structure and the smallest bound are the last ones;
    `count` is the number of branch-and-bound nodes, and `state` returns the state of the search.
    """

    def __init__(self, stopping: Callable[[], bool] = lambda: False) -> None:
        self.structures: list[Structure] = []
        self.bounds: list[float] = []
        self.count = 0
        self.state: Callable[[], SavedState | None] = lambda: None
        self.budget = Budget(cancelled=stopping)

    def offer(self, structure: Structure) -> Structure:
        """Record a structure, and return it as the incumbent."""
        self.structures.append(structure)
        return structure

    def bound(self, value: float) -> None:
        """Record a bound."""
        self.bounds.append(value)

    def formulated(self, shared: float, span: float) -> None:
        """Ignore the scale of a MILP."""

    def nodes(self, count: int) -> None:
        """Record the number of nodes."""
        self.count = count

    def resumable(self, state: Callable[[], SavedState | None]) -> None:
        """Record the function that returns the state of the search."""
        self.state = state
