"""The numbers that Peharz & Pernkopf (2012) published, from ``published.json``, which names the source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: The file, beside this module.
FILE = Path(__file__).with_name("published.json")


@dataclass(frozen=True)
class Accuracy:
    """A published mean accuracy, and half the width of its 95 % interval, in percent."""

    percent: float
    half_width: float

    @property
    def lower(self) -> float:
        """Lower end of the interval."""
        return self.percent - self.half_width

    @property
    def upper(self) -> float:
        """Upper end of the interval."""
        return self.percent + self.half_width


@dataclass(frozen=True)
class Published:
    """Tables 1 to 3 of Peharz & Pernkopf (2012)."""

    source: str
    #: Table 1, by data set and method: gaps relative to the bound, in percent; infinity where only the empty graph was
    #: found. A data set that is absent was solved to optimality, with the gap 0 (see `gap`).
    gaps: Mapping[str, Mapping[str, float]]
    #: Table 2, by data set and method; None where there was no result.
    accuracies: Mapping[str, Mapping[str, Accuracy | None]]
    #: Table 3, by two methods: on how many of the 31 data sets the first outperforms the second at 68 % and at 95 %.
    wins: Mapping[str, Mapping[str, tuple[int, int]]]

    def gap(self, data: str, method: str) -> float | None:
        """Return the published gap in percent; None for a data set or a method that the paper does not have."""
        if data not in self.accuracies or method not in ("sm", "sbm"):
            return None
        return self.gaps.get(data, {}).get(method, 0.0)

    def accuracy(self, data: str, method: str) -> Accuracy | None:
        """Return the published accuracy; None where there is none."""
        return self.accuracies.get(data, {}).get(method)


@cache
def published() -> Published:
    """Return the published numbers."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    return Published(
        source=found["source"],
        gaps={
            data: {m: float("inf") if gap is None else gap for m, gap in row.items()}
            for data, row in found["gaps"].items()
        },
        accuracies={
            data: {m: None if pair is None else Accuracy(*pair) for m, pair in row.items()}
            for data, row in found["accuracies"].items()
        },
        wins={
            row: {m: (low, high) for m, (low, high) in cells.items()} for row, cells in found["wins"].items()
        },
    )
