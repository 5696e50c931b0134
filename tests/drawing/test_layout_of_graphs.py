"""Layouts: boxes apart, arcs from border to border, texts beside everything else."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from graphs import dag, forest
from pictures import apart, overlapping, rectangles

from milpbn.drawing.layout import ARROW, TEXT, GraphLayout, grid, lay_out

EPS = 1e-6


def points(route) -> np.ndarray:
    """Return points of the line of an arc, those of its curves close together."""
    t = np.linspace(0, 1, 12)[:, None]
    found = [np.array([route.steps[0]])]
    for before, step in pairwise(route.steps):
        start, nodes = np.array(before[-2:]), np.array(step).reshape(-1, 2)
        if len(nodes) == 1:
            found.append(start + t * (nodes[0] - start))
        else:
            a, b, c = nodes
            found.append((1 - t) ** 3 * start + 3 * t * (1 - t) ** 2 * a + 3 * t**2 * (1 - t) * b + t**3 * c)
    return np.concatenate([*found, [route.tip]])


def arcs_of(parents) -> list[tuple[int, int]]:
    last = len(parents) - 1
    return [(j, i) for i, above in enumerate(parents) for j in above if j != last]


def check(layout: GraphLayout, sizes, arcs, texts) -> None:
    boxes = rectangles(layout.boxes.values())
    assert apart(boxes), "boxes overlap"
    for node, box in layout.boxes.items():
        assert box.width >= sizes[node][0] - EPS
        assert box.height >= sizes[node][1] - EPS
        assert -EPS <= box.x <= layout.width - box.width + EPS
        assert -EPS <= box.y <= layout.height - box.height + EPS
    assert set(layout.routes) == set(arcs)
    for (parent, child), route in layout.routes.items():
        start, tip = layout.boxes[parent], layout.boxes[child]
        (x, y), (u, v) = route.steps[0], route.tip
        if layout.down:
            assert y == pytest.approx(start.y + start.height)
            assert start.x < x < start.x + start.width
            assert v == pytest.approx(tip.y)
            assert tip.x < u < tip.x + tip.width
        else:
            assert x == pytest.approx(start.x + start.width)
            assert start.y < y < start.y + start.height
            assert u == pytest.approx(tip.x)
            assert tip.y < v < tip.y + tip.height
        at = points(route)
        assert (at >= -EPS).all()
        assert (at <= np.array([layout.width, layout.height]) + EPS).all()
        inside = (at[:, None] > boxes[None, :, :2] + EPS).all(-1) & (
            at[:, None] < boxes[None, :, 2:] - EPS
        ).all(-1)
        assert not inside.any(), "an arc passes a box"
    if texts:
        placed = []
        for arc, width in texts.items():
            x, y = layout.routes[arc].text
            placed.append((x - width / 2, y - TEXT / 2, x + width / 2, y + TEXT / 2))
        words = np.array(placed)
        assert apart(words), "texts overlap"
        assert not overlapping(words, boxes).any(), "a text covers a box"


# Without texts, pictures of 57 features are large enough.
@pytest.mark.parametrize(
    ("n", "labelled"), [*((n, labelled) for n in (4, 9, 30, 57) for labelled in (False, True)), (196, True)]
)
@pytest.mark.parametrize("kind", ["forest", "dag", "class parents"])
def test_nothing_overlaps(n, kind, labelled):
    for seed in range(1 if n > 50 else 3):
        parents = {
            "forest": forest(n, seed),
            "dag": dag(n, seed),
            "class parents": dag(n, seed, 3, of_class=3),
        }[kind]
        arcs = arcs_of(parents)
        rng = np.random.default_rng(seed)
        sizes = {
            i: (float(rng.integers(36, 200)), float(rng.choice([26, 41, 56]))) for i in range(len(parents))
        }
        texts = {arc: float(rng.integers(12, 50)) for arc in arcs} if labelled else {}
        check(lay_out(sizes, arcs, texts), sizes, arcs, texts)


@pytest.mark.parametrize("n", [1, 2, 120])
def test_chains_and_stars_have_places(n):
    sizes = dict.fromkeys(range(n), (80.0, 26.0))
    for arcs in ([(i, i + 1) for i in range(n - 1)], [(0, i) for i in range(1, n)]):
        check(lay_out(sizes, arcs), sizes, arcs, {})


def test_a_layout_repeats():
    parents = dag(30, 1)
    sizes = dict.fromkeys(range(31), (80.0, 26.0))
    assert lay_out(sizes, arcs_of(parents)) == lay_out(sizes, arcs_of(parents))


def test_an_empty_graph_has_an_empty_layout():
    assert lay_out({}, []) == GraphLayout({}, {}, 0.0, 0.0)
    assert grid([], 500.0).boxes == {}


def test_the_line_ends_where_the_arrowhead_begins():
    layout = lay_out({0: (80.0, 26.0), 1: (80.0, 26.0)}, [(0, 1)])
    route = layout.routes[0, 1]
    assert np.abs(np.subtract(route.tip, route.steps[-1])).sum() == pytest.approx(ARROW)


def test_a_grid_is_no_wider_than_asked():
    sizes = [(50.0 + i, 26.0) for i in range(40)]
    layout = grid(sizes, 500.0)
    boxes = rectangles(layout.boxes.values())
    assert layout.width <= 500.0
    assert len(boxes) == 40
    assert apart(boxes)
    assert boxes[:, 3].max() == pytest.approx(layout.height)
