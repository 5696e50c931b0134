"""The bound of one node: warm-started steps on few samples and parent sets, multipliers, reduced-cost fixing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.records import Inequalities
from milpbn.engine.dual.frank_wolfe import CONVERGED, PAUSED, PRUNED, Goal, take_compiled_steps
from milpbn.engine.dual.inequalities import lower, subproblem_of
from milpbn.engine.dual.pairs import mark_near
from milpbn.engine.dual.point import Model, Point, Subproblem, empty_point, evaluate_compiled, on_pairs
from milpbn.engine.pool import BELOW_ALL
from milpbn.engine.relaxation.oracle import heaviest_structure
from milpbn.engine.relaxation.reduced_costs import bound_parent_sets
from milpbn.engine.root import Root
from milpbn.engine.thresholds import fixing_threshold, pruning_threshold
from milpbn.engine.tuning import TUNING
from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem
from milpbn.util.budget import Budget

_STEPS = TUNING.node_steps
#: Numbers of steps between two checks of the clock; after the last one, samples and parent sets are selected again. The
#: first burst ends where the temperature of the children is known. A call from Python takes a tenth of a millisecond.
BURSTS = (_STEPS.burst,) * _STEPS.bursts
FIRST_BURSTS = (_STEPS.first_burst, _STEPS.first_burst + _STEPS.burst, *BURSTS[1:])
#: Relative rounding error of a number in the matrix of pairs, which is float32.
MATRIX_ROUNDING = float(np.finfo(np.float32).eps)


class Incumbents(Protocol):
    """The holder of the incumbent; see `milpbn.engine.tree.primal.PrimalHeuristic`."""

    @property
    def cutoff(self) -> float:
        """The score that a structure must exceed: the incumbent's, or that of the K-th best if K are wanted."""

    def offer(self, structure: Structure, value: float) -> None:
        """Make a structure the incumbent if it is better."""

    def climb_from_answer(self, point: Point) -> None:
        """Climb from the oracle's last answer at a point; may overwrite the point's direction."""


@dataclass(frozen=True)
class Context:
    """The data and options that all expansions of a search share."""

    #: The whole problem, and the same as the kernels take it.
    problem: Problem
    model: Model
    #: Inequalities that every structure satisfies.
    rows: Inequalities
    #: The rows whose multipliers change in the tree: those with a positive multiplier at the root. Trials in which the
    #: others changed as well were worse. Shape (k,).
    active: NDArray[np.int64]
    #: Fix parent sets by their reduced costs.
    reduce: bool
    #: Keep the dual weights of every bound.
    certify: bool

    @property
    def few(self) -> bool:
        """Whether the number of features is limited."""
        return self.problem.rules.max_features is not None

    @classmethod
    def of(cls, root: Root, *, reduce: bool, certify: bool) -> Context:
        """Return the context of all expansions below a root."""
        # With a limit of features, that of the class's children matters as soon as some of them are decided.
        few = root.problem.rules.max_features is not None
        of_class = root.rows.members[:, -1] & (root.rows.limit >= 0) & few
        active = np.flatnonzero((root.multipliers > 0) | of_class)
        return cls(root.problem, root.model, root.rows, active, reduce, certify)


@dataclass(frozen=True)
class Worker:
    """What expands nodes, in a thread or on another machine: its incumbent, its budget, and memory to work in."""

    context: Context
    #: May improve at any time.
    incumbents: Incumbents
    #: Asked often.
    budget: Budget
    #: Overwritten with each child.
    point: Point = field(init=False)
    #: Memory for the matrix of pairs.
    room: NDArray[np.float32] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", empty_point(self.context.model))
        object.__setattr__(self, "room", np.empty(_STEPS.matrix, dtype=np.float32))

    @property
    def target(self) -> float:
        """The largest bound at which a node is pruned now."""
        return pruning_threshold(self.incumbents.cutoff, self.context.model.score_error)


def tighten(worker: Worker, node: Subproblem, before: float) -> bool:
    """Take steps until they lower the bound of a node only little; return False if told to stop.

    The steps start at the worker's point, whose gradient is that of the parent with the bound `before`, and end there.
    They use few samples and few parent sets: most samples have margins far above gamma and keep them, and most parent
    sets are in no structure near the heaviest one. The first selection follows the parent's dual weights, so it is
    reviewed after a few steps. Whenever the steps end, the bound is computed anew from the whole node.
    """
    model, point = worker.context.model, worker.point
    width = max(_STEPS.width * model.softening.cap, _STEPS.least_width)
    if model.softening.smooth:
        width = _STEPS.likelihood_width
    reach = _STEPS.reach
    state = point.state
    start = float(state.temperature)
    near = np.zeros(point.logits.shape, dtype=np.bool_)
    chosen = np.zeros(len(node.allowed), dtype=np.bool_)
    first, climbed, room = True, False, worker.room
    while True:
        # Earlier selections stay selected, because points move back and forth.
        mark_near(model.tables, model.softening, point.logits, width, near)
        chosen |= _promising(model, node, point, reach * (before - worker.target))
        few, logits = on_pairs(model, near, chosen, point.logits, room)
        state.bound, state.relaxed = np.inf, -np.inf
        start_there = point._replace(logits=logits, direction=np.empty_like(logits))
        status = _take_bursts(
            worker, few, node._replace(allowed=chosen), start_there, before, start if first else None
        )
        if status is None:
            return False
        steps_bound = float(state.bound)
        evaluate_compiled(model, node, point, False)
        bound = float(state.bound)
        if bound <= worker.target or bound == -np.inf:
            return True
        # The steps also missed too much if they pruned the node, but the whole node is not pruned.
        missed = status not in (PAUSED, CONVERGED) or bound - steps_bound > _STEPS.most_missed * max(
            before - steps_bound, _STEPS.least_gain * (before - worker.target)
        )
        ended = state.steps >= _STEPS.most_steps * (2 if missed else 1) or (
            not missed and status == CONVERGED
        )
        if state.found and not climbed and (ended or not first):
            worker.incumbents.climb_from_answer(point)
            climbed = True
        if ended:
            return True
        if status == PRUNED and bound - steps_bound <= MATRIX_ROUNDING * abs(bound):
            room = room[
                :0
            ]  # rounding errors of the matrix may have pruned the node; without room there is none
        if missed and not first:
            width, reach = _STEPS.widening * width, _STEPS.widening * reach
        first = False


def _take_bursts(
    worker: Worker, model: Model, node: Subproblem, point: Point, before: float, start: float | None
) -> int | None:
    """Take bursts of steps on few samples and parent sets; return why the last one ended, or None if told to stop.

    `start` is the temperature at which the first bursts of a node begin; None for later ones.
    """
    state = point.state
    for burst, n_steps in enumerate(BURSTS if start is None else FIRST_BURSTS):
        goal = Goal(worker.target, _STEPS.accuracy, before)
        status: int = take_compiled_steps(model, node, point, goal, n_steps, True, False)
        if worker.budget.over():
            return None
        if start is not None and burst == 0:
            warmest = TUNING.temperature.first * model.softening.cap
            state.child_temperature = min(start * _warmer(float(state.moved)), warmest)
        if status != PAUSED:
            break
    return status


def _warmer(moved: float) -> float:
    """Return the factor from a node's first temperature to that of its children, given how far its second step went.

    When branching removes vertices from a cold point, most of its dual weights change at once, and Newton steps fail.
    Each data set has its own temperature at which Newton steps go most of their way. After a pairwise step the factor
    is 0: children then start at the last temperature of the parent.
    """
    if moved == 0.0:
        return 0.0
    tuned = TUNING.temperature
    if moved < tuned.poor_step:
        return tuned.warmer_start
    return tuned.colder_start if moved > tuned.full_step else 1.0


def _set_bounds(model: Model, node: Subproblem, point: Point, threshold: float) -> NDArray[np.float64]:
    """Return the result of `bound_parent_sets` for a point's gradient, shape (P,)."""
    return bound_parent_sets(
        model.oracle, point.gradient, node.allowed, node.forced, node.n_forced, threshold
    )


def _promising(model: Model, node: Subproblem, point: Point, reach: float) -> NDArray[np.bool_]:
    """Return the parent sets that can be in a structure at most `reach` from the heaviest, bool array, shape (P,)."""
    choice = np.empty(point.vertices.shape[1], dtype=np.int64)
    heaviest, _, _ = heaviest_structure(
        model.oracle, point.gradient, node.allowed, node.forced, node.n_forced, choice
    )
    # The largest of the bounds would not do instead of `heaviest`: bounds of class sets can be far too high.
    near = node.allowed & (_set_bounds(model, node, point, heaviest - reach) >= heaviest - reach)
    n = int(point.state.vertices)
    near[point.vertices[:n].ravel()] = True
    inside: NDArray[np.bool_] = near & node.allowed
    return inside


def fixable(model: Model, node: Subproblem, point: Point, incumbent: float) -> NDArray[np.int64]:
    """Return the parent sets that no structure of a node better than the incumbent contains: reduced-cost fixing."""
    threshold = fixing_threshold(incumbent, model.score_error) - float(point.state.constant)
    bounds = _set_bounds(model, node, point, threshold)
    return np.flatnonzero(node.allowed & (bounds < threshold))


def lower_multipliers(
    worker: Worker,
    node: Subproblem,
    weights: NDArray[np.float64],
    multipliers: NDArray[np.float64],
    bound: float,
) -> tuple[Subproblem, NDArray[np.float64]]:
    """Change the multipliers of a node one at a time, each to the value that minimises the bound; return both.

    The gradient `weights`, shape (P,), includes the terms of the multipliers, shape (R,), and is updated with them.
    `bound` is the bound there, or a larger number. Node and multipliers are the arguments themselves if nothing
    changed.
    """
    context = worker.context
    model, rows, active = context.model, context.rows, context.active
    # No bound prunes a node yet: the multipliers of a node without structures would grow without limit.
    endless = worker.target <= pruning_threshold(BELOW_ALL, model.score_error)
    if endless or not len(active):
        return node, multipliers
    tuned = TUNING.multipliers
    better = multipliers.copy()
    choice = np.empty(len(model.oracle.offsets) - 1, dtype=np.int64)
    space = node.allowed, node.forced, node.n_forced
    for _ in range(tuned.sweeps):
        fallen = 0.0
        for first in range(0, len(active), tuned.rows_at_a_time):
            some = active[first : first + tuned.rows_at_a_time]
            target = worker.target
            if bound > target and not worker.budget.over():
                by = lower(model.oracle, rows, weights, *space, better, some, bound - target, choice)
                fallen, bound = fallen + by, bound - by
        if fallen <= tuned.least_fall * max(1.0, abs(bound)):
            break
    if (better == multipliers).all():
        return node, multipliers
    return subproblem_of(model, rows, better, *space), better
