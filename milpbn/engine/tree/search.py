"""Branch and bound: hands out open nodes, takes back their expansions, and keeps frontier and proof under one lock."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import NamedTuple

from milpbn.engine.events import NODE, Events
from milpbn.engine.pool import PoolMark
from milpbn.engine.root import Root
from milpbn.engine.thresholds import pruning_threshold
from milpbn.engine.tree.bounding import Context
from milpbn.engine.tree.branching_rule import BranchingRule
from milpbn.engine.tree.children import BoundedNodes
from milpbn.engine.tree.dispatch import Dispatcher, ThreadDispatcher
from milpbn.engine.tree.expansion import Effort, Expansion, NodeTask, expand_root
from milpbn.engine.tree.frontier import Frontier
from milpbn.engine.tree.node import Node
from milpbn.engine.tree.primal import PrimalHeuristic, PrimalState
from milpbn.engine.tree.proof_book import ProofBook
from milpbn.engine.tree.saved_search import SearchState, restored_nodes
from milpbn.engine.tree.subtree import SubtreeResult, SubtreeTask
from milpbn.engine.tuning import TUNING
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget
from milpbn.util.saved_arrays import SavedArrays, count

#: Seconds to wait for the lock before `BranchAndBound.state` gives up; a search for the K best may hold it for long.
PATIENCE = 0.5


class _Mark(NamedTuple):
    """What an expansion changes before it ends."""

    children: int
    primal: PrimalState
    pool: PoolMark


class BranchAndBound:
    """Best-bound search that continues from the root bound.

    The `root` is the whole problem, bounded. If it has a proof, that receives decisions, fixings and the dual weights
    of all leaves; the search ends when it is full. `best` is the incumbent. The `events` receive better structures,
    smaller bounds and the number of nodes; their budget is asked after every burst of steps. The `dispatcher` lets the
    nodes be expanded, by default in this thread. `random_state` is the seed of the primal heuristic. With `reduce`,
    parent sets are fixed by their reduced costs. Beyond so many bytes of `memory` for open nodes and the proof, the
    search becomes depth-first.

    `saved` is the state of an earlier search (`SearchState.arrays`), which this one continues; root, pool and proof
    must be those of the earlier search (`Root.restore`, `Pool.restore`, `Proof.restored`). Raise UnfitError if it is
    not the state of a search on this problem.
    """

    def __init__(
        self,
        root: Root,
        best: Structure,
        events: Events,
        *,
        dispatcher: Dispatcher | None = None,
        random_state: int = 0,
        reduce: bool = True,
        memory: float = 4e9,
        saved: SavedArrays | None = None,
    ) -> None:
        self.root, self.events, self.memory = root, events, memory
        self.context = Context.of(root, reduce=reduce, certify=root.proof is not None)
        self._dispatcher = ThreadDispatcher() if dispatcher is None else dispatcher
        # The attributes below change only under the lock.
        self._lock = threading.Condition(threading.RLock())
        self.primal = PrimalHeuristic(
            root, best, events, self._lock, random_state, None if saved is None else saved.under("primal.")
        )
        self.rule = BranchingRule(root.model.oracle, few=root.problem.rules.max_features is not None)
        self._frontier, self._book = Frontier(), ProofBook(root)
        #: Says whether the search has to stop, by request or because the proof is full.
        self.budget = Budget(whole=events.budget)
        self.budget.reached = lambda: self._book.full
        self._effort = Effort(root.problem.data.n_samples * len(root.model.linear) <= TUNING.tree.probed_work)
        #: Number of nodes so far, without the root.
        self._n_children = 0
        self._failure: BaseException | None = None
        #: The state before the expansion that was handed out last; None while several nodes are being expanded.
        self._mark: _Mark | None = None
        #: The state at a stop, before the only expansion, which the stop may have cut short.
        self._stopped: SearchState | None = None
        self._begun = saved is not None
        if saved is not None:
            self._restore(saved)

    @property
    def incumbent(self) -> float:
        """Score of the incumbent."""
        return self.primal.value

    @property
    def target(self) -> float:
        """The largest bound at which a node is pruned."""
        return pruning_threshold(self.primal.cutoff, self.root.model.score_error)

    @property
    def steps(self) -> int:
        """Number of steps in the tree so far, those of discarded probes included."""
        return self._effort.steps

    def bound(self) -> float:
        """Return the bound on all structures."""
        return max(self.root.pool.everything(self._rest()), self.incumbent)

    def _rest(self) -> float:
        """Return the bound on all structures but those in a node of their own (`Pool.leaf`)."""
        return max(self._book.bound, self._frontier.bound())

    def run(self) -> bool:
        """Search until all nodes are pruned or branched on; return False if stopped before."""
        if not self._begun:
            first = expand_root(self.context, self.root, self.primal)
            with self._lock:
                self._add(0, first)
                self._begun = True
        if self._frontier:
            self._dispatcher.run(self)
        if self._failure is not None:
            raise self._failure
        finished = not self._frontier and not self._frontier.n_taken
        if finished:
            self.root.optima = self._book.optima
        self._report()
        return finished

    def hand_out(self, *, wait: bool) -> NodeTask | None:
        """Return the node to expand next; see `TreeSearch.hand_out`."""
        with self._lock:
            node = self._open_node(wait)
            return None if node is None else self._task(node)

    def _open_node(self, wait: bool) -> Node | None:
        """Take a node that has to be expanded from the frontier; close those before it that the incumbent prunes."""
        while (node := self._next(wait)) is not None:
            if node.bound > self.target:
                return node
            allowed = node.restriction().allowed
            self._close(node, BoundedNodes(pruned=[(allowed, node.bound)]))
        self._lock.notify_all()
        return None

    def _next(self, wait: bool) -> Node | None:
        """Take a node from the frontier; None if there is none or the search has to stop."""
        while wait and self._failure is None and not self._frontier and self._frontier.n_taken:
            self._lock.wait(0.1)
            if self.budget.over():
                break
        if self._failure is not None or self.budget.over():
            if self._stopped is None and not self._frontier.n_taken:
                # The last report, which follows, may change the order of the nodes.
                self._stopped = self._state()
            return None
        return self._frontier.take(newest=self._bytes() > self.memory) if self._frontier else None

    def _task(self, node: Node) -> NodeTask:
        """Return what the expansion of a taken node needs."""
        self._mark = self._now() if self._frontier.n_taken == 1 else None
        self._stopped = None
        numbers = (self._n_children + 1, self._n_children + 2)
        self._n_children += 2
        effort = self._effort
        return NodeTask(node, numbers, self.rule.costs.copy(), effort.probe_budget(), effort.steps)

    @property
    def n_open(self) -> int:
        """Number of nodes that are open and not handed out."""
        return len(self._frontier)

    @property
    def cutoff(self) -> float:
        """The score that a structure must exceed: the incumbent's, or that of the K-th best."""
        return self.primal.cutoff

    def hand_out_subtree(self, most: int, seconds: float, least: float) -> SubtreeTask | None:
        """Return nodes to search below; see `TreeSearch.hand_out_subtree`."""
        with self._lock:
            nodes: list[Node] = []
            while len(nodes) < most and (node := self._open_node(wait=False)) is not None:
                nodes.append(node)
            if not nodes:
                return None
            self._mark = None
            costs, effort, single = self.rule.costs.copy(), replace(self._effort), self.root.pool.size == 1
            # Bounds within a step of the frontier's order count as equal.
            floor = self._frontier.open_bound() - self._frontier.step
            return SubtreeTask(
                tuple(nodes),
                self._n_children,
                costs,
                effort,
                self.primal.cutoff,
                single,
                floor,
                seconds,
                least,
            )

    def take_back_subtree(self, task: SubtreeTask, result: SubtreeResult | None) -> None:
        """Take what a search below nodes found; with None they are open again."""
        with self._lock:
            if result is None:
                for node in task.nodes:
                    self._frontier.reopen(node)
            else:
                for structure in result.structures:
                    self.primal.offer(structure, self.root.value(structure))
                self.rule.costs.add(result.gains)
                self._effort.steps += result.steps
                self._effort.discarded += result.discarded
                result = result.renumbered(task.last, self._n_children - task.last)
                self._n_children += result.n_children
                for node in task.nodes:
                    self._frontier.close(node)
                self._book.record_subtree(result, self.incumbent)
                for node in result.nodes(task):
                    self._frontier.push(node)
            self._report()
            self._lock.notify_all()

    def climb(self) -> None:
        """Climb for better structures; see `TreeSearch.climb`."""
        self.primal.climb_near_incumbent(self._n_children // 2, self._effort.steps)
        self.primal.explore_list()

    def take_back(self, task: NodeTask, expansion: Expansion | None) -> None:
        """Climb for better structures, then take the expansion of a node; None if the node was not expanded."""
        self.primal.climb_near_incumbent(task.numbers[1] // 2, task.steps)
        self.primal.explore_list()
        with self._lock:
            if self._mark is not None and self.budget.over():
                # Climbs and multipliers may have been cut short. Without the stop, they would not have been.
                self._stopped = self._state()
            self._mark = None
            if expansion is None:
                self._frontier.reopen(task.node)
            else:
                for gain in expansion.gains:
                    self.rule.learn(gain)
                self._effort.add(expansion)
                self._close(task.node, expansion.nodes)
            self._lock.notify_all()

    def fail(self, task: NodeTask | None, error: BaseException) -> None:
        """Stop the search because of an error; the node stays open, so that it counts in the bound."""
        with self._lock:
            self._failure = self._failure or error
            if task is not None:
                self._frontier.reopen(task.node)
            self._lock.notify_all()

    def _close(self, node: Node, nodes: BoundedNodes) -> None:
        """Replace a node by its children, or by nothing if it is pruned, in frontier and proof; report the bounds."""
        self._frontier.close(node)
        self._add(node.number, nodes)
        self._report()

    def _add(self, number: int, nodes: BoundedNodes) -> None:
        self._book.record(number, nodes, self.incumbent)
        # Where memory is short, the newest node comes next: of two children that which is likely to be pruned first.
        for node in sorted(nodes.open, key=lambda node: -node.bound):
            self._frontier.push(node)

    def _report(self) -> None:
        """Report the bounds and the number of nodes."""
        self.root.pool.rest = self._rest()
        bound = self.bound()
        self._frontier.update(bound, self.incumbent)
        self.events.bound(bound)
        self.events.nodes(self._n_children + 1)

    def _bytes(self) -> float:
        """Return the bytes that open nodes and the proof take in memory."""
        return self._frontier.nbytes + self._book.nbytes

    def state(self) -> SearchState | None:
        """Return the state of the search, which any thread may ask for; None if it has not begun, or is busy for long.

        While a single node is expanded, this is the state before its expansion, even if a stop has cut that short. If
        several are, their expansions have offered structures and begun climbs; only their nodes are open again.
        """
        if not self._lock.acquire(timeout=PATIENCE):
            return None
        try:
            if not self._begun:
                return None
            return self._state() if self._stopped is None else self._stopped
        finally:
            self._lock.release()

    def _now(self) -> _Mark:
        return _Mark(self._n_children, self.primal.mark(), self.root.pool.mark())

    def _state(self) -> SearchState:
        mark = self._mark or self._now()
        own = {
            "children": count(mark.children),
            "steps": count(self._effort.steps),
            "discarded": count(self._effort.discarded),
        }
        parts = {
            "root.": self.root.state(),
            "pool.": self.root.pool.state(mark.pool),
            "frontier.": self._frontier.state(),
            "rule.": self.rule.state(),
            "primal.": self.primal.state(mark.primal),
            "search.": own,
            "": self._book.state(),
        }
        return SearchState(
            parts={prefix + name: array for prefix, of in parts.items() for name, array in of.items()},
            nodes=self._frontier.nodes(),
            proof=None if self.root.proof is None else self.root.proof.copy(),
            bound=self.bound(),
            count=mark.children + 1,
        )

    def _restore(self, saved: SavedArrays) -> None:
        """Take the state that `SearchState.arrays` returned, but for that of root, pool and primal heuristic."""
        own = saved.under("search.")
        self._n_children = own.count("children")
        self._effort.steps, self._effort.discarded = own.count("steps"), own.count("discarded")
        self.rule.restore(saved.under("rule."))
        self._book.restore(saved)
        root = self.root
        leaves = None if root.proof is None else root.proof.leaves
        nodes = restored_nodes(saved.under(NODE), root.problem.candidates, len(root.rows.limit), leaves)
        self._frontier.restore(saved.under("frontier."), nodes)
