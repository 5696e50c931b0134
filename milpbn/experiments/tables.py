"""Tables 1 to 3 of Peharz & Pernkopf (2012) from the cells of a run, beside the published numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from milpbn.experiments.base import Figures
from milpbn.experiments.cells import KeptCells
from milpbn.experiments.published import published
from milpbn.experiments.runner import Facts, Plan, facts, names_of_parts, task_of
from milpbn.experiments.statistics import LEVELS, half_width, outperforms

#: Methods with a bound, which Table 1 shows.
BOUNDED = ("sm", "sbm")
#: Decimals of the published percentages; comparisons with them are made after rounding to as many.
DECIMALS = 2


@dataclass(frozen=True, eq=False)
class Entry:
    """What one method found on all parts of one data set."""

    #: The contents of the cells, in the order of the parts.
    found: tuple[Mapping[str, Any], ...]
    #: Seconds that the searches of the parts had; empty for methods without a search.
    budgets: tuple[float, ...] = ()

    @cached_property
    def figures(self) -> tuple[Figures, ...]:
        """The figures of the parts."""
        return tuple(Figures.from_dict(found["figures"]) for found in self.found)

    @property
    def accuracy(self) -> float:
        """Mean accuracy of the parts, in percent."""
        return 100 * float(np.mean([f.accuracy for f in self.figures]))

    @property
    def half_width(self) -> float:
        """Half the width of its 95 % interval, in percent."""
        return 100 * half_width([f.accuracy for f in self.figures], len(self.figures[0].correct))

    @property
    def log_loss(self) -> float:
        """Mean log-loss of the parts, in nats."""
        return float(np.mean([f.log_loss for f in self.figures]))

    @property
    def brier(self) -> float:
        """Mean Brier score of the parts."""
        return float(np.mean([f.brier for f in self.figures]))

    @property
    def gaps(self) -> list[float]:
        """Gaps relative to the bound of the parts whose search has a bound, in percent; empty for other methods."""
        gaps = [found["search"]["gap"]["relative_to_bound"] for found in self.found if "search" in found]
        return [100 * gap for gap in gaps if gap is not None]

    @property
    def worst_gap(self) -> float | None:
        """The largest of the gaps; None if a part has no gap."""
        return max(self.gaps) if len(self.gaps) == len(self.found) else None

    def count(self, claim: str) -> int:
        """Return on how many parts the search says so: ``certified``, ``verified``, or ``optimal`` for a proof."""
        searches = [found["search"] for found in self.found if "search" in found]
        if claim == "optimal":
            return sum(search["reason"] == "optimal" for search in searches)
        return sum(bool(search[claim]) for search in searches)

    def chosen(self, key: str) -> str:
        """Return the values that were chosen on the parts, with their number if they differ."""
        values = Counter(found.get("choice", {}).get(key) for found in self.found)
        if len(values) == 1:
            return f"{next(iter(values)):g}"
        return ", ".join(f"{value:g} ({n})" for value, n in sorted(values.items()))


@dataclass(frozen=True)
class Collected:
    """All entries of a run that are complete, by data set and method."""

    plan: Plan
    facts: Mapping[str, Facts]
    entries: Mapping[tuple[str, str], Entry]

    def entry(self, data: str, method: str) -> Entry | None:
        """Return an entry; None while a part is missing."""
        return self.entries.get((data, method))


def collect(plan: Plan, store: KeptCells) -> Collected:
    """Read all cells of a plan; of a search with several budgets the one with the most time (`Entry.budgets`)."""
    entries = {}
    known = {data: facts(data, plan.data_dir) for data in plan.data}
    for data in plan.data:
        for method in plan.methods:
            cells = [task_of(plan, data, part, method).cell for part in names_of_parts(plan, data)]
            kept = [k for cell in cells if (k := store.read(cell, any_budget=True)) and k.failure is None]
            if len(kept) == len(cells):
                budgets = tuple(k.budget for k in kept if k.budget is not None)
                entries[data, method] = Entry(tuple(k.found for k in kept), budgets)
    return Collected(plan, known, entries)


@dataclass(frozen=True)
class GapRow:
    """A row of Table 1, with the published gap in percent, or None."""

    data: str
    method: str
    entry: Entry
    published: float | None

    @property
    def holds(self) -> bool | None:
        """Whether the gap is at most the published one; None without one of the two."""
        gap = self.entry.worst_gap
        if gap is None or self.published is None:
            return None
        return round(gap, DECIMALS) <= self.published


def gaps(collected: Collected) -> list[GapRow]:
    """Return the rows of Table 1: the largest gap over the parts, at the values that validation chose."""
    return [
        GapRow(data, method, entry, published().gap(data, method))
        for data in collected.plan.data
        for method in BOUNDED
        if method in collected.plan.methods and (entry := collected.entry(data, method)) is not None
    ]


@dataclass(frozen=True)
class Verdict:
    """An accuracy beside the published one (`percent`) and its interval, all in percent."""

    data: str
    method: str
    accuracy: float
    lower: float
    percent: float
    upper: float

    @property
    def holds(self) -> bool:
        """Whether the accuracy is within the published interval or above it."""
        return round(self.accuracy, DECIMALS) >= round(self.lower, DECIMALS)

    @property
    def above(self) -> bool:
        """Whether the accuracy is above the published interval."""
        return round(self.accuracy, DECIMALS) > round(self.upper, DECIMALS)


def verdicts(collected: Collected, method: str) -> list[Verdict]:
    """Return the accuracies of a method beside the published ones, for the data sets that have both."""
    return [
        Verdict(data, method, entry.accuracy, paper.lower, paper.percent, paper.upper)
        for data in collected.plan.data
        if (entry := collected.entry(data, method)) is not None
        and (paper := published().accuracy(data, method)) is not None
    ]


def wins(collected: Collected, row: str, column: str) -> tuple[int, int, int]:
    """Return on how many data sets one method outperforms another at 68 % and at 95 %, and how many have both."""
    pairs = [
        (ours, theirs)
        for data in collected.plan.data
        if (ours := collected.entry(data, row)) is not None
        and (theirs := collected.entry(data, column)) is not None
    ]
    low, high = (
        sum(outperforms(_correct(ours), _correct(theirs), level) for ours, theirs in pairs)
        for level in LEVELS
    )
    return low, high, len(pairs)


def _correct(entry: Entry) -> Sequence[np.ndarray]:
    return [f.correct for f in entry.figures]
