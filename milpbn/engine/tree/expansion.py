"""The expansion of a node: probe its best decisions that lack observations, and branch on the best decision.

An expansion changes nothing of the search. It returns an `Expansion`, which the search takes back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from milpbn.engine.root import Root
from milpbn.engine.thresholds import pruning_threshold
from milpbn.engine.tree.bounding import Context, Incumbents, Worker
from milpbn.engine.tree.branching_rule import BranchingRule, Candidate, Gain, PseudoCosts, product_of_gains
from milpbn.engine.tree.children import BoundedNodes, bound_children, only_structure, open_node
from milpbn.engine.tree.node import Node, Restriction
from milpbn.engine.tuning import TUNING

_TREE = TUNING.tree


class NodeTask(NamedTuple):
    """A node to expand, and all that its expansion depends on besides `Context` and the incumbent."""

    node: Node
    #: Numbers of the child in which the decision holds, and of the other child.
    numbers: tuple[int, int]
    #: The pseudo-costs that rank the decisions.
    costs: PseudoCosts
    #: A probe begins only if the probes that will be discarded have taken fewer steps than this so far.
    probe_budget: float
    #: Steps in the tree when the node was handed out.
    steps: int


class Expansion(NamedTuple):
    """The results of an expansion."""

    #: The children, and what proves their bounds.
    nodes: BoundedNodes
    #: Observations for the branching rule: those of the children, and those of the probes that were discarded.
    gains: list[Gain]
    #: Steps for the children and for all probes.
    steps: int
    #: Steps of the probes whose children were discarded.
    discarded: int


@dataclass
class Effort:
    """Steps in the tree so far. Work is counted, not timed, so that a search on one thread can be repeated."""

    #: Whether the data are so small that decisions are probed.
    probes: bool
    #: All steps, and those of the probes whose children were discarded.
    steps: int = 0
    discarded: int = 0

    def probe_budget(self) -> float:
        """Return how many steps may go to discarded probes at the next node."""
        if not self.probes:
            return 0.0
        first = min(_TREE.first_probing, _TREE.early_probing * self.steps)
        return max(first, _TREE.probing * self.steps) - self.discarded

    def add(self, expansion: Expansion) -> None:
        """Add the steps of an expansion."""
        self.steps += expansion.steps
        self.discarded += expansion.discarded


def expand_root(context: Context, root: Root, incumbents: Incumbents) -> BoundedNodes:
    """Return the root as the first open node, or as a pruned node."""
    out = BoundedNodes()
    restriction, bound = Restriction(root.allowed, ()), root.bound
    if bound > pruning_threshold(incumbents.cutoff, context.model.score_error):
        node = open_node(context, 0, restriction, root.point, root.multipliers, bound, root.weights)
        if node is not None:
            out.open.append(node)
            return out
        bound, weights = only_structure(context, restriction, root.point, incumbents)
        out.leaf(0, weights)
    out.pruned.append((root.allowed, bound))
    return out


def expand(worker: Worker, task: NodeTask) -> Expansion | None:
    """Choose a decision, and branch a node on it; return None if told to stop, which leaves the node open.

    The best decisions by pseudo-costs that lack observations are probed: both children are bounded as if the node were
    branched on the decision. The children of the probe with the best gains are kept, unless a decision with
    observations promises more. Probes that are discarded leave nothing but their gains.
    """
    node, start = task.node, task.node.start
    model = worker.context.model
    rule = BranchingRule(model.oracle, task.costs, few=worker.context.few)
    allowed = node.restriction().allowed
    candidates = rule.candidates(start.vertices, start.shares, allowed, _TREE.probed_decisions)
    best, best_score, taken = candidates[0], -1.0, None
    gains: list[Gain] = []
    steps = 0

    def attempt(candidate: Candidate) -> BoundedNodes | None:
        nonlocal gains, steps
        out = bound_children(worker, node, candidate.decision, candidate.share, task.numbers)
        if out is not None:
            gains += out.gains
            steps += out.steps
        return out

    for candidate in candidates:
        score = candidate.score
        probe: BoundedNodes | None = None
        wasted = steps - (0 if taken is None else taken.steps)
        if len(candidates) > 1 and not candidate.reliable and wasted < task.probe_budget:
            probe = attempt(candidate)
            if probe is None:
                return None
            score = product_of_gains(probe.gains, node.bound - worker.target)
            if len(probe.open) < 2:
                # No other decision leaves fewer open nodes at the price of what is bounded already.
                best, taken = candidate, probe
                break
        if score > best_score:
            best, best_score, taken = candidate, score, probe
    if taken is None:
        taken = attempt(best)
        if taken is None:
            return None
    return Expansion(taken, gains, steps, steps - taken.steps)
