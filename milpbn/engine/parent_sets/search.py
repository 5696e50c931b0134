"""Branch and cut: nodes with restricted parent sets, bounded by the linear program with rows of the whole problem.

A branching decision is an arc that is in a structure or not, or the order of two variables. Candidates are compared by
a few simplex iterations in both children (strong branching). The search dives into the child with the smaller bound,
and goes on with the node of the smallest bound when a dive ends.

With several threads each has a linear program of its own and expands a node of its own. They share the open nodes, the
best structures, the pool of rows and the proof. What a thread finds out about its node is noted at once, with the lock
of the open nodes, so that a saved state has either the node or its children.

If several best structures are wanted, a node in which one was found at the optimum of its linear program has others,
too. Its children are those that differ from it first in one variable, by an order of the variables (Lawler 1972).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.records import ARC, ORDER, Decision
from milpbn.engine.parent_sets.cutting import Cutting
from milpbn.engine.parent_sets.decisions import ArcDecision, fractional, undecided, with_arc
from milpbn.engine.parent_sets.open_nodes import OpenNodes, SearchNode
from milpbn.engine.parent_sets.order_relation import propagate, put_before
from milpbn.util.threads import in_parts

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


#: A decision and its two children, None for one without structures.
_Decided = tuple[ArcDecision, list[SearchNode | None]]
#: The children of a node, with which to go on first, and what records in the proof how it was branched on.
_Branched = tuple[list[SearchNode], Callable[[], None]]
NOTHING: _Branched = [], lambda: None


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
    thread : int
        Number of the thread that calls `run`: 0, or that of a helper, whose cutting is a `Cutting.copied`.
    open_nodes : OpenNodes, optional
        Those of the search that it helps.
    """

    def __init__(
        self,
        cutting: Cutting,
        tolerance: Callable[[], float],
        told: Callable[[float, int], object],
        thread: int = 0,
        open_nodes: OpenNodes | None = None,
    ) -> None:
        self.cutting, self.sets, self.relaxation = cutting, cutting.sets, cutting.relaxation
        self._tolerance, self._told, self._thread = tolerance, told, thread
        self.open = OpenNodes() if open_nodes is None else open_nodes

    def begin(self) -> None:
        """Make the root the only open node, unless it has no structure."""
        cutting, n = self.cutting, self.sets.n_variables
        before = np.zeros((n, self.sets.masks.shape[1]), dtype=np.uint64)
        allowed = cutting.allowed.copy()
        ordered = all(put_before(before, a, b) for a, b in sorted(cutting.rules.ancestors))
        if ordered and propagate(self.sets, allowed, before):
            self.open.store(SearchNode(cutting.bound, np.packbits(allowed), before))

    def run(self, threads: int = 1) -> None:
        """Search until no node is open, or until the budget is used up."""
        self._add_remaining()
        more = [
            type(self)(self.cutting.copied(k), self._tolerance, self._told, k, self.open)
            for k in range(1, threads)
        ]
        workers = [self, *more]

        def expand(begin: int, end: int) -> None:
            for one in workers[begin:end]:
                one.expand()

        in_parts(expand, threads, threads > 1)
        if self.open.finished:
            self._told(self.open.bound, self.open.count)

    def expand(self) -> None:
        """Expand nodes until none is open, or until the budget is used up."""
        opened = self.open
        try:
            while True:
                with opened.lock:
                    taken, fresh = opened.take(self._thread, self._pruned, self._stopping)
                if taken is None:
                    return
                if fresh and taken.basis is not None:
                    if taken.thread != self._thread:
                        self.relaxation.add_used(*taken.basis)
                    self.relaxation.restore(*taken.basis)
                node = replace(taken, before=taken.before.copy())
                is_open = self._bounded(node)
                self._record_bound(node)
                children, record = self._branch(node) if is_open else NOTHING
                with opened.lock:
                    record()
                    opened.go_on(self._thread, children)
                    self._told(opened.bound, opened.count)
        except BaseException:
            opened.failed = True  # no other thread need wait for this one
            raise

    def _stopping(self) -> bool:
        proof = self.cutting.proof
        return self.open.failed or self.cutting.budget.over() or (proof is not None and proof.full)

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
        self.open.close(bound)
        return True

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
                self.open.close(node.bound)
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
                    self.open.close(node.bound)
                return False
            if self.open.count % 5 == 1 and turn == 0:
                cutting.improve(point, thorough=True)
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

    def _branch(self, node: SearchNode) -> _Branched:
        """Branch on the best candidate."""
        if node.found is not None:
            return self._without(node, node.found)
        relaxation, cutting, allowed = self.relaxation, self.cutting, self._allowed(node)
        only = np.flatnonzero(allowed)
        if len(only) == self.sets.n_variables:
            # If it is not allowed, nothing is left; and nothing of a list once it was offered.
            if cutting.offer(only) and not cutting.several:
                self.open.close(float(self.sets.costs[only].sum()))
            return NOTHING
        relaxation.allow(allowed)
        if not relaxation.solve():
            self.open.close(node.bound)
            return NOTHING
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
            self.open.close(node.bound)
            return NOTHING
        decided = best[2]
        ranked = [child for _, child in sorted(best[1], key=lambda child: child[0])]
        for other in ranked[1:]:
            other.basis, other.thread = basis, self._thread
        return ranked, lambda: self._record_decision(node, *decided)

    def _without(self, node: SearchNode, found: NDArray[np.int64]) -> _Branched:
        """Split a node into children that hold all its structures but one, the best one first.

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
        order, proof = np.argsort(-least, kind="stable").tolist(), self.cutting.proof
        step = None if proof is None else relaxation.step(proof)
        for place, i in enumerate(order):
            allowed, before, bound = rest.copy(), node.before.copy(), max(node.bound, float(least[i]))
            allowed[found[i]] = False
            if bound < np.inf and not self._pruned(bound) and propagate(sets, allowed, before):
                child = SearchNode(bound, np.packbits(allowed), before, node.depth + 1, basis, place)
                child.thread = self._thread
                children.append(child)
            rest[sets.offsets[i] : sets.offsets[i + 1]] = False
            rest[found[i]] = True
        children.sort(key=lambda child: child.bound)

        def record() -> None:
            if proof is not None and step is not None:
                numbers = proof.divide(node.number, step, found[order])
                for child in children:
                    child.number = numbers[child.number]

        return children, record

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
