"""The order in which variables are eliminated, and a forecast of the numbers that this takes."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

#: Vertices with more neighbours than this are ranked by their weight alone, since fill-in takes quadratic time.
_MOST_NEIGHBOURS = 30
#: log2 of a factor's size that is far beyond every memory.
_MOST_BITS = 60


@dataclass(frozen=True)
class Order:
    """An elimination order with its costs.

    Attributes
    ----------
    variables : tuple of int
        The variables to eliminate, the first one first.
    largest : float
        Numbers in the largest factor.
    total : float
        Numbers in all factors from which a variable is eliminated. Both are infinite if a factor has more than 2**60
        numbers; no further order is sought then.
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

    Parameters
    ----------
    scopes : iterable of collections of int
        The variables of each factor.
    sizes : mapping from variable to int
        Numbers of states of all variables in `scopes`.
    last : sequence of int
        Variables that stay: they count as neighbours, but are not eliminated.
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
