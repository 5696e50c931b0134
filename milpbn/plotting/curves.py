"""Curves of how well classes are told from the others: ROC, precision-recall, gain, calibration, prediction sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.drawing.chart import Frame, frame
from milpbn.drawing.scene import SERIES, Box, Path, Scene
from milpbn.errors import InputError
from milpbn.network.calibration import BINS
from milpbn.network.discrimination import LEADING, NAMES, ClassFigures, Curve, class_figures
from milpbn.network.evaluation import labelled_rows
from milpbn.network.intervals import score_interval
from milpbn.network.parameters.sets import evaluate_sets
from milpbn.network.predictor import ProbabilityPredictor, Source
from milpbn.trials.judged import Judged
from milpbn.util.printing import printable

#: Each kind of curve with its title and the names of its axes.
CURVES = {
    "roc": ("ROC curve", "1 - specificity: share of the others that are alarms", "sensitivity"),
    "precision-recall": ("Precision and recall", "sensitivity (recall)", "precision"),
    "gain": ("Gain", "share of all rows that are alarms", "sensitivity"),
    "calibration": ("Calibration", "mean predicted probability", "share of the class, with 95 % intervals"),
}

Points = tuple[NDArray[np.float64], NDArray[np.float64]]


def draw_curve(
    kind: str,
    rows: Judged,
    classes: Sequence[str],
    *,
    positive: str | None = None,
    name: str = "",
    width: float = 480.0,
) -> Scene:
    """Draw how well a class is told from the others, or each of at most eight classes from all others.

    Dots on the curve of a single class are the decisions of the classifier; dashed lines are what chance gives.

    Parameters
    ----------
    kind : str
        One of `CURVES`.
    rows : Judged
        Rows with a class, with probabilities (`milpbn.trials.judged.Judged.of`).
    classes : sequence of str
        Class labels.
    positive : str, optional
        The class; by default each class that the rows have.
    name : str
        Name of the data.
    width : float
        Of the picture, in pixels.

    Raises
    ------
    InputError
        If there are no probabilities, or no class of which only some rows are.
    """
    if rows.classes is None or rows.predicted is None or rows.probabilities is None:
        raise InputError("Without probabilities of the classes there are no curves to draw.")
    shown = range(len(classes)) if positive is None else [classes.index(positive)]
    shown = [c for c in shown if 0 < np.count_nonzero(rows.classes == c) < len(rows.classes)]
    if not shown:
        raise InputError(
            "A curve needs rows of the class and others, and the data have only one kind; give more rows."
        )
    curves = [(role, _Curve.of(kind, rows, classes, c)) for role, c in zip(SERIES, shown, strict=False)]
    top = 1.0
    if kind == "calibration":
        highest = max(float(max(curve.x.max(), curve.ends.max())) for _, curve in curves)
        top = min(1.0, 1.05 * highest)
    left, notes = len(shown) - len(SERIES), [(role, curve.note) for role, curve in curves]
    title, *labels = CURVES[kind]
    chart = frame(
        width,
        width,
        (0.0, top),
        (0.0, top),
        title=f"{title}{f' of {printable(name)}' if name else ''}{f' ({left} more classes)' if left > 0 else ''}",
        labels=(labels[0], labels[1]),
        notes=[*notes, ("muted", "if calibrated" if kind == "calibration" else "by chance")],
    )
    shares = [curve.figures.share for _, curve in curves] if kind == "precision-recall" else []
    chance = {(share, share) for share in shares} or {(0.0, top)}
    for left_end, right_end in sorted(chance):
        steps = ((chart.x(0.0), chart.y(left_end)), (chart.x(top), chart.y(right_end)))
        chart.scene.add(Path(steps, "muted", dashed=True))
    for role, curve in curves:
        _line(chart, curve.x, curve.y, role)
        for at, level, (low, high) in zip(curve.x, curve.y, curve.ends, strict=False):
            place, size = chart.x(float(at)), 3.5
            chart.scene.add(
                Path(((place, chart.y(float(low))), (place, chart.y(float(high)))), role),
                Box(place - size, chart.y(float(level)) - size, 2 * size, 2 * size, role, radius=size),
            )
    if len(curves) == 1 and kind != "calibration":
        [(role, curve)] = curves
        _mark_decisions(chart, kind, curve.figures, role)
    return chart.scene


def draw_sets(
    classifier: ProbabilityPredictor, source: Source, *, name: str = "", width: float = 480.0
) -> Scene:
    """Draw how often prediction sets of labelled rows hold the class and have one class only, by the error allowed.

    The dashed line is what is promised. `InputError` if the sets are not calibrated, or no row has a class.
    """
    rows = labelled_rows(classifier.encode(source))
    evaluate_sets(classifier, rows, 0.5)  # refuses what no error allows
    assert classifier.conformal is not None
    least = float(classifier.conformal.least_errors(by_class=False).min())
    errors = np.linspace(least, 0.5, 33)[1:]
    found = [evaluate_sets(classifier, rows, float(error))[0] for error in errors]
    lines = (
        ("feature-edge", "sets with the true class", [one.coverage for one in found]),
        ("class-edge", "sets of one class", [one.sizes[0] for one in found]),
    )
    chart = frame(
        width,
        width,
        (0.0, 0.5),
        (0.0, 1.0),
        title=f"Prediction sets{f' of {printable(name)}' if name else ''}",
        labels=("error: share of the sets that may lack the class", "share of the rows"),
        notes=[*((role, words) for role, words, _ in lines), ("muted", "asked for")],
    )
    ends = ((chart.x(0.0), chart.y(1.0)), (chart.x(0.5), chart.y(0.5)))
    chart.scene.add(Path(ends, "muted", dashed=True))
    for role, _, values in lines:
        _line(chart, errors, np.array(values), role)
    return chart.scene


class _Curve(NamedTuple):
    """What is drawn of a class: corners or points, the ends of their intervals, shape (n, 2), and the legend."""

    figures: ClassFigures
    note: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    ends: NDArray[np.float64]

    @classmethod
    def of(cls, kind: str, rows: Judged, classes: Sequence[str], c: int) -> _Curve:
        assert rows.classes is not None
        assert rows.predicted is not None
        assert rows.probabilities is not None
        own, scores = rows.classes == c, rows.probabilities[:, c]
        figures = class_figures(classes[c], scores, own, rows.predicted == c, rows.weights)
        what = {"roc": LEADING[0], "precision-recall": LEADING[1]}.get(kind)
        value = "" if what is None else f", {NAMES[what]} {getattr(figures, what):.3f}"
        if kind == "calibration":
            points = _calibration(scores, own, rows.weights)
        else:
            points = (*_points(kind, Curve.of(scores, own, rows.weights)), np.empty((0, 2)))
        return cls(figures, f"{printable(classes[c])}{value}", *points)


def _mark_decisions(chart: Frame, kind: str, figures: ClassFigures, role: str) -> None:
    """Draw a dot where the decisions of the classifier are."""
    at = {
        "roc": (1 - figures.specificity, figures.sensitivity),
        "precision-recall": (figures.sensitivity, figures.precision),
        "gain": (figures.alarms_per_1000 / 1000, figures.sensitivity),
    }[kind]
    if np.isfinite(at).all():
        across, up = chart.x(at[0]) - 5.0, chart.y(at[1]) - 5.0
        chart.scene.add(Box(across, up, 10.0, 10.0, role, "paper", 5.0, title="the decisions"))


def _points(kind: str, curve: Curve) -> Points:
    """Return the corners of a curve."""
    if kind == "roc":
        return curve.roc
    recall = np.append(0.0, curve.recall)
    if kind == "gain":
        return np.append(0.0, curve.alarms), recall
    # Steps, since average precision weighs every precision with the recall that is gained there.
    return np.repeat(recall, 2)[1:-1], np.repeat(curve.precision, 2)


def _calibration(
    scores: NDArray[np.float64], positive: NDArray[np.bool_], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return mean probability, share of the class and its interval, of at most `BINS` bins of about equal weight."""
    _, index = np.unique(scores, return_inverse=True)
    own = np.bincount(index, weights)
    place = (BINS * (np.cumsum(own) - own / 2) / own.sum()).astype(np.int64)[index]
    bins = [place == k for k in np.unique(place)]
    means = [np.average(scores[inside], weights=weights[inside]) for inside in bins]
    shares = [np.average(positive[inside], weights=weights[inside]) for inside in bins]
    ends = [score_interval(positive[inside], weights[inside]) for inside in bins]
    return np.array(means), np.array(shares), np.array(ends)


def _line(chart: Frame, x: NDArray[np.float64], y: NDArray[np.float64], role: str) -> None:
    """Draw a line through points, without those that are on the pixel of the one before."""
    across, up = chart.x.end - chart.x.start, chart.y.end - chart.y.start
    pixels = np.column_stack(
        [chart.x.start + across * x / chart.x.high, chart.y.start + up * y / chart.y.high]
    ).round(1)
    moved = np.append(True, np.abs(np.diff(pixels, axis=0)).max(axis=1) >= 0.5) if len(x) > 1 else [True]
    moved[-1] = True
    steps = tuple((float(a), float(b)) for a, b in pixels[moved])
    if len(steps) > 1:
        chart.scene.add(Path(steps, role, width=2.0))
