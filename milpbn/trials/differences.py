"""Intervals of figures and of paired differences, on one split or over repeated folds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from milpbn.network.discrimination import ClassRanking
from milpbn.network.intervals import Z_95, Interval, effective_rows, mean_interval, student_95
from milpbn.util.declared import Count, NotNegative


@dataclass(frozen=True)
class Difference:
    """A figure of one learner minus that of another on the same test rows, with a 95 % interval."""

    #: What files of earlier versions lack.
    LATER: ClassVar[tuple[str, ...]] = ("effective_rows",)

    value: float
    low: float
    high: float
    #: Number of different rows that were tested.
    rows: Count
    #: Number of equally weighted rows that say as much (`milpbn.network.intervals.effective_size`); None where all
    #: weights are equal.
    effective_rows: NotNegative | None = None

    @property
    def distinguishable(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    def verdict(self, *, larger_is_better: bool) -> str:
        """Return the difference in words."""
        if not self.distinguishable:
            effective = "" if self.effective_rows is None else f" (effective {self.effective_rows:.0f})"
            return f"not distinguishable at n = {self.rows}{effective}"
        return "better" if (self.value > 0) == larger_is_better else "worse"


def corrected_interval(values: Sequence[float], test_to_train: float) -> Interval:
    """Return the 95 % interval of the mean of a figure over the parts of repeated folds (Nadeau & Bengio 2003).

    The parts share training rows, so that their spread alone would promise too much. The corrected resampled t-test
    takes the variance of the mean as (1 / J + n_test / n_train) s^2, with J - 1 degrees of freedom, for J parts with
    the sample variance s^2. For repeated folds: Bouckaert & Frank (2004). The values are a figure, or a difference of
    two learners' figures, on each of at least two parts; `test_to_train` is n_test / n_train, which is 1 / (K - 1) for
    K folds.
    """
    count, mean = len(values), float(np.mean(values))
    error = math.sqrt((1 / count + test_to_train) * float(np.var(values, ddof=1)))
    radius = student_95(count - 1) * error
    return mean - radius, mean + radius


def paired_shares(
    ours: NDArray[np.bool_] | NDArray[np.float64],
    theirs: NDArray[np.bool_] | NDArray[np.float64],
    weights: NDArray[np.float64],
) -> Difference:
    """Return the difference of two weighted accuracies on the same rows, with a 95 % interval.

    At equal weights it is that of Agresti & Min (2005): Wald's interval of McNemar's table with half a row added to
    each of its four cells: with b rows that only the first classifies correctly, c that only the second does, and n
    rows in total, b and c grow by 1/2 and n by 2. It depends on the discordant rows only, as McNemar's test does. Other
    weights say how much a row counts, not how many rows it is: each row adds the square of its weight to the variance.
    The added rows have the weight sum w^3 / sum w^2 then, which is about that of the heaviest rows: if these are few,
    and the learners agree on them, it may be chance. `ours` and `theirs`, shape (M,), have whether each learner
    classifies each row correctly, or shares of repetitions; weights are positive.
    """
    gained = np.subtract(ours, theirs, dtype=np.float64)
    added = float((weights**3).sum() / (weights**2).sum())
    total = float(weights.sum()) + 2 * added
    centre = float(weights @ gained) / total
    spread = float(weights**2 @ (gained - centre) ** 2) + added**2 * (1 + 2 * centre**2)
    radius = Z_95 * math.sqrt(spread) / total
    return _difference(gained, weights, (max(-1.0, centre - radius), min(1.0, centre + radius)))


def paired_means(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], weights: NDArray[np.float64]
) -> Difference | None:
    """Return the difference of two mean losses on the same rows, with the interval of the mean of its rows.

    It is None where there is no interval (`milpbn.network.intervals.mean_interval`).
    """
    values = ours - theirs
    interval = mean_interval(values, weights)
    return None if interval is None else _difference(values, weights, interval)


def paired_rankings(
    pairs: Sequence[tuple[ClassRanking, ClassRanking]], weights: NDArray[np.float64]
) -> Difference:
    """Return the mean difference of rankings of the same rows, shape (M,), with a normal 95 % interval.

    Of ROC-AUC it is that of DeLong et al. (1988), since the two errors of a row are subtracted.
    """
    value = float(np.mean([ours.value - theirs.value for ours, theirs in pairs]))
    errors = np.mean([ours.errors - theirs.errors for ours, theirs in pairs], axis=0)
    radius = Z_95 * math.sqrt(float(errors @ errors))
    ends = max(-1.0, value - radius), min(1.0, value + radius)
    return Difference(value, *ends, len(weights), effective_rows(weights))


def _difference(values: NDArray[np.float64], weights: NDArray[np.float64], interval: Interval) -> Difference:
    mean = float(weights @ values / weights.sum())
    return Difference(mean, *interval, len(values), effective_rows(weights))


def paired_parts(
    ours: Sequence[float], theirs: Sequence[float], test_to_train: float, rows: int
) -> Difference:
    """Return the mean difference of two figures over the parts of repeated folds, with `corrected_interval`.

    `ours` and `theirs` are each learner's figure on each of at least two parts, in the same order; `rows` different
    rows were tested.
    """
    values = [a - b for a, b in zip(ours, theirs, strict=True)]
    low, high = corrected_interval(values, test_to_train)
    return Difference(float(np.mean(values)), low, high, rows)
