"""Structures: directed acyclic graphs, given by one parent set per variable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from milpbn.errors import InputError
from milpbn.util.graphs import families_with_class
from milpbn.util.plurals import counted


@dataclass(frozen=True)
class Structure:
    """A directed acyclic graph over named variables, the class variable last.

    Attributes
    ----------
    names : tuple of str, length V
        Variable names; the last one is the class variable.
    parents : tuple of tuples of int, length V
        Ascending indices of each variable's parents.

    Raises
    ------
    InputError
        If the graph has a cycle, or an arc from or to something that is not a variable.
    """

    names: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if len(self.parents) != len(self.names):
            raise InputError(f"A structure needs {len(self.names)} parent sets, got {len(self.parents)}.")
        normal = tuple(tuple(sorted({int(j) for j in p})) for p in self.parents)
        for i, p in enumerate(normal):
            if any(j < 0 or j >= len(self.names) or j == i for j in p):
                raise InputError(f"The parents of {self.names[i]!r} must be other variables of the data.")
        object.__setattr__(self, "parents", normal)
        cycle = find_cycle(normal)
        if cycle is not None:
            raise InputError(
                "The structure has the cycle "
                + " -> ".join(repr(self.names[i]) for i in [*cycle, cycle[0]])
                + "."
            )

    def __repr__(self) -> str:
        return f"<Structure of {counted(len(self.names), 'variable')}: {counted(len(self.arcs), 'arc')}>"

    @classmethod
    def from_mapping(cls, names: Sequence[str], parents: Mapping[str, Iterable[str]]) -> Structure:
        """Return the structure of ``{variable: [parents...]}``; variables that are left out have no parents.

        Raises
        ------
        InputError
            If a name is not a variable, or the graph has a cycle.
        """
        index = {name: i for i, name in enumerate(names)}
        sets: list[tuple[int, ...]] = [()] * len(names)
        for child, members in parents.items():
            unknown = [n for n in (child, *members) if n not in index]
            if unknown:
                raise InputError(f"The structure names {unknown[0]!r}, which is not a variable of the data.")
            sets[index[child]] = tuple(index[n] for n in members)
        return cls(tuple(names), tuple(sets))

    @classmethod
    def naive_bayes(cls, names: Sequence[str]) -> Structure:
        """Return the naive Bayes structure: the class is every feature's only parent."""
        n = len(names) - 1
        return cls(tuple(names), ((n,),) * n + ((),))

    @classmethod
    def empty(cls, names: Sequence[str]) -> Structure:
        """Return the structure without arcs."""
        return cls(tuple(names), ((),) * len(names))

    def to_mapping(self) -> dict[str, list[str]]:
        """Return ``{variable: [parents...]}`` of all variables, including the class."""
        return {name: [self.names[j] for j in p] for name, p in zip(self.names, self.parents, strict=True)}

    @property
    def arcs(self) -> list[tuple[int, int]]:
        """All arcs as (parent, child) index pairs."""
        return [(j, i) for i, p in enumerate(self.parents) for j in p]

    @property
    def markov_blanket(self) -> frozenset[int]:
        """The class variable's parents, its children, and their other parents.

        No other feature changes a prediction while these have known values.
        """
        return families_with_class(self.parents) - {len(self.names) - 1}

    def topological_order(self) -> list[int]:
        """Return the variables' indices, parents before children; equal structures have equal orders."""
        order = topological_order(self.parents)
        assert order is not None  # checked in __post_init__
        return order


def topological_order(parents: Sequence[Sequence[int]]) -> list[int] | None:
    """Return an order with parents before children, or None if the graph has a cycle."""
    sorter = TopologicalSorter({i: sorted(p) for i, p in enumerate(parents)})
    try:
        return list(sorter.static_order())
    except CycleError:
        return None


def find_cycle(parents: Sequence[Sequence[int]]) -> list[int] | None:
    """Return the variables of one directed cycle, each a parent of the next, or None."""
    sorter = TopologicalSorter({i: sorted(p) for i, p in enumerate(parents)})
    try:
        sorter.prepare()
    except CycleError as error:
        return list(error.args[1][:-1])
    return None
