"""Intervals of weighted shares and means, against their definitions, SciPy and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from milpbn.network.intervals import (
    effective_size,
    mean_interval,
    normal_half_width,
    score_interval,
    wilson_interval,
)

#: 20 rows of a rare class of weight 99, and 1,980 others: half of the weight.
RARE = np.repeat([99.0, 1.0], [20, 1980])


def test_wilson_interval_by_its_definition():
    """The ends solve (share - p)^2 = z^2 p (1 - p) / n."""
    for share, n in [(0.5, 10), (0.93, 200), (0.0, 7), (1.0, 12)]:
        for p in wilson_interval(share, n):
            assert 0 <= p <= 1
            assert (share - p) ** 2 == pytest.approx(1.959963984540054**2 * p * (1 - p) / n, abs=1e-15)


def test_half_width_is_the_papers():
    assert normal_half_width(0.9, 100) == pytest.approx(1.96 * 0.03, rel=1e-4)


def test_the_effective_size_is_that_of_kish():
    assert effective_size(np.full(7, 0.3)) == pytest.approx(7)
    assert effective_size(np.array([1.0, 1.0, 2.0])) == pytest.approx(16 / 6)
    assert effective_size(RARE) == pytest.approx(3960**2 / (20 * 99**2 + 1980))


@pytest.mark.parametrize("weight", [1.0, 0.1, 250.0])
def test_equal_weights_have_the_interval_of_wilson(weight):
    right = np.arange(40) % 5 > 0
    assert score_interval(right, np.full(40, weight)) == wilson_interval(0.8, 40)
    nearly = np.full(40, weight) * (1 + 1e-9 * np.arange(40))
    assert score_interval(right, nearly) == pytest.approx(wilson_interval(0.8, 40), abs=1e-7)


def test_the_score_interval_solves_its_equation():
    """Each end is a share at which the distance is 1.96 standard deviations, by a loop over rows."""
    rng = np.random.default_rng(0)
    right, weights = rng.random(30) < 0.7, rng.exponential(size=30) + 0.01
    low, high = score_interval(right, weights)
    total = weights.sum()
    for end, hits in ((low, right), (1 - high, ~right)):
        grid = np.linspace(0, weights.max(), 200001)
        shares = sum(np.minimum(w, grid) for w in weights[hits]) / total
        c = np.interp(end, shares, grid)
        variance = 0.0
        for w, h in zip(weights, hits, strict=True):
            p = min(1.0, c / w) if h else 0.0
            variance += w**2 * (p * (1 - end) ** 2 + (1 - p) * end**2)
        distance = weights[hits].sum() - end * total
        assert distance == pytest.approx(1.959963984540054 * np.sqrt(variance), rel=1e-5)


def test_all_right_and_all_wrong_leave_room():
    everything = np.ones(2000, dtype=bool)
    low, high = score_interval(everything, RARE)
    assert high == 1
    assert low < 0.93  # 20 rows decide half of it: Wilson's interval of 20 of 20 begins at .839
    few = np.array([1.0, 5.0] * 25)
    assert 0.88 < score_interval(few > 0, few)[0] < wilson_interval(1, effective_size(few))[0] < 0.91
    assert score_interval(~everything, RARE) == (0.0, pytest.approx(1 - low))
    rare_right = np.r_[np.ones(20, dtype=bool), np.arange(1980) % 20 > 0]
    low, high = score_interval(rare_right, RARE)
    assert low < 0.5 * 0.86 + 0.5 * 0.95 < 0.975 < high


def test_fractions_lie_between_their_whole_numbers():
    weights = np.arange(1.0, 21.0)
    low = np.arange(20) < 9
    high = np.arange(20) < 10
    between = score_interval((low * 1.0 + high) / 2, weights)
    for k in (0, 1):
        assert score_interval(low, weights)[k] < between[k] < score_interval(high, weights)[k]


def test_the_mean_at_equal_weights_has_students_interval():
    values = np.random.default_rng(0).random(30)
    expected = stats.t.interval(0.95, 29, values.mean(), stats.sem(values))
    assert mean_interval(values, np.full(30, 0.7)) == pytest.approx(expected, rel=1e-9)
    assert mean_interval(values[:1], np.ones(1)) is None
    assert mean_interval(values[:2], np.array([1e15, 1e-5])) is None


@pytest.mark.parametrize("spread", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(5))
def test_degrees_of_freedom_are_those_of_the_matrices(spread, seed):
    rng = np.random.default_rng(seed)
    values, weights = rng.normal(size=9), rng.lognormal(0, spread, 9)
    if weights.max() > 0.999 * weights.sum():
        assert mean_interval(values, weights) is None
        return
    s = weights / weights.sum()
    residual = np.eye(9) - np.outer(np.ones(9), s)
    product = np.diag(s**2 / (1 - s)) @ residual @ residual.T
    freedom = np.trace(product) ** 2 / np.trace(product @ product)
    errors = residual @ values
    variance = max((s**2 / (1 - s)) @ errors**2, (s @ errors**2) * (s @ s) / (1 - s @ s))
    radius = stats.t.ppf(0.975, freedom) * np.sqrt(variance)
    assert mean_interval(values, weights) == pytest.approx((s @ values - radius, s @ values + radius))


def hits_of_classes(rng):
    return rng.random(2000) < np.where(RARE > 1, 0.8, 0.95), RARE, 0.875


def hits_of_drawn_classes(rng):
    rare = rng.random(2000) < 0.01
    return rng.random(2000) < np.where(rare, 0.7, 0.95), np.where(rare, 99.0, 1.0), 0.825


def hits_alike(rng):
    return rng.random(2000) < 0.9, RARE, 0.9


def hits_equal(rng):
    return rng.random(150) < 0.85, np.ones(150), 0.85


def hits_unequal(rng):
    return rng.random(200) < 0.9, rng.lognormal(size=200), 0.9


def hits_that_depend_on_the_weight(rng):
    heavy = rng.random(300) < 0.5  # half of the rows have the weight 4, on average, and are harder
    weights = rng.uniform(0.5, 1.5, 300) * np.where(heavy, 4, 1)
    return rng.random(300) < np.where(heavy, 0.7, 0.95), weights, (4 * 0.7 + 0.95) / 5


@pytest.mark.parametrize(
    "draw",
    [
        hits_of_classes,
        hits_of_drawn_classes,
        hits_alike,
        hits_equal,
        hits_unequal,
        hits_that_depend_on_the_weight,
    ],
)
def test_intervals_of_accuracies_cover_95_percent(draw):
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(300):  # the standard error of the share is 1.3 %, with 500 it were 1 %
        right, weights, share = draw(rng)
        low, high = score_interval(right, weights)
        covered += low <= share <= high
    assert 0.92 * 300 <= covered <= 0.98 * 300


@pytest.mark.parametrize(
    "weights", [np.ones(100), RARE, np.arange(1.0, 101.0)], ids=["equal", "class", "unequal"]
)
def test_intervals_of_means_cover_95_percent(weights):
    rng = np.random.default_rng(8)
    spread = np.where(weights > 50, 1.0, 0.3)
    covered = 0
    for _ in range(800):
        low, high = mean_interval(rng.normal(size=len(weights)) * spread, weights)
        covered += low <= 0 <= high
    assert 0.92 * 800 <= covered <= 0.98 * 800
