"""Minimum description length, MDL, which is the Bayesian information criterion, BIC."""

from __future__ import annotations

import math
from dataclasses import dataclass

from milpbn.problem.scores.base import Shape
from milpbn.problem.scores.likelihood import LikelihoodTerms


@dataclass(frozen=True, kw_only=True)
class Mdl(LikelihoodTerms):
    """The log-likelihood minus log(M) / 2 per free parameter, M the sum of the weights."""

    name = "mdl"
    shape = Shape.LINEAR
    certified = True

    def local_weights(self, total_weight: float) -> tuple[float, float]:
        """Return the log-likelihood with a penalty of log(M) / 2 per parameter; see `ScoreKind.local_weights`."""
        return 1.0, 0.5 * math.log(total_weight)
