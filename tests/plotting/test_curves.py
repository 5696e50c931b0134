"""Curves of how well classes are told apart: their points are those of scikit-learn, and none leaves the picture."""

from __future__ import annotations

import numpy as np
import pytest
from pictures import of_kind, texts
from sklearn import metrics

from milpbn.data import Variable
from milpbn.drawing.chart import Frame
from milpbn.drawing.scene import Box, Path
from milpbn.errors import InputError
from milpbn.network import Classifier, Cpt, Structure
from milpbn.network.parameters.sets import calibrate_sets, evaluate_sets
from milpbn.plotting import CURVES, curves, draw_curve, draw_sets
from milpbn.trials.judged import Judged


def _rows(n_classes=2, n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n, p=np.r_[0.1, np.full(n_classes - 1, 0.9 / (n_classes - 1))])
    odds = np.round(np.exp(rng.normal(size=(n, n_classes)) + 1.5 * np.eye(n_classes)[y]), 1) + 0.1
    p = odds / odds.sum(axis=1, keepdims=True)
    w = rng.exponential(size=n) + 0.1
    return Judged(w, p.argmax(axis=1) == y, None, None, y, p.argmax(axis=1), p)


@pytest.fixture
def frames(monkeypatch):
    """The frames of the curves that are drawn."""
    frames: list[Frame] = []

    def remembered(*args, **options):
        frames.append(make(*args, **options))
        return frames[-1]

    make = curves.frame
    monkeypatch.setattr(curves, "frame", remembered)
    return frames


@pytest.fixture
def drawn(frames):
    """Draw a curve, and return the picture with the values of its thick lines."""

    def draw(kind, rows, **how):
        scene = draw_curve(kind, rows, [f"c{k}" for k in range(rows.probabilities.shape[1])], **how)
        chart = frames[-1]
        values = []
        for line in of_kind(scene, Path, width=2.0):
            x, y = np.array(line.steps).T
            size = chart.x.end - chart.x.start, chart.y.end - chart.y.start
            values.append(
                ((x - chart.x.start) / size[0] * chart.x.high, (y - chart.y.start) / size[1] * chart.y.high)
            )
        return scene, values

    return draw


@pytest.mark.parametrize("kind", ["roc", "precision-recall", "gain"])
def test_a_curve_is_scikit_learns(drawn, kind):
    rows = _rows()
    truth, scores = rows.classes == 0, rows.probabilities[:, 0]
    scene, [(x, y)] = drawn(kind, rows, positive="c0", name="ward")
    fpr, tpr, thresholds = metrics.roc_curve(truth, scores, sample_weight=rows.weights)
    if kind == "roc":
        at = np.linspace(0.01, 1, 50)
        assert np.abs(np.interp(at, x, y) - np.interp(at, fpr, tpr)).max() < 0.03
        value = f"c0, ROC-AUC {metrics.roc_auc_score(truth, scores, sample_weight=rows.weights):.3f}"
        assert np.trapezoid(y, x) == pytest.approx(metrics.auc(fpr, tpr), abs=0.01)
    elif kind == "precision-recall":
        ap = metrics.average_precision_score(truth, scores, sample_weight=rows.weights)
        value = f"c0, average precision {ap:.3f}"
        assert np.sum(np.diff(x) * y[1:]) == pytest.approx(ap, abs=0.01)
    else:
        value = "c0"
        share = [rows.weights[scores >= t].sum() / rows.weights.sum() for t in thresholds[1:]]
        assert np.abs(np.interp(share, x, y) - tpr[1:]).max() < 0.03
    assert {value, CURVES[kind][1]} <= {*texts(scene)}
    [dot] = of_kind(scene, Box, radius=5.0)
    assert dot.title == "the decisions"


def test_calibration_has_the_means_of_bins(drawn):
    rows = _rows(n=2000)
    _, [(x, y)] = drawn("calibration", rows, positive="c0")
    assert 8 <= len(x) <= 10
    order = np.argsort(rows.probabilities[:, 0])
    w = rows.weights[order]
    lowest = np.cumsum(w) <= 0.1 * w.sum()
    assert x[0] == pytest.approx(
        np.average(rows.probabilities[order, 0][lowest], weights=w[lowest]), abs=0.02
    )
    assert y[0] == pytest.approx(np.average(rows.classes[order][lowest] == 0, weights=w[lowest]), abs=0.02)


@pytest.mark.parametrize("kind", list(CURVES))
@pytest.mark.parametrize("n_classes", [3, 11])
def test_several_classes_have_a_colour_each(drawn, kind, n_classes):
    scene, lines = drawn(kind, _rows(n_classes))
    assert len(lines) == min(n_classes, 8)
    assert sum(text.startswith("c") for text in texts(scene)) == len(lines)
    assert any("3 more classes" in text for text in texts(scene)) == (n_classes == 11)
    assert ("if calibrated" if kind == "calibration" else "by chance") in texts(scene)  # the dashed line
    for item in (*of_kind(scene, Path, width=2.0), *of_kind(scene, Path, width=1.0)):
        assert all(0 <= x <= scene.width and 0 <= y <= scene.height for x, y in item.steps)


def test_sets_are_drawn_by_the_error_allowed(frames):
    rng = np.random.default_rng(3)
    variables = (Variable("x", ("a", "b", "c")), Variable("y", ("s", "t")))
    structure = Structure(("x", "y"), ((1,), ()))
    tables = (np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]), np.array([0.4, 0.6]))
    truth = Classifier(variables, structure, (Cpt(0, (1,), tables[0]), Cpt(1, (), tables[1])))
    model = calibrate_sets(truth, truth.sample(200, random_state=rng))
    rows = truth.sample(300, random_state=rng)
    scene = draw_sets(model, rows, name="ward")
    assert {"Prediction sets of ward", "sets with the true class", "sets of one class"} <= {*texts(scene)}
    [chart] = frames
    covered, single = of_kind(scene, Path, width=2.0)
    for line, value in ((covered, "coverage"), (single, "sizes")):
        for x, y in (line.steps[0], line.steps[-1]):
            error = 0.5 * (x - chart.x.start) / (chart.x.end - chart.x.start)
            found = getattr(evaluate_sets(model, rows, error)[0], value)
            level = (y - chart.y.start) / (chart.y.end - chart.y.start)
            assert level == pytest.approx(found[0] if value == "sizes" else found, abs=0.01)
    with pytest.raises(InputError, match="not calibrated"):
        draw_sets(truth, rows)


def test_what_cannot_be_drawn_is_said():
    rows = _rows()
    with pytest.raises(InputError, match="only one kind"):
        draw_curve(
            "roc",
            Judged(
                rows.weights, rows.correct, None, None, 0 * rows.classes, rows.predicted, rows.probabilities
            ),
            ["a", "b"],
        )
    with pytest.raises(InputError, match="Without probabilities"):
        draw_curve("roc", Judged(rows.weights, rows.correct, None, None), ["a", "b"])
