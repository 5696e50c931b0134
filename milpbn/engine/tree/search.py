"""Branch and bound: threads that take open nodes, expand them, and process the results under one lock."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from milpbn.certificate.format import OVERHEAD, Proof
from milpbn.engine.dual.point import Point, empty_point
from milpbn.engine.events import Events
from milpbn.engine.pool import PoolMark
from milpbn.engine.root import Root
from milpbn.engine.saved_root import root_state
from milpbn.engine.thresholds import pruning_threshold
from milpbn.engine.tree.branching_rule import BranchingRule
from milpbn.engine.tree.children import BoundedNodes, Context
from milpbn.engine.tree.expansion import Expansion, expand, expand_root
from milpbn.engine.tree.node import Node
from milpbn.engine.tree.node_selection import Frontier
from milpbn.engine.optima import Optima
from milpbn.engine.tree.primal import PrimalHeuristic, PrimalMark
from milpbn.engine.tree.saved_search import NODE, SearchState, restored_nodes
from milpbn.engine.tuning import TUNING
from milpbn.network.structure import Structure
from milpbn.util.jsonable import LARGEST_NUMBER
from milpbn.util.saved_arrays import SavedArrays, UnfitError, count, number

#: Seconds to wait for the lock before `BranchAndBound.state` gives up; a search for the K best may hold it for long.
PATIENCE = 0.5


class _Mark(NamedTuple):
    """What an expansion changes before it ends."""

    children: int
    primal: PrimalMark
    pool: PoolMark


class BranchAndBound:
    """Best-bound search that continues from the root bound.

    Parameters
    ----------
    root : Root
        The whole problem, bounded.
    best : Structure
        The incumbent.
    events : Events
        Receives better structures, smaller bounds and the number of nodes; is asked after every burst of steps whether
        to stop.
    threads : int
        Number of nodes that are expanded at the same time.
    random_state : int
        Seed of the primal heuristic.
    reduce : bool
        Fix parent sets by their reduced costs.
    proof : Proof or None
        Receives decisions, fixings and the dual weights of all leaves; the search ends when it is full.
    memory : float
        Bytes that open nodes and the proof may take. Beyond them the search becomes depth-first.
    saved : SavedArrays or None
        What `SearchState.arrays` returned in an earlier search, from which this one goes on. Root, pool and proof are
        those of that search (`restore_root`, `Pool.restore`, `Proof.restored`). Raises UnfitError if it is not the
        state of a search on this problem.
    """

    def __init__(
        self,
        root: Root,
        best: Structure,
        events: Events,
        *,
        threads: int = 1,
        random_state: int = 0,
        reduce: bool = True,
        proof: Proof | None = None,
        memory: float = 4e9,
        saved: SavedArrays | None = None,
    ) -> None:
        self.root = root
        self.context = Context.of(root, reduce=reduce, certify=proof is not None)
        self.rule = BranchingRule(root.model.oracle)
        self._probes = root.problem.data.n_samples * len(root.model.linear) <= TUNING.tree.probed_work
        self.proof = proof
        self.events = events
        self.threads = threads
        self.memory = memory
        # The attributes below change only under the lock.
        self._lock = threading.Condition(threading.RLock())
        self.primal = PrimalHeuristic(
            root, best, events, self._lock, random_state, None if saved is None else saved.under("primal.")
        )
        self._frontier = Frontier()
        #: By thread, the node that it expands.
        self._busy: dict[int, Node] = {}
        #: Number of nodes so far, without the root.
        self._n_children = 0
        #: Steps so far, and those of them whose children were discarded.
        self._steps, self._discarded = 0, 0
        #: The largest bound of all pruned nodes with more than one choice of parent sets.
        self._pruned = -np.inf
        self._optima = Optima(root.problem.candidates, root.model.score_error)
        self._failure: BaseException | None = None
        #: On one thread, what held before the expansion that began last, until it is processed.
        self._mark: _Mark | None = None
        #: On one thread, the state at a stop, before the expansion that the stop may have cut short.
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
        return self._steps

    def bound(self) -> float:
        """Return the bound on all structures."""
        return max(self.root.pool.everything(self._rest()), self.incumbent)

    def _rest(self) -> float:
        """Return the bound on all structures but those in a node of their own (`Pool.leaf`)."""
        return max(self._pruned, self._frontier.bound(), *(node.bound for node in self._busy.values()))

    def run(self) -> bool:
        """Search until all nodes are pruned or branched on; return False if stopped before."""
        if not self._begun:
            first = expand_root(self.context, self.root, self.primal)
            if self.proof is not None:
                for leaf in first.leaves:
                    self.proof.leaf(*leaf)
            with self._lock:
                self._process(first)
                self._begun = True
        others = [
            threading.Thread(target=self._work, args=(k,), name=f"milpbn-native-{k}", daemon=True)
            for k in range(1, self.threads if self._frontier else 0)
        ]
        for thread in others:
            thread.start()
        self._work(0)
        for thread in others:
            thread.join()
        if self._failure is not None:
            raise self._failure
        finished = not self._frontier and not self._busy
        if finished:
            self.root.optima = self._optima
        self._report()
        return finished

    def _work(self, thread: int) -> None:
        """Expand one node after another, until there are none or the search has to stop."""
        node: Node | None = None
        try:
            point = empty_point(self.root.model)
            while (node := self._next(thread, node)) is not None:
                node = self._finish(thread, node, self._expand(node, point))
        except BaseException as error:
            with self._lock:
                self._failure = self._failure or error
                if node is not None:
                    # The node stays open. Otherwise the bound on the other nodes would pass for that on all structures.
                    self._frontier.push(node)
                self._busy.pop(thread, None)
                self._lock.notify_all()

    def _next(self, thread: int, node: Node | None) -> Node | None:
        """Return the node that a thread expands next: the one it has, or one of the open nodes; None to end."""
        with self._lock:
            while node is None and not self._frontier and self._busy and self._failure is None:
                self._lock.wait(0.1)
                if self._stopping():
                    break
            if self._failure is not None or self._stopping():
                if self.threads == 1 and self._stopped is None:
                    # The last report, which follows, may change the order of the nodes.
                    self._stopped = self._state()
                self._busy.pop(thread, None)
                if node is not None:
                    self._frontier.push(node)
                node = None
            elif node is None and self._frontier:
                node = self._frontier.pop(newest=self._bytes() > self.memory)
            if node is None:
                self._lock.notify_all()
            else:
                self._busy[thread] = node
            return node

    def _expand(self, node: Node, point: Point) -> Expansion | None:
        """Expand a node, or prune it if the incumbent allows; see `milpbn.engine.tree.expansion.expand`."""
        if node.bound <= self.target:
            allowed = node.restriction(len(self.root.model.linear)).allowed
            return Expansion(BoundedNodes(pruned=[(allowed, node.bound)]))
        with self._lock:
            if self.threads == 1:
                self._mark, self._stopped = self._now(), None
            numbers = (self._n_children + 1, self._n_children + 2)
            self._n_children += 2
            rule = self.rule.copy()
            # Counted in steps, not in seconds, so that a search on one thread can be repeated.
            tuned = TUNING.tree
            first = min(tuned.first_probing, tuned.early_probing * self._steps)
            budget = max(first, tuned.probing * self._steps) - self._discarded if self._probes else 0.0
        expansion = expand(self.context, node, numbers, point, rule, self.primal, self._stopping, budget)
        self.primal.climb_near_incumbent(self._n_children // 2, self._steps)
        self.primal.explore_list()
        return expansion

    def _finish(self, thread: int, node: Node, expansion: Expansion | None) -> Node | None:
        """Process the expansion of a node; if memory is short, return the child that the thread expands next."""
        with self._lock:
            if self._mark is not None and self._stopping():
                # Climbs and multipliers may have been cut short. Without the stop, they would not have been.
                self._stopped = self._state()
            self._mark = None
            self._busy.pop(thread, None)
            down: Node | None = None
            if expansion is None:
                # The expansion was stopped, so the node stays open.
                self._frontier.push(node)
            else:
                self._learn(expansion)
                children = expansion.nodes.open
                if children and self._bytes() + sum(c.nbytes for c in children) > self.memory:
                    # The child with the smaller bound is likely to be pruned first.
                    down = min(children, key=lambda child: child.bound)
                    self._busy[thread] = down
                self._record(node, expansion.nodes)
                self._process(expansion.nodes, down)
                self._report()
            self._lock.notify_all()
            return down

    def _learn(self, expansion: Expansion) -> None:
        """Record the pseudo-costs and the steps of an expansion."""
        for fall in expansion.falls:
            self.rule.learn(fall)
        self._steps += expansion.steps
        self._discarded += expansion.discarded

    def _record(self, node: Node, made: BoundedNodes) -> None:
        """Record a branching in the proof. The same hold of the lock replaces the node by its children."""
        if self.proof is not None and made.decision is not None:
            self.proof.branch(node.number, made.decision, made.numbers, made.fixings, made.leaves)

    def _process(self, nodes: BoundedNodes, down: Node | None = None) -> None:
        """Add all open nodes except `down` to the frontier, and record pruned nodes."""
        for node in nodes.open:
            if node is not down:
                self._frontier.push(node)
        for allowed, bound in nodes.pruned:
            only = np.flatnonzero(allowed)
            if len(only) == self.root.problem.candidates.n_variables:
                self.root.pool.leaf(only, bound)
            else:
                self._pruned = max(self._pruned, bound)
            self._optima.add(allowed, bound, self.incumbent)

    def _report(self) -> None:
        """Report the bounds and the number of nodes."""
        self.root.pool.rest = self._rest()
        bound = self.bound()
        self._frontier.update(bound, self.incumbent)
        self.events.bound(bound)
        self.events.nodes(self._n_children + 1)

    def _stopping(self) -> bool:
        """Return whether the search has to stop, by request or because the proof is full."""
        return self.events.stopping() or (self.proof is not None and self.proof.full)

    def _bytes(self) -> float:
        """Return the bytes that open nodes and the proof take in memory."""
        proof = 0.0 if self.proof is None else OVERHEAD * self.proof.nbytes
        return self._frontier.nbytes + proof

    def state(self) -> SearchState | None:
        """Return the state of the search, which any thread may ask for; None if it has not begun, or is busy for long.

        On one thread it is the state between two expansions, even if a stop has cut the last one short. With more
        threads, their expansions have offered structures and begun climbs; only their nodes are open again.
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
            "steps": count(self._steps),
            "discarded": count(self._discarded),
            "pruned": number(self._pruned),
        }
        parts = {
            "root.": root_state(self.root),
            "pool.": self.root.pool.state(mark.pool),
            "frontier.": self._frontier.state(),
            "rule.": self.rule.state(),
            "optima.": self._optima.state(),
            "primal.": self.primal.state(mark.primal),
            "search.": own,
        }
        return SearchState(
            parts={prefix + name: array for prefix, of in parts.items() for name, array in of.items()},
            nodes=[*self._frontier.nodes(), *self._busy.values()],
            proof=None if self.proof is None else self.proof.copy(),
            bound=self.bound(),
            count=mark.children + 1,
        )

    def _restore(self, saved: SavedArrays) -> None:
        """Take the state that `SearchState.arrays` returned, but for that of root, pool and primal heuristic."""
        own = saved.under("search.")
        self._n_children, self._pruned = own.count("children"), own.number("pruned", LARGEST_NUMBER)
        self._steps, self._discarded = own.count("steps"), own.count("discarded")
        self.rule.restore(saved.under("rule."))
        self._optima.restore(saved.under("optima."))
        leaves = None if self.proof is None else self.proof.leaves
        nodes = restored_nodes(
            saved.under(NODE), self.root.problem.candidates, len(self.root.rows.limit), leaves
        )
        if any(node.number > self._n_children for node in nodes):
            raise UnfitError("a node has a number that none has yet")
        self._frontier.restore(saved.under("frontier."), nodes)
