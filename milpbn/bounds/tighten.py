"""The bound of one part of the search space: warm-started steps on few samples and entries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.frank_wolfe import CONVERGED, INFEASIBLE, PAUSED, PRUNED, take_compiled_steps
from milpbn.bounds.oracle import heaviest_structure
from milpbn.bounds.point import (
    BOUND,
    CONSTANT,
    FOUND,
    RELAXED,
    STEPS,
    VERTICES,
    Model,
    Node,
    Point,
    evaluate,
    near_the_cap,
)
from milpbn.bounds.prices import price_entries
from milpbn.bounds.reduction import deletion_threshold

#: Steps between two looks at the clock, between two choices of samples, and the most that a part gets.
BURST, SAMPLED_STEPS, MOST_STEPS = 8, 64, 192
#: The steps end when this share of the bound's distance to the incumbent could still be gained by more of them.
SHARE = 0.01
#: Entries are left out of some steps if the best structure that has one is worse by this share of the distance
#: to the incumbent.
ENTRIES = 0.05
#: More steps follow if what they left out lost this share of what they gained, where that is this share of the
#: distance to the incumbent at least. Then they leave out less: samples so many times as far from gamma, and entries.
MISSED, LEAST, WIDER = 0.1, 1e-4, 4.0
#: Samples whose margin exceeds gamma by this share of it are left out of some steps.
WIDTH = 0.4
#: Under the conditional log-likelihood, samples whose log-margin exceeds this: they lose 0.2 % of a nat at most.
LIKELY = 6.0


def tighten(
    model: Model,
    node: Node,
    point: Point,
    before: float,
    target: Callable[[], float],
    *,
    stopping: Callable[[], bool],
    found: Callable[[Point], None],
) -> bool:
    """Take steps until the bound is about as low as it gets; return False if told to stop.

    The steps look at few samples and few entries: most samples are far beyond gamma and stay there, and most
    entries are far from being in a heaviest structure. What they lead to is evaluated on the whole part.

    Parameters
    ----------
    model : Model
        The whole problem.
    node : Node
        The part.
    point : Point
        Where the steps begin and end; its gradient holds weights of the part that was split.
    before : float
        The bound of the part that was split.
    target : callable
        A bound of at most its answer is small enough.
    stopping : callable
        Asked between bursts of steps.
    found : callable
        Told once, when `point.found` may hold a good structure; it may overwrite the point's direction.
    """
    width = LIKELY if model.softening.smooth else WIDTH * model.softening.cap
    reach = ENTRIES
    while True:
        small, logits = near_the_cap(model, point.logits, width)
        few = point._replace(logits=logits, direction=np.empty_like(logits))
        promising = _promising(model, node, point, reach * (before - target()))
        few.numbers[BOUND] = np.inf
        few.numbers[RELAXED] = -np.inf
        begun = int(few.counts[STEPS])
        status = PAUSED
        while status == PAUSED and few.counts[STEPS] < begun + SAMPLED_STEPS:
            status = take_compiled_steps(small, promising, few, target(), SHARE, before, BURST, True, False)
            if stopping():
                return False
        if status == INFEASIBLE:
            status = PRUNED
        guess = float(few.numbers[BOUND])
        evaluate(model, node, point, False)
        bound = float(point.numbers[BOUND])
        if bound <= target() or bound == -np.inf:
            return True
        if point.counts[FOUND] and begun == 0:
            found(point)
        missed = bound - guess > MISSED * max(before - guess, LEAST * (before - target()))
        if point.counts[STEPS] >= MOST_STEPS * (2 if missed else 1):
            return True
        if missed:
            width, reach = WIDER * width, WIDER * reach
        elif status == CONVERGED:
            return True


def _prices(model: Model, node: Node, point: Point, threshold: float) -> NDArray[np.float64]:
    """Return what `price_entries` says of a point's gradient, shape (P,)."""
    return price_entries(model.oracle, point.gradient, node.allowed, node.forced, node.n_forced, threshold)


def _promising(model: Model, node: Node, point: Point, reach: float) -> Node:
    """Return a node with the entries only that can be in a structure at most `reach` from the heaviest."""
    choice = np.empty(point.vertices.shape[1], dtype=np.int64)
    heaviest, _, _ = heaviest_structure(
        model.oracle, point.gradient, node.allowed, node.forced, node.n_forced, choice
    )
    # Not the largest price: that of a parent set of the class can be far above what its structures weigh.
    near = node.allowed & (_prices(model, node, point, heaviest - reach) >= heaviest - reach)
    n = int(point.counts[VERTICES])
    near[point.vertices[:n].ravel()] = True
    return node._replace(allowed=near & node.allowed)


def deletable(model: Model, node: Node, point: Point, incumbent: float) -> NDArray[np.int64]:
    """Return the entries that no better structure of a part has."""
    threshold = deletion_threshold(incumbent) - float(point.numbers[CONSTANT])
    prices = _prices(model, node, point, threshold)
    return np.flatnonzero(node.allowed & (prices < threshold))
