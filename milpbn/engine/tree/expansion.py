"""The expansion of a node: probe its best decisions that lack observations, and branch on the best decision.

An expansion changes nothing that threads share. It returns an `Expansion`, which the search processes under its lock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from milpbn.engine.dual.point import Point
from milpbn.engine.root import Root
from milpbn.engine.thresholds import pruning_threshold
from milpbn.engine.tree.branching_rule import BranchingRule, Candidate, Fall, score_of_falls
from milpbn.engine.tree.children import (
    BoundedNodes,
    Context,
    Incumbents,
    bound_children,
    only_structure,
    open_node,
)
from milpbn.engine.tree.node import Node, Restriction
from milpbn.engine.tuning import TUNING

_TREE = TUNING.tree


@dataclass
class Expansion:
    """The results of an expansion.

    Attributes
    ----------
    nodes : BoundedNodes
        The children, and what proves their bounds.
    falls : list of Fall
        Observations for the branching rule: those of the children, and those of the probes that were discarded.
    steps : int
        Steps for the children and for all probes.
    discarded : int
        Steps of the probes whose children were discarded.
    """

    nodes: BoundedNodes
    falls: list[Fall] = field(default_factory=list)
    steps: int = 0
    discarded: int = 0


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


def expand(
    context: Context,
    node: Node,
    numbers: tuple[int, int],
    point: Point,
    rule: BranchingRule,
    incumbents: Incumbents,
    stopping: Callable[[], bool],
    budget: float,
) -> Expansion | None:
    """Choose a decision, and branch a node on it.

    The best decisions by pseudo-costs that lack observations are probed: both children are bounded as if the node were
    branched on the decision. The children of the probe with the best falls are kept, unless a decision with
    observations promises more. Probes that are discarded leave nothing but their falls.

    Parameters
    ----------
    context : Context
        The data and options of the search.
    node : Node
        The node; it is not changed.
    numbers : pair of int
        Numbers of the child in which the decision holds, and of the other child.
    point : Point
        Working memory; overwritten.
    rule : BranchingRule
        Ranks the decisions.
    incumbents : Incumbents
        The holder of the incumbent, which may improve at any time.
    stopping : callable
        Asked often whether to stop.
    budget : float
        A probe begins only if the probes that will be discarded have taken fewer steps than this so far.

    Returns
    -------
    Expansion or None
        None if told to stop; the node is then still open.
    """

    def attempt(candidate: Candidate) -> BoundedNodes | None:
        return bound_children(
            context, node, candidate.decision, candidate.share, numbers, point, incumbents, stopping
        )

    allowed = node.restriction(len(context.model.linear)).allowed
    start = node.start
    candidates = rule.candidates(start.vertices, start.shares, allowed, _TREE.probed_decisions)
    best, best_score, taken = candidates[0], -1.0, None
    falls: list[Fall] = []
    steps = 0
    for candidate in candidates:
        score = candidate.score
        probe: BoundedNodes | None = None
        wasted = steps - (0 if taken is None else taken.steps)
        if len(candidates) > 1 and not candidate.reliable and wasted < budget:
            probe = attempt(candidate)
            if probe is None:
                return None
            falls += probe.falls
            steps += probe.steps
            target = pruning_threshold(incumbents.cutoff, context.model.score_error)
            score = score_of_falls(probe.falls, node.bound - target)
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
        falls += taken.falls
        steps += taken.steps
    return Expansion(taken, falls, steps, steps - taken.steps)
