"""Subtrees: a worker searches below some nodes for a while, and returns what the tree search takes as its own.

The search of a subtree changes nothing of the tree search. Its results are leaves with their dual weights, open nodes,
structures and observations for the branching rule; `SubtreeResult.renumbered` gives its nodes numbers of the tree.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.records import DualWeights
from milpbn.engine.dual.point import Point, score_of
from milpbn.engine.relaxation.oracle import Oracle
from milpbn.engine.thresholds import fixing_threshold
from milpbn.engine.tree.bounding import Context, Worker
from milpbn.engine.tree.branching_rule import BranchingRule, Observations, PseudoCosts
from milpbn.engine.tree.children import BoundedNodes
from milpbn.engine.tree.expansion import Effort, NodeTask, expand
from milpbn.engine.tree.frontier import Frontier
from milpbn.engine.tree.node import Node
from milpbn.engine.tree.primal import is_worth_a_climb
from milpbn.heuristics.local_search import LocalSearch
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget


class SubtreeTask(NamedTuple):
    """Nodes to search below, and all that this depends on besides `Context`."""

    nodes: tuple[Node, ...]
    #: The largest number of a node in the tree; new nodes have larger numbers.
    last: int
    costs: PseudoCosts
    effort: Effort
    #: Nodes are pruned at this score, in nats.
    cutoff: float
    #: Whether a better structure raises the cutoff; not if the K best structures are wanted.
    single: bool
    #: Stop early where all open nodes have smaller bounds than this: better ones are open elsewhere.
    floor: float
    #: Wall-clock seconds to search for, and before which it does not stop early.
    seconds: float
    least: float


class SubtreeResult(NamedTuple):
    """What a search below some nodes found.

    The process that takes results back gets them from all workers, so that it has little to do for each node: numbers
    are arrays, and what it only keeps is packed.
    """

    #: Number of nodes that were closed.
    n_closed: int
    #: The nodes that were branched on, in order: number, decision, numbers of the children, shape (k, 6).
    branches: NDArray[np.int64]
    #: The nodes of the fixings.
    fixing_nodes: NDArray[np.int64]
    #: Their dual weights, and the int32 indices of the parent sets that they fix to 0.
    fixings: list[tuple[DualWeights, bytes]]
    #: The nodes that were not branched on.
    leaf_nodes: NDArray[np.int64]
    #: Their dual weights.
    leaves: list[DualWeights]
    #: The allowed parent sets, as bits, and the bound of those pruned nodes that bounds or common arcs depend on.
    pruned: list[tuple[bytes, float]]
    #: The nodes that are open at the end, largest bound first.
    open_nodes: NDArray[np.int64]
    open_bounds: NDArray[np.float64]
    #: The packed parts of these nodes; empty for those of the task.
    open: list[bytes]
    gains: Observations
    #: Steps taken, and those of probes whose children were discarded.
    steps: int
    discarded: int
    #: Better structures, the best one last.
    structures: list[Structure]
    #: Wall-clock time of the search.
    seconds: float

    @property
    def n_children(self) -> int:
        """Number of new nodes."""
        return 2 * len(self.branches)

    def renumbered(self, last: int, shift: int) -> SubtreeResult:
        """Return the result with numbers larger than `last` increased by `shift`."""

        def new(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
            return numbers + shift * (numbers > last)

        node, *decision, first, second = self.branches.T
        return self._replace(
            branches=np.stack([new(node), *decision, new(first), new(second)], axis=1),
            fixing_nodes=new(self.fixing_nodes),
            leaf_nodes=new(self.leaf_nodes),
            open_nodes=new(self.open_nodes),
        )

    def nodes(self, task: SubtreeTask) -> Iterator[Node]:
        """Yield the open nodes, largest bound first."""
        known = {node.number: node for node in task.nodes}
        weights = dict(zip(self.leaf_nodes.tolist(), self.leaves, strict=True))
        for number, bound, data in zip(
            self.open_nodes.tolist(), self.open_bounds.tolist(), self.open, strict=True
        ):
            yield Node(number, bound, data, weights.get(number)) if data else known[number]


class FoundStructures:
    """Holder of the cutoff where a subtree is searched, and of the structures found there.

    `shared` returns the cutoff that the tree search has told since, -inf if none. To the answers of the oracle from
    which a climb has begun (`climbed`) those of this search are added. The budget ends climbs.
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

    The worker's incumbents are `FoundStructures`. When its budget is over, a node whose expansion is cut short stays
    open. The budget `ends` is asked between expansions, where stopping loses nothing.
    """
    model, found = worker.context.model, worker.incumbents
    assert isinstance(found, FoundStructures)
    rule, frontier = BranchingRule(model.oracle, task.costs.copy(), few=worker.context.few), Frontier()
    effort, last = replace(task.effort), task.last
    closed: list[tuple[int, BoundedNodes]] = []
    for node in task.nodes:
        frontier.push(node)
    least = Budget(task.least)
    while frontier and not worker.budget.over():
        if closed and (ends.over() or (frontier.bound() < task.floor and least.over())):
            break
        node = frontier.take()
        frontier.update(max(node.bound, frontier.bound()), worker.target)
        if node.bound <= worker.target:
            allowed = node.restriction().allowed
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
            effort.add(expansion)
            nodes = expansion.nodes
        frontier.close(node)
        for child in sorted(nodes.open, key=lambda child: -child.bound):
            frontier.push(child)
        closed.append((node.number, nodes))
    threshold = fixing_threshold(found.cutoff, model.score_error)
    before = {node.number for node in task.nodes}
    opened = sorted(frontier.nodes(), key=lambda node: -node.bound)
    return SubtreeResult(
        **_proved(closed),
        pruned=_decisive([one for _, nodes in closed for one in nodes.pruned], threshold, model.oracle),
        open_nodes=_integers(node.number for node in opened),
        open_bounds=np.array([node.bound for node in opened], dtype=np.float64),
        open=[b"" if node.number in before else node.data for node in opened],
        gains=rule.costs.since(task.costs),
        steps=effort.steps - task.effort.steps,
        discarded=effort.discarded - task.effort.discarded,
        structures=found.structures,
        seconds=time.monotonic() - least.began,
    )


def _integers(numbers: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(numbers, dtype=np.int64)


def _proved(closed: list[tuple[int, BoundedNodes]]) -> dict[str, Any]:
    """Return what the closed nodes have for the proof, without dual weights of nodes that were branched on later."""
    branches = [
        (number, *nodes.decision, *nodes.numbers) for number, nodes in closed if nodes.decision is not None
    ]
    branched = {number for number, *_ in branches}
    fixings = [fixing for _, nodes in closed for fixing in nodes.fixings]
    leaves = [leaf for _, nodes in closed for leaf in nodes.leaves if leaf[0] not in branched]
    return {
        "n_closed": len(closed),
        "branches": np.array(branches, dtype=np.int64).reshape(-1, 6),
        "fixing_nodes": _integers(number for number, _, _ in fixings),
        "fixings": [(weights, gone.astype(np.int32).tobytes()) for _, weights, gone in fixings],
        "leaf_nodes": _integers(number for number, _ in leaves),
        "leaves": [weights for _, weights in leaves],
    }


def _decisive(
    pruned: list[tuple[NDArray[np.bool_], float]], threshold: float, oracle: Oracle
) -> list[tuple[bytes, float]]:
    """Return the pruned nodes that `ProofBook` cannot do without.

    These are the nodes that may contain an optimum, those with one choice of parent sets, and of the others that with
    the largest bound.
    """
    single = len(oracle.offsets) - 1

    def decides(allowed: NDArray[np.bool_], bound: float) -> bool:
        return bound >= threshold or np.count_nonzero(allowed) == single

    others = [one for one in pruned if not decides(*one)]
    kept = [one for one in pruned if decides(*one)] + sorted(others, key=lambda one: one[1])[-1:]
    return [(np.packbits(allowed).tobytes(), bound) for allowed, bound in kept]
