"""Shifts and losses beside what chance gives."""

import numpy as np
import pytest
from scipy.stats import chi2

from milpbn.network.shifts import cells, excess, shift


def test_an_index_is_the_population_stability_index():
    before, now = np.array([30, 70, 0, 0]), np.array([45, 55, 0, 0])
    found = shift("x", ["a", "b"], before, now, np.random.default_rng(0))
    p, q = (30.5 / 101, 70.5 / 101), (45.5 / 101, 55.5 / 101)
    assert found.psi == pytest.approx(sum((b - a) * np.log(b / a) for a, b in zip(p, q, strict=True)))
    assert (found.before, found.now, found.missing, found.unseen) == (0.3, 0.45, 0, 0)


def test_chance_is_that_of_large_samples_where_counts_are_large():
    """Without a change, the index over 1/n + 1/m is chi-squared with k - 1 degrees of freedom."""
    found = shift(
        "x",
        list("abcde"),
        np.full(7, 2000) * [1, 1, 1, 1, 1, 0, 0],
        np.array([430, 380, 400, 390, 400, 0, 0]),
        np.random.default_rng(1),
    )
    scale = 1 / 10_000 + 1 / 2000
    assert found.expected == pytest.approx(4 * scale, rel=0.15)
    assert found.chance == pytest.approx(chi2.ppf(0.99, 4) * scale, rel=0.25)
    assert found.p_value == pytest.approx(chi2.sf(found.psi / scale, 4), abs=0.05)


def test_weights_count_as_the_equal_ones_that_say_the_same():
    codes, weights = np.array([0, 0, 1, -1, -2, 1]), np.array([1.0, 1, 1, 1, 1, 1])
    assert cells(codes, weights, 2).tolist() == [2, 2, 1, 1]
    uneven = cells(np.repeat([0, 1], 100), np.repeat([1.0, 9.0], 100), 2)
    assert uneven.sum() == pytest.approx(1000**2 / (100 * 82), abs=1)
    assert uneven[1] / uneven.sum() == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("with_reference", [False, True])
def test_p_values_of_losses_hold_if_the_probabilities_are_right(with_reference):
    """A class of 3 % with few rows: the losses are as skewed as they get."""
    rng, found = np.random.default_rng(2), []

    def draw(rows):
        p = rng.beta(0.5, 16, rows)
        probabilities = np.column_stack([1 - p, p]).clip(1e-9, 1)
        by_class = -np.log(probabilities)
        y = (rng.random(rows) < p).astype(int)
        return by_class[np.arange(rows), y], by_class, probabilities, np.ones(rows)

    for _ in range(600):
        beside = None
        if with_reference:
            losses, by_class, probabilities, weights = draw(400)
            beside = losses - (probabilities * by_class).sum(axis=1), weights
        found.append(excess("log-loss", *draw(200), beside).p_value)
    p_values = np.array(found)
    for level in (0.01, 0.05, 0.2):
        assert (p_values <= level).mean() <= level + 3 * np.sqrt(level * (1 - level) / 600)
    assert (p_values <= 0.2).mean() >= 0.12  # and they are not too cautious to find anything
