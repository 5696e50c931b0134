"""The binary soft margin, SBM: equations (21) to (25) of Peharz & Pernkopf (2012)."""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.problem.scores.soft_margin import SoftMargin


@dataclass(frozen=True, kw_only=True)
class BinarySoftMargin(SoftMargin):
    """The soft margin of each class against the rest: one row of coefficients per sample, however many classes.

    With two classes it is the soft margin itself.
    """

    name = "sbm"
    binary = True
    lighter = ""
