"""Classifiers of scikit-learn with the interface of the learners, and their probabilities row by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from running import random_data
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from milpbn.data.dataset import MISSING, UNKNOWN
from milpbn.errors import InputError
from milpbn.learners import peers
from milpbn.learners.base import Control
from milpbn.learners.registry import get_learner
from milpbn.learners.svm_machine import indicators
from milpbn.network.evaluation import accuracy, evaluate
from milpbn.trials import executors
from milpbn.trials.judged import Judged

NAMES = ("logistic", "boosting", "random-forest")


@pytest.fixture(scope="module")
def data():
    return random_data(3, n_features=4, n_samples=90, n_classes=3)


def options(name):
    return {"n_estimators": 10} if name == "random-forest" else {"max_iter": 3}


@pytest.mark.parametrize("name", NAMES)
def test_peers_have_probabilities_and_count_their_parameters(data, name):
    learned = get_learner(name)(**options(name)).fit(data, Control(random_state=1))
    found = learned.predictor.predict_proba(data)
    assert found.shape == (90, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found.argmax(axis=1) == learned.predictor.predict_codes(data)).mean() > 0.98  # ties apart
    assert learned.structure is None
    assert learned.predictor.n_parameters > 0
    assert learned.details["stopped_early"] is False


def test_parameters_are_counted_by_hand(data):
    states = sum(v.n_states for v in data.variables[:-1])
    assert get_learner("logistic")(max_iter=10).fit(data).predictor.n_parameters == 3 * (states + 1)
    forest = get_learner("random-forest")(n_estimators=3).fit(data).predictor
    trees = [estimator.tree_ for estimator in forest.model.estimators_]
    leaves = sum(int((tree.children_left < 0).sum()) for tree in trees)
    splits = sum(int((tree.children_left >= 0).sum()) for tree in trees)
    assert forest.n_parameters == splits + 2 * leaves


def test_models_are_those_of_scikit_learn(data):
    dense = indicators(data).toarray()
    plain = RandomForestClassifier(7, random_state=4).fit(dense, data.y).predict_proba(dense)
    ours = get_learner("random-forest")(n_estimators=7).fit(data, Control(random_state=4)).predictor
    np.testing.assert_allclose(ours.predict_proba(data), plain)
    plain = HistGradientBoostingClassifier(max_iter=2, random_state=4).fit(dense, data.y).predict_proba(dense)
    ours = get_learner("boosting")(max_iter=2).fit(data, Control(random_state=4)).predictor
    np.testing.assert_allclose(ours.predict_proba(data), plain)


def test_a_class_without_rows_has_probability_zero(data):
    two = data.take(np.flatnonzero(data.y != 1))
    found = get_learner("random-forest")(n_estimators=5).fit(two).predictor.predict_proba(data)
    assert (found[:, 1] == 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_weights_reach_the_model(data):
    learner = get_learner("random-forest")(n_estimators=10, min_samples_leaf=3)
    weighted = replace(data, weights=np.where(data.y == 0, 50.0, 1.0))
    assert (learner.fit(weighted).predictor.predict_codes(data) == 0).mean() > (
        learner.fit(data).predictor.predict_codes(data) == 0
    ).mean()


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("logistic", {"scoring": "f1"}, "scoring must be"),
        ("logistic", {"costs": 0}, "costs must be a positive"),
        ("boosting", {"learning_rate": 0.0}, "learning_rate must be a positive"),
        ("boosting", {"early_stopping": "maybe"}, "early_stopping must be"),
        ("random-forest", {"n_estimators": -1}, "n_estimators must be a positive"),
    ],
)
def test_impossible_options_are_refused(name, wrong, message):
    with pytest.raises(InputError, match=message):
        get_learner(name)(**wrong)


def test_large_data_are_fitted_in_a_process_that_can_be_killed(data, monkeypatch):
    asked = []
    real = executors.workers

    def workers(count, *, killable):
        asked.append(killable)
        return real(count, killable=False)

    monkeypatch.setattr(executors, "workers", workers)
    learner = get_learner("random-forest")(n_estimators=2)
    learner.fit(data)
    monkeypatch.setattr(peers, "UNSTOPPABLE_ROWS", 50)
    learner.fit(data)
    assert asked == [False, True]


def test_rows_are_judged_one_by_one(data):
    tan = get_learner("tan")().fit(data).predictor
    test = replace(data, weights=np.arange(1.0, 91.0))
    judged = Judged.of(tan, test)
    figures = evaluate(tan, test)
    found = judged.means()
    assert found["test"] == pytest.approx(accuracy(tan, test)) == figures.accuracy
    assert found["unweighted"] == figures.unweighted.accuracy
    assert found["log_loss"] == pytest.approx(figures.log_loss)
    assert found["brier"] == pytest.approx(figures.brier)
    codes = data.codes.copy()
    codes[:10, -1] = UNKNOWN  # a class that training lacks
    codes[10:15, -1] = MISSING
    partly = Judged.of(tan, replace(data, codes=codes))
    assert (len(partly.correct), partly.correct[:10].any()) == (85, False)
    assert partly.log_losses[:10] == pytest.approx(-np.log(np.finfo(float).eps))


def test_support_vectors_have_calibrated_probabilities(data):
    learner = get_learner("svm")
    machine = learner(cost=1.0, sigma=1.0).fit(data).predictor
    judged = Judged.of(machine, data)
    assert judged.means()["log_loss"] < np.log(3) + 0.05
    without = learner(cost=1.0, sigma=1.0, probabilities=False).fit(data).predictor
    assert set(Judged.of(without, data).values) == {"test"}
    assert (without.predict_codes(data) == machine.predict_codes(data)).all()
    assert machine.n_parameters == machine.machine.dual_coef_.size + 3
