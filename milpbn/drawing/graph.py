"""A structure as it is drawn: its arcs, and what each variable has to do with the class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from milpbn.util.graphs import families_with_class

Arc = tuple[int, int]


@dataclass(frozen=True)
class Graph:
    """A structure as it is drawn: names, the class last, and the indices of each variable's parents."""

    names: Sequence[str]
    parents: Sequence[Sequence[int]]

    @property
    def of_class(self) -> int:
        """Index of the class variable."""
        return len(self.names) - 1

    @cached_property
    def arcs(self) -> list[Arc]:
        """The arcs that are drawn as lines: all but those from the class, as (parent, child)."""
        return [(j, i) for i, ps in enumerate(self.parents) for j in ps if j != self.of_class]

    @cached_property
    def dependent(self) -> frozenset[int]:
        """The features that have the class as a parent."""
        return frozenset(i for i, ps in enumerate(self.parents) if self.of_class in ps)

    @property
    def arcs_of_class(self) -> list[Arc]:
        """The arcs from the class, as (class, child); each is a short arrow in its child's box, or not drawn."""
        return [(self.of_class, i) for i in sorted(self.dependent)]

    @cached_property
    def used(self) -> frozenset[int]:
        """The variables that are in a family with the class; predictions depend on no other feature."""
        return families_with_class(self.parents)

    def kind(self, i: int) -> str:
        """Return what a variable is to the class: "class", "feature" (its child), "plain" or "unused"."""
        if i == self.of_class:
            return "class"
        if i not in self.used:
            return "unused"
        return "feature" if i in self.dependent else "plain"


def colours(kind: str) -> tuple[str, str]:
    """Return the roles of the fill and the edge of a box of this kind."""
    return ("paper", "line") if kind == "plain" else (kind, f"{kind}-edge")
