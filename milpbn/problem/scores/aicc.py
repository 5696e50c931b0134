"""AIC corrected for small samples, AICc (Hurvich and Tsai 1989)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.sums import EPS
from milpbn.errors import InputError
from milpbn.problem.counts import n_parameters
from milpbn.problem.scores.base import LocalValue, Shape
from milpbn.problem.scores.likelihood import LikelihoodTerms


@dataclass(frozen=True)
class AiccCurve:
    """AICc's correction k + k (k + 1) / (M - k - 1), convex in the total number of parameters k.

    `parameters`, float64 array of shape (P,), has the free parameters of each candidate family; k is their sum over the
    chosen ones. `total_weight` is M, the sum of the sample weights.
    """

    parameters: NDArray[np.float64]
    total_weight: float

    def correction(self, k: float) -> float:
        """Return the correction in nats for k parameters; infinite for k >= M - 1, where AICc has no value."""
        rest = self.total_weight - k - 1
        return k + k * (k + 1) / rest if rest > 0 else math.inf

    def error(self, k: float) -> float:
        """Return a bound on the rounding error of `correction`; the difference M - k - 1 makes it larger."""
        rest = self.total_weight - k - 1
        return 16 * EPS * self.correction(k) * (1 + self.total_weight / rest) if rest > 0 else 0.0

    def range(self, offsets: NDArray[np.int64]) -> tuple[int, int]:
        """Return the smallest and largest k that a choice of parent sets can have and for which AICc is defined.

        `offsets`, int64 of shape (V + 1,), has the start of each variable's block in eta. InputError if even the
        smallest structure has k >= M - 1.
        """
        blocks = np.split(self.parameters, offsets[1:-1])
        low = int(sum(b.min() for b in blocks))
        high = min(int(sum(b.max() for b in blocks)), math.ceil(self.total_weight - 1) - 1)
        if low >= self.total_weight - 1:
            raise InputError(
                f"AICc is defined for fewer than M - 1 = {self.total_weight - 1:g} parameters, and every structure "
                f"here has at least {low}; use more data, or the score mdl."
            )
        return low, high


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
