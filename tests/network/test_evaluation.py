import json
import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, precision_score, recall_score

from milpbn.data.dataset import UNKNOWN
from milpbn.errors import InputError
from milpbn.network import Classifier, Structure, evaluate
from milpbn.network.calibration import calibration_error, reliability_curve
from milpbn.network.evaluation import normal_half_width, wilson_interval


@pytest.fixture
def data(make_data):
    return make_data(21, samples=90, weights=np.random.default_rng(0).uniform(0.5, 2, 90))


@pytest.fixture
def classifier(data, make_structure):
    return Classifier.fit(data, make_structure(data.names, 3))


def test_figures_agree_with_scikit_learn(data, classifier):
    result = evaluate(classifier, data, gamma=1.0)
    proba, w = classifier.predict_proba(data), data.weights
    predicted = proba.argmax(axis=1)
    assert result.accuracy == pytest.approx(accuracy_score(data.y, predicted, sample_weight=w))
    np.testing.assert_allclose(result.confusion, confusion_matrix(data.y, predicted, sample_weight=w))
    assert result.log_loss == pytest.approx(log_loss(data.y, proba, sample_weight=w))
    for ours, theirs in ((result.recall, recall_score), (result.precision, precision_score)):
        expected = theirs(data.y, predicted, average=None, sample_weight=w, zero_division=np.nan)
        np.testing.assert_allclose(ours, expected)


def test_margins_equal_those_of_loops(data, classifier):
    result = evaluate(classifier, data, gamma=0.2)
    margins = []
    for row, c in zip(classifier.predict_log_joint(data).tolist(), data.y, strict=True):
        own = row.pop(c)
        margins.append(own - max(row))
    assert result.mean_log_margin == pytest.approx(np.average(margins, weights=data.weights))
    expected = sum(w * min(m, 0.2) for w, m in zip(data.weights, margins, strict=True))
    assert result.soft_margin == pytest.approx(expected)
    assert evaluate(classifier, data).soft_margin is None


def test_integer_weights_are_duplicated_rows(data, classifier):
    repeats = np.arange(90) % 4 + 1
    weighted = evaluate(classifier, replace(data, weights=repeats.astype(float)))
    rows = np.repeat(np.arange(90), repeats)
    duplicated = evaluate(classifier, replace(data, weights=np.ones(90)).take(rows))
    assert weighted.samples == 90
    assert duplicated.samples == repeats.sum() == weighted.weight
    for name in ("accuracy", "interval", "half_width", "mean_log_margin", "log_loss"):
        assert getattr(weighted, name) == pytest.approx(getattr(duplicated, name), rel=1e-12)
    assert np.array_equal(weighted.confusion, duplicated.confusion)


def test_rows_without_a_known_class_are_left_out_and_counted(data, classifier):
    partly = replace(data, codes=data.codes.copy())
    partly.codes[:30, -1] = UNKNOWN
    partly.codes[25:35, 0] = UNKNOWN
    result = evaluate(classifier, partly)
    assert (result.samples, result.unknown_class) == (60, 30)
    assert result.unknown_values == {"x0": 10}
    rest = evaluate(classifier, partly.take(np.arange(30, 90)))
    assert result.accuracy == rest.accuracy
    assert result.log_loss == rest.log_loss
    partly.codes[:, -1] = UNKNOWN
    with pytest.raises(InputError, match=r"No row of 'random' has a class label .* column 'class'"):
        evaluate(classifier, partly)


def test_wilson_interval_by_its_definition():
    """The ends solve (share - p)^2 = z^2 p (1 - p) / n."""
    for share, n in [(0.5, 10), (0.93, 200), (0.0, 7), (1.0, 12)]:
        for p in wilson_interval(share, n):
            assert 0 <= p <= 1
            assert (share - p) ** 2 == pytest.approx(1.959963984540054**2 * p * (1 - p) / n, abs=1e-15)


def test_half_width_is_the_papers():
    assert normal_half_width(0.9, 100) == pytest.approx(1.96 * 0.03, rel=1e-4)


def test_to_dict_is_json_without_nan(make_data):
    data = make_data(2, samples=12, states=(2, 2, 3))
    data.codes[:, -1] = np.arange(12) % 2
    classifier = Classifier.fit(data, Structure.empty(data.names), smoothing=0.0)
    test = replace(data, codes=data.codes.copy())
    test.codes[0, -1] = 1
    test.codes[1:, -1] = 0
    test.codes[2, -1] = 2  # never seen in training: probability 0
    result = evaluate(classifier, test, gamma=1.0)
    assert result.log_loss == math.inf
    document = result.to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["log_loss"] is None
    assert document["mean_log_margin"] is None
    assert document["soft_margin"] is None
    assert document["precision"][2] is None
    assert document["recall"] == [1.0, 0.0, 0.0]
    assert document["confusion"] == [[10.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


def test_perfect_accuracy_with_weights_that_round(make_data):
    data = make_data(2, samples=50, states=(3, 3), weights=np.full(50, 0.1))
    data.codes[:, 0] = data.codes[:, 1]
    result = evaluate(Classifier.fit(data, Structure.naive_bayes(data.names), 0.01), data)
    assert result.accuracy == pytest.approx(1)
    assert result.accuracy <= 1
    assert result.half_width == pytest.approx(0, abs=1e-7)


def test_the_majority_baseline_and_calibration_stand_beside_the_accuracy(data, classifier):
    weighted = replace(data, weights=np.linspace(1, 2, data.n_samples))
    found = evaluate(classifier, weighted)
    share = np.bincount(data.y, weights=weighted.weights) / weighted.weights.sum()
    assert found.majority_share == pytest.approx(share.max())
    assert found.majority_class == classifier.classes[share.argmax()]
    assert found.majority_interval == pytest.approx(wilson_interval(share.max(), weighted.weights.sum()))
    probabilities = classifier.predict_proba(weighted)
    errors = ((probabilities - np.eye(data.n_classes)[data.y]) ** 2).sum(axis=1)
    assert found.brier == pytest.approx(np.average(errors, weights=weighted.weights))
    assert found.reliability == reliability_curve(probabilities, data.y, weighted.weights)
    assert found.calibration_error == calibration_error(found.reliability)
    document = found.to_dict()
    assert [part["weight"] for part in document["reliability"]] == [part.weight for part in found.reliability]
    json.dumps(document, allow_nan=False)
    assert len(repr(found)) < 200
