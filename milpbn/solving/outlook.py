"""When a running search will reach a gap: bounds of branch and bound fall about evenly with the time's logarithm.

Of 218 forecasts of 1 to 6 doublings of the time, made from the beginnings of recorded runs (`benchmarks/outlook.py`),
99 % had the time that it took in their range; 339 others were refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from milpbn.claims.result import TracePoint

#: Seconds before which no forecast is made: the first ones go to the root bound.
FIRST = 4.0
#: How many doublings of the time a forecast looks back, and at most ahead.
BACK, AHEAD = 4, 10.0
#: A forecast is refused if the bound fell this many times as far in one of these doublings as in another.
UNEVEN = 2.0
#: Workers of a cluster for which the time is said, too, if it is at least so many seconds here, and their least
#: efficiency (`benchmarks/many_machines.py` simulates 1 on segment and letter).
WORKERS, LONG, EFFICIENCY = 64, 600.0, 0.8
#: Share by which the doublings ahead are made fewer and more, and doublings to subtract and to add, for the range.
SHARE, DOUBLINGS = 0.1, 0.3


class Outlook(NamedTuple):
    """A forecast of the time at which a search reaches a gap, in seconds from its beginning."""

    #: The gap, relative to the bound.
    gap: float
    #: The time, if the bound goes on to fall as it did on average.
    seconds: float
    #: A range, from the doublings in which it fell most and least, a little wider.
    least: float
    most: float
    #: How far the bound falls in a doubling of the time, in nats.
    fall: float

    def describe(self, now: float, threads: int | None = None) -> str:
        """Return the time that is left after `now` seconds, in words; with the threads, also on `WORKERS` workers.

        The search must be one that can go on there from its checkpoint.
        """
        return f"{self.when(now, threads)}, if the bound goes on to fall as it does"

    def when(self, now: float, threads: int | None = None) -> str:
        """Return what `describe` does, without its condition."""
        left, least, most = (max(0.0, x - now) for x in (self.seconds, self.least, self.most))
        words = f"about {show_time(left)} more ({show_time(least)} to {show_time(most)})"
        if threads is not None and threads < WORKERS and left >= LONG:
            there, first, last = (show_time(x * threads / WORKERS) for x in (left, least, most / EFFICIENCY))
            words += f" on this machine, {there} ({first} to {last}) on {WORKERS} workers,"
        return f"{words} to a gap of {100 * self.gap:.3g} %"


def forecast(trace: Sequence[TracePoint], seconds: float, gap: float | None = None) -> Outlook | None:
    """Return when the gap will be reached; None if the bound falls too unevenly, or would take too long, to say so.

    The trace is that of the search so far, which has taken so many `seconds`. The gap is relative to the bound; by
    default it is the next smaller one of 10, 5, 2, 1, .5, ... %.
    """
    points = [(at, bound) for at, _, bound in trace if bound is not None]
    found = [objective for _, objective, _ in trace if objective is not None]
    if not points or not found or found[-1] <= 0:
        return None
    times, bounds = np.array(points).T
    bounds = np.minimum.accumulate(bounds)
    now = 1 - found[-1] / bounds[-1]
    wanted = next_gap(now) if gap is None or gap <= 0 else gap
    first = seconds / 2**BACK
    if seconds < FIRST or wanted >= now or first < times[0]:
        return None
    at = seconds / 2.0 ** np.arange(BACK, -1, -1)
    falls = -np.diff(bounds[np.searchsorted(times, at, side="right") - 1])
    if falls.min() <= 0 or falls.max() > UNEVEN * falls.min():
        return None
    left = bounds[-1] - found[-1] / (1 - wanted)
    ahead, fewest, most = left / falls.mean(), left / falls.max(), left / falls.min()
    if most > AHEAD:
        return None
    fewest, most = max(0.0, (1 - SHARE) * fewest - DOUBLINGS), (1 + SHARE) * most + DOUBLINGS
    at_least, at_most = (float(seconds * 2**x) for x in (fewest, most))
    return Outlook(wanted, float(seconds * 2**ahead), at_least, at_most, float(falls.mean()))


def next_gap(gap: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is less than a gap, and not nearly as large."""
    power = math.floor(math.log10(gap)) if gap > 0 else 0
    sizes = [size * 10.0**exponent for exponent in (power, power - 1) for size in (5, 2, 1)]
    return next(size for size in sizes if size < 0.8 * gap) if gap > 0 else 0.0


def show_time(seconds: float) -> str:
    """Return a time in words, in the largest unit of which it has at least two."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.0f} s"
