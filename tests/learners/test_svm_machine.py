"""The support vector machine: kernel, weights, values without a state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from running import random_data
from sklearn.svm import SVC

from milpbn.data.dataset import UNKNOWN
from milpbn.learners.svm import Svm
from milpbn.learners.svm_machine import MergingSVC, fit_machine, indicators


@pytest.fixture
def data():
    return random_data(3, n_features=4, n_samples=80)


def test_the_kernel_counts_differing_features(data):
    # |x - x'|^2 is twice the Hamming distance, so that the kernel is exp(-distance / sigma^2).
    sigma, cost = 1.5, 2.0
    distance = (data.X[:, None] != data.X[None]).sum(axis=2)
    own = SVC(C=cost, kernel="precomputed").fit(np.exp(-distance / sigma**2), data.y)
    found = fit_machine(data, sigma, cost)
    scores = found.machine.decision_function(indicators(data))
    assert scores == pytest.approx(own.decision_function(np.exp(-distance / sigma**2)), abs=1e-2)


def test_weights_equal_copies(data):
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, data.n_samples).astype(float)
    heavy = fit_machine(replace(data, weights=weights), 1.0, 1.0)
    copies = fit_machine(data.take(np.repeat(np.arange(data.n_samples), weights.astype(int))), 1.0, 1.0)
    a, b = (m.machine.decision_function(indicators(data)) for m in (heavy, copies))
    assert a == pytest.approx(b, abs=1e-2)


def test_a_merging_machine_is_the_plain_machine(data):
    weights = np.random.default_rng(0).integers(1, 4, data.n_samples).astype(float)
    rows = indicators(data)
    for given in (None, weights):
        plain = SVC(C=2.0, gamma=0.5, tol=1e-6).fit(rows, data.y, sample_weight=given)
        merging = MergingSVC(C=2.0, gamma=0.5, tol=1e-6).fit(rows, data.y, sample_weight=given)
        assert len(merging.support_) < len(plain.support_)
        assert merging.decision_function(rows) == pytest.approx(plain.decision_function(rows), abs=1e-4)


def test_values_without_a_state_are_predicted(data):
    codes = data.codes.copy()
    codes[0, 0] = UNKNOWN
    predictor = Svm(sigma=1.0, cost=1.0).fit(data).predictor
    assert predictor.predict(replace(data, codes=codes))[0] in predictor.classes
