"""Directed paths that must or must not be there, and d-separation, as rows of a MILP.

Most rows are implications: if an arc is present and a variable is reached, another variable is reached. The columns of
what is reached are continuous: if eta is integral, the least values that the rows allow are 0 and 1, and a column that
is fixed to 0 excludes the structures in which it would be 1. A path that must be there is a flow of one unit along
arcs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Rules
from milpbn.problem.rows import RowBlock
from milpbn.util.graphs import Parents, shortest_path

#: A column, or the constant that takes its place.
Term = int | bool


@dataclass
class PathRows:
    """The columns and rows of a MILP for the paths that rules demand or exclude, after `first` other columns.

    An arc is present if the eta of the sets that contain it add up to 1.
    """

    candidates: Candidates
    rules: Rules
    first: int
    #: Number of the columns after `first`.
    n_columns: int = 0
    #: The arc of each implication, its other conditions, and its consequence.
    _implied: list[tuple[tuple[int, int], tuple[Term, ...], Term]] = field(default_factory=list)
    #: For each ancestor and descendant, the column of the flow along each arc.
    _flows: list[tuple[int, int, dict[tuple[int, int], int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        parent, child, index = self.candidates.arcs
        self._arcs: dict[tuple[int, int], list[int]] = {}
        for j, i, p in zip(parent.tolist(), child.tolist(), index.tolist(), strict=True):
            self._arcs.setdefault((j, i), []).append(p)
        for a, b in sorted(self.rules.ancestors):
            self._flows.append((a, b, {arc: self._column() for arc in self._arcs}))
        for a, b in sorted(self.rules.no_ancestors):
            self._reach({a: True, b: False})
        for a, b, given in sorted(self.rules.independences, key=lambda one: (*one[:2], sorted(one[2]))):
            self._separate(a, b, given)

    def _column(self) -> int:
        self.n_columns += 1
        return self.first + self.n_columns - 1

    def _terms(self, known: dict[int, bool]) -> list[Term]:
        """Return a column for every variable, or what is known of it."""
        return [known[i] if i in known else self._column() for i in range(self.candidates.n_variables)]

    def _reach(self, known: dict[int, bool]) -> None:
        """Say that the child of a variable that is reached is reached."""
        reached = self._terms(known)
        self._implied += [((j, i), (reached[j],), reached[i]) for j, i in self._arcs]

    def _separate(self, a: int, b: int, given: Collection[int]) -> None:
        """Say that no active trail leads from a to b, by the states of the Bayes ball (Shachter 1998)."""
        above = self._terms(dict.fromkeys(given, True))
        # Whether a trail enters a variable from a child, and from a parent.
        up, down = self._terms({a: True, b: False}), self._terms({b: False})
        for j, i in self._arcs:
            arc = j, i
            self._implied.append((arc, (above[i],), above[j]))
            self._implied.append((arc, (down[i], above[i]), up[j]))
            if i not in given:
                self._implied.append((arc, (up[i],), up[j]))
            if j not in given:
                self._implied += [(arc, (up[j],), down[i]), (arc, (down[j],), down[i])]

    def block(self) -> RowBlock:
        """Return the rows, named ``g_<number>``."""
        # Coefficients by column, and both sides.
        rows: list[tuple[dict[int, float], float, float]] = []
        for arc, conditions, result in self._implied:
            open_ = [c for c in conditions if not isinstance(c, bool)]
            if result is True or any(c is False for c in conditions):
                continue
            row = dict.fromkeys([*self._arcs[arc], *open_], 1.0)
            if not isinstance(result, bool):
                row[result] = -1.0
            rows.append((row, -np.inf, float(len(open_))))
        for a, b, flow in self._flows:
            for arc, column in flow.items():
                rows.append(({column: 1.0, **dict.fromkeys(self._arcs[arc], -1.0)}, -np.inf, 0.0))
            for i in range(self.candidates.n_variables):
                ends = {c: float(y == i) - float(x == i) for (x, y), c in flow.items() if i in (x, y)}
                net = float(i == b) - float(i == a)
                rows.append((ends, net, net))
        of = np.repeat(np.arange(len(rows)), [len(row) for row, _, _ in rows])
        columns = [c for row, _, _ in rows for c in row]
        values = [v for row, _, _ in rows for v in row.values()]
        lower, upper = [low for _, low, _ in rows], [high for _, _, high in rows]
        return RowBlock.from_coordinates(
            of, columns, values, lower, upper, [f"g_{r}" for r in range(len(rows))]
        )

    def values(self, parents: Parents) -> NDArray[np.float64]:
        """Return the values of the columns for a structure that obeys the rules, float64 array, shape (n_columns,)."""
        there = [one for one in self._implied if one[0][0] in parents[one[0][1]]]
        ones: set[int] = set()
        before = -1
        while len(ones) > before:
            before = len(ones)
            for _, conditions, result in there:
                if not isinstance(result, bool) and all(c is True or c in ones for c in conditions):
                    ones.add(result)
        for a, b, flow in self._flows:
            ones.update(flow[arc] for arc in pairwise(shortest_path(parents, a, b)))
        x = np.zeros(self.n_columns)
        x[np.array(sorted(ones), dtype=np.int64) - self.first] = 1.0
        return x
