"""The picture of a network."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from graphs import dag, forest

from milpbn.drawing.arcs import amount
from milpbn.drawing.network import Graph, draw_network
from milpbn.drawing.scene import Box, Label, Path
from milpbn.drawing.svg import to_svg
from milpbn.drawing.text import BOLD, LINE, text_width

WIDE = ["年齢", "居住地域と郵便番号と電話番号", "a" * 80, "petal-length (cm)", "x\n<&>\"'", "\ud800", ""]


def names(n: int) -> list[str]:
    return [f"{WIDE[i % len(WIDE)]}{i}" for i in range(n)] + ["分類 class"]


def rectangle(item) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of a box, a text or a path of straight lines."""
    if isinstance(item, Box):
        return item.x, item.y, item.x + item.width, item.y + item.height
    if isinstance(item, Label):
        wide = text_width(item.text, item.size) * (BOLD if item.bold else 1.0)
        left = item.x - wide * {"start": 0.0, "middle": 0.5, "end": 1.0}[item.anchor]
        # Letters reach less far up and down than a line of text is high.
        middle, high = item.y - 0.35 * item.size, LINE * item.size - 1.0
        return left, middle - high / 2, left + wide, middle + high / 2
    half = 0.0 if item.fill else item.width / 2
    x, y = [step[0] for step in item.steps], [step[1] for step in item.steps]
    return min(x), min(y) - half, max(x), max(y) + half


def overlaps(a, b) -> bool:
    (a0, a1, a2, a3), (b0, b1, b2, b3) = rectangle(a), rectangle(b)
    return min(a2, b2) - max(a0, b0) > 1e-6 and min(a3, b3) - max(a1, b1) > 1e-6


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
    labels = [item for item in scene.items if isinstance(item, Label)]
    arrows = [
        item for item in scene.items if isinstance(item, Path) and "class-edge" in (item.edge, item.fill)
    ]
    assert len(arrows) >= 2 * sum(n in above for above in make(n, n))
    for k, a in enumerate(labels):
        for b in [*labels[:k], *arrows]:
            assert not overlaps(a, b), (a, b)


@pytest.mark.parametrize("n", [4, 57, 196])
@pytest.mark.parametrize("make", [forest, dag])
def test_every_name_fits_into_its_box(n, make):
    scene = drawn(n, make)
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


def test_arcs_that_are_worth_nothing_have_no_numbers_and_the_legend_says_so():
    parents = [(3,), (0, 3), (0, 3), ()]
    for worth, shown in ((0.001, False), (0.2, True)):
        losses = {(0, 1): 0.0, (0, 2): worth, (3, 0): -0.001}
        scene = draw_network(["a", "b", "c", "class"], parents, losses=losses)
        texts = [item.text for item in scene.items if isinstance(item, Label)]
        assert ("0.00" in texts) == shown
        assert ("the score loses nothing (0.00 nats) without any one arc" in texts) != shown


def test_arcs_from_the_class_show_the_same_in_their_childrens_boxes():
    losses = {(0, 1): 12.34, (3, 0): 1.5, (3, 1): 150.4}
    scene = draw_network(["a", "b", "c", "class"], [(3,), (0, 3), (), ()], losses=losses, proved=[(3, 0)])
    boxes = {item.title.split(";")[0]: item for item in scene.items if isinstance(item, Box) and item.title}
    found = {}
    for name, box in boxes.items():
        inside = [item for item in scene.items if item is not box and overlaps(item, box)]
        lines = [item for item in inside if isinstance(item, Path) and item.edge == "class-edge"]
        found[name] = [item.text for item in inside if isinstance(item, Label)], lines
    assert {name: texts for name, (texts, _) in found.items()} == {
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
    legend = {item.text for item in scene.items if isinstance(item, Label)}
    assert {"arc from the class", "in every optimum", "not proved to be in every optimum"} <= legend


def test_boxes_have_no_arrow_where_nothing_is_known_of_arcs():
    scene = draw_network(["a", "b", "class"], [(2,), (0, 2), ()])
    assert not [item for item in scene.items if isinstance(item, Label) and item.text == "arc from the class"]
    edges = [item for item in scene.items if isinstance(item, Path) and item.edge == "class-edge"]
    assert len(edges) == 1  # from the class to "every blue feature"


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
