"""Intervals of figures and of paired differences, on one split or over repeated folds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from milpbn.network.evaluation import Z_95

Interval = tuple[float, float]


@dataclass(frozen=True)
class Difference:
    """A figure of one learner minus that of another on the same test rows, with a 95 % interval.

    Attributes
    ----------
    value : float
        The difference.
    low, high : float
        Ends of the interval.
    rows : int
        Number of different rows that were tested.
    """

    value: float
    low: float
    high: float
    rows: int

    @property
    def distinguishable(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    def verdict(self, *, larger_is_better: bool) -> str:
        """Return the difference in words."""
        if not self.distinguishable:
            return f"not distinguishable at n = {self.rows}"
        return "better" if (self.value > 0) == larger_is_better else "worse"


def corrected_interval(values: Sequence[float], test_to_train: float) -> Interval:
    """Return the 95 % interval of the mean of a figure over the parts of repeated folds (Nadeau & Bengio 2003).

    The parts share training rows, so that their spread alone would promise too much. The corrected resampled t-test
    takes the variance of the mean as (1 / J + n_test / n_train) s^2, with J - 1 degrees of freedom, for J parts with
    the sample variance s^2. For repeated folds: Bouckaert & Frank (2004).

    Parameters
    ----------
    values : sequence of float, length J >= 2
        The figure, or a difference of two learners' figures, on each part.
    test_to_train : float
        n_test / n_train; 1 / (K - 1) for K folds.
    """
    count, mean = len(values), float(np.mean(values))
    error = math.sqrt((1 / count + test_to_train) * float(np.var(values, ddof=1)))
    radius = float(stats.t.ppf(0.975, count - 1)) * error
    return mean - radius, mean + radius


def paired_shares(
    ours: NDArray[np.bool_], theirs: NDArray[np.bool_], weights: NDArray[np.float64]
) -> Difference:
    """Return the difference of two accuracies on the same rows, with the interval of Agresti & Min (2005).

    It is Wald's interval of McNemar's table with half a row added to each of its four cells: with b rows that only the
    first classifies correctly, c that only the second does, and n rows in total, b and c grow by 1/2 and n by 2. It
    depends on the discordant rows only, as McNemar's test does.

    Parameters
    ----------
    ours, theirs : bool arrays, shape (M,)
        Whether each learner classifies each row correctly.
    weights : float64 array, shape (M,)
        Sample weights; a weight of 2 counts as two rows.
    """
    n = float(weights.sum())
    b, c = float(weights[ours & ~theirs].sum()), float(weights[theirs & ~ours].sum())
    larger_b, larger_c, larger_n = b + 0.5, c + 0.5, n + 2
    centre = (larger_b - larger_c) / larger_n
    spread = larger_b + larger_c - (larger_b - larger_c) ** 2 / larger_n
    radius = Z_95 * math.sqrt(spread) / larger_n
    return Difference((b - c) / n, max(-1.0, centre - radius), min(1.0, centre + radius), len(ours))


def mean_interval(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Interval:
    """Return the normal 95 % interval of a weighted mean over rows; a weight of 2 counts as two rows.

    Parameters
    ----------
    values, weights : float64 arrays, shape (M,)
        The rows' values, for instance differences of two learners' log-losses, and their weights.
    """
    n = float(weights.sum())
    mean = float(weights @ values) / n
    variance = float(weights @ (values - mean) ** 2) / max(n - 1, 1.0)
    radius = Z_95 * math.sqrt(variance / n)
    return mean - radius, mean + radius


def paired_means(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], weights: NDArray[np.float64]
) -> Difference:
    """Return the difference of two mean losses on the same rows, with the interval of the mean of its rows."""
    values = ours - theirs
    low, high = mean_interval(values, weights)
    return Difference(float(weights @ values / weights.sum()), low, high, len(values))


def paired_parts(
    ours: Sequence[float], theirs: Sequence[float], test_to_train: float, rows: int
) -> Difference:
    """Return the mean difference of two figures over the parts of repeated folds, with `corrected_interval`.

    Parameters
    ----------
    ours, theirs : sequences of float, length J >= 2
        Each learner's figure on each part, in the same order.
    test_to_train : float
        As for `corrected_interval`.
    rows : int
        Number of different rows that were tested.
    """
    values = [a - b for a, b in zip(ours, theirs, strict=True)]
    low, high = corrected_interval(values, test_to_train)
    return Difference(float(np.mean(values)), low, high, rows)
