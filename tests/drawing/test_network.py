"""The picture of a network."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from graphs import dag, forest

from milpbn.drawing.network import Graph, draw_network
from milpbn.drawing.scene import Box, Label, Path
from milpbn.drawing.svg import to_svg
from milpbn.drawing.text import text_width

WIDE = ["年齢", "居住地域と郵便番号と電話番号", "a" * 80, "petal-length (cm)", "x\n<&>\"'", "\ud800", ""]


def names(n: int) -> list[str]:
    return [f"{WIDE[i % len(WIDE)]}{i}" for i in range(n)] + ["分類 class"]


@pytest.mark.parametrize("n", [4, 57, 196])
@pytest.mark.parametrize("make", [forest, dag])
def test_every_name_fits_into_its_box(n, make):
    parents = make(n, n)
    losses = {(j, i): 0.37 * i for i, above in enumerate(parents) for j in above}
    scene = draw_network(names(n), parents, losses=losses, proved=[(0, 1)], title="t" * 300)
    boxes = [item for item in scene.items if isinstance(item, Box) and "; parents: " in item.title]
    assert len(boxes) == n + 1
    for label in (item for item in scene.items if isinstance(item, Label) and "; parents: " in item.title):
        [box] = [b for b in boxes if b.x <= label.x <= b.x + b.width and b.y <= label.y <= b.y + b.height]
        wide = text_width(label.text, label.size)
        assert box.x <= label.x - wide / 2
        assert label.x + wide / 2 <= box.x + box.width
    for k, a in enumerate(boxes):
        assert 0 <= a.x <= a.x + a.width <= scene.width
        assert 0 <= a.y <= a.y + a.height <= scene.height
        for b in boxes[:k]:
            assert (
                a.x >= b.x + b.width or b.x >= a.x + a.width or a.y >= b.y + b.height or b.y >= a.y + a.height
            )
    root = ET.fromstring(to_svg(scene, inline=True))
    assert root.tag.endswith("svg")


def test_the_class_has_one_arc_and_unused_features_are_grey():
    parents = [(4,), (0, 4), (), (4,), ()]
    scene = draw_network(["a", "b", "c", "d", "class"], parents)
    heads = [item for item in scene.items if isinstance(item, Path) and item.fill]
    assert len(heads) == 2  # of the class, and of a -> b
    kinds = {
        item.title.split(";")[0]: item.fill for item in scene.items if isinstance(item, Box) and item.title
    }
    assert kinds == {"a": "feature", "b": "feature", "c": "unused", "d": "feature", "class": "class"}


def test_what_predictions_depend_on():
    # d -> c is an arc between features without the class; a is a parent of the class, and b of its child e.
    graph = Graph(["a", "b", "c", "d", "e", "class"], [(), (), (3,), (), (1, 5), (0,)])
    assert graph.used == {0, 1, 4, 5}
    assert graph.dependent == {4}
    scene = draw_network(graph.names, graph.parents)
    drawn = {
        item.title.split(";")[0]: item.fill for item in scene.items if isinstance(item, Box) and item.title
    }
    assert drawn["class"] == "class"
    assert (drawn["a"], drawn["c"], drawn["e"]) == ("paper", "unused", "feature")


def test_arcs_say_what_they_are_worth_and_whether_they_are_proved():
    losses = {(0, 1): 12.34, (0, 2): 1.5}
    scene = draw_network(["a", "b", "c", "class"], [(3,), (0, 3), (0, 3), ()], losses=losses, proved=[(0, 1)])
    lines = {item.title.split(":")[0]: item for item in scene.items if isinstance(item, Path) and item.title}
    assert not lines["a → b"].dashed
    assert lines["a → c"].dashed
    assert lines["a → b"].width > lines["a → c"].width
    texts = {item.text for item in scene.items if isinstance(item, Label)}
    assert {"12.3", "1.50"} <= texts


def test_a_picture_grows_with_the_network():
    areas = [(s := draw_network(names(n), forest(n, 1))).width * s.height for n in (4, 20, 57, 196)]
    assert areas == sorted(areas)
