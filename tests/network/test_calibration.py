"""Brier score, log-loss, reliability curve and calibration error, against scikit-learn and loops."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from milpbn.data.dataset import UNKNOWN
from milpbn.network.calibration import (
    ReliabilityBin,
    calibration_error,
    log_losses,
    reliability_curve,
    squared_errors,
)


@pytest.fixture(params=[2, 4])
def predicted(request):
    rng = np.random.default_rng(request.param)
    probabilities = rng.dirichlet(np.full(request.param, 0.5), 80)
    return probabilities, rng.integers(0, request.param, 80), rng.integers(1, 4, 80).astype(float)


def test_losses_are_those_of_scikit_learn(predicted):
    probabilities, y, weights = predicted
    labels = np.arange(probabilities.shape[1])
    whole = brier_score_loss(y, probabilities, sample_weight=weights, labels=labels, scale_by_half=False)
    assert np.average(squared_errors(probabilities, y), weights=weights) == pytest.approx(whole)
    loss = log_loss(y, probabilities, sample_weight=weights, labels=labels)
    assert np.average(log_losses(probabilities, y), weights=weights) == pytest.approx(loss)


def test_a_class_without_a_column_has_probability_zero():
    certain = np.array([[1.0, 0.0]])
    assert squared_errors(certain, np.array([UNKNOWN])) == pytest.approx([2.0])
    assert log_losses(certain, np.array([UNKNOWN])) == pytest.approx([-np.log(np.finfo(float).eps)])
    assert log_losses(certain, np.array([0])) == pytest.approx([0.0])


def test_the_curve_is_that_of_loops(predicted):
    probabilities, y, weights = predicted
    curve = reliability_curve(probabilities, y, weights)
    assert sum(part.weight for part in curve) == weights.sum()
    error = 0.0
    for part in curve:
        inside = [m for m, row in enumerate(probabilities) if part.low < max(row) <= part.high]
        total = sum(weights[m] for m in inside)
        right = sum(weights[m] for m in inside if np.argmax(probabilities[m]) == y[m])
        assert part.weight == total
        assert part.accuracy == pytest.approx(right / total)
        assert part.confidence == pytest.approx(
            sum(weights[m] * max(probabilities[m]) for m in inside) / total
        )
        error += total * abs(part.accuracy - part.confidence)
    assert calibration_error(curve) == pytest.approx(error / weights.sum())


def test_bins_without_samples_are_left_out_and_weights_are_copies():
    probabilities = np.array([[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]])
    curve = reliability_curve(probabilities, np.array([0, 1, 0]), np.array([2.0, 3.0, 0.0]))
    assert curve == (ReliabilityBin(0.4, 0.5, 2.0, 0.5, 1.0), ReliabilityBin(0.9, 1.0, 3.0, 1.0, 1.0))
