"""The hard margin: the smallest log-margin of a sample, which equation (9) of Peharz & Pernkopf (2012) softens."""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.problem.scores.margin import MarginScore


@dataclass(frozen=True, kw_only=True)
class HardMargin(MarginScore):
    """The smallest log-margin of all samples, whatever their weights."""

    name = "hard-margin"
    sums_samples = False
