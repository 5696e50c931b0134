"""Accuracy, log-loss and Brier score, beside scikit-learn's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from running import random_data
from sklearn.metrics import accuracy_score, log_loss

from milpbn.data.dataset import UNKNOWN
from milpbn.experiments.base import Figures


class Fixed:
    """Predicts given probabilities."""

    def __init__(self, probabilities):
        self.probabilities = probabilities

    def predict_proba(self, data):
        return self.probabilities

    def predict_codes(self, data):
        return self.probabilities.argmax(axis=1)


def figures_of(probabilities, classes):
    data = random_data(0, n_samples=len(classes), n_classes=3)
    codes = data.codes.copy()
    codes[:, -1] = classes
    return Figures.of(Fixed(probabilities), replace(data, codes=codes))


@pytest.fixture
def drawn():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet([1.0, 1.0, 1.0], size=37)
    return probabilities, rng.integers(0, 3, 37).astype(np.int32)


def test_figures_equal_those_of_scikit_learn(drawn):
    probabilities, classes = drawn
    figures = figures_of(probabilities, classes)
    assert figures.accuracy == accuracy_score(classes, probabilities.argmax(axis=1))
    assert figures.log_loss == pytest.approx(log_loss(classes, probabilities, labels=[0, 1, 2]))
    brier = sum(((row - np.eye(3)[c]) ** 2).sum() for row, c in zip(probabilities, classes, strict=True)) / 37
    assert figures.brier == pytest.approx(brier)
    assert figures.unknown_class == 0


def test_a_class_without_training_rows_is_never_right(drawn):
    probabilities, classes = drawn
    classes = classes.copy()
    classes[:2] = UNKNOWN
    figures = figures_of(probabilities, classes)
    # The same as with a column of zeros for the class.
    wide = np.column_stack([probabilities, np.zeros(37)])
    other = figures_of(wide, np.where(classes == UNKNOWN, 3, classes))
    assert figures.unknown_class == 2
    assert not figures.correct[:2].any()
    assert figures.log_loss == pytest.approx(other.log_loss)
    assert figures.brier == pytest.approx(other.brier)
    assert figures.log_loss > 2 * 36 / 37  # -log of 2.2e-16 twice


def test_correct_rows_survive_packing(drawn):
    figures = figures_of(*drawn)
    values = figures.to_dict()
    assert len(values["correct"]) == 2 * 5
    back = Figures.from_dict(values)
    assert (back.correct == figures.correct).all()
    assert back.to_dict() == values
