"""Intervals and tests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from milpbn.experiments.statistics import half_width, outperforms, p_value


def rows(right: int, of: int) -> np.ndarray:
    return np.arange(of) < right


def test_the_interval_of_folds_is_the_published_one_of_iris():
    # Naive Bayes on iris has 94.00 +- 1.85, TAN 95.33 +- 2.27, SM 93.33 +- 2.93 in the paper; folds have 30 rows.
    assert 100 * half_width([28 / 30] * 4 + [29 / 30], 30) == pytest.approx(1.85, abs=0.005)
    assert 100 * half_width([28 / 30] * 2 + [29 / 30] * 3, 30) == pytest.approx(2.27, abs=0.005)
    assert 100 * half_width([27 / 30, 28 / 30, 28 / 30, 28 / 30, 29 / 30], 30) == pytest.approx(
        2.93, abs=0.005
    )


def test_the_interval_of_a_test_set_is_the_published_one_of_letter():
    assert 100 * half_width([0.8664], 5000) == pytest.approx(0.94, abs=0.005)


def test_folds_have_a_paired_t_test():
    ours, theirs = [27, 28, 29, 27, 30], [26, 28, 27, 26, 28]
    a, b = ([rows(n, 30) for n in counts] for counts in (ours, theirs))
    told = stats.ttest_rel(np.array(ours) / 30, np.array(theirs) / 30, alternative="greater").pvalue
    assert p_value(a, b) == pytest.approx(told)
    assert p_value(b, a) == pytest.approx(1 - told)
    assert outperforms(a, b, 0.95)
    assert not outperforms(b, a, 0.68)


def test_equal_differences_have_the_p_value_0_or_1():
    a, b = [rows(28, 30)] * 5, [rows(27, 30)] * 5
    assert (p_value(a, b), p_value(b, a), p_value(a, a)) == (0.0, 1.0, 1.0)


def test_a_test_set_has_a_binomial_test_on_the_rows_that_differ():
    a, b = rows(60, 100), np.arange(100) >= 45
    # Rows 0 to 44 are right with the first only, rows 60 to 99 with the second only.
    assert p_value([a], [b]) == pytest.approx(float(stats.binom.sf(44, 85, 0.5)))
    assert p_value([b], [a]) == pytest.approx(float(stats.binom.sf(39, 85, 0.5)))
    assert p_value([a], [a]) == 1.0
    assert outperforms([rows(60, 100)], [rows(54, 100)], 0.95)  # six rows against none: p = 1 / 64
    assert not outperforms([rows(60, 100)], [rows(56, 100)], 0.95)
    assert outperforms([rows(60, 100)], [rows(58, 100)], 0.68)
