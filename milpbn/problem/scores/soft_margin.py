"""The soft margins, SM and SBM, and the hard margin that they soften.

SM is equation (9) of Peharz & Pernkopf (2012), SBM are equations (21) to (25).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.problem.scores.margin import MarginScore


@dataclass(frozen=True, kw_only=True)
class SoftMargin(MarginScore):
    """Sum over the samples of w_m min(gamma, log-margin of m); gamma = log(p / (1 - p)) is in nats."""

    name = "sm"
    certified = True
    lighter = "sbm"
    gamma: float

    @property
    def cap(self) -> float:
        """Gamma."""
        return self.gamma

    def sample_values(
        self, log_joint: NDArray[np.float64], true: NDArray[np.integer], share: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return min(gamma, log-margin) and its error; see `ScoreKind.sample_values`."""
        margins, errors = super().sample_values(log_joint, true, share)
        # A sample whose margin exceeds gamma by more than its error adds exactly gamma.
        errors = np.where(margins - errors < self.gamma, errors, 0.0)
        return np.minimum(margins, self.gamma), errors


@dataclass(frozen=True, kw_only=True)
class BinarySoftMargin(SoftMargin):
    """The soft margin of each class against the rest: one row of coefficients per sample, however many classes.

    With two classes it is the soft margin itself.
    """

    name = "sbm"
    binary = True
    lighter = ""


@dataclass(frozen=True, kw_only=True)
class HardMargin(MarginScore):
    """The smallest log-margin of all samples, whatever their weights."""

    name = "hard-margin"
    sums_samples = False
