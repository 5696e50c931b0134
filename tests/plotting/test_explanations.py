"""Pictures of explanations."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from pictures import of_kind, texts

from milpbn.data import Dataset, Variable
from milpbn.drawing.scene import Box, Label, Path
from milpbn.drawing.text import text_width
from milpbn.network import Classifier, Structure
from milpbn.network.explanation import Margins
from milpbn.plotting import draw_importances, draw_margins, draw_prediction, draw_table
from milpbn.util.plurals import counted


@pytest.fixture(scope="module")
def learnt():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=(80, 4)).astype(np.int32)
    codes[:, 3] = (codes[:, 0] + rng.integers(0, 2, 80)) % 2
    variables = (
        *(Variable(name, ("x", "y", "z")) for name in ("a", "b", "c")),
        Variable("class", ("no", "yes")),
    )
    data = Dataset("toy", variables, codes, np.ones(len(codes)))
    structure = Structure(data.names, ((3,), (0, 3), (), ()))
    return Classifier.fit(data, structure), data


def test_the_bars_of_a_prediction_follow_one_another(learnt):
    classifier, data = learnt
    explanation = classifier.explain_local(data)[3]
    scene = draw_prediction(explanation)
    bars = [item for item in of_kind(scene, Box) if item.fill != "paper"]
    assert len(bars) == len(explanation.ranked) + 1
    at = bars[0].x if explanation.ranked[0].log_odds > 0 else bars[0].x + bars[0].width
    for bar, part in zip(bars, explanation.ranked, strict=False):
        start, end = (bar.x, bar.x + bar.width)[:: 1 if part.log_odds > 0 else -1]
        assert start == pytest.approx(at, abs=1.1)
        at = end
    assert f"{explanation.log_odds:+.3f}" in texts(scene)
    left = counted(len(explanation.ranked) - 2, "smaller contribution")
    drawn = texts(draw_prediction(explanation, 1))
    assert left in drawn
    assert drawn.index("base rate of class, before any feature") > drawn.index(left)


def test_the_histogram_of_margins_counts_all_samples(learnt):
    classifier, data = learnt
    margins = classifier.explain_global(data, gamma=0.5).margins
    scene = draw_margins(margins, "toy")
    counts = Counter()
    for bar in of_kind(scene, Box):
        counts[bar.fill] += float(bar.title.split()[0]) if bar.title else 0
    assert counts.total() == 80
    assert counts["class-edge"] == (margins.log_margins < 0).sum()
    assert counts["class-edge"] + counts["feature"] == (margins.log_margins < 0.5).sum()


def test_a_table_shows_the_probabilities_of_every_class(learnt):
    classifier, _ = learnt
    table = next(t for t in classifier.explain_global().tables if t.variable == "b")
    scene = draw_table(table, "class")
    shown = texts(scene)
    assert "P(b | a, class)" in shown
    cells = [t for t in shown if t.startswith(("0.", "1."))]
    assert cells == [f"{p:.3f}" for p in np.exp(table.log_probabilities).ravel()]
    assert any("5 more rows" in t for t in texts(draw_table(table, "class", shown=4)))


def test_importances_are_drawn(learnt):
    classifier, data = learnt
    scene = draw_importances(classifier.explain_global(data).importances)
    drawn = texts(scene)
    assert {"a", "b given a"} <= set(drawn)
    assert "class" not in drawn
    assert any(text.startswith("base rate of class, before any feature: 0.") for text in drawn)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 3.0])
def test_the_name_of_gamma_covers_no_bar_and_no_tick(learnt, gamma):
    rng = np.random.default_rng(1)
    for low in (0.0, -3.0):
        values = rng.uniform(low, 12.0, 60)
        margins = Margins(values, np.ones(60), np.arange(60), gamma, ())
        scene = draw_margins(margins)
        [name] = [item for item in of_kind(scene, Label) if item.text.startswith("gamma")]
        wide = text_width(name.text, name.size)
        left = name.x if name.anchor == "start" else name.x - wide
        axis = min(item.steps[0][0] for item in of_kind(scene, Path, edge="grid"))
        assert left >= axis
        for bar in (item for item in of_kind(scene, Box) if item.title):
            assert name.y <= bar.y or bar.x >= left + wide or bar.x + bar.width <= left


def test_a_probability_that_is_not_1_is_not_called_1(learnt):
    classifier, data = learnt
    explanation = classifier.explain_local(data)[3]
    share = {"yes": 0.999999, "no": 0.000001}
    sure = replace(explanation, probabilities=tuple(share[name] for name in explanation.classes), label="yes")
    assert any(text.startswith("P(yes) > 0.9999") for text in texts(draw_prediction(sure)))
