"""The children of a node by one branching decision: both are bounded, and pruned if possible.

Nothing that threads share is changed. Only a better structure is reported at once, because it prunes nodes in all
threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.records import Decision, DualWeights
from milpbn.engine.dual.inequalities import subproblem_of
from milpbn.engine.dual.point import Point, Subproblem, evaluate_compiled, place, score_of
from milpbn.engine.thresholds import fixing_threshold, pruning_threshold
from milpbn.engine.tree.bounding import Context, Incumbents, Worker, fixable, lower_multipliers, tighten
from milpbn.engine.tree.branching_rule import Gain
from milpbn.engine.tree.node import DualPoint, Node, Restriction
from milpbn.network.structure import topological_order
from milpbn.problem.duals import HARD


@dataclass
class BoundedNodes:
    """Nodes after their steps, open or pruned, with the proof of their bounds: both children of a node, or one node."""

    #: The branching decision; None for the root itself, and for a node that a better incumbent prunes.
    decision: Decision | None = None
    #: Numbers of the child in which the decision holds, and of the other child; 0 without a decision.
    numbers: tuple[int, int] = (0, 0)
    open: list[Node] = field(default_factory=list)
    #: Allowed parent sets, shape (P,), and bound of each pruned node.
    pruned: list[tuple[NDArray[np.bool_], float]] = field(default_factory=list)
    #: The gains in the children; infinite where a child has no structure.
    gains: list[Gain] = field(default_factory=list)
    #: For the proof: node, dual weights, and the parent sets that they fix to 0.
    fixings: list[tuple[int, DualWeights, NDArray[np.int64]]] = field(default_factory=list)
    #: For the proof: node, and the dual weights that bound it.
    leaves: list[tuple[int, DualWeights]] = field(default_factory=list)
    #: Steps taken to bound the children.
    steps: int = 0

    def prune(self, number: int, restriction: Restriction, bound: float, weights: DualWeights | None) -> None:
        """Add a pruned node with its bound."""
        self.leaf(number, weights)
        self.pruned.append((restriction.allowed, bound))

    def leaf(self, number: int, weights: DualWeights | None) -> None:
        """Add the dual weights that prove the bound of a node; None if no proof is wanted."""
        if weights is not None:
            self.leaves.append((number, weights))


def bound_children(
    worker: Worker, node: Node, decision: Decision, share: float, numbers: tuple[int, int]
) -> BoundedNodes | None:
    """Branch a node, which is not changed, on a decision, and bound both children; return None if told to stop.

    The decision holds for a `share` of the node's point. The `numbers` are those of the child in which it holds, and of
    the other.
    """
    out = BoundedNodes(decision, numbers)
    parent = node.restriction()
    for number, holds in zip(numbers, (True, False), strict=True):
        child = parent.child(worker.context.model.oracle, decision, holds)
        gain = _bound_child(worker, node, number, child, out)
        if gain is None:
            return None
        out.gains.append(Gain(decision, holds, share, gain))
    return out


def _bound_child(
    worker: Worker, node: Node, number: int, child: Restriction, out: BoundedNodes
) -> float | None:
    """Bound one child of a node and add it to `out`; return its gain, infinite if it has no structure, None if stopped.

    Reduced-cost fixing removes parent sets from `child`.
    """
    context, point = worker.context, worker.point
    model = context.model
    rules, candidates = context.problem.rules, context.problem.candidates
    several = rules.max_children or rules.no_ancestors or rules.independences
    if rules.max_features is not None:
        child = child._replace(allowed=candidates.without_more_features(child.allowed, rules.max_features))
    if several and rules.broken_by(candidates.certain_parents(child.allowed)):
        # No structure. Without this, a list that is not full yet would need every choice of parent sets as a node.
        out.leaf(number, node.weights)
        return np.inf
    start = node.start
    point.gradient[:] = start.gradient
    subproblem = _subproblem(context, child, start.multipliers)
    subproblem, multipliers = lower_multipliers(
        worker, subproblem, point.gradient, start.multipliers, node.bound
    )
    if not place(
        model, subproblem, point, start.vertices.astype(np.int64), start.shares, start.temperature, False
    ):
        # The child has no structure; any dual weights prove that.
        out.leaf(number, node.weights)
        return np.inf
    if not tighten(worker, subproblem, node.bound):
        return None
    bound = float(point.state.bound)
    if bound > worker.target:
        before = subproblem
        subproblem, multipliers = lower_multipliers(
            worker, subproblem, point.gradient.copy(), multipliers, bound
        )
        if subproblem is not before:
            evaluate_compiled(model, subproblem, point, False)
            bound = float(point.state.bound)
    gain = node.bound - bound
    out.steps += int(point.state.steps)
    child_weights = weights = _weights(context, point, multipliers)
    if bound > node.bound:
        bound, weights = node.bound, node.weights
    # The cutoff is read once: with a later, higher one, fixing could leave a variable without parent sets.
    cutoff = worker.incumbents.cutoff
    if context.reduce and bound >= fixing_threshold(cutoff, model.score_error):
        # This applies to pruned nodes as well: their remaining parent sets tell which arcs all optima share.
        gone = fixable(model, subproblem, point, cutoff)
        if len(gone):
            child.allowed[gone] = False
            if child_weights is not None:
                out.fixings.append((number, child_weights, gone))
    if bound > pruning_threshold(cutoff, model.score_error):
        opened = open_node(context, number, child, point, multipliers, bound, weights)
        if opened is not None:
            out.leaf(number, weights)
            out.open.append(opened)
            return gain
        bound, weights = only_structure(context, child, point, worker.incumbents)
    out.prune(number, child, bound, weights)
    return gain


def open_node(
    context: Context,
    number: int,
    restriction: Restriction,
    point: Point,
    multipliers: NDArray[np.float64],
    bound: float,
    weights: DualWeights | None,
) -> Node | None:
    """Return an open node, or None if at most one choice of parent sets is allowed.

    The node's steps ended at the point. The multipliers have shape (R,); the dual weights prove the bound.
    """
    left = np.add.reduceat(restriction.allowed, context.model.oracle.offsets[:-1], dtype=np.int64)
    if left.max() <= 1:
        return None
    n = int(point.state.vertices)
    vertices, shares = point.vertices[:n], point.shares[:n]
    inside = restriction.allowed[vertices].all(axis=1)
    if inside.any():
        vertices, shares = vertices[inside], shares[inside] / shares[inside].sum()
    start = DualPoint(
        vertices.astype(np.int32),
        shares.copy(),
        point.gradient.astype(np.float32),
        float(max(point.state.child_temperature, point.state.temperature)),
        multipliers,
    )
    return Node.packed(number, bound, restriction, start, weights)


def only_structure(
    context: Context, restriction: Restriction, point: Point, incumbents: Incumbents
) -> tuple[float, DualWeights | None]:
    """Offer the only structure of a node; return the bound on its score, and dual weights that prove a similar one.

    The bound is the score with its rounding errors, or that of the dual weights if it is smaller. It is -inf if the
    only choice of parent sets is not a structure that obeys the constraints.
    """
    model, problem = context.model, context.problem
    none = np.zeros(len(context.rows.limit))
    choice = np.flatnonzero(restriction.allowed)
    if topological_order([problem.candidates.flat[p] for p in choice]) is None:
        return -np.inf, _weights(context, point, none)
    structure = problem.candidates.structure(choice)
    if not problem.obeys(structure):
        return -np.inf, _weights(context, point, none)
    value = score_of(model, choice, point.direction, False)
    incumbents.offer(structure, value)
    point.vertices[0] = choice
    point.shares[0] = 1.0
    point.state.vertices, point.state.best_vertices = 1, 0
    if not model.softening.smooth:
        point.state.best_temperature = HARD
    evaluate_compiled(model, _subproblem(context, restriction, none), point, False)
    # The verifier bounds a single structure by its score from the data. Four errors cover the difference from `value`.
    bound = min(float(point.state.bound), value + 4 * model.score_error)
    return bound, _weights(context, point, none)


def _subproblem(context: Context, restriction: Restriction, multipliers: NDArray[np.float64]) -> Subproblem:
    """Return a node as the steps take it, with the multipliers."""
    forced = restriction.forced(context.model.oracle.n)
    n_forced = len(restriction.edges)
    return subproblem_of(context.model, context.rows, multipliers, restriction.allowed, forced, n_forced)


def _weights(context: Context, point: Point, multipliers: NDArray[np.float64]) -> DualWeights | None:
    """Return the dual weights that prove the bound of an evaluated point; None if no proof is wanted."""
    if not context.certify:
        return None
    n = int(point.state.vertices)
    temperature = float(point.state.best_temperature)
    return DualWeights.of(point.vertices[:n], point.shares[:n], temperature, multipliers)
