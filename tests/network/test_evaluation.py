import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, precision_score, recall_score

from milpbn.data.dataset import MISSING, UNKNOWN
from milpbn.errors import DataWarning, InputError
from milpbn.network import Classifier, Structure, evaluate
from milpbn.network.calibration import calibration_error, reliability_curve
from milpbn.network.intervals import score_interval, wilson_interval


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


def test_weights_change_means_and_are_no_numbers_of_rows(data, classifier):
    """Means are those of repeated rows; intervals are those of the rows that there are."""
    repeats = np.arange(90) % 4 + 1
    weighted = evaluate(classifier, replace(data, weights=repeats.astype(float)))
    rows = np.repeat(np.arange(90), repeats)
    duplicated = evaluate(classifier, replace(data, weights=np.ones(90)).take(rows))
    assert weighted.samples == 90
    assert weighted.effective_size == pytest.approx(repeats.sum() ** 2 / (repeats**2).sum())
    assert duplicated.samples == repeats.sum() == weighted.weight
    assert duplicated.effective_size == pytest.approx(repeats.sum())
    for name in ("accuracy", "mean_log_margin", "log_loss", "brier", "majority_share"):
        assert getattr(weighted, name) == pytest.approx(getattr(duplicated, name), rel=1e-12)
    assert np.array_equal(weighted.confusion, duplicated.confusion)
    for name in ("interval", "majority_interval"):
        (low, high), (inner, outer) = getattr(weighted, name), getattr(duplicated, name)
        assert low < inner < outer < high
    assert weighted.half_width > 1.4 * duplicated.half_width
    assert duplicated.unweighted is None
    alone = evaluate(classifier, replace(data, weights=np.ones(90)))
    assert weighted.unweighted.to_dict() == alone.to_dict()
    assert weighted.to_dict()["unweighted"]["accuracy"] == alone.accuracy
    double = evaluate(classifier, replace(data, weights=np.full(90, 2.0)))
    assert (double.weight, double.effective_size) == (180, pytest.approx(90))
    assert double.unweighted is None
    for name in ("accuracy", "interval", "half_width", "log_loss"):
        assert getattr(double, name) == pytest.approx(getattr(alone, name), rel=1e-12)


def test_rows_of_a_class_that_training_never_saw_are_errors(data, classifier):
    partly = replace(data, codes=data.codes.copy())
    partly.codes[:30, -1] = UNKNOWN
    partly.codes[25:35, 0] = UNKNOWN
    with pytest.warns(
        DataWarning, match=r"30 of 90 rows of 'random' have a class that the training rows lack"
    ):
        result = evaluate(classifier, partly, 1.0)
    assert (result.samples, result.unknown_class, result.unlabelled) == (90, 30, 0)
    assert result.unknown_values == {"x0": 10}
    rest = evaluate(classifier, partly.take(np.arange(30, 90)), 1.0)
    assert result.known.accuracy == rest.accuracy
    assert result.known.interval == rest.interval
    assert result.known.log_loss == pytest.approx(rest.log_loss, rel=1e-14)
    truth = np.where(partly.y < 0, data.n_classes, partly.y)
    probabilities, w = classifier.predict_proba(partly), partly.weights
    predicted = probabilities.argmax(axis=1)
    assert result.accuracy == pytest.approx(accuracy_score(truth, predicted, sample_weight=w))
    precision = precision_score(truth, predicted, average=None, sample_weight=w, zero_division=np.nan)
    np.testing.assert_allclose(result.precision, precision[: data.n_classes])
    np.testing.assert_allclose(
        np.vstack([result.confusion, result.unseen]),
        confusion_matrix(truth, predicted, sample_weight=w)[:, :-1],
    )
    # The class has the probability 0: 36.04 nats of log-loss, and 1 more in the Brier score.
    with_class = np.column_stack([probabilities, np.zeros(90)])
    assert result.log_loss == pytest.approx(log_loss(truth, with_class, sample_weight=w), rel=1e-9)
    errors = ((with_class - np.eye(data.n_classes + 1)[truth]) ** 2).sum(axis=1)
    assert result.brier == pytest.approx(np.average(errors, weights=w))
    assert result.reliability == reliability_curve(probabilities, partly.y, w)
    assert result.mean_log_margin == pytest.approx(rest.mean_log_margin, rel=1e-14)
    assert result.soft_margin == pytest.approx(rest.soft_margin, rel=1e-14)
    json.dumps(result.to_dict(), allow_nan=False)
    partly.codes[:, -1] = UNKNOWN
    with pytest.raises(InputError, match=r"No row of 'random' has a class label .* column 'class'"):
        evaluate(classifier, partly)


def test_rows_without_a_class_or_a_weight_count_nowhere(data, classifier, recwarn):
    partly = replace(data, codes=data.codes.copy(), weights=data.weights.copy())
    partly.codes[:30, -1] = MISSING
    partly.weights[80:] = 0
    result = evaluate(classifier, partly)
    assert not recwarn
    assert (result.samples, result.unknown_class, result.unlabelled) == (50, 0, 30)
    assert result.known is None
    rest = evaluate(classifier, partly.take(np.arange(30, 80)))
    assert {**result.to_dict(), "unweighted": None} == {
        **rest.to_dict(),
        "unlabelled": 30,
        "unweighted": None,
    }
    partly.codes[:80, -1] = UNKNOWN
    with pytest.raises(InputError, match=r"All rows of 'random' with a class .* have weight 0"):
        evaluate(classifier, partly)


def test_one_row_and_rows_of_one_class(data, classifier):
    one = evaluate(classifier, data.take([3]))
    assert (one.samples, one.effective_size, one.unweighted) == (1, 1, None)
    assert one.accuracy in (0, 1)
    assert one.interval == wilson_interval(one.accuracy, 1)
    same = evaluate(classifier, data.take(np.flatnonzero(data.y == 1)))
    assert same.majority_class == classifier.classes[1]
    assert same.majority_share == pytest.approx(1)
    assert np.isnan(same.recall[0])
    json.dumps(same.to_dict(), allow_nan=False)


def test_to_dict_is_json_without_nan(make_data):
    data = make_data(2, samples=12, states=(2, 2, 3))
    data.codes[:, -1] = np.arange(12) % 2
    classifier = Classifier.fit(data, Structure.empty(data.names), smoothing=0.0)
    test = replace(data, codes=data.codes.copy())
    test.codes[0, -1] = 1
    test.codes[1:, -1] = 0
    test.codes[2, -1] = 2  # never seen in training: probability 0
    result = evaluate(classifier, test, gamma=1.0)
    # A row is judged as everywhere else: an impossible class costs 36.04 nats.
    assert result.log_loss == pytest.approx(
        log_loss(test.y, classifier.predict_proba(test), labels=[0, 1, 2])
    )
    document = result.to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
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
    assert found.majority_interval == score_interval(data.y == share.argmax(), weighted.weights)
    assert found.unweighted.majority_share == np.bincount(data.y).max() / data.n_samples
    probabilities = classifier.predict_proba(weighted)
    errors = ((probabilities - np.eye(data.n_classes)[data.y]) ** 2).sum(axis=1)
    assert found.brier == pytest.approx(np.average(errors, weights=weighted.weights))
    assert found.reliability == reliability_curve(probabilities, data.y, weighted.weights)
    assert found.calibration_error == calibration_error(found.reliability)
    document = found.to_dict()
    assert [part["weight"] for part in document["reliability"]] == [part.weight for part in found.reliability]
    json.dumps(document, allow_nan=False)
    assert len(repr(found)) < 200
