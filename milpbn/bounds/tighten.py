"""The bound of one part of the search space: warm-started steps on few samples and entries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.frank_wolfe import CONVERGED, FIRST_TEMPERATURE, PAUSED, may_be_left, take_compiled_steps
from milpbn.bounds.oracle import heaviest_structure
from milpbn.bounds.point import (
    BEST_VERTICES,
    BOUND,
    CONSTANT,
    FOUND,
    HALVES,
    MOVED,
    RELAXED,
    STEPS,
    TEMPERATURE,
    VERTICES,
    Model,
    Node,
    Point,
    evaluate,
    near_the_cap,
    on_samples,
)
from milpbn.bounds.prices import price_entries
from milpbn.bounds.reduction import deletion_threshold

#: Steps between two looks at the clock, all of them between two choices of samples and entries, and the most that a
#: part gets.
BURSTS, MOST_STEPS = (8,) * 8, 192
#: The first steps are to say which samples and entries count, unless there is less than FAR times what may be left.
FIRST_BURSTS, FAR = (2, 2, *BURSTS), 5.0
#: The halves of a part start at a temperature higher or lower than its own start by these factors, if the second step
#: there went less than POOR or more than FULL of its way.
HOTTER, COOLER, POOR, FULL = 1.5, 0.5, 0.4, 0.9
#: The steps end when this share of the bound's distance to the incumbent could still be gained by more of them.
SHARE = 0.01
#: Entries are left out of some steps if the best structure that has one is worse by this share of the distance
#: to the incumbent.
ENTRIES = 0.05
#: More steps follow if what they left out lost this share of what they gained, where that is this share of the
#: distance to the incumbent at least. Where that happens again, they leave out less: samples so many times as far from
#: gamma, and entries.
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
    entries are far from being in a heaviest structure. What they lead to is evaluated on the whole part: after a few
    steps, as samples and entries were chosen by what the part that was split knew, and whenever the steps end.

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
    numbers, counts = point.numbers, point.counts
    start = float(numbers[TEMPERATURE])
    samples = np.zeros(len(point.logits), dtype=np.bool_)
    entries = np.zeros(len(node.allowed), dtype=np.bool_)
    first, told = True, False
    while True:
        # What counted before stays: points go back and forth.
        samples |= near_the_cap(model, point.logits, width)
        entries |= _promising(model, node, point, reach * (before - target()))
        small, promising = on_samples(model, samples), node._replace(allowed=entries)
        logits = point.logits[samples]
        few = point._replace(logits=logits, direction=np.empty_like(logits))
        numbers[BOUND], numbers[RELAXED] = np.inf, -np.inf
        for burst, n_steps in enumerate(FIRST_BURSTS if first else BURSTS):
            status = take_compiled_steps(small, promising, few, target(), SHARE, before, n_steps, True, False)
            if stopping():
                return False
            if first and burst == 0:
                warmest = FIRST_TEMPERATURE * model.softening.cap
                numbers[HALVES] = min(start * _warmer(float(numbers[MOVED])), warmest)
            if status != PAUSED:
                break
            left = may_be_left(numbers, target(), SHARE, before)
            far = numbers[BOUND] - numbers[RELAXED] > FAR * left
            # A few pairwise steps say nothing.
            if first and burst == 1 and far and numbers[MOVED] > 0.0:
                # On from where the last step went, not back to the best bound so far.
                counts[BEST_VERTICES] = 0
                break
        guess = float(numbers[BOUND])
        evaluate(model, node, point, False)
        bound = float(numbers[BOUND])
        if bound <= target() or bound == -np.inf:
            return True
        # Few samples and entries that prune what all of them do not have left out too much as well.
        missed = status not in (PAUSED, CONVERGED) or bound - guess > MISSED * max(
            before - guess, LEAST * (before - target())
        )
        ended = counts[STEPS] >= MOST_STEPS * (2 if missed else 1) or (not missed and status == CONVERGED)
        if counts[FOUND] and not told and (ended or not first):
            found(point)
            told = True
        if ended:
            return True
        if missed and not first:
            width, reach = WIDER * width, WIDER * reach
        first = False


def _warmer(moved: float) -> float:
    """Return the factor of the temperature at which the halves of a part start, given how far its second step went.

    Most weights of a cold point change at once where a split takes vertices from it, and Newton steps go nowhere; each
    data set has its own temperature at which they go most of their way. Pairwise steps start where others ended.
    """
    if moved == 0.0:
        return 0.0
    return HOTTER if moved < POOR else COOLER if moved > FULL else 1.0


def _prices(model: Model, node: Node, point: Point, threshold: float) -> NDArray[np.float64]:
    """Return what `price_entries` says of a point's gradient, shape (P,)."""
    return price_entries(model.oracle, point.gradient, node.allowed, node.forced, node.n_forced, threshold)


def _promising(model: Model, node: Node, point: Point, reach: float) -> NDArray[np.bool_]:
    """Return the entries that can be in a structure at most `reach` from the heaviest, bool array, shape (P,)."""
    choice = np.empty(point.vertices.shape[1], dtype=np.int64)
    heaviest, _, _ = heaviest_structure(
        model.oracle, point.gradient, node.allowed, node.forced, node.n_forced, choice
    )
    # Not the largest price: that of a parent set of the class can be far above what its structures weigh.
    near = node.allowed & (_prices(model, node, point, heaviest - reach) >= heaviest - reach)
    n = int(point.counts[VERTICES])
    near[point.vertices[:n].ravel()] = True
    inside: NDArray[np.bool_] = near & node.allowed
    return inside


def deletable(model: Model, node: Node, point: Point, incumbent: float) -> NDArray[np.int64]:
    """Return the entries that no better structure of a part has."""
    threshold = deletion_threshold(incumbent) - float(point.numbers[CONSTANT])
    prices = _prices(model, node, point, threshold)
    return np.flatnonzero(node.allowed & (prices < threshold))
