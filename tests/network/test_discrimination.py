"""Figures of one class against all others, against scikit-learn's, by their definitions and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn import metrics

from milpbn.network.discrimination import NAMES, SENSITIVITIES, Curve, class_figures, rankings
from milpbn.network.intervals import stratified_mean_interval


def _rows(seed, n=80, share=0.3, weighted=True, digits=1):
    """Return scores with ties, which rows are of the class, and weights."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < share
    positive[:2] = True, False
    scores = np.round(1 / (1 + np.exp(-rng.normal(positive * 1.5 - 1))), digits)
    return scores, positive, rng.exponential(size=n) + 0.01 if weighted else np.ones(n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_figures_are_those_of_scikit_learn(seed, weighted):
    scores, positive, w = _rows(
        seed, share=(0.05, 0.3, 0.7)[seed % 3], weighted=weighted, digits=1 + seed % 2
    )
    alarm = scores >= 0.4
    found = class_figures("sick", scores, positive, alarm, w)
    how = {"sample_weight": w}
    confused = metrics.confusion_matrix(positive, alarm, sample_weight=w)
    expected = {
        "roc_auc": metrics.roc_auc_score(positive, scores, **how),
        "average_precision": metrics.average_precision_score(positive, scores, **how),
        "sensitivity": metrics.recall_score(positive, alarm, **how),
        "specificity": metrics.recall_score(~positive, ~alarm, **how),
        "precision": metrics.precision_score(positive, alarm, **how),
        "f1": metrics.f1_score(positive, alarm, **how),
        "balanced_accuracy": metrics.balanced_accuracy_score(positive, alarm, **how),
        "matthews": metrics.matthews_corrcoef(positive, alarm, **how),
        "alarms_per_1000": 1000 * confused[:, 1].sum() / w.sum(),
    }
    assert {key: getattr(found, key) for key in expected} == pytest.approx(expected, rel=0, abs=1e-12)
    for key in NAMES:
        low, high = found.intervals[key]
        assert low <= getattr(found, key) <= high
        assert low < high


@pytest.mark.parametrize("seed", range(6))
def test_curves_are_those_of_scikit_learn(seed):
    scores, positive, w = _rows(seed)
    curve = Curve.of(scores, positive, w)
    fpr, tpr, thresholds = metrics.roc_curve(positive, scores, sample_weight=w, drop_intermediate=False)
    np.testing.assert_allclose(curve.roc, (fpr, tpr), atol=1e-12)
    assert curve.thresholds.tolist() == thresholds[1:].tolist()
    precision, recall, _ = metrics.precision_recall_curve(positive, scores, sample_weight=w)
    np.testing.assert_allclose(curve.precision[::-1], precision[:-1], atol=1e-12)
    np.testing.assert_allclose(curve.recall[::-1], recall[:-1], atol=1e-12)
    np.testing.assert_allclose(curve.alarms, [w[scores >= t].sum() / w.sum() for t in curve.thresholds])


def test_thresholds_are_the_highest_with_a_sensitivity():
    scores, positive, w = _rows(3, n=200)
    found = class_figures("sick", scores, positive, scores > 0.5, w).thresholds
    for share in SENSITIVITIES:
        reached = [
            t
            for t in np.unique(scores)
            if w[positive & (scores >= t)].sum() >= (share - 1e-9) * w[positive].sum()
        ]
        row = next(t for t in found if t.threshold == max(reached))
        alarm = scores >= row.threshold
        assert row.sensitivity == pytest.approx(metrics.recall_score(positive, alarm, sample_weight=w))
        assert row.specificity == pytest.approx(metrics.recall_score(~positive, ~alarm, sample_weight=w))
        assert row.precision == pytest.approx(metrics.precision_score(positive, alarm, sample_weight=w))
        assert row.alarms_per_1000 == pytest.approx(1000 * w[alarm].sum() / w.sum())


def test_variances_are_those_of_delong_and_of_the_jackknife():
    """DeLong's by its formula over pairs; that of average precision by small changes of the weights."""
    scores, positive, w = _rows(5, n=40, weighted=False)
    one, other = scores[positive], scores[~positive]
    first = (one[:, None] > other) + 0.5 * (one[:, None] == other)
    expected = first.mean(axis=1).var(ddof=1) / len(one) + first.mean(axis=0).var(ddof=1) / len(other)
    assert (rankings(scores, positive, w)["roc_auc"].errors ** 2).sum() == pytest.approx(expected)
    scores, positive, w = _rows(5, n=40)
    found = rankings(scores, positive, w)["average_precision"]
    for m in range(40):
        step = 1e-6 * np.eye(40)[m]
        up, down = (
            metrics.average_precision_score(positive, scores, sample_weight=w + s) for s in (step, -step)
        )
        assert found.errors[m] == pytest.approx(w[m] * (up - down) / 2e-6, abs=1e-8)


def test_perfect_and_hopeless_rankings_leave_room():
    positive = np.arange(60) < 10
    for scores, ends in ((positive * 0.8, (0.7, 1.0)), (0.9 - positive * 0.8, (0.0, 0.3))):
        figures = class_figures("sick", scores, positive, scores > 0.5, np.ones(60))
        low, high = figures.intervals["roc_auc"]
        assert low == ends[0] or ends[0] < low < 0.95
        assert high == ends[1] or 0.05 < high < ends[1]
        assert figures.intervals["matthews"][1] - figures.intervals["matthews"][0] > 0.1


def test_what_is_undefined_is_nan_and_has_no_interval():
    scores = np.linspace(0.1, 0.3, 8)
    same = class_figures("sick", scores, np.zeros(8, bool), np.zeros(8, bool), np.ones(8))
    assert all(math.isnan(getattr(same, key)) for key in NAMES if key != "specificity")
    assert (same.rows, same.share, same.thresholds, set(same.intervals)) == (0, 0.0, (), {"specificity"})
    none = class_figures("sick", scores, np.arange(8) < 1, np.zeros(8, bool), np.ones(8))
    assert math.isnan(none.precision)
    assert (none.matthews, none.f1, none.roc_auc) == (0, 0, 0)
    assert none.intervals["roc_auc"][1] < 1
    assert [name for name, _, _ in none.shown()] == [NAMES[key] for key in NAMES if key != "precision"]


def _world(n, rng, weighted):
    """Return rows of a class with 10 %, their calibrated probabilities, and weights that go with the scores."""
    positive = rng.random(n) < 0.1
    x = np.round(rng.normal(1.5 * positive), 1)
    scores = 1 / (1 + np.exp(1.125 - 1.5 * x - math.log(1 / 9)))
    return scores, positive, np.exp(0.4 * rng.normal(x)) if weighted else np.ones(n)


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_hold(weighted):
    """Of 200 samples of 300 rows, 30 of them positive, at least 92 % have the truth in each interval."""
    rng = np.random.default_rng(8)

    def figures(rows):
        scores, positive, w = rows
        found = class_figures("sick", scores, positive, scores >= 0.2, w)
        losses = -np.log(np.where(positive, scores, 1 - scores))
        values = {key: getattr(found, key) for key in NAMES} | {"log_loss": w @ losses / w.sum()}
        return values, found.intervals | {"log_loss": stratified_mean_interval(losses, w, positive)}

    truth, _ = figures(_world(400_000, rng, weighted))
    covered = dict.fromkeys(truth, 0)
    for _ in range(200):
        _, intervals = figures(_world(300, rng, weighted))
        for key, (low, high) in intervals.items():
            covered[key] += low <= truth[key] <= high
    assert {key: n for key, n in covered.items() if n < 184} == {}
