"""Thresholds from rows that folds hold out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from milpbn.data import read_table
from milpbn.data.folds import stratified_folds
from milpbn.errors import InputError
from milpbn.network import AveragedClassifier, Classifier, Structure
from milpbn.network.parameters.refit import refit_classifier
from milpbn.network.parameters.thresholds import (
    decide_by_folds,
    held_out_probabilities,
    left_out_probabilities,
)


def _table(n=600, seed=1, share=0.2, weighted=False):
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < share
    columns = {
        f"x{i}": rng.random(n) < np.where(sick, 0.5 + d, 0.5 - d) for i, d in enumerate((0.3, 0.25, 0.2, 0.1))
    }
    frame = pd.DataFrame(columns).assign(state=np.where(sick, "sick", "well"))
    data = read_table(frame, target="state").dataset("train")
    return replace(data, weights=rng.exponential(size=n) + 0.1) if weighted else data


def _naive(data):
    return Structure(data.names, (*((len(data.names) - 1,) for _ in data.names[:-1]), ()))


@pytest.fixture
def data():
    return _table()


def test_probabilities_are_those_of_the_other_folds(data):
    classifier = Classifier.fit(data, _naive(data))
    found = held_out_probabilities(classifier, data, 3)
    for train, held in stratified_folds(data.y, 5, 3):
        own = Classifier.fit(data.take(train), classifier.structure).predict_proba(data.take(held))
        np.testing.assert_allclose(found[held], own, atol=1e-14)
    both = AveragedClassifier((classifier, Classifier.fit(data, Structure.empty(data.names))))
    alone = held_out_probabilities(both.members[1], data, 3)
    np.testing.assert_allclose(held_out_probabilities(both, data, 3), (found + alone) / 2, atol=1e-14)


def test_weights_that_leave_one_out_made_larger_are_recognised():
    data = _table(weighted=True)
    larger = replace(data, weights=data.weights / data.weights.min())
    about = {"score": {"leave_one_out": True}, "data": {"total_weight": float(larger.weights.sum())}}
    classifier = replace(Classifier.fit(larger, _naive(data)), provenance=about)
    np.testing.assert_allclose(
        held_out_probabilities(classifier, data), held_out_probabilities(classifier, larger), atol=1e-12
    )
    np.testing.assert_allclose(
        left_out_probabilities(classifier, data), left_out_probabilities(classifier, larger), atol=1e-12
    )
    with pytest.raises(InputError, match="are not those that are fitted to the rows"):
        held_out_probabilities(classifier, _table(weighted=False))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("option", "share"), [("sensitivity", 0.9), ("sensitivity", 1.0), ("alarm_rate", 0.25)]
)
def test_a_threshold_keeps_its_promise_on_held_out_rows(option, share, weighted):
    data = _table(weighted=weighted)
    classifier = Classifier.fit(data, _naive(data))
    decided, figures = decide_by_folds(classifier, data, **{option: share})
    sick = data.y == data.variables[-1].states.index("sick")
    p, w = held_out_probabilities(classifier, data)[:, 0], data.weights
    threshold = decided.decision.threshold(0)

    def value(t):
        return (
            w[sick & (p > t)].sum() / w[sick].sum() if option == "sensitivity" else w[p > t].sum() / w.sum()
        )

    assert abs(p - threshold).min() > 1e-9  # halfway between two probabilities
    above, below = p[p > threshold].min(), p[p < threshold].max() if (p < threshold).any() else -1.0
    if option == "sensitivity":
        assert value(threshold) >= share - 1e-12 > value(above) - 1e-9  # the highest one
        assert figures.sensitivity == pytest.approx(value(threshold))
    else:
        assert value(threshold) <= share + 1e-12
        assert value(np.nextafter(below, -1)) > share
        assert figures.alarms_per_1000 == pytest.approx(1000 * value(threshold))
    chosen = decided.predict(data) == "sick"
    assert (chosen == (classifier.predict_proba(data)[:, 0] > threshold)).all()
    assert f"{option.replace('_', ' ')} {share:g}" in decided.decision.origin


def test_a_sensitivity_holds_on_new_rows_on_average():
    """Of 40 tables, the mean sensitivity on many new rows is the promised one, within 4 standard errors."""
    new, found = _table(5_000, seed=99), []
    sick = new.y == 0
    for seed in range(40):
        data = _table(500, seed=seed)
        decided, _ = decide_by_folds(Classifier.fit(data, _naive(data)), data, sensitivity=0.8)
        found.append((decided.predict_codes(new)[sick] == 0).mean())
    assert np.mean(found) > 0.8 - 4 * np.std(found) / np.sqrt(40)
    assert np.mean(found) < 0.93  # the steps of a few probabilities are wide


def test_fitted_parameters_are_fitted_in_the_folds_as_well(data):
    classifier, record = refit_classifier(Classifier.fit(data, _naive(data)), data, "hybrid:0.5:1")
    assert record.fitted
    decided, _ = decide_by_folds(classifier, data, sensitivity=0.9)
    assert decided.decision is not None
    found = held_out_probabilities(classifier, data)
    train, held = stratified_folds(data.y, 5, 0)[0]
    plain = Classifier.fit(data.take(train), classifier.structure)
    own, _ = refit_classifier(plain, data.take(train), "hybrid:0.5:1")
    np.testing.assert_allclose(found[held], own.predict_proba(data.take(held)), atol=1e-6)
    assert np.abs(found[held] - plain.predict_proba(data.take(held))).max() > 1e-3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "either a sensitivity"),
        ({"sensitivity": 0.9, "alarm_rate": 0.1}, "either a sensitivity"),
        ({"sensitivity": 1.2}, r"--sensitivity \(sensitivity\) must be a share"),
        ({"alarm_rate": 1.0}, r"--alarm-rate \(alarm_rate\) must be a share"),
        ({"alarm_rate": 1e-6}, "No threshold has at most 0.0001 % of alarms"),
        ({"sensitivity": 0.9, "positive": "ill"}, "is 'ill', and the classes are 'sick', 'well'"),
    ],
)
def test_impossible_requests_are_refused(data, options, sentence):
    with pytest.raises(InputError, match=sentence):
        decide_by_folds(Classifier.fit(data, _naive(data)), data, **options)


def test_rows_of_other_data_are_refused(data):
    other = Classifier.fit(_table(600, seed=2), _naive(data))
    with pytest.raises(InputError, match="not those that are fitted to the rows"):
        decide_by_folds(other, data, sensitivity=0.9)
