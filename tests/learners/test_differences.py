"""Intervals and paired differences, against their formulas and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from milpbn.learners.differences import (
    Difference,
    corrected_interval,
    mean_interval,
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
    copies = paired_shares(np.tile(ours, 2), np.tile(theirs, 2), np.ones(100))
    assert (double.low, double.high) == pytest.approx((copies.low, copies.high))


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


def test_intervals_of_means_take_weights_as_copies():
    rng = np.random.default_rng(0)
    values, other, weights = rng.random(30), rng.random(30), rng.integers(1, 4, 30)
    repeated = np.repeat(values, weights)
    expected = stats.norm.interval(0.95, repeated.mean(), repeated.std(ddof=1) / np.sqrt(len(repeated)))
    assert mean_interval(values, weights.astype(float)) == pytest.approx(expected)
    found = paired_means(values, other, np.ones(30))
    assert found.value == pytest.approx((values - other).mean())
    assert (found.low, found.high) == pytest.approx(mean_interval(values - other, np.ones(30)))


def test_paired_intervals_hold_the_true_difference():
    """In about 95 % of draws; with 500 of them at least 90 %."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(500):
        cells = rng.choice(4, 60, p=[0.8, 0.12, 0.04, 0.04])
        found = paired_shares(cells < 2, (cells == 0) | (cells == 2), np.ones(60))
        covered += found.low <= 0.08 <= found.high
    assert 0.9 * 500 <= covered <= 500
