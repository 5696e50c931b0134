"""Changes of distributions and of losses, each beside what chance gives if nothing changed.

Indices are compared with random divisions of all rows into the two sets, losses with the labels that the probabilities
expect, so that the p-values hold for few rows and rare states, too. Rows are taken as independent draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from milpbn.data.dataset import UNKNOWN
from milpbn.network.intervals import effective_size

#: Random divisions, and how many of them must have at least the observed index for their share to be the p-value.
DRAWS, FEW = 1000, 10
#: Labels of values that training never saw, and of missing ones.
_OTHERS = ("(unseen)", "(missing)")


@dataclass(frozen=True)
class Shift:
    """How the distribution of something changed from the reference rows to the new ones.

    `psi` is the population stability index, the sum over the states of (q - p) log(q / p) of the shares p before and q
    now, where half a row is added to every state that occurs; `expected` and `chance` are its mean and its 99 %
    quantile if nothing changed, and `p_value` the probability of an index at least as large. The share of `state`
    changed the most, from `before` to `now`; NaN where no row is compared, such as those of an absent column.
    `missing` and `unseen` are shares of the new rows.
    """

    name: str
    psi: float
    expected: float
    chance: float
    p_value: float
    state: str
    before: float
    now: float
    missing: float
    unseen: float
    alarm: bool = False


@dataclass(frozen=True)
class Excess:
    """The mean loss of the new rows beside the one that their probabilities expect if these are right.

    `reference` is how much the loss of the reference rows is above what is expected there, None without labels there.
    `p_value` is the probability of a `value` at least as large if the probabilities are right, or with a reference if
    they are as wrong as there.
    """

    name: str
    value: float
    expected: float
    reference: float | None
    p_value: float
    alarm: bool = False

    @property
    def share(self) -> float:
        """How much the value is above the expected one, and above the reference, as a share of the expected one."""
        above = self.value - self.expected - max(0.0, self.reference or 0.0)
        return above / self.expected if self.expected > 0 else math.inf if above > 0 else 0.0


def cells(codes: NDArray[np.integer], weights: NDArray[np.float64], n_states: int) -> NDArray[np.int64]:
    """Return the number of rows in each state, then of unseen and of missing values, shape (n_states + 2,).

    Of rows with different weights these are as many rows of equal weight as say the same.
    """
    if not len(codes):
        return np.zeros(n_states + 2, np.int64)
    places = np.where(codes < 0, n_states + UNKNOWN - codes, codes)
    found = np.bincount(places, weights, n_states + 2)
    return np.rint(found * effective_size(weights) / weights.sum()).astype(np.int64)


def shift(
    name: str,
    labels: Sequence[str],
    before: NDArray[np.int64],
    now: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    known: bool = False,
) -> Shift:
    """Return how the numbers of rows in each state (`cells`) changed; with `known`, of the rows that have a value."""
    unseen, missing = (float(count / max(1, now.sum())) for count in now[-2:])
    if known:
        before, now = before[:-1], now[:-1]
    shares = [counts / (counts.sum() or np.nan) for counts in (before, now)]
    k = int(np.abs(shares[1] - shares[0]).argmax())
    pooled = before + now
    occurs = pooled > 0
    index, null = 0.0, np.zeros(1)
    if before.any() and now.any() and np.count_nonzero(occurs) > 1:
        index = float(_index(before[occurs], now[occurs]))
        drawn = rng.multivariate_hypergeometric(pooled[occurs], int(now.sum()), DRAWS, method="marginals")
        null = _index(pooled[occurs] - drawn, drawn)
    return Shift(
        name,
        psi=index,
        expected=float(null.mean()),
        chance=float(np.quantile(null, 0.99)),
        p_value=_p_value(index, null),
        state=(*labels, *_OTHERS)[k],
        before=float(shares[0][k]),
        now=float(shares[1][k]),
        missing=missing,
        unseen=unseen,
    )


def _index(before: NDArray[np.int64], now: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the population stability index, over the last axis."""
    p, q = ((counts + 0.5) / (counts + 0.5).sum(axis=-1, keepdims=True) for counts in (before, now))
    found: NDArray[np.float64] = ((q - p) * np.log(q / p)).sum(axis=-1)
    return found


def _p_value(value: float, null: NDArray[np.float64]) -> float:
    """Return the share of draws that are at least as large; where they are few, as an alarm needs, that of `tail`."""
    reached = int(np.count_nonzero(null >= value * (1 - 1e-12)))
    if reached >= FEW:
        return (1 + reached) / (1 + len(null))
    return tail(value, float(null.mean()), float(null.std()), float(scipy.stats.skew(null)))


def tail(value: float, mean: float, deviation: float, skewness: float) -> float:
    """Return the probability of a value at least as large, by Pearson's type III (Winkler et al. 2016)."""
    if not deviation > 0:
        return float(value <= mean + 1e-12 * abs(mean))
    return float(scipy.stats.pearson3.sf(value, skewness, loc=mean, scale=deviation))


def excess(
    name: str,
    losses: NDArray[np.float64],
    by_class: NDArray[np.float64],
    probabilities: NDArray[np.float64],
    weights: NDArray[np.float64],
    reference: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> Excess:
    """Compare losses of rows, shape (M,), with what probabilities expect.

    The arrays `by_class` and `probabilities`, shape (M, C), have what a row would lose in each class, and P(c | z_m);
    `reference` has the differences of the reference rows, and their weights.
    """
    shares = weights / weights.sum()
    expected = (probabilities * by_class).sum(axis=1)
    more = losses - expected
    value, mean = float(shares @ losses), float(shares @ expected)
    if reference is None:
        # The central moments of the loss if the labels are drawn from the probabilities.
        around = by_class - expected[:, None]
        second, third = ((probabilities * around**k).sum(axis=1) for k in (2, 3))
        variance = float(shares**2 @ second)
        skewness = float(shares**3 @ third) / variance**1.5 if variance > 0 else 0.0
        return Excess(name, value, mean, None, tail(value - mean, 0.0, variance**0.5, skewness))
    # The moments of the mean of as many rows, drawn from all rows without replacement.
    before = float(np.average(reference[0], weights=reference[1]))
    pooled = np.concatenate(
        [more * shares * len(more), reference[0] * reference[1] * len(reference[1]) / reference[1].sum()]
    )
    n, total = len(more), len(pooled)
    variance = float(pooled.var()) * (total - n) / (n * (total - 1))
    of_mean = (total - 2 * n) * ((total - 1) / (n * (total - n))) ** 0.5 / max(1, total - 2)
    skewness = float(scipy.stats.skew(pooled)) * of_mean
    p_value = tail(value - mean, float(pooled.mean()), variance**0.5, skewness)
    return Excess(name, value, mean, before, p_value)
