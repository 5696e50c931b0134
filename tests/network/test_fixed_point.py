"""Classifiers with fixed-point parameters."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from fine import fine_classifier, raw_rows
from running import random_data

from milpbn import Structure
from milpbn.data.dataset import MISSING, UNKNOWN
from milpbn.errors import InputError
from milpbn.network import Classifier
from milpbn.network.fixed_point import FixedPointClassifier, accuracy_by_width, enough_integer_bits


@pytest.fixture
def data():
    return random_data(4, n_features=3, n_samples=60, weights=True)


@pytest.fixture
def classifier(data):
    return Classifier.fit(data, Structure(data.names, ((3,), (0, 3), (1, 3), ())), smoothing=0.5)


def plain_costs(classifier, data, integer, fraction) -> np.ndarray:
    """Return sums of floor(-log theta 2^fraction), each at most the largest number, as fractions; shape (M, C)."""
    largest = 2 ** (integer + fraction) - 1
    costs = np.zeros((data.n_samples, data.n_classes), dtype=object)
    for m, c in np.ndindex(costs.shape):
        codes = [*data.X[m], c]
        for cpt in classifier.cpts:
            theta = cpt.table[tuple(codes[j] for j in (*cpt.parents, cpt.variable))]
            costs[m, c] += min(int(Fraction(-float(np.log(theta))) * Fraction(2) ** fraction // 1), largest)
    return costs


@pytest.mark.parametrize(
    ("integer", "fraction"), [(3, 5), (2, 0), (1, 2), (4, -2), (8, 20), (12, 52), (1, 63)]
)
def test_costs_are_sums_of_the_stored_numbers(classifier, data, integer, fraction):
    costs = FixedPointClassifier(classifier, integer, fraction).costs(data)
    assert (costs == plain_costs(classifier, data, integer, fraction)).all()


def test_many_bits_are_as_good_as_floating_point(classifier, data):
    fixed = FixedPointClassifier(classifier, enough_integer_bits(classifier), 30)
    assert (fixed.predict(data) == classifier.predict(data)).all()


def test_enough_integer_bits_hold_every_parameter(classifier):
    bits = enough_integer_bits(classifier)
    largest = max(-np.log(cpt.table).min() for cpt in classifier.cpts)
    assert 2**bits > largest >= 2 ** (bits - 1)


def test_states_that_do_not_occur_together_need_no_bits():
    classifier = fine_classifier(0)
    frame = raw_rows(classifier, 50, 1)
    bits = enough_integer_bits(classifier)
    assert bits < 5 < np.log2(40)  # e^-40 stands for the impossible
    found = FixedPointClassifier(classifier, bits, 30).predict_codes(frame)
    assert (found == classifier.predict_codes(frame)).all()


def test_zero_probabilities_saturate(data):
    classifier = Classifier.fit(data, Structure.naive_bayes(data.names), smoothing=0.0)
    stored = FixedPointClassifier(classifier, 4, 4).stored(np.array([0.0, 1.0]))
    assert stored.tolist() == [255, 0]


def test_unknown_values_are_predicted_as_by_the_classifier(classifier, data):
    codes = data.codes.copy()
    codes[:, 0] = UNKNOWN
    fixed = FixedPointClassifier(classifier, 6, 30)
    unknown = replace(data, codes=codes)
    assert (fixed.predict(unknown) == classifier.predict(unknown)).all()
    codes[0, 1] = MISSING
    with pytest.raises(InputError, match="cannot sum over the states of a missing value"):
        fixed.predict(unknown)


def test_accuracy_is_counted_for_every_width(classifier, data):
    figures = accuracy_by_width(classifier, data, 4, 20)
    assert [width for width, _ in figures] == list(range(20, 0, -1))
    right = classifier.predict_log_joint(data).argmax(axis=1) == data.y
    assert figures[0][1] == pytest.approx(data.weights[right].sum() / data.weights.sum())
    for width, share in figures:
        own = plain_costs(classifier, data, 4, width - 4).argmin(axis=1) == data.y
        assert share == pytest.approx(data.weights[own].sum() / data.weights.sum())
    assert len({share for _, share in figures}) > 3


@pytest.mark.parametrize(("integer", "fraction"), [(0, 4), (4, -4), (12, 53)])
def test_impossible_widths_are_refused(classifier, integer, fraction):
    with pytest.raises(InputError, match="bits"):
        FixedPointClassifier(classifier, integer, fraction)
