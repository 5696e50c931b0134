"""95 % intervals of shares and means over weighted rows: weights say how much a row counts, not how many rows it is."""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

Interval = tuple[float, float]
#: Two-sided 95 % quantile of the standard normal distribution, 1.96.
Z_95 = float(ndtri(0.975))
#: Largest share of the weight of one row with which the spread of a weighted mean is known.
LARGEST_SHARE = 0.999


def student_95(freedom: float) -> float:
    """Return the two-sided 95 % quantile of Student's t; `scipy.stats` has it, too, but takes 0.4 s to import."""
    return float(stdtrit(freedom, 0.975))


def effective_size(weights: NDArray[np.float64]) -> float:
    """Return the number of equally weighted rows that say as much, (sum w)^2 / sum w^2 (Kish 1965); M at equal weights.

    The weights, shape (M,), are not all 0.
    """
    shares = weights / weights.sum()
    return float(1 / (shares @ shares))


def equal(weights: NDArray[np.float64]) -> bool:
    """Return whether all weights are the same, up to rounding, so that they change no mean."""
    return bool(np.ptp(weights) <= 1e-12 * weights.max())


def effective_rows(weights: NDArray[np.float64]) -> float | None:
    """Return the `effective_size` of rows, or None where all positive weights are equal, so that it says nothing."""
    positive = weights[weights > 0]
    return None if not len(positive) or equal(positive) else effective_size(positive)


def wilson_interval(share: float, n: float) -> Interval:
    """Return the 95 % score interval of a share that was observed on n samples (Wilson 1927)."""
    z2 = Z_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    radius = Z_95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, centre - radius), min(1.0, centre + radius)


def score_interval(right: NDArray[np.bool_] | NDArray[np.float64], weights: NDArray[np.float64]) -> Interval:
    """Return the 95 % score interval of a weighted share; at equal weights that of Wilson.

    It holds all shares a with (sum_m w_m (h_m - a))^2 <= 1.96^2 V(a). V(a) is the variance of the sum if the true share
    is a: row m is right with the most likely probability p_m under this condition, which is min(1, c / w_m) for rows
    that are right, with one c for all rows, below the observed share; and above it the same holds for rows that are
    wrong. So a few rows of large weight that happen to be all right leave room for errors: with a variance of what was
    observed, 20 of 20 right would look certain. The rows are taken as independent draws together with their weights.
    `right` has whether each row counts as right, or the share of repetitions in which it does; weights are positive,
    and both have the shape (M,).
    """
    if equal(weights):
        return wilson_interval(float(np.mean(right)), len(right))
    distinct, index = np.unique(weights / weights.max(), return_inverse=True)
    hits = np.bincount(index, weights=right).astype(np.float64)
    misses = np.bincount(index).astype(np.float64) - hits
    return _low_end(hits, misses, distinct), 1 - _low_end(misses, hits, distinct)


def _low_end(hits: NDArray[np.float64], misses: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the lower end of a score interval, for numbers of rows of each weight; weights are between 0 and 1."""
    total, found, squares = float((hits + misses) @ weights), float(hits @ weights), hits * weights**2
    missed = float(misses @ weights**2)

    def shortfall(c: float) -> tuple[float, float]:
        """Return the share whose probabilities have this c, and how far it is outside the interval."""
        likely = np.minimum(1.0, c / weights)
        share = float(hits @ (weights * likely)) / total
        variance = float(squares @ (likely * (1 - share) ** 2 + (1 - likely) * share**2)) + missed * share**2
        return share, found - share * total - Z_95 * math.sqrt(variance)

    if found == 0:
        return 0.0
    # At 1 nothing is doubted: if all rows are right, the distance and the variance are both 0 there.
    c = scipy.optimize.brentq(lambda c: shortfall(c)[1], 0.0, 1 - 1e-9, xtol=1e-15)
    return shortfall(c)[0]


def normal_half_width(share: float, n: float) -> float:
    """Return 1.96 sqrt(share (1 - share) / n), half the width of the normal 95 % interval (Mitchell 1997)."""
    return Z_95 * math.sqrt(share * (1 - share) / n)


def mean_interval(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Interval | None:
    """Return the 95 % interval of a weighted mean over rows; None if one row has nearly all the weight.

    At equal weights it is Student's t interval. The variance of the mean is the larger of two estimates, which are
    equal there: sum_m s_m^2 (v_m - mean)^2 / (1 - s_m), where s_m is a row's share of the weight, so that rows of large
    weight may spread more than others; and that of rows that spread alike, which holds up where few rows of large
    weight happen to be alike. Degrees of freedom are those of the first (Bell & McCaffrey 2002). Values, such as
    differences of two learners' log-losses, and positive weights have the shape (M,).
    """
    s = weights / weights.sum()
    if s.max() > LARGEST_SHARE:
        return None
    mean = float(s @ values)
    residuals, factors, squares = values - mean, s**2 / (1 - s), float(s @ s)
    own = float(factors @ residuals**2)
    alike = float(s @ residuals**2) * squares / (1 - squares)
    # Satterthwaite's degrees of freedom of the first estimate, if all rows have one variance: (tr AG)^2 / tr (AG)^2
    # with G_ij = [i = j] + squares - s_i - s_j, the covariances of the residuals, and A the diagonal of the factors.
    moments = [float(factors @ s**k) for k in range(3)]
    trace = float(factors @ (1 + squares - 2 * s))
    of_square = float(factors**2 @ (1 + 2 * (squares - 2 * s)))
    of_square += squares**2 * moments[0] ** 2 + 2 * moments[0] * moments[2] + 2 * moments[1] ** 2
    of_square -= 4 * squares * moments[0] * moments[1]
    radius = student_95(trace**2 / of_square) * math.sqrt(max(own, alike))
    return mean - radius, mean + radius


def stratified_mean_interval(
    values: NDArray[np.float64], weights: NDArray[np.float64], classes: NDArray[np.integer]
) -> Interval | None:
    """Return the 95 % interval of a weighted mean of losses over rows of several classes.

    The few rows of a rare class have the largest losses, which is more than Student's t of all rows can see. So the
    mean is taken as the sum of the classes' means times their shares of the weight. The interval of each mean is that
    of `mean_interval`, and that of each share the score interval, with the factor that makes the sum of all classes'
    variances that of a multinomial distribution; the squares of what each can change are added (Zou & Donner 2008).
    Where a class has no interval of its own, it is `mean_interval` of all rows. Arguments have the shape (M,).
    """
    total, centre, down, up = float(weights.sum()), float(weights @ values / weights.sum()), 0.0, 0.0
    for label in np.unique(classes):
        inside = classes == label
        own, w = values[inside], weights[inside]
        within = mean_interval(own, w)
        if within is None:
            return mean_interval(values, weights)
        mean, share = float(w @ own / w.sum()), float(w.sum()) / total
        changes = [[share * (end - mean) for end in within]]
        if share < 1:
            factor = (mean - centre) / math.sqrt(1 - share)
            changes.append([factor * (end - share) for end in score_interval(inside, weights)])
        down += sum(min(0.0, *pair) ** 2 for pair in changes)
        up += sum(max(0.0, *pair) ** 2 for pair in changes)
    return centre - math.sqrt(down), centre + math.sqrt(up)
