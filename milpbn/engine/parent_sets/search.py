"""Branch and cut: nodes with restricted parent sets, bounded by the linear program with rows of the whole problem.

A branching decision is an arc that is in a structure or not, or the order of two variables. Candidates are compared by
a few simplex iterations in both children (strong branching). The search dives into the child with the smaller bound,
and goes on with the node of the smallest bound when a dive ends.

If several best structures are wanted, a node in which one was found at the optimum of its linear program has others,
too. Its children are those that differ from it first in one variable, by an order of the variables (Lawler 1972).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.multiplier_proof import ProofStep
from milpbn.certificate.records import ARC, ORDER, Decision
from milpbn.engine.parent_sets.cutting import Cutting
from milpbn.engine.parent_sets.decisions import ArcDecision, fractional, undecided, with_arc
from milpbn.engine.parent_sets.order_relation import propagate, put_before
from milpbn.engine.parent_sets.rows import Row

#: Most candidates of strong branching, and simplex iterations in each of their children.
CANDIDATES, ITERATIONS = 8, 60
#: Gains of the children below this share of the gap count as this share.
LEAST_GAIN = 1e-3
#: Rounds of rows in a node, the share of the gap that each must gain, and blocks examined.
ROUNDS, WORTHWHILE, BLOCKS = 4, 0.02, 24
#: Fewer rows than this from the pool are followed by new ones.
FEW_ROWS = 10
#: Rows without a multiplier for this many solutions leave the linear program, at least so many at once.
OLD, AT_ONCE = 12, 20
#: Columns that are added at once in a node.
MOST_COLUMNS = 500
#: The linear program of the tree has all parent sets that are left if they are at most this many.
ALL_COLUMNS, SOME_COLUMNS = 3000, 1500


@dataclass(eq=False)
class SearchNode:
    """A subproblem: allowed parent sets, an order relation, and a lower bound on the costs of its structures.

    Attributes
    ----------
    bound : float
        The bound, in nats.
    allowed : uint8 array
        The allowed parent sets as bits.
    before : uint64 array, shape (V, W)
        What comes before each variable.
    basis : tuple or None
        The basis of the parent's linear program, its rows and its columns.
    number, step : int, ProofStep or None
        If a certificate is wanted: the node's number there, and the multipliers of a bound that is not recorded yet.
    found : int64 array, shape (V,), or None
        The parent sets of a structure in it that was offered, without which it is searched on.
    """

    bound: float
    allowed: NDArray[np.uint8]
    before: NDArray[np.uint64]
    depth: int = 0
    basis: tuple[Any, list[Row], NDArray[np.int64]] | None = field(default=None, repr=False)
    number: int = 0
    step: ProofStep | None = field(default=None, repr=False)
    found: NDArray[np.int64] | None = field(default=None, repr=False)


#: A decision and its two children, None for one without structures.
_Decided = tuple[ArcDecision, list[SearchNode | None]]


class Search:
    """Search the tree below a root.

    Parameters
    ----------
    cutting : Cutting
        The root after its rounds.
    tolerance : callable
        A node is pruned if its bound is below the cutoff by at most what it returns, in nats.
    told : callable
        Called with the bound on all structures that were not found, and the number of nodes, after each node.

    Attributes
    ----------
    nodes : int
        Number of nodes so far.
    finished : bool
        Whether no node is open.
    left : float
        The smallest bound of a node that was closed although it may hold structures.
    """

    def __init__(
        self, cutting: Cutting, tolerance: Callable[[], float], told: Callable[[float, int], object]
    ) -> None:
        self.cutting, self.sets, self.relaxation = cutting, cutting.sets, cutting.relaxation
        self._tolerance, self._told = tolerance, told
        self.nodes, self.finished = 0, False
        self._open: list[tuple[float, int, SearchNode]] = []
        self._current: SearchNode | None = None
        self._count = 0
        self.left = np.inf

    @property
    def bound(self) -> float:
        """A lower bound on the costs of all wanted structures that were not found."""
        bounds = [node.bound for node in (self._current,) if node is not None]
        bounds += [self._open[0][0]] if self._open else []
        return min([self.left, *bounds])

    def begin(self) -> None:
        """Make the root the only open node, unless it has no structure."""
        cutting, n = self.cutting, self.sets.n_variables
        before = np.zeros((n, self.sets.masks.shape[1]), dtype=np.uint64)
        allowed = cutting.allowed.copy()
        ordered = all(put_before(before, a, b) for a, b in sorted(cutting.rules.ancestors))
        if ordered and propagate(self.sets, allowed, before):
            self._current = SearchNode(cutting.bound, np.packbits(allowed), before)

    def open_nodes(self) -> list[SearchNode]:
        """Return the open nodes, which do not change any more, between the expansions of two nodes."""
        return [
            *(node for node in (self._current,) if node is not None),
            *(node for _, _, node in self._open),
        ]

    def run(self) -> None:
        """Search until no node is open, or until the budget is used up."""
        cutting = self.cutting
        self._add_remaining()
        while True:
            if cutting.budget.over() or (cutting.proof is not None and cutting.proof.full):
                return
            if self._current is None and not self._take():
                self.finished = True
                self._told(self.bound, self.nodes)
                return
            assert self._current is not None
            # The node itself may be part of a saved state.
            node = self._current = replace(self._current, before=self._current.before.copy())
            self.nodes += 1
            is_open = self._bounded(node)
            self._record_bound(node)
            self._current = self._branch(node) if is_open else None
            self._told(self.bound, self.nodes)

    def _add_remaining(self) -> None:
        """Add the parent sets that are left to the linear program, or the cheapest of them."""
        cutting, relaxation = self.cutting, self.relaxation
        relaxation.drop_columns(~cutting.allowed[relaxation.columns])
        rest = np.flatnonzero(cutting.allowed & (relaxation.place < 0))
        if len(rest) > ALL_COLUMNS and relaxation.solve():
            excess = relaxation.price(cutting.allowed).with_set[rest]
            rest = rest[np.argsort(excess, kind="stable")[:SOME_COLUMNS]]
        relaxation.add_columns(rest)

    def _pruned(self, bound: float) -> bool:
        """Return whether a node with this bound is pruned, and let `left` have its bound if it is."""
        if bound >= self.relaxation.penalty - 0.5:  # structures cost less by 1 or more, so there is none
            return True
        if bound < self.cutting.cutoff - self._tolerance():
            return False
        self.left = min(self.left, bound)
        return True

    def _take(self) -> bool:
        """Go on with the open node of the smallest bound; return whether there is one."""
        while self._open:
            bound, _, node = heapq.heappop(self._open)
            if self._pruned(bound):
                self._open.clear()
                return False
            self._current = node
            if node.basis is not None:
                self.relaxation.restore(*node.basis)
            return True
        return False

    def _allowed(self, node: SearchNode) -> NDArray[np.bool_]:
        return np.unpackbits(node.allowed, count=self.sets.n_sets).astype(bool) & self.cutting.allowed

    def _bounded(self, node: SearchNode) -> bool:
        """Bound a node by rounds of columns and rows; return whether it has to be branched on."""
        cutting, relaxation = self.cutting, self.relaxation
        allowed = self._allowed(node)
        last, turn = node.bound, 0
        while True:
            relaxation.allow(allowed)
            if cutting.budget.over():
                node.allowed = np.packbits(allowed)
                return True
            if not relaxation.solve() and not relaxation.recover():
                self.left = min(self.left, node.bound)
                return False
            priced = relaxation.price(allowed)
            self._improve(node, priced.bound)
            if self._pruned(node.bound):
                return False
            gone = allowed & cutting.useless(priced)
            if gone.any():
                if cutting.proof is not None:
                    cutting.proof.fix(node.number, relaxation.step(cutting.proof))
                allowed &= ~gone
                if not propagate(self.sets, allowed, node.before):
                    return False
            columns = relaxation.missing(allowed, priced.reduced, MOST_COLUMNS)
            if len(columns):
                relaxation.add_columns(columns)
                continue
            if relaxation.artificial > 1e-9:
                break
            point = relaxation.support()
            if point.integral:
                rows = cutting.cutting_off(point)
                if not rows:
                    cutting.offer(point.used)
                    cutting.improve(point)
                    if cutting.several:
                        node.found, node.allowed = point.used, np.packbits(allowed)
                        return True
                elif relaxation.add_rows(rows):
                    cutting.pool.add(rows)
                    continue
                if not self._pruned(node.bound):
                    self.left = min(self.left, node.bound)
                return False
            if self.nodes % 10 == 1 and turn == 0:
                cutting.improve(point)
            gain = WORTHWHILE * (cutting.cutoff - node.bound)
            if (turn and node.bound - last < gain) or (turn >= ROUNDS and node.bound - last < 3 * gain):
                break
            last = node.bound
            turn += 1
            rows = cutting.pool.violated(self.sets, point, relaxation.present)
            if len(rows) < FEW_ROWS:
                rows += cutting.separate(point, BLOCKS)
            relaxation.grow_older()
            if not relaxation.add_rows(rows):
                break
        relaxation.grow_older()
        old = (relaxation.age > OLD) & cutting.removable()
        if old.sum() > AT_ONCE:
            relaxation.drop_rows(old)
            relaxation.solve()
        node.allowed = np.packbits(allowed)
        return True

    def _child(self, node: SearchNode, decision: ArcDecision, first: bool) -> SearchNode | None:
        """Return a child of a node, None if it has no structure."""
        sets, i, j = self.sets, decision.i, decision.j
        allowed, before = self._allowed(node), node.before.copy()
        if decision.order:
            if not put_before(before, *((j, i) if first else (i, j))):
                return None
        else:
            block, contains = with_arc(sets, decision)
            allowed[block] &= contains if first else ~contains
        if not propagate(sets, allowed, before):
            return None
        return SearchNode(node.bound, np.packbits(allowed), before, node.depth + 1)

    def _branch(self, node: SearchNode) -> SearchNode | None:
        """Branch on the best candidate; store one child, and return the other one to go on with."""
        if node.found is not None:
            return self._without(node, node.found)
        relaxation, cutting, allowed = self.relaxation, self.cutting, self._allowed(node)
        only = np.flatnonzero(allowed)
        if len(only) == self.sets.n_variables:
            # If it is not allowed, nothing is left; and nothing of a list once it was offered.
            if cutting.offer(only) and not cutting.several:
                self.left = min(self.left, float(self.sets.costs[only].sum()))
            return None
        relaxation.allow(allowed)
        if not relaxation.solve():
            self.left = min(self.left, node.bound)
            return None
        basis = (relaxation.basis(), list(relaxation.rows), relaxation.columns)
        start, gap = relaxation.objective, max(1e-9, cutting.cutoff - node.bound)
        best: tuple[float, list[tuple[float, SearchNode]], _Decided] | None = None
        decisions = fractional(self.sets, relaxation.support(), allowed, CANDIDATES)
        for decision in decisions or undecided(self.sets, allowed):
            children: list[tuple[float, SearchNode]] = []
            gains = []
            both = [self._child(node, decision, first) for first in (True, False)]
            for child in both:
                gain = gap
                if child is not None:
                    gain = self._probe(child, basis, start, gap)
                    if not self._pruned(child.bound):
                        children.append((gain, child))
                gains.append(gain)
            value = max(gains[0], LEAST_GAIN * gap) * max(gains[1], LEAST_GAIN * gap)
            if best is None or value > best[0] or len(children) < 2:
                best = value, children, (decision, both)
            if len(children) < 2 or cutting.budget.over():
                break
        relaxation.restore(*basis)
        if best is None:
            self.left = min(self.left, node.bound)
            return None
        self._record_decision(node, *best[2])
        children = sorted(best[1], key=lambda child: child[0])
        for _, other in children[1:]:
            other.basis = basis
            self.store(other)
        return children[0][1] if children else None

    def _without(self, node: SearchNode, found: NDArray[np.int64]) -> SearchNode | None:
        """Split a node into children that hold all its structures but one; store them, and return the best one.

        A child has the found parent sets of the variables before one, and another parent set of that one. The variables
        that are the most expensive to change come first, so that the children with small bounds have most others fixed.
        """
        sets, relaxation = self.sets, self.relaxation
        rest, least = self._allowed(node), np.full(sets.n_variables, np.inf)
        others = rest.copy()
        others[found] = False
        np.minimum.at(least, sets.child[others], relaxation.price(rest).with_set[others])
        basis = (relaxation.basis(), list(relaxation.rows), relaxation.columns)
        children: list[SearchNode] = []
        order = np.argsort(-least, kind="stable").tolist()
        numbers = [0] * len(order)
        if (proof := self.cutting.proof) is not None:
            numbers = proof.divide(node.number, relaxation.step(proof), found[order])
        for i, number in zip(order, numbers, strict=True):
            allowed, before, bound = rest.copy(), node.before.copy(), max(node.bound, float(least[i]))
            allowed[found[i]] = False
            if bound < np.inf and not self._pruned(bound) and propagate(sets, allowed, before):
                child = SearchNode(bound, np.packbits(allowed), before, node.depth + 1, basis, number)
                children.append(child)
            rest[sets.offsets[i] : sets.offsets[i + 1]] = False
            rest[found[i]] = True
        children.sort(key=lambda child: child.bound)
        for other in children[1:]:
            self.store(other)
        return children[0] if children else None

    def store(self, node: SearchNode) -> None:
        """Keep an open node for later."""
        self._count += 1
        heapq.heappush(self._open, (node.bound, self._count, node))

    def _probe(self, child: SearchNode, basis: Any, start: float, gap: float) -> float:
        """Take some simplex iterations in a child, note its bound, and return how much its optimum grows at least."""
        relaxation = self.relaxation
        allowed = self._allowed(child)
        relaxation.allow(allowed)
        relaxation.restore(*basis)
        if not relaxation.solve(iterations=ITERATIONS):
            return gap
        gain = relaxation.objective - start
        if gain >= gap:
            self._improve(child, relaxation.price(allowed).bound)
        return min(max(gain, 0.0), gap)

    def _improve(self, node: SearchNode, bound: float) -> None:
        """Take the bound of the multipliers, if it is better than the node's."""
        if bound > node.bound:
            node.bound = bound
            if self.cutting.proof is not None:
                node.step = self.relaxation.step(self.cutting.proof)

    def _record_bound(self, node: SearchNode) -> None:
        """Record the multipliers of a node's bound, if it has better ones than before."""
        if self.cutting.proof is not None and node.step is not None:
            self.cutting.proof.bound(node.number, node.step)
            node.step = None

    def _record_decision(
        self, node: SearchNode, decision: ArcDecision, both: list[SearchNode | None]
    ) -> None:
        """Record a decision, and the bounds of both children."""
        if self.cutting.proof is None:
            return
        what = Decision(ORDER if decision.order else ARC, decision.j, decision.i)
        for child, number in zip(both, self.cutting.proof.branch(node.number, what), strict=True):
            if child is not None:
                child.number = number
                self._record_bound(child)
