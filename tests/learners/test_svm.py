"""The support vector machine as a learner: validation and limits."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from running import random_data
from sklearn.svm import SVC

from milpbn.data.dataset import UNKNOWN
from milpbn.errors import InputError
from milpbn.learners.base import Control
from milpbn.learners.svm import (
    COSTS,
    SIGMAS,
    UNSTOPPABLE_ROWS,
    Svm,
    ValidationSplit,
    squared_distances,
)
from milpbn.learners.svm_machine import fit_machine, indicators
from milpbn.trials.parts import validation_splits


@pytest.fixture
def data():
    return random_data(3, n_features=4, n_samples=80)


def test_validation_counts_what_a_machine_with_scikit_learns_kernel_classifies_correctly(monkeypatch):
    """Some held-out values have no state; without enough memory the kernel is scikit-learn's, too."""
    data = random_data(6, n_features=3, n_samples=300, n_classes=3)
    weights = np.random.default_rng(1).integers(1, 4, data.n_samples).astype(float)
    codes = data.codes.copy()
    codes[200:220, 1] = UNKNOWN
    data = replace(data, codes=codes, weights=weights)
    fit, held = data.take(np.arange(200)), data.take(np.arange(200, 300))
    split = ValidationSplit(fit.merged, held.merged)
    assert split.fit.n_samples < 200
    pairs = list(product((0.25, 1.0, 4.0), (0.125, 32.0)))
    expected = []
    for sigma, cost in pairs:
        machine = SVC(C=cost, gamma=0.5 / sigma**2)
        machine.fit(indicators(split.fit), split.fit.y, sample_weight=split.fit.weights)
        expected.append(held.weights[machine.predict(indicators(held)) == held.y].sum())
    assert len(set(expected)) > 2
    assert [split.correct_weight(pair) for pair in pairs] == expected
    monkeypatch.setattr("milpbn.learners.svm.available_memory", lambda: 1000)
    assert [split.correct_weight(pair) for pair in pairs] == expected


def test_distances_are_those_of_the_indicators(data):
    codes = data.codes.copy()
    codes[60:65, 0] = UNKNOWN
    data = replace(data, codes=codes)
    fit, held = data.take(np.arange(60)), data.take(np.arange(60, 80))
    own, other = squared_distances(ValidationSplit(fit, held))
    rows, others = indicators(fit).toarray(), indicators(held).toarray()
    assert (own == ((rows[:, None] - rows[None]) ** 2).sum(axis=2)).all()
    assert (other == ((others[:, None] - rows[None]) ** 2).sum(axis=2)).all()


def test_the_grid_is_the_published_one():
    assert [np.log2(v) for v in SIGMAS] == list(range(-5, 6))
    assert [np.log2(v) for v in COSTS] == list(range(-3, 6))


def test_validation_chooses_the_best_pair(data, monkeypatch):
    """Every second width and every third cost, since all pairs are tried in the same way."""
    sigmas, costs = SIGMAS[::2], COSTS[::3]
    monkeypatch.setattr("milpbn.learners.svm.SIGMAS", sigmas)
    monkeypatch.setattr("milpbn.learners.svm.COSTS", costs)
    told: list[str] = []
    learned = Svm().fit(data, Control(report=told.append, random_state=3))
    assert learned.structure is None
    assert learned.details["tried"] == len(sigmas) * len(costs) == 18
    assert not learned.details["stopped_early"]
    shares = {}
    for sigma, cost in product(sigmas, costs):
        right = total = 0.0
        for fit, held in validation_splits(data.y, 3):
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
        return asked > 10  # once for every pair, and again where one takes long

    learned = Svm().fit(data, Control(interrupted=interrupted))
    assert 0 < learned.details["tried"] < 20
    assert learned.details["stopped_early"]
    assert 0.2 < learned.details["sigma"] < 5
    assert 0.4 < learned.details["cost"] < 10


@pytest.fixture(scope="module")
def large():
    """A fit to all of these rows takes half a minute, during which no clock is checked."""
    return random_data(4, n_features=40, n_samples=10_000)


@pytest.mark.parametrize("learner", [Svm(sigma=1.0, cost=32.0), Svm()])
def test_a_limit_holds_within_a_fit(large, learner):
    begun = time.monotonic()
    learned = learner.fit(large, Control(time_limit=1.0))
    assert time.monotonic() - begun < 15
    assert learned.details["rows"] <= UNSTOPPABLE_ROWS
    assert learned.details["stopped_early"]
    assert set(learned.predictor.machine.classes_) == set(large.y)


def test_an_interrupt_holds_within_a_fit(large):
    begun = time.monotonic()
    told: list[str] = []
    control = Control(interrupted=lambda: time.monotonic() > begun + 1.0, report=told.append)
    learned = Svm(sigma=1.0, cost=32.0).fit(large, control)
    assert time.monotonic() - begun < 15
    assert learned.details["stopped_early"]
    assert "time is over" in told[-1]


def test_the_reduced_sample_has_every_class(large):
    y = np.zeros(large.n_samples, dtype=np.int32)
    y[:3000] = 1
    y[77] = 2
    codes = np.column_stack([large.X, y]).astype(np.int32)
    variables = (*large.variables[:-1], replace(large.variables[-1], states=("a", "b", "c")))
    rare = replace(large, variables=variables, codes=codes)
    learned = Svm(sigma=1.0, cost=1.0).fit(rare, Control(interrupted=lambda: True))
    assert learned.details["rows"] <= UNSTOPPABLE_ROWS
    assert list(learned.predictor.machine.classes_) == [0, 1, 2]
    shares = learned.predictor.machine.n_support_ / learned.details["rows"]
    assert shares[1] < 0.35


def test_enough_time_fits_to_all_rows():
    """A fit in a process of its own gives the same machine as one in this process."""
    data = random_data(5, n_features=4, n_samples=UNSTOPPABLE_ROWS + 1)
    learned = Svm(sigma=1.0, cost=1.0, probabilities=False).fit(data)
    assert learned.details["rows"] == data.n_samples
    assert not learned.details["stopped_early"]
    here = fit_machine(data, 1.0, 1.0).machine.decision_function(indicators(data))
    assert (learned.predictor.machine.decision_function(indicators(data)) == here).all()


def test_validation_takes_half_of_the_time(data, monkeypatch):
    """The test's clock advances by a second at every call."""
    now = 0.0

    def monotonic() -> float:
        nonlocal now
        now += 1.0
        return now

    told: list[float] = []
    report = lambda line: told.append(now) if line.startswith("fitting") else None  # noqa: E731
    monkeypatch.setattr("milpbn.util.budget.time.monotonic", monotonic)
    learned = Svm().fit(data, Control(time_limit=600.0, report=report))
    assert told == [pytest.approx(300.0, abs=40.0)]
    assert learned.details["tried"] > 0


@pytest.mark.parametrize(
    ("n_features", "sigmas"), [(4, {1.0}), (16, {2.0}), (36, {2.0, 4.0}), (100, {4.0, 8.0})]
)
def test_the_middle_of_the_widths_grows_with_the_features(n_features, sigmas):
    wide = random_data(5, n_features=n_features, n_samples=30)
    found = Svm().fit(wide, Control(time_limit=0.0)).details
    assert (found["sigma"] in sigmas, found["cost"]) == (True, 2.0)


def test_without_time_there_is_still_a_machine(data):
    learned = Svm().fit(data, Control(time_limit=0.0))
    assert learned.details["tried"] == 0
    assert len(learned.predictor.predict(data)) == data.n_samples


def test_bad_options_and_data_are_refused(data):
    for cost in (0.0, 1e300, float("nan")):
        with pytest.raises(InputError, match="cost"):
            Svm(cost=cost)
    with pytest.raises(InputError, match="sigma"):
        Svm(sigma=1e-200)
    with pytest.raises(InputError, match="one class"):
        Svm().fit(data.take(np.flatnonzero(data.y == 0)))


def test_a_class_that_a_split_lacks_is_no_error(data):
    """Validation leaves a class of one row out of the part that is fitted to, which then has one class."""
    y = np.zeros(data.n_samples, dtype=np.int32)
    y[7] = 1
    rare = replace(data, codes=np.column_stack([data.X, y]).astype(np.int32))
    learned = Svm(sigma=1.0).fit(rare)
    assert learned.details["tried"] > 0
    assert (learned.predictor.predict(rare) == data.variables[-1].states[0]).sum() >= data.n_samples - 1
