"""Intervals of accuracies and tests between two methods, as Peharz & Pernkopf (2012, P12) use them (section 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from milpbn.network.intervals import normal_half_width, student_95

#: Significance levels of P12's Table 3.
LEVELS = (0.68, 0.95)


def half_width(accuracies: Sequence[float], rows: int) -> float:
    """Return half the width of the 95 % interval of an accuracy, as a share.

    With one part it is 1.96 sqrt(a (1 - a) / M) (Mitchell 1997); with several folds it is Student's t interval of their
    mean. Both give the intervals of P12's Table 2: on iris, four folds with 93.33 % and one with 96.67 % give 94.00 +-
    1.85, which is published for naive Bayes. There is an accuracy for each part, and `rows` is the number of test rows
    M of the only one.
    """
    if len(accuracies) == 1:
        return normal_half_width(accuracies[0], rows)
    spread = float(np.std(accuracies, ddof=1)) / math.sqrt(len(accuracies))
    return student_95(len(accuracies) - 1) * spread


def p_value(ours: Sequence[NDArray[np.bool_]], theirs: Sequence[NDArray[np.bool_]]) -> float:
    """Return the p-value of "the first method is not better than the second", one-sided.

    With several folds it is that of the paired t-test over the accuracies of the folds; if all differences are equal,
    it is 0 or 1. With one part it is that of the exact binomial test on the rows that exactly one of the methods
    classifies correctly: under the hypothesis each of them is the first method's with probability 1/2. P12 says
    "one-sided binomial test" and no more. Its test must be paired, too: with the accuracies of its Table 2, an unpaired
    test cannot give the two significant wins of SM over SBM in its Table 3. `ours` and `theirs` say for each part which
    rows each method classifies correctly, bool arrays in the same order.
    """
    if len(ours) == 1:
        wins = int(np.count_nonzero(ours[0] & ~theirs[0]))
        losses = int(np.count_nonzero(theirs[0] & ~ours[0]))
        if wins + losses == 0:
            return 1.0
        return float(stats.binomtest(wins, wins + losses, alternative="greater").pvalue)
    differences = np.array([a.mean() - b.mean() for a, b in zip(ours, theirs, strict=True)])
    if np.ptp(differences) < 1e-12:
        return 0.0 if differences[0] > 1e-12 else 1.0
    return float(stats.ttest_1samp(differences, 0.0, alternative="greater").pvalue)


def outperforms(ours: Sequence[NDArray[np.bool_]], theirs: Sequence[NDArray[np.bool_]], level: float) -> bool:
    """Return whether the first method is better than the second with this significance, such as 0.95."""
    return p_value(ours, theirs) < 1.0 - level
