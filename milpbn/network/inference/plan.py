"""Which variables and tables a question needs, the order in which they are eliminated, and whether there is room."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING
from milpbn.errors import InputError
from milpbn.network.cpt import Cpt
from milpbn.network.inference.elimination import (
    Factor,
    LogTable,
    Reduction,
    Step,
    eliminate,
    extended_variables,
    factors_of,
)
from milpbn.network.structure import topological_order
from milpbn.util.graphs import with_ancestors
from milpbn.util.memory import format_bytes, require_memory
from milpbn.util.plurals import counted

#: Most numbers in the factors of one question, 2 GiB of float64.
MOST_NUMBERS = 2**28
#: Fewer numbers than this, 32 MiB, always fit.
_SMALL = 2**20
#: Bytes of a number of a factor. Products and their parts, steps and their joint distributions are there together.
_BYTES = 4 * 8
#: Vertices with more neighbours than this are ranked by their weight alone, since fill-in takes quadratic time.
_MOST_NEIGHBOURS = 30
#: log2 of a factor's size that is far beyond every memory.
_MOST_BITS = 60


@dataclass(frozen=True)
class Order:
    """An elimination order with its costs: the numbers in its largest factor, and the total of all its factors.

    Both are infinite if a factor has more than 2**60 numbers; no further order is sought then.
    """

    variables: tuple[int, ...]
    largest: float
    total: float


def elimination_order(
    scopes: Iterable[Collection[int]], sizes: Mapping[int, int], last: Sequence[int] = ()
) -> Order:
    """Return a greedy elimination order: the better one of min-weight and min-fill.

    Min-weight eliminates the variable whose factor (the variable and its neighbours) has the fewest numbers, min-fill
    the one that makes the fewest new neighbours. So the features of a tree given the class are eliminated from the
    leaves, and no factor has more variables than a family. A best order of any graph is NP-hard to find.

    Scopes are the variables of each factor, sizes the numbers of states of all of them. The variables `last` count as
    neighbours, but are not eliminated.
    """
    graph: dict[int, set[int]] = {v: set() for v in sizes}
    for scope in scopes:
        for v in scope:
            graph[v].update(scope)
            graph[v].discard(v)
    return min((_greedy(graph, sizes, last, fill=fill) for fill in (False, True)), key=lambda o: o.total)


class _Graph:
    """The neighbours of variables that are left, and the weight of each variable: log2 of its factor's size."""

    def __init__(self, graph: Mapping[int, set[int]], sizes: Mapping[int, int]) -> None:
        self.neighbours = {v: set(near) for v, near in graph.items()}
        self.bits = {v: math.log2(n) for v, n in sizes.items()}
        self.weights = {v: self.bits[v] + math.fsum(self.bits[u] for u in near) for v, near in graph.items()}

    def fill(self, v: int) -> int:
        """Return twice the number of pairs of a variable's neighbours that are not neighbours of each other."""
        near = self.neighbours[v]
        return sum(len(near - self.neighbours[u]) - 1 for u in near)

    def eliminate(self, v: int) -> set[int]:
        """Make a variable's neighbours neighbours of each other, take the variable out, and return them."""
        near = self.neighbours.pop(v)
        for u in near:
            mine = self.neighbours[u]
            new = near - mine - {u}
            mine |= new
            mine.remove(v)
            self.weights[u] += math.fsum(self.bits[w] for w in new) - self.bits[v]
        return near


def _greedy(
    graph: Mapping[int, set[int]], sizes: Mapping[int, int], last: Sequence[int], *, fill: bool
) -> Order:
    left = _Graph(graph, sizes)

    def rank(v: int) -> tuple[float, float, int]:
        weight = left.weights[v]
        if not fill:
            return weight, 0.0, v
        return (left.fill(v) if len(left.neighbours[v]) <= _MOST_NEIGHBOURS else math.inf), weight, v

    waiting = set(graph) - set(last)
    ranks = {v: rank(v) for v in waiting}
    heap = sorted(ranks.values())
    chosen: list[int] = []
    found = Order((), 1.0, 0.0)
    while heap:
        entry = heapq.heappop(heap)
        v = entry[-1]
        if v not in waiting or entry != ranks[v]:
            continue  # an old rank
        if left.weights[v] > _MOST_BITS:
            return Order((*chosen, *waiting), math.inf, math.inf)
        waiting.remove(v)
        chosen.append(v)
        size = 2.0 ** left.weights[v]
        found = replace(found, largest=max(found.largest, size), total=found.total + size)
        near = left.eliminate(v)
        # Fill-in can also change one step further away, where it only makes the order a little worse.
        for u in near & waiting:
            ranks[u] = rank(u)
            heapq.heappush(heap, ranks[u])
    return replace(found, variables=tuple(chosen))


@dataclass(frozen=True, eq=False)
class EliminationPlan:
    """How to answer a question about rows of evidence.

    The answer depends on these tables. Variables that are `free`, bool array of shape (V,), have an axis; the others
    have a state in every row. `n_states` has the numbers of states of the free ones. The costs of the order are per
    row.
    """

    tables: tuple[LogTable, ...]
    free: NDArray[np.bool_]
    order: Order
    n_states: dict[int, int]

    def eliminate(
        self, codes: NDArray[np.intp], reduction: Reduction = "sum", *, keep: bool = False
    ) -> tuple[list[Step], list[Factor]]:
        """Eliminate the free variables of rows of evidence, shape (M, V); see `elimination.eliminate`."""
        factors = factors_of(self.tables, codes, self.free)
        return eliminate(factors, self.order.variables, codes, self.n_states, reduction=reduction, keep=keep)

    def require_room(self, names: Sequence[str]) -> None:
        """Check that the factors, for one row of evidence, fit into memory.

        `InputError` if they have more than `MOST_NUMBERS` numbers, or more than fit into the memory that is available.
        """
        needed = self.order.total
        if needed < _SMALL:
            return
        remedy = "give values of more variables, or use a structure with fewer parents (max_parents)"
        hidden = counted(len(self.order.variables), "variable") + " without a value"
        if self.order.variables:
            hidden += f", such as {names[self.order.variables[0]]!r}"
        if needed > MOST_NUMBERS:
            size = (
                f"of {format_bytes(needed * 8)}"
                if np.isfinite(needed)
                else "larger than any machine's memory"
            )
            raise InputError(
                f"Exact inference over {hidden} would need tables {size} in this structure; the limit is "
                f"{format_bytes(MOST_NUMBERS * 8)}. {remedy[0].upper()}{remedy[1:]}."
            )
        require_memory(int(needed * _BYTES), f"Exact inference over {hidden}", remedy)


class Planner:
    """Plans questions to a network of `n_variables` variables; the table of the class, the last one, may be absent."""

    def __init__(self, cpts: Sequence[Cpt], n_variables: int) -> None:
        self.tables = [LogTable.of(cpt, n_variables - 1) for cpt in cpts]
        parents = {cpt.variable: cpt.parents for cpt in cpts}
        self._graph = [parents.get(v, ()) for v in range(n_variables)]
        self._acyclic = topological_order(self._graph) is not None

    def plan(
        self,
        codes: NDArray[np.intp],
        free: NDArray[np.bool_],
        kept: Sequence[int] = (),
        *,
        whole: bool = False,
    ) -> EliminationPlan:
        """Return the plan of eliminating the free variables, except for the kept ones, which the answer is about.

        The rows of evidence are codes, shape (M, V); `free`, shape (V,), are the variables that are missing in some
        row, or kept. Unless the `whole` network matters, variables without known or kept descendants are left out,
        because their tables sum to 1. (In a graph with cycles they do not, and all stay.)
        """
        relevant = self.tables
        if not whole and self._acyclic:
            known = np.flatnonzero((codes != MISSING).any(axis=0))
            needed = with_ancestors(self._graph, {*kept, *known.tolist()})
            relevant = [table for table in relevant if table.variable in needed]
        n_states = {
            v: n for table in relevant for v, n in zip(table.axes, table.n_states, strict=True) if free[v]
        }
        extended = extended_variables(codes, free)
        sizes = {v: n + int(extended[v]) for v, n in n_states.items()}
        scopes = [[v for v in table.axes if free[v]] for table in relevant]
        order = elimination_order(scopes, sizes, [v for v in kept if v in sizes])
        return EliminationPlan(tuple(relevant), free, order, n_states)
