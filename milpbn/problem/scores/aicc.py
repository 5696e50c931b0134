"""AIC corrected for small samples, AICc (Hurvich and Tsai 1989)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from milpbn.data.dataset import Dataset
from milpbn.problem.counts import n_parameters
from milpbn.problem.scores.base import LocalValue, Shape
from milpbn.problem.scores.curve import AiccCurve
from milpbn.problem.scores.likelihood import LikelihoodTerms


@dataclass(frozen=True, kw_only=True)
class Aicc(LikelihoodTerms):
    """The log-likelihood minus `AiccCurve`, a convex function of the total number of free parameters.

    It is not a sum over the variables.
    """

    name = "aicc"
    shape = Shape.PIECEWISE_LINEAR
    curve = AiccCurve

    def local_value(self, data: Dataset, parents: tuple[tuple[int, ...], ...]) -> LocalValue:
        """Return the families' terms and minus the correction, -inf if AICc is undefined; see `ScoreKind`."""
        likelihood = super().local_value(data, parents)
        curve = AiccCurve(np.empty(0), data.total_weight)
        k = sum(n_parameters(data, i, s) for i, s in enumerate(parents))
        correction = curve.correction(k)
        error = 0.0 if correction == math.inf else curve.error(k)
        return LocalValue([*likelihood.parts, -correction], likelihood.sizes, error)
