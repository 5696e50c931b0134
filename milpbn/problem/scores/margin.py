"""The base class of the scores on class margins: log-margins, the hybrid term and the penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.network.prior import UNIFORM, Prior
from milpbn.problem.scores.base import Shape
from milpbn.problem.scores.likelihood import LeaveOneOutTerms


@dataclass(frozen=True, kw_only=True)
class MarginScore(LeaveOneOutTerms):
    """A score on log-margins log P(c_m, z_m) - max over c != c_m of log P(c, z_m), with smoothed parameters.

    `smoothing_towards` is the mean of the parameters' prior, one of `milpbn.network.prior.TOWARDS`. `penalty` is
    subtracted per free parameter, in nats; ``bic`` is log(M) / 2, ``aic`` is 1. `hybrid` is the factor of the
    log-likelihood that is added; with `leave_one_out` of the leave-one-out one.
    """

    shape = Shape.PIECEWISE_LINEAR
    is_margin = True
    sums_samples = True
    smoothing_towards: str = UNIFORM
    penalty: float | str = 0.0
    hybrid: float = 0.0

    def __post_init__(self) -> None:
        if self.leave_one_out and isinstance(self.penalty, str):
            raise InputError(
                f"The penalty {self.penalty} makes up for parameters that are fitted to the samples that they score, "
                "as leave_one_out does; give the penalty in nats, or leave out one of the two."
            )

    @property
    def prior(self) -> Prior:
        """The prior of the parameters."""
        return Prior(self.smoothing, self.smoothing_towards)

    @property
    def has_local_terms(self) -> bool:
        """Whether the score has a penalty or a hybrid term, or local terms of a class of its own."""
        return bool(self.penalty or self.hybrid) or self._has_other_terms

    @property
    def smallest_class_free_suffices(self) -> bool:
        """Whether there is no local term but a penalty, which grows with the number of parents."""
        return not (self.hybrid or self._has_other_terms)

    @property
    def _has_other_terms(self) -> bool:
        own, base = type(self), MarginScore
        return own.family is not base.family or own.local_weights is not base.local_weights

    @property
    def cap(self) -> float:
        """Infinite: a log-margin has no upper limit."""
        return math.inf

    def local_weights(self, total_weight: float) -> tuple[float, float]:
        """Return `hybrid` and the penalty in nats; see `ScoreKind.local_weights`."""
        if isinstance(self.penalty, str):
            return self.hybrid, {"bic": 0.5 * math.log(total_weight), "aic": 1.0}[self.penalty]
        return self.hybrid, self.penalty

    def sample_values(
        self, log_joint: NDArray[np.float64], true: NDArray[np.integer], share: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the log-margins and their errors; see `ScoreKind.sample_values`."""
        every = np.arange(len(log_joint))
        own, rivals = log_joint[every, true], log_joint.copy()
        rivals[every, true] = -np.inf
        best = rivals.max(axis=1)
        # With a single class there are no rivals, and their best is -inf.
        return own - best, share * (np.abs(own) + np.abs(np.where(np.isfinite(best), best, 0.0)))
