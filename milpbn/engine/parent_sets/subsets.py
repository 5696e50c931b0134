r"""Cheapest structures by dynamic programming over the subsets of variables that come first in an order.

Let best_i(W) be the least cost of a parent set of variable i within W. The cheapest structure of the variables U has a
variable i without children in U, so that

    f(U) = min over i in U of f(U - i) + best_i(U - i)

(Silander & Myllymäki 2006; Koivisto & Sood 2004 sum over the same subsets). Three things keep the tables small:

- Arcs between strongly connected components of the graph of all possible arcs cannot close a cycle. So each component
  has a table of its own.
- best_i depends on the possible parents of i only, of which it has one entry per subset.
- An entry is not a cost, but the rank of the set among those of i by cost, in 2 bytes. The least rank of the subsets of
  W is found by a fast zeta transform, with minima for sums and several ranks at a time.

All costs are at least 0, and rounding is monotone. So the computed f(V) is at most the computed sum of any structure's
costs in one of its orders, whose relative error is at most V eps / 2; `CheapestStructure.bound` subtracts it.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from milpbn.data.sums import EPS
from milpbn.engine.parent_sets.sets import ParentSets, bits_of
from milpbn.util import stages
from milpbn.util.budget import Budget
from milpbn.util.compiled import kernel
from milpbn.util.threads import in_parts

#: Seconds for a bit of an entry of best_i, and for a variable and a subset of f (22 to 24 variables).
SECONDS_OF_RANK, SECONDS_OF_SUBSET = 0.3e-9, 5e-9
#: Subsets are split into this many low bits and the others, for tables of the places of their entries.
LOW = 10
#: Subsets between two looks at the budget.
AT_ONCE = 1 << 18


class CheapestStructure(NamedTuple):
    """A cheapest structure: the place of its parent sets, shape (V,), and a lower bound on the cost of every other.

    Without a structure the bound is inf, and the parent sets mean nothing.
    """

    choice: NDArray[np.int64]
    bound: float


def most_bytes(n_variables: int) -> int:
    """Return about the most memory that the dynamic program of so many variables can need, whatever their sets."""
    return (n_variables + 8) << n_variables


class Component:
    """Variables that may be on a common cycle, and their possible parents among them.

    Parameters
    ----------
    members : int64 array, shape (k,)
        The variables, ascending.
    arcs : bool array, shape (k, k)
        Whether the second one may be a parent of the first one.
    """

    def __init__(self, members: NDArray[np.int64], arcs: NDArray[np.bool_]) -> None:
        self.members, self.size = members, len(members)
        self.parents = [np.flatnonzero(row) for row in arcs]
        #: Where each variable's ranks begin among all of them, and their number.
        self.starts = list(accumulate((1 << len(own) for own in self.parents), initial=0))
        self.low = min(LOW, self.size)

    @property
    def seconds(self) -> float:
        """About how long `SubsetProgram.solve` takes for it on one thread."""
        ranks = sum(len(own) << len(own) for own in self.parents)
        return SECONDS_OF_RANK * ranks + SECONDS_OF_SUBSET * (self.size << self.size)

    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return what the low and the other bits of a subset add to the places of its entries; shapes (., k)."""
        low = np.zeros((1 << self.low, self.size), dtype=np.int64)
        high = np.tile(self.starts[:-1], (1 << self.size - self.low, 1))
        for a, own in enumerate(self.parents):
            for t, b in enumerate(own.tolist()):
                table, bit = (low, b) if b < self.low else (high, b - self.low)
                table[:, a] += (np.arange(len(table)) >> bit & 1) << t
        return low, high


class SubsetProgram:
    """The dynamic program of some allowed parent sets.

    Parameters
    ----------
    sets : ParentSets
        The parent sets.
    allowed : bool array, shape (P,)
        Those that a structure may have.

    Attributes
    ----------
    components : list of Component
    nbytes, seconds : int, float
        Forecasts of its largest memory, and of its time on one thread.
    """

    def __init__(self, sets: ParentSets, allowed: NDArray[np.bool_]) -> None:
        n = sets.n_variables
        self.sets, self._places = sets, np.flatnonzero(allowed)
        self._offsets = np.searchsorted(self._places, sets.offsets)
        self._masks = sets.masks[self._places]
        blocks = pairwise(self._offsets.tolist())
        arcs = bits_of(np.array([np.bitwise_or.reduce(self._masks[a:b], axis=0) for a, b in blocks]))[:, :n]
        count, label = connected_components(arcs, connection="strong")
        groups = [np.flatnonzero(label == k) for k in range(count)]
        self.components = [Component(own, arcs[np.ix_(own, own)]) for own in groups]
        self._rank = np.dtype(np.uint16 if np.diff(self._offsets).max(initial=0) < 2**16 - 1 else np.uint32)
        self.seconds = sum(one.seconds for one in self.components)
        self.nbytes = max(self._bytes_of(one) for one in self.components)

    def _bytes_of(self, one: Component) -> int:
        """Return the bytes of all ranks, of f, and of the places of the entries."""
        places = 8 * one.size * ((1 << one.low) + (1 << one.size - one.low))
        return self._rank.itemsize * one.starts[-1] + (8 << one.size) + places

    def solve(self, budget: Budget, *, parallel: bool = False) -> CheapestStructure | None:
        """Return a cheapest structure, or None if the budget is used up before."""
        choice, cost = np.zeros(self.sets.n_variables, dtype=np.int64), 0.0
        for component in self.components:
            found = self._solve(component, budget, choice, parallel)
            if found is None:
                return None
            cost += found
        return CheapestStructure(choice, cost * (1 - (self.sets.n_variables + 4) * EPS))

    def _solve(
        self, component: Component, budget: Budget, choice: NDArray[np.int64], parallel: bool
    ) -> float | None:
        """Write the parent sets of a component to `choice`; return their cost, None if the budget is used up."""
        k, offsets = component.size, self._offsets
        ranks = np.empty(component.starts[-1], dtype=self._rank)
        in_parts(lambda begin, end: self._rank_sets(component, ranks, begin, end, budget), k, parallel)
        low, high = component.places()
        # After the costs of a variable comes that of no parent set.
        costs = [
            np.append(self.sets.costs[self._places[offsets[i] : offsets[i + 1]]], np.inf)
            for i in component.members
        ]
        first = np.cumsum([0, *map(len, costs[:-1])])
        tables = ranks, low, high, np.concatenate(costs), first
        total = np.empty(1 << k)
        for begin in range(0, len(total), AT_ONCE):
            if budget.over():
                return None
            stages.tell(f"dynamic programming over {len(total):,} subsets of {k} variables: {begin:,}")
            _fill(*tables, total, begin, min(begin + AT_ONCE, len(total)))
        last, chosen = np.empty((2, k), dtype=np.int64)
        if total[-1] < np.inf:
            _read_off(*tables, total, last, chosen)
            own = component.members[last]
            choice[own] = self._places[offsets[own] + chosen]
        return float(total[-1])

    def _rank_sets(
        self, component: Component, ranks: NDArray[np.integer], begin: int, end: int, budget: Budget
    ) -> None:
        """Fill the least ranks of some variables."""
        for a in range(begin, end):
            if budget.over():
                return
            i, parents = component.members[a], component.parents[a]
            block = slice(*self._offsets[i : i + 2])
            bits = bits_of(self._masks[block])[:, component.members[parents]]
            codes = bits @ (1 << np.arange(len(parents)))
            own = ranks[component.starts[a] : component.starts[a + 1]]
            own.fill(len(codes))
            own[codes[::-1]] = np.arange(len(codes))[::-1]  # the cheapest one of equal sets is written last
            _spread(own)


@kernel
def _spread(ranks):  # type: ignore[no-untyped-def]  # numba infers the types
    """Replace the rank of every subset by the least rank of its subsets."""
    bit = 1
    while bit < len(ranks):
        for start in range(0, len(ranks), 2 * bit):
            without, within = ranks[start : start + bit], ranks[start + bit : start + 2 * bit]
            for s in range(bit):
                within[s] = min(within[s], without[s])
        bit *= 2


@kernel
def _fill(ranks, low, high, costs, first, total, begin, end):  # type: ignore[no-untyped-def]
    """Fill f(U) for begin <= U < end; `first` has the places of the variables' costs."""
    k, size = low.shape[1], low.shape[0]
    for U in range(begin, end):
        best, below, above = np.inf, low[U % size], high[U // size]
        for a in range(k):
            if U >> a & 1:
                cost = total[U ^ (1 << a)]
                if cost < best:
                    best = min(best, cost + costs[first[a] + ranks[above[a] + below[a]]])
        total[U] = best if U else 0.0


@kernel
def _read_off(ranks, low, high, costs, first, total, last, chosen):  # type: ignore[no-untyped-def]
    """Write the variables of a best order, last one first, and the ranks of their parent sets."""
    k, size = low.shape[1], low.shape[0]
    U = len(total) - 1
    for t in range(k):
        for a in range(k):
            if U >> a & 1:
                rank = ranks[high[U // size, a] + low[U % size, a]]
                if total[U ^ (1 << a)] + costs[first[a] + rank] == total[U]:
                    last[t], chosen[t] = a, rank
                    U ^= 1 << a
                    break
