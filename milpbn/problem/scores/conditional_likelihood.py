"""The conditional log-likelihood, CLL, of the classes given the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.data.sums import EPS
from milpbn.network.margins import log_posterior
from milpbn.problem.scores.base import Shape
from milpbn.problem.scores.margin import MarginScore


@dataclass(frozen=True, kw_only=True)
class ConditionalLikelihood(MarginScore):
    """Sum over the samples of w_m log P(c_m | z_m), a soft minimum of 0 and the margins against the other classes."""

    name = "cll"
    shape = Shape.CONCAVE
    certified = True

    @property
    def cap(self) -> float:
        """A probability is at most 1."""
        return 0.0

    def sample_values(
        self, log_joint: NDArray[np.float64], true: NDArray[np.integer], share: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return log P(c_m | z_m) and its error; see `ScoreKind.sample_values`.

        The error is that of the joint log-probabilities, times the posterior of the other classes.
        """
        values = log_posterior(log_joint)[np.arange(len(log_joint)), true]
        errors = -np.expm1(values) * 4 * share * np.abs(log_joint).max(axis=1)
        return values, errors + EPS * (log_joint.shape[1] + 8) * np.abs(values)
