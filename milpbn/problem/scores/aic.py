"""Akaike's information criterion, AIC."""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.problem.scores.base import Shape
from milpbn.problem.scores.likelihood import LikelihoodTerms


@dataclass(frozen=True, kw_only=True)
class Aic(LikelihoodTerms):
    """The log-likelihood minus 1 per free parameter."""

    name = "aic"
    shape = Shape.LINEAR
    certified = True

    def local_weights(self, total_weight: float) -> tuple[float, float]:
        """Return the log-likelihood with a penalty of 1 per parameter; see `ScoreKind.local_weights`."""
        return 1.0, 1.0
