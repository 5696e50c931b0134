"""The log-likelihood, LL, also with a penalty per parameter (MDL, AIC), and the base class of all scores with it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from milpbn.data.dataset import Dataset
from milpbn.data.sums import log_share
from milpbn.network.prior import Prior, PseudoCounts, prior_parents, shrunk_counts, uniform_counts
from milpbn.problem.counts import family_counts, joint_states, log_likelihood, n_parameters
from milpbn.problem.scores.base import LocalValue, ScoreKind, Shape


class LikelihoodTerms(ScoreKind):
    """A score with the log-likelihood times a factor, minus a penalty per free parameter (`local_weights`)."""

    def fit(self, data: Dataset, child: int, parents: tuple[int, ...]) -> float:
        """Return the log-likelihood of a family, in nats."""
        return log_likelihood(data, child, parents)

    def local_weights(self, total_weight: float) -> tuple[float, float]:
        """Return the log-likelihood without a penalty; see `ScoreKind.local_weights`."""
        return 1.0, 0.0

    def sums_of_joint_states(self, total_weight: float) -> tuple[float, float] | None:
        """Return 0 and the penalty for a plain sum of log-likelihoods; see `ScoreKind.sums_of_joint_states`."""
        likelihood, per_parameter = self.local_weights(total_weight)
        return (0.0, per_parameter) if self.shape is Shape.LINEAR and likelihood == 1.0 else None

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


def leave_one_out_log_likelihood(data: Dataset, child: int, parents: tuple[int, ...], prior: Prior) -> float:
    """Return sum_{j,h} n_{j|h} log((n_{j|h} - 1 + a) / (n_h - 1 + a sp(X_i))), in nats: no sample counts for itself.

    The parameters are smoothed, a > 0, since without smoothing a state that occurs once would have the logarithm of 0.
    Where the prior's mean is a table, its counts lack the unit as well (`milpbn.network.prior`). No weight is below 1.
    """
    counts = family_counts(data, child, parents)
    part, rest = _pseudo_counts(data, child, parents, prior)
    n, others = counts[counts > 0], (data.other_weights(counts) + rest)[counts > 0]
    return float((n * log_share(n - 1 + np.broadcast_to(part, counts.shape)[counts > 0], others)).sum())


def _pseudo_counts(data: Dataset, child: int, parents: tuple[int, ...], prior: Prior) -> PseudoCounts:
    """Return the pseudo-counts without one unit of weight of each cell's own samples, by the rows of `family_counts`.

    Cells that do not occur have no samples; their pseudo-counts mean nothing.
    """
    states = int(data.n_states[child])
    fewer = prior_parents(prior, parents, data.n_states)
    if fewer is None:
        return uniform_counts(prior.smoothing, states)
    counts = family_counts(data, child, fewer)
    rest = data.other_weights(counts)
    if fewer:  # every row of the family's table belongs to one class
        index, size = joint_states(data.codes, parents, data.n_states)
        class_of = np.zeros(size, dtype=np.int64)
        class_of[index] = joint_states(data.codes, fewer, data.n_states)[0]
        counts, rest = counts[class_of], rest[class_of]
    return shrunk_counts(np.maximum(counts - 1, 0.0), rest, prior.smoothing, states)


@dataclass(frozen=True, kw_only=True)
class LeaveOneOutTerms(LikelihoodTerms):
    """A score with a leave-one-out form, in which one unit of a sample's weight does not count for its own parameters.

    The margins' coefficients have it from `milpbn.problem.family_tables`, the log-likelihood has it from here. Without
    `leave_one_out` the parameters of the log-likelihood are not smoothed.
    """

    leave_one_out: bool = False
    smoothing: float = 1.0

    def fit(self, data: Dataset, child: int, parents: tuple[int, ...]) -> float:
        """Return the log-likelihood of a family, in nats, perhaps the leave-one-out one."""
        if self.leave_one_out:
            return leave_one_out_log_likelihood(data, child, parents, self.prior)
        return super().fit(data, child, parents)

    def sums_of_joint_states(self, total_weight: float) -> tuple[float, float] | None:
        """Return None with `leave_one_out`; see `ScoreKind.sums_of_joint_states`."""
        return None if self.leave_one_out else super().sums_of_joint_states(total_weight)

    @property
    def unit(self) -> float:
        """1 with `leave_one_out`; see `ScoreKind.unit`."""
        return float(self.leave_one_out)

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
    certified = True


@dataclass(frozen=True, kw_only=True)
class Mdl(LikelihoodTerms):
    """Minimum description length, which is BIC: the log-likelihood minus log(M) / 2 per free parameter.

    M is the sum of the weights.
    """

    name = "mdl"
    shape = Shape.LINEAR
    certified = True

    def local_weights(self, total_weight: float) -> tuple[float, float]:
        """Return the log-likelihood with a penalty of log(M) / 2 per parameter; see `ScoreKind.local_weights`."""
        return 1.0, 0.5 * math.log(total_weight)


@dataclass(frozen=True, kw_only=True)
class Aic(LikelihoodTerms):
    """Akaike's information criterion: the log-likelihood minus 1 per free parameter."""

    name = "aic"
    shape = Shape.LINEAR
    certified = True

    def local_weights(self, total_weight: float) -> tuple[float, float]:
        """Return the log-likelihood with a penalty of 1 per parameter; see `ScoreKind.local_weights`."""
        return 1.0, 1.0
