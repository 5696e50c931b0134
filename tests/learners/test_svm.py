"""The support vector machine: kernel, weights, validation."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from running import random_data
from sklearn.svm import SVC

from milpbn.data.dataset import UNKNOWN
from milpbn.errors import InputError
from milpbn.learners.base import Control
from milpbn.learners.svm import COSTS, SIGMAS, Svm, fit_machine, indicators
from milpbn.selection import validation_parts


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


def test_weights_are_copies(data):
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, data.n_samples).astype(float)
    heavy = fit_machine(replace(data, weights=weights), 1.0, 1.0)
    copies = fit_machine(data.take(np.repeat(np.arange(data.n_samples), weights.astype(int))), 1.0, 1.0)
    a, b = (m.machine.decision_function(indicators(data)) for m in (heavy, copies))
    assert a == pytest.approx(b, abs=1e-2)


def test_the_grid_is_p12s():
    assert [np.log2(v) for v in SIGMAS] == list(range(-5, 6))
    assert [np.log2(v) for v in COSTS] == list(range(-3, 6))


def test_validation_chooses(data):
    told: list[str] = []
    learned = Svm().fit(data, Control(report=told.append, random_state=3))
    assert learned.structure is None
    assert learned.details["tried"] == 99
    assert not learned.details["stopped_early"]
    shares = {}
    for sigma, cost in product(SIGMAS, COSTS):
        right = total = 0.0
        for fit, held in validation_parts(data.y, 3):
            machine = SVC(C=cost, gamma=0.5 / sigma**2).fit(indicators(data)[fit], data.y[fit])
            right += (machine.predict(indicators(data)[held]) == data.y[held]).sum()
            total += len(held)
        shares[sigma, cost] = right / total
    best = max(shares.values())
    assert len(set(shares.values())) > 5
    assert learned.details["validation_accuracy"] == pytest.approx(best)
    assert shares[learned.details["sigma"], learned.details["cost"]] == pytest.approx(best)
    again = Svm(sigma=learned.details["sigma"], cost=learned.details["cost"]).fit(data)
    assert (again.predictor.predict(data) == learned.predictor.predict(data)).all()
    assert "tried" not in again.details
    assert told


def test_a_limit_leaves_the_middle_of_the_grid(data):
    asked = 0

    def interrupted() -> bool:
        nonlocal asked
        asked += 1
        return asked > 40

    learned = Svm().fit(data, Control(interrupted=interrupted))
    assert 0 < learned.details["tried"] < 20
    assert learned.details["stopped_early"]
    assert 0.2 < learned.details["sigma"] < 5
    assert 0.4 < learned.details["cost"] < 10


def test_no_time_still_gives_a_machine(data):
    learned = Svm().fit(data, Control(time_limit=0.0))
    assert learned.details["tried"] == 0
    assert len(learned.predictor.predict(data)) == data.n_samples


def test_values_without_a_state(data):
    codes = data.codes.copy()
    codes[0, 0] = UNKNOWN
    predictor = Svm(sigma=1.0, cost=1.0).fit(data).predictor
    assert predictor.predict(replace(data, codes=codes))[0] in predictor.classes


def test_refusals(data):
    for cost in (0.0, 1e300, float("nan")):
        with pytest.raises(InputError, match="cost"):
            Svm(cost=cost)
    with pytest.raises(InputError, match="sigma"):
        Svm(sigma=1e-200)
    with pytest.raises(InputError, match="one class"):
        Svm().fit(data.take(np.flatnonzero(data.y == 0)))


def test_a_class_that_a_part_lacks(data):
    """Validation leaves a class of one row out of the part that is fitted to, which then has one class."""
    y = np.zeros(data.n_samples, dtype=np.int32)
    y[7] = 1
    rare = replace(data, codes=np.column_stack([data.X, y]).astype(np.int32))
    learned = Svm(sigma=1.0).fit(rare)
    assert learned.details["tried"] > 0
    assert (learned.predictor.predict(rare) == data.variables[-1].states[0]).sum() >= data.n_samples - 1
