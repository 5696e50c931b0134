"""The picture of a network."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from functools import cache

import numpy as np
import pytest
from graphs import dag, forest
from pictures import apart, of_kind, overlapping, rectangles, texts, titled

from milpbn.drawing.arcs import Graph, amount
from milpbn.drawing.network import draw_network
from milpbn.drawing.scene import Box, Label, Path, Scene
from milpbn.drawing.svg import to_svg
from milpbn.drawing.text import text_width

WIDE = ["年齢", "居住地域と郵便番号と電話番号", "a" * 80, "petal-length (cm)", "x\n<&>\"'", "\ud800", ""]


def names(n: int) -> list[str]:
    return [f"{WIDE[i % len(WIDE)]}{i}" for i in range(n)] + ["分類 class"]


@cache
def drawn(n: int, make):
    parents = make(n, n)
    losses = {(j, i): 10.0 ** (i % 6 - 2) * (-1) ** i for i, above in enumerate(parents) for j in above}
    return draw_network(names(n), parents, losses=losses, proved=list(losses)[::2], title="t" * 300)


def with_class_parents(n: int, seed: int):
    return dag(n, seed, 3, of_class=3)


@pytest.mark.parametrize("n", [4, 9, 20, 57, 196])
@pytest.mark.parametrize("make", [forest, dag, with_class_parents])
def test_no_text_overlaps_another_or_the_arrow_of_the_class(n, make):
    scene = drawn(n, make)
    arrows = [item for item in of_kind(scene, Path) if "class-edge" in (item.edge, item.fill)]
    assert len(arrows) >= 2 * sum(n in above for above in make(n, n))
    labels = rectangles(of_kind(scene, Label))
    assert apart(labels)
    assert not overlapping(labels, rectangles(arrows)).any()


@pytest.mark.parametrize("n", [4, 57, 196])
@pytest.mark.parametrize("make", [forest, dag])
def test_every_name_fits_into_its_box(n, make):
    scene = drawn(n, make)
    boxes = rectangles(item for item in of_kind(scene, Box) if "; parents: " in item.title)
    assert len(boxes) == n + 1
    for label in (item for item in of_kind(scene, Label) if "; parents: " in item.title):
        place = np.array([label.x, label.y])
        [box] = boxes[(boxes[:, :2] <= place).all(axis=1) & (place <= boxes[:, 2:]).all(axis=1)]
        wide = text_width(label.text, label.size)
        assert box[0] <= label.x - wide / 2
        assert label.x + wide / 2 <= box[2]
    assert (boxes >= 0).all()
    assert (boxes[:, 2:] <= (scene.width, scene.height)).all()
    assert apart(boxes, 0.0)
    root = ET.fromstring(to_svg(scene, inline=True))
    assert root.tag.endswith("svg")


def test_the_class_has_one_arc_and_unused_features_are_grey():
    parents = [(4,), (0, 4), (), (4,), ()]
    scene = draw_network(["a", "b", "c", "d", "class"], parents)
    assert len([item for item in of_kind(scene, Path) if item.fill]) == 2  # of the class, and of a -> b
    kinds = {name: box.fill for name, box in titled(scene, Box).items()}
    assert kinds == {"a": "feature", "b": "feature", "c": "unused", "d": "feature", "class": "class"}


def test_what_predictions_depend_on():
    # d -> c is an arc between features without the class; a is a parent of the class, and b of its child e.
    graph = Graph(["a", "b", "c", "d", "e", "class"], [(), (), (3,), (), (1, 5), (0,)])
    assert graph.used == {0, 1, 4, 5}
    assert graph.dependent == {4}
    boxes = titled(draw_network(graph.names, graph.parents), Box)
    assert [boxes[name].fill for name in ("class", "a", "c", "e")] == ["class", "paper", "unused", "feature"]


def test_arcs_say_what_they_are_worth_and_whether_they_are_proved():
    losses = {(0, 1): 12.34, (0, 2): 1.5}
    scene = draw_network(["a", "b", "c", "class"], [(3,), (0, 3), (0, 3), ()], losses=losses, proved=[(0, 1)])
    lines = titled(scene, Path, ":")
    assert not lines["a → b"].dashed
    assert lines["a → c"].dashed
    assert lines["a → b"].width > lines["a → c"].width
    assert {"12.3", "1.50"} <= {*texts(scene)}


def test_arcs_that_are_worth_nothing_have_no_numbers_and_the_legend_says_so():
    parents = [(3,), (0, 3), (0, 3), ()]
    for worth, shown in ((0.001, False), (0.2, True)):
        losses = {(0, 1): 0.0, (0, 2): worth, (3, 0): -0.001}
        found = texts(draw_network(["a", "b", "c", "class"], parents, losses=losses))
        assert ("0.00" in found) == shown
        assert ("the score loses nothing (0.00 nats) without any one arc" in found) != shown


def test_arcs_from_the_class_show_the_same_in_their_childrens_boxes():
    losses = {(0, 1): 12.34, (3, 0): 1.5, (3, 1): 150.4}
    scene = draw_network(["a", "b", "c", "class"], [(3,), (0, 3), (), ()], losses=losses, proved=[(3, 0)])
    boxes = titled(scene, Box)
    found = {}
    for name, box in boxes.items():
        inside = overlapping(rectangles(scene.items), rectangles([box]))[:, 0]
        within = Scene(0, 0, [item for k, item in enumerate(scene.items) if inside[k] and item is not box])
        found[name] = texts(within), of_kind(within, Path, edge="class-edge")
    assert {name: words for name, (words, _) in found.items()} == {
        "a": ["a", "1.50"],
        "b": ["b", "150"],
        "c": ["c"],
        "class": ["class"],
    }
    [a], [b] = found["a"][1], found["b"][1]
    assert not a.dashed
    assert b.dashed
    assert b.width > a.width
    assert boxes["a"].title.endswith(
        "arc from the class: the score loses 1.50 nats without it; in every optimum"
    )
    legend = {"arc from the class", "in every optimum", "not proved to be in every optimum"}
    assert legend <= {*texts(scene)}


def test_boxes_have_no_arrow_where_nothing_is_known_of_arcs():
    scene = draw_network(["a", "b", "class"], [(2,), (0, 2), ()])
    assert "arc from the class" not in texts(scene)
    assert len(of_kind(scene, Path, edge="class-edge")) == 1  # from the class to "every blue feature"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (-0.004, "0.00"), (9.994, "9.99"), (9.996, "10.0"), (99.96, "100"), (-1234.6, "-1235")],
)
def test_amounts_have_three_digits(value, text):
    assert amount(value) == text


def test_a_picture_grows_with_the_network():
    areas = [(s := draw_network(names(n), forest(n, 1))).width * s.height for n in (4, 20, 57, 196)]
    assert areas == sorted(areas)


def test_the_description_counts_in_words():
    assert draw_network(["a", "b", "class"], [(2,), (0, 2), ()]).description == (
        "Bayesian network of class: 2 of 2 features are used, 1 arc between features or to the class"
    )
    assert "1 of 2 features is used, 0 arcs" in draw_network(["a", "b", "c"], [(2,), (), ()]).description
