"""Axes and bars."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pictures import apart, of_kind, rectangles

from milpbn.drawing.chart import Bar, Scale, bars, frame, log_ticks, ticks
from milpbn.drawing.scene import Label


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-3.2, 17.9), (1e-9, 3e-9), (5, 5), (-1e12, 1e12), (951.1, 951.2)]
)
def test_ticks_lie_within_the_limits(low, high):
    found = ticks(low, high)
    assert 1 <= len(found) <= 7
    span = max(high - low, 1e-300)
    assert all(low - 1e-6 * span <= t <= high + 1e-6 * span for t in found)
    assert found == sorted(set(found))


def test_log_ticks():
    assert log_ticks(0.5, 60) == pytest.approx([0.5, 1, 2, 5, 10, 20, 50])
    assert log_ticks(1e-3, 1e4) == pytest.approx([10.0**k for k in range(-3, 5)])


def test_scales_keep_values_inside():
    scale = Scale(1.0, 100.0, 10.0, 110.0, log=True)
    assert (scale(10.0), scale(1e9), scale(1e-9)) == (60.0, 110.0, 10.0)


def check_labels(scene) -> None:
    boxes = rectangles(of_kind(scene, Label))
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] <= (scene.width + 0.5, scene.height)).all()
    assert apart(boxes, 1.0)


@pytest.mark.parametrize("dots", [False, True])
def test_labels_of_bars_do_not_overlap(dots):
    rows = [
        Bar("a very long name of a variable " * 3, 0.0, 3.0, "+3.000"),
        Bar("年齢", 3.0, -2.0, "-5.000", "class-edge", (-2.5, 3.5)),
        Bar("c", -2.0, 1e-6, "+2.000"),
    ]
    if dots:
        rows = [replace(row, start=None) for row in rows]
    notes = [("class-edge", "a"), ("feature-edge", "b")]
    lines = ["a line", "a long line " * 12]
    check_labels(bars(rows, title="A title " * 30, label="nats", notes=notes, lines=lines))


def test_labels_of_axes_do_not_overlap():
    for limits in ((0.0, 1e-5), (1.0, 1e7), (-123456.0, 1.0)):
        found = frame(
            500, 300, limits, limits, title="t " * 200, labels=("x", "y"), notes=[("line", "n" * 30)] * 4
        )
        check_labels(found.scene)


def test_a_chart_without_rows_is_drawn():
    assert bars([]).height > 0
