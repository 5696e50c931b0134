"""Pictures of curves and maps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fine import fine_classifier
from pictures import apart, of_kind, rectangle, rectangles, texts

from milpbn.drawing.scene import SERIES, Box, Label, Path
from milpbn.plotting import draw_table


def tables(classifier, form):
    return [t for t in classifier.explain_global().tables if t.form == form]


def test_a_curve_has_a_step_for_every_interval():
    classifier = fine_classifier(0, n_classes=2, coarse=4, fine=20, missing=True)
    table = next(t for t in tables(classifier, "curve") if t.variable == "x0")
    scene = draw_table(table, "kind")
    assert texts(scene)[0] == "x0: k1 against k0"
    line, missing = of_kind(scene, Path, edge=SERIES[0])
    ratios = table.log_ratios("k1", "k0")
    heights = [y for _, y in line.steps[::2]]
    assert len(heights) == 20
    # Pixels are a linear function of the numbers.
    slope, offset = np.polyfit(ratios[:20], heights, 1)
    assert slope < 0
    assert heights == pytest.approx(slope * ratios[:20] + offset)
    assert missing.steps[0][1] == pytest.approx(slope * ratios[20] + offset)
    widths = np.diff([x for x, _ in line.steps])[::2]
    assert widths == pytest.approx(np.full(20, widths[0]))
    assert "missing" in texts(scene)


def test_classes_have_lines_of_their_own():
    classifier = fine_classifier(1, n_classes=6, coarse=4, fine=20)
    table = next(t for t in tables(classifier, "curve") if t.variable == "x0")
    scene = draw_table(table, "kind")
    assert texts(scene)[0] == "x0: kind (4 of 6 classes)"
    assert all(len(of_kind(scene, Path, edge=role)) == 1 for role in SERIES[:4])
    colour = draw_table(next(t for t in tables(classifier, "curve") if t.variable == "colour"), "kind")
    assert len([box for box in of_kind(colour, Box) if box.edge == "grid"]) == 3 * 4


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_map_has_the_numbers_of_its_cells(n_classes):
    classifier = fine_classifier(0, n_classes=n_classes, coarse=8, fine=64, missing=True)
    for table in tables(classifier, "interaction"):
        scene = draw_table(table, "kind")
        shape = table.log_probabilities.shape
        cells = [box for box in of_kind(scene, Box) if box.edge == "grid"]
        panels = 1 if n_classes == 2 else 3
        assert len(cells) == panels * shape[0] * shape[1]
        assert apart(rectangles(cells))
        drawn = [text for text in texts(scene) if text[0] in "+-" and text[-3] == "."]
        values = table.log_ratios("k1", "k0") if n_classes == 2 else table.log_probabilities
        if n_classes == 3:
            values = values - values.mean(axis=-1, keepdims=True)
        assert sorted(map(float, drawn)) == pytest.approx(sorted(values.ravel().round(2)), abs=0.0101)
        assert scene.width <= 520
        labels = of_kind(scene, Label)
        assert all(rectangle(label)[0] >= 0 and rectangle(label)[2] <= scene.width for label in labels)


def test_of_three_columns_the_strongest_states_are_drawn():
    classifier = fine_classifier(3, coarse=5, fine=12, most_parents=2)
    table = next(t for t in tables(classifier, "interaction") if len(t.parents) == 2)
    scene = draw_table(table, "kind")
    drawn = {text for text in texts(scene) if text[0] in "+-" and text[-3] == "."}
    strongest = max(
        np.abs(table.log_probabilities - table.log_probabilities.mean(axis=-1, keepdims=True)).ravel()
    )
    assert max(abs(float(text)) for text in drawn) == pytest.approx(strongest, abs=0.006)
    assert len([box for box in of_kind(scene, Box) if box.edge == "grid"]) == 30 * 3


def test_a_curve_of_few_or_no_cuts_is_a_table():
    classifier = fine_classifier(0, n_classes=2, coarse=2, fine=2)
    for table in tables(classifier, "curve"):
        scene = draw_table(table, "kind")
        assert len([box for box in of_kind(scene, Box) if box.edge == "grid"]) == len(table.states)
    strange = replace(tables(classifier, "curve")[0], states=("<b>", "x"))
    assert "<b>" in texts(draw_table(strange, "kind"))
