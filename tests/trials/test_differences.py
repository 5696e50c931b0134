"""Intervals and paired differences, against their formulas and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from milpbn.network.intervals import mean_interval
from milpbn.trials.differences import (
    Difference,
    corrected_interval,
    paired_means,
    paired_parts,
    paired_shares,
)


def test_the_corrected_interval_is_that_of_nadeau_and_bengio():
    values = [0.9, 0.8, 0.85, 0.95, 0.7, 0.9, 0.88, 0.81, 0.79, 0.93]
    low, high = corrected_interval(values, 1 / 4)
    error = np.std(values, ddof=1) * np.sqrt(1 / 10 + 1 / 4)
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 9, np.mean(values), error))
    plain = stats.t.interval(0.95, 9, np.mean(values), np.std(values, ddof=1) / np.sqrt(10))
    assert high - low == pytest.approx((plain[1] - plain[0]) * np.sqrt(3.5))
    assert paired_parts(values, [0.5] * 10, 1 / 4, 30) == Difference(
        pytest.approx(np.mean(values) - 0.5), pytest.approx(low - 0.5), pytest.approx(high - 0.5), 30
    )


def test_paired_shares_are_those_of_agresti_and_min():
    # McNemar's table with 7 and 2 discordant rows of 50: (7.5 - 2.5) / 52 +- 1.96 sqrt(10 - 25 / 52) / 52.
    ours = np.array([True] * 7 + [False] * 2 + [True] * 41)
    theirs = np.array([False] * 7 + [True] * 2 + [True] * 41)
    found = paired_shares(ours, theirs, np.ones(50))
    assert found.value == pytest.approx(0.1)
    radius = 1.959964 * np.sqrt(10 - 25 / 52) / 52
    assert (found.low, found.high) == pytest.approx((5 / 52 - radius, 5 / 52 + radius), rel=1e-6)
    assert found.verdict(larger_is_better=True) == "not distinguishable at n = 50"
    double = paired_shares(ours, theirs, np.full(50, 2.0))
    assert (double.low, double.high) == pytest.approx((found.low, found.high))  # no more rows than before
    assert double.effective_rows is None


def test_paired_shares_with_weights_are_those_of_the_rows():
    """The variance by a loop, with half a row of weight sum w^3 / sum w^2 in each cell."""
    rng = np.random.default_rng(0)
    ours, theirs, weights = rng.random(40) < 0.8, rng.random(40) < 0.6, rng.exponential(size=40)
    rows = [(w, int(a) - int(b), 1.0) for w, a, b in zip(weights, ours, theirs, strict=True)]
    added = sum(weights**3) / sum(weights**2)
    rows += [(added, gained, 0.5) for gained in (1, -1, 0, 0)]
    total = sum(w * times for w, _, times in rows)
    centre = sum(w * gained * times for w, gained, times in rows) / total
    radius = (
        1.959964 * np.sqrt(sum(times * w**2 * (gained - centre) ** 2 for w, gained, times in rows)) / total
    )
    found = paired_shares(ours, theirs, weights)
    assert (found.low, found.high) == pytest.approx((centre - radius, centre + radius), rel=1e-6)
    assert found.value == pytest.approx(np.average(1.0 * ours - theirs, weights=weights))
    assert found.rows == 40
    assert found.effective_rows == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert f"at n = 40 (effective {found.effective_rows:.0f})" in Difference(
        0.0, -1.0, 1.0, 40, found.effective_rows
    ).verdict(larger_is_better=True)


def test_equal_predictions_are_not_distinguishable():
    same = np.ones(20, dtype=bool)
    found = paired_shares(same, same, np.ones(20))
    assert (found.value, found.distinguishable) == (0.0, False)
    assert found.low < 0 < found.high
    assert not paired_parts([0.5, 0.6], [0.5, 0.6], 1.0, 20).distinguishable


def test_verdicts_say_who_is_better():
    assert Difference(0.1, 0.05, 0.2, 9).verdict(larger_is_better=True) == "better"
    assert Difference(0.1, 0.05, 0.2, 9).verdict(larger_is_better=False) == "worse"
    assert Difference(-0.1, -0.2, -0.05, 9).verdict(larger_is_better=False) == "better"


def test_paired_means_have_the_interval_of_their_differences():
    rng = np.random.default_rng(0)
    values, other, weights = rng.random(30), rng.random(30), rng.exponential(size=30)
    found = paired_means(values, other, weights)
    assert found.value == pytest.approx(np.average(values - other, weights=weights))
    assert (found.low, found.high) == pytest.approx(mean_interval(values - other, weights))
    assert paired_means(values[:1], other[:1], weights[:1]) is None


def test_paired_intervals_hold_the_true_difference():
    """In about 95 % of draws; with 500 of them at least 90 %."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(500):
        cells = rng.choice(4, 60, p=[0.8, 0.12, 0.04, 0.04])
        found = paired_shares(cells < 2, (cells == 0) | (cells == 2), np.ones(60))
        covered += found.low <= 0.08 <= found.high
    assert 0.9 * 500 <= covered <= 500


#: 18 positives of weight 110, and 1,982 negatives: half of the weight.
RARE = np.repeat([110.0, 1.0], [18, 1982])


def discordant(rng, shares, losses):
    """Which rows two learners classify correctly that differ with these probabilities in favour of either."""
    drawn = rng.random(len(shares))
    ours_only, theirs_only = drawn < shares, (drawn >= shares) & (drawn < shares + losses)
    return ~theirs_only, ~ours_only


@pytest.mark.parametrize("rare", [0.1, 0.3, 0.5])
def test_equal_learners_are_rarely_told_apart_by_few_positives(rare):
    """With 600 draws from 5 % to 30 + 2 standard deviations of 5.3; with weights as numbers of rows, over half are."""
    rng = np.random.default_rng(2)
    half = np.where(RARE > 1, rare, 0.05) / 2
    wrong = sum(paired_shares(*discordant(rng, half, half), RARE).distinguishable for _ in range(600))
    assert wrong <= 41


@pytest.mark.parametrize("weights", [np.ones(300), RARE, None], ids=["equal", "class", "unequal"])
def test_paired_intervals_with_weights_cover_95_percent(weights):
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(600):
        w = rng.exponential(size=400) if weights is None else weights
        shares = np.where(w >= 110, 0.35, 0.15)
        ours, theirs = discordant(rng, shares, np.full(len(w), 0.05))
        found = paired_shares(ours, theirs, w)
        covered += found.low <= np.average(shares - 0.05, weights=w) <= found.high
    assert 0.92 * 600 <= covered <= 0.98 * 600


def test_differences_of_losses_with_weights_cover_95_percent():
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(600):
        gained = rng.laplace(0.1, np.where(RARE > 1, 0.4, 0.1))
        found = paired_means(gained, np.zeros(2000), RARE)
        covered += found.low <= 0.1 <= found.high
    assert 0.92 * 600 <= covered <= 0.98 * 600
