"""Subtrees: a worker searches below some nodes for a while, and returns what the tree search takes as its own.

The search of a subtree changes nothing of the tree search. Its results are leaves with their dual weights, open nodes,
structures and observations for the branching rule; `SubtreeResult.renumbered` gives its nodes numbers of the tree.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from milpbn.engine.dual.point import Point, score_of
from milpbn.engine.tree.bounding import Context, Worker
from milpbn.engine.tree.branching_rule import BranchingRule, Gain, PseudoCosts
from milpbn.engine.tree.children import BoundedNodes
from milpbn.engine.tree.expansion import Effort, NodeTask, expand
from milpbn.engine.tree.frontier import Frontier
from milpbn.engine.tree.node import Node
from milpbn.engine.tree.primal import is_worth_a_climb
from milpbn.heuristics.local_search import LocalSearch
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget


class SubtreeTask(NamedTuple):
    """Nodes to search below, and all that this depends on besides `Context`.

    Attributes
    ----------
    nodes : tuple of Node
        Open nodes of the tree.
    last : int
        The largest number of a node in the tree; new nodes have larger numbers.
    costs : PseudoCosts
        The pseudo-costs that rank the decisions.
    effort : Effort
        The steps in the tree so far.
    cutoff : float
        Nodes are pruned at this score, in nats.
    single : bool
        Whether a better structure raises the cutoff; not if the K best structures are wanted.
    floor : float
        Stop early where all open nodes have smaller bounds than this: better ones are open elsewhere.
    seconds, least : float
        Wall-clock seconds to search for, and before which it does not stop early.
    """

    nodes: tuple[Node, ...]
    last: int
    costs: PseudoCosts
    effort: Effort
    cutoff: float
    single: bool
    floor: float
    seconds: float
    least: float


class SubtreeResult(NamedTuple):
    """What a search below some nodes found.

    Attributes
    ----------
    closed : list of (int, BoundedNodes)
        Every node that was closed, in order: its number, and its children or its bound. Open nodes among the children
        are left out.
    open : list of Node
        The nodes that are open at the end.
    gains : list of Gain
        Observations for the branching rule.
    steps, discarded : int
        Steps taken, and those of probes whose children were discarded.
    structures : list of Structure
        Better structures, the best one last.
    seconds : float
        Wall-clock time of the search.
    """

    closed: list[tuple[int, BoundedNodes]]
    open: list[Node]
    gains: list[Gain]
    steps: int
    discarded: int
    structures: list[Structure]
    seconds: float

    @property
    def n_children(self) -> int:
        """Number of new nodes."""
        return 2 * sum(nodes.decision is not None for _, nodes in self.closed)

    def renumbered(self, last: int, shift: int) -> SubtreeResult:
        """Return the result with numbers larger than `last` increased by `shift`."""

        def new(number: int) -> int:
            return number + shift if number > last else number

        closed = [
            (
                new(number),
                replace(
                    nodes,
                    numbers=(new(nodes.numbers[0]), new(nodes.numbers[1])),
                    fixings=[(new(node), weights, gone) for node, weights, gone in nodes.fixings],
                    leaves=[(new(node), weights) for node, weights in nodes.leaves],
                ),
            )
            for number, nodes in self.closed
        ]
        return self._replace(
            closed=closed, open=[replace(node, number=new(node.number)) for node in self.open]
        )


class FoundStructures:
    """Holder of the cutoff where a subtree is searched, and of the structures found there.

    Parameters
    ----------
    shared : callable
        Returns the cutoff that the tree search has told since; -inf if none.
    climbed : set of bytes
        The oracle's answers from which a climb has begun; those of this search are added.
    budget : Budget
        Ends climbs.
    """

    def __init__(
        self,
        context: Context,
        task: SubtreeTask,
        budget: Budget,
        *,
        shared: Callable[[], float] = lambda: -math.inf,
        climbed: set[bytes] | None = None,
    ) -> None:
        self._context, self._shared, self._budget = context, shared, budget
        self._own, self._single = task.cutoff, task.single
        self._bound = max(node.bound for node in task.nodes)
        self._climbed = set() if climbed is None else climbed
        self.structures: list[Structure] = []

    @property
    def cutoff(self) -> float:
        """The score that a structure must exceed."""
        return max(self._own, self._shared())

    def offer(self, structure: Structure, value: float) -> None:
        """Keep a structure that is better than the cutoff; the best one raises it unless the K best are wanted."""
        if value > self.cutoff:
            self.structures.append(structure)
            if self._single:
                self._own = value

    def climb_from_answer(self, point: Point) -> None:
        """Climb from the oracle's last answer at a point, if that is a good and new structure.

        The point's `direction` is overwritten.
        """
        problem, key, cutoff = self._context.problem, point.found.tobytes(), self.cutoff
        value = score_of(self._context.model, point.found, point.direction, False)
        if key in self._climbed or not is_worth_a_climb(value, cutoff, self._bound):
            return
        self._climbed.add(key)
        structure = problem.candidates.structure(point.found)
        if not problem.obeys(structure):
            return
        self.offer(structure, value)
        search = LocalSearch(problem, structure, parallel=False)
        value = search.climb(np.random.default_rng(zlib.crc32(key)), self._budget.over)
        self.offer(search.structure, value)


def search_subtree(worker: Worker, task: SubtreeTask, ends: Budget) -> SubtreeResult:
    """Search below some nodes by best-bound search; at least one node is closed unless the worker's budget is over.

    Parameters
    ----------
    worker : Worker
        Its incumbents are `FoundStructures`. When its budget is over, a node whose expansion is cut short stays open.
    task : SubtreeTask
        The nodes.
    ends : Budget
        Asked between expansions whether to stop, which loses nothing.
    """
    model, found = worker.context.model, worker.incumbents
    assert isinstance(found, FoundStructures)
    rule, frontier = BranchingRule(model.oracle, task.costs), Frontier()
    effort, last = replace(task.effort), task.last
    closed: list[tuple[int, BoundedNodes]] = []
    gains: list[Gain] = []
    for node in task.nodes:
        frontier.push(node)
    least = Budget(task.least)
    while frontier and not worker.budget.over():
        if closed and (ends.over() or (frontier.bound() < task.floor and least.over())):
            break
        node = frontier.take()
        frontier.update(max(node.bound, frontier.bound()), worker.target)
        if node.bound <= worker.target:
            allowed = node.restriction(len(model.linear)).allowed
            nodes = BoundedNodes(pruned=[(allowed, node.bound)])
        else:
            one = NodeTask(node, (last + 1, last + 2), rule.costs, effort.probe_budget(), effort.steps)
            expansion = expand(worker, one)
            if expansion is None:
                frontier.reopen(node)
                break
            last += 2
            for gain in expansion.gains:
                rule.learn(gain)
            gains += expansion.gains
            effort.add(expansion)
            nodes = expansion.nodes
        frontier.close(node)
        for child in sorted(nodes.open, key=lambda child: -child.bound):
            frontier.push(child)
        closed.append((node.number, nodes))
    return SubtreeResult(
        _without_inner_leaves(closed),
        frontier.nodes(),
        gains,
        effort.steps - task.effort.steps,
        effort.discarded - task.effort.discarded,
        found.structures,
        time.monotonic() - least.began,
    )


def _without_inner_leaves(closed: list[tuple[int, BoundedNodes]]) -> list[tuple[int, BoundedNodes]]:
    """Return the closed nodes without open children, and without dual weights of nodes that were branched on later."""
    branched = {number for number, nodes in closed if nodes.decision is not None}
    return [
        (
            number,
            replace(
                nodes, open=[], gains=[], leaves=[leaf for leaf in nodes.leaves if leaf[0] not in branched]
            ),
        )
        for number, nodes in closed
    ]
