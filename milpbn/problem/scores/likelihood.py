"""The log-likelihood, LL, of the training data, and the base class of all scores with a log-likelihood term."""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.data.dataset import Dataset
from milpbn.network.prior import Prior
from milpbn.problem.counts import leave_one_out_log_likelihood, log_likelihood, n_parameters
from milpbn.problem.scores.base import LocalValue, ScoreKind, Shape


class LikelihoodTerms(ScoreKind):
    """A score with the log-likelihood times a factor, minus a penalty per free parameter (`local_weights`)."""

    def fit(self, data: Dataset, child: int, parents: tuple[int, ...]) -> float:
        """Return the log-likelihood of a family, in nats."""
        return log_likelihood(data, child, parents)

    def local_weights(self, total_weight: float) -> tuple[float, float]:
        """Return the log-likelihood without a penalty; see `ScoreKind.local_weights`."""
        return 1.0, 0.0

    def family(self, data: Dataset, child: int, parents: tuple[int, ...]) -> tuple[float, float]:
        """Return a family's log-likelihood minus its penalty, and its size; see `ScoreKind.family`."""
        likelihood, per_parameter = self.local_weights(data.total_weight)
        fit = likelihood * self.fit(data, child, parents)
        k = n_parameters(data, child, parents)
        # The + 1: the logarithm of a total weight near 1 has a large relative error.
        return fit - per_parameter * k, abs(fit) + (abs(per_parameter) + 1) * k

    def local_value(self, data: Dataset, parents: tuple[tuple[int, ...], ...]) -> LocalValue:
        """Return the log-likelihoods of all families and minus the total penalty; see `ScoreKind.local_value`."""
        likelihood, per_parameter = self.local_weights(data.total_weight)
        fits = [likelihood * self.fit(data, i, s) for i, s in enumerate(parents)]
        k = sum(n_parameters(data, i, s) for i, s in enumerate(parents))
        return LocalValue([*fits, -per_parameter * k], [*map(abs, fits), (abs(per_parameter) + 1) * k])


@dataclass(frozen=True, kw_only=True)
class LeaveOneOutTerms(LikelihoodTerms):
    """A score with a leave-one-out form, in which no sample counts for its own parameters.

    The margins' coefficients have it from `milpbn.problem.family_tables`, the log-likelihood has it from here.

    Attributes
    ----------
    leave_one_out : bool
        Leave one unit of a sample's weight out of its own parameters.
    smoothing : float
        Laplace constant of the parameters; without `leave_one_out` those of the log-likelihood are not smoothed.
    """

    leave_one_out: bool = False
    smoothing: float = 1.0

    def fit(self, data: Dataset, child: int, parents: tuple[int, ...]) -> float:
        """Return the log-likelihood of a family, in nats, perhaps the leave-one-out one."""
        if self.leave_one_out:
            return leave_one_out_log_likelihood(data, child, parents, self.prior)
        return super().fit(data, child, parents)

    @property
    def prior(self) -> Prior:
        """The prior of the parameters."""
        return Prior(self.smoothing)


@dataclass(frozen=True, kw_only=True)
class Likelihood(LeaveOneOutTerms):
    """Sum over the families of n_{j|h} log(n_{j|h} / n_h), with unsmoothed parameters and 0 log 0 = 0.

    With `leave_one_out` it is the sum over the samples of log P(z_m, c_m), with smoothed parameters that the sample
    does not count for.
    """

    name = "ll"
    shape = Shape.LINEAR
