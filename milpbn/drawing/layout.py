"""Where the boxes and arcs of a directed acyclic graph go.

Boxes never overlap, every arc begins and ends at the border of its boxes and passes no other box, and the texts of arcs
have lanes of their own. Every connected part is laid out by itself: trees by `tidy`, other graphs by `layered`. The
parts are then packed into a picture that is about as wide as a page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from milpbn.drawing.layered import Arc, layered, tidy
from milpbn.drawing.scene import Box, Step, shifted

#: Least distance between boxes of one level, length of an arrowhead, and distance between parts, in pixels.
GAP, ARROW, APART = 10.0, 8.0, 30.0
#: Height of the text of an arc, and its distance from what is beside it.
TEXT, MARGIN = 13.0, 4.0
#: Least length of the space between two levels in which arcs bend.
_BEND = 26.0
#: Width of a page, and the ratio of width to height that pictures come near to.
_PAGE, _RATIO = 1000.0, 1.6

Size = tuple[float, float]


@dataclass(frozen=True)
class Route:
    """An arc: its line from the parent's box to the arrowhead, the tip of this, and the centre of its text."""

    steps: tuple[Step, ...]
    tip: Step
    text: Step


@dataclass(frozen=True)
class GraphLayout:
    """The places of all boxes by node, and of all arcs, of a picture of this size.

    Children are below their parents, or to their right if `down` is False.
    """

    boxes: dict[int, Box]
    routes: dict[Arc, Route]
    width: float
    height: float
    down: bool = True


def lay_out(
    sizes: Mapping[int, Size], arcs: Sequence[Arc], texts: Mapping[Arc, float] | None = None
) -> GraphLayout:
    """Return a layout of an acyclic graph, with children below or beside their parents, whichever looks better.

    Sizes are (width, height) of the boxes by node, and texts the widths of the texts at arcs, in pixels.
    """
    if not sizes:
        return GraphLayout({}, {}, 0.0, 0.0)
    parts = _parts(list(sizes), arcs)
    found = []
    for down in (True, False):
        laid = [_part(nodes, inside, sizes, texts or {}, down) for nodes, inside in parts]
        least = max(part.width for part in laid)
        widths = [least, *(w for w in (500.0, 700.0, 850.0, 1000.0, 1300.0, 1700.0) if w > least)]
        found += [_packed(laid, width, down) for width in widths]
    return min(found, key=_cost)


def grid(sizes: Sequence[Size], width: float, gap: float = GAP) -> GraphLayout:
    """Return boxes in rows of equal columns, column by column filled from left to right, at most this wide."""
    if not sizes:
        return GraphLayout({}, {}, 0.0, 0.0)
    column = max(w for w, _ in sizes)
    columns = max(1, min(len(sizes), int((width + gap) / (column + gap))))
    boxes, y = {}, 0.0
    for first in range(0, len(sizes), columns):
        row = range(first, min(first + columns, len(sizes)))
        height = max(sizes[i][1] for i in row)
        for i in row:
            boxes[i] = Box((i - first) * (column + gap), y, column, height)
        y += height + gap
    return GraphLayout(boxes, {}, columns * (column + gap) - gap, y - gap)


def _cost(layout: GraphLayout) -> float:
    """Return the picture's area, more for a shape far from that of a page, more for one wider than a page."""
    too_wide = max(1.0, layout.width / _PAGE)
    return (
        layout.width * layout.height * (1 + math.log(layout.width / layout.height / _RATIO) ** 2) * too_wide
    )


def _parts(nodes: list[int], arcs: Sequence[Arc]) -> list[tuple[list[int], list[Arc]]]:
    """Return the connected parts, each as its nodes and arcs."""
    index = {node: k for k, node in enumerate(nodes)}
    ends = np.array([(index[j], index[i]) for j, i in arcs], dtype=int).reshape(-1, 2)
    matrix = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(nodes), len(nodes)))
    count, label = connected_components(matrix, directed=False)
    parts: list[tuple[list[int], list[Arc]]] = [([], []) for _ in range(count)]
    for node in nodes:
        parts[label[index[node]]][0].append(node)
    for arc in arcs:
        parts[label[index[arc[0]]]][1].append(arc)
    return parts


def _part(
    nodes: list[int], arcs: list[Arc], sizes: Mapping[int, Size], texts: Mapping[Arc, float], down: bool
) -> GraphLayout:
    """Lay one connected part out. Inside, lengths are along the direction of growth, and breadths across it."""
    along, across = (1, 0) if down else (0, 1)
    index = {node: k for k, node in enumerate(nodes)}
    inner = [(index[j], index[i]) for j, i in arcs]
    above: list[list[int]] = [[] for _ in nodes]
    for j, i in inner:
        above[i].append(j)
    size = {arc: (texts[arc], TEXT) for arc in arcs if arc in texts}
    lane = [
        max(
            [
                ARROW + MARGIN,
                *(size[nodes[j], nodes[i]][across] + MARGIN for j in ps if (nodes[j], nodes[i]) in size),
            ]
        )
        for i, ps in enumerate(above)
    ]
    length = np.array([sizes[node][along] for node in nodes])
    breadth = np.array([sizes[node][across] for node in nodes])
    # Arcs into one box end beside one another.
    breadth = np.maximum(breadth, [width * len(ps) for width, ps in zip(lane, above, strict=True)])
    bends: dict[Arc, list[float]] = {}
    if all(len(ps) <= 1 for ps in above):
        level, centre = tidy([ps[0] if ps else None for ps in above], breadth.tolist(), GAP)
    else:
        level, centre, bends = layered(len(nodes), inner, breadth.tolist(), GAP)
    lowest = float((centre - breadth / 2).min())
    centre = centre - lowest
    bends = {arc: [value - lowest for value in lanes] for arc, lanes in bends.items()}
    # The space behind each level: arcs bend, then they run straight past their texts to the arrowhead.
    n_levels = int(level.max()) + 1
    thickness = np.zeros(n_levels)
    np.maximum.at(thickness, level, length)
    straight, bend = np.full(n_levels, ARROW), np.full(n_levels, _BEND)
    for (j, i), arc in zip(inner, arcs, strict=True):
        if arc in size:
            straight[level[i] - 1] = max(straight[level[i] - 1], size[arc][along] + ARROW + 2 * MARGIN)
        points = [centre[j], *bends.get((j, i), []), centre[i]]
        for k, (a, b) in enumerate(pairwise(points), start=int(level[j])):
            bend[k] = max(bend[k], min(90.0, 0.13 * abs(a - b)))
    start = np.concatenate([[0.0], np.cumsum(thickness + bend + straight)])
    ports = _ports(above, centre, lane, {(j, i): bends.get((j, i), []) for j, i in inner})

    def at(a: float, c: float) -> tuple[float, float]:
        return (c, a) if down else (a, c)

    boxes = {}
    for k, node in enumerate(nodes):
        x, y = at(float(start[level[k]]), float(centre[k] - breadth[k] / 2))
        w, h = at(float(length[k]), float(breadth[k]))
        boxes[node] = Box(x, y, w, h)
    routes = {}
    for (j, i), arc in zip(inner, arcs, strict=True):
        k = int(level[j])
        begin = float(start[k] + length[j]), float(centre[j])
        curves = [
            (float(start[n] + thickness[n]), float(start[n] + thickness[n] + bend[n]))
            for n in range(k, level[i])
        ]
        lanes = [*bends.get((j, i), []), ports[j, i]]
        half = size[arc][along] / 2 if arc in size else 0.0
        routes[arc] = _route(at, begin, list(zip(curves, lanes, strict=True)), float(start[level[i]]), half)
    extent = at(float(start[n_levels - 1] + thickness[-1]), float((centre + breadth / 2).max()))
    for lanes in bends.values():
        extent = at(extent[1 - across], max(extent[across], max(lanes, default=0.0) + MARGIN))
    return GraphLayout(boxes, routes, *extent, down)


def _ports(
    above: list[list[int]], centre: np.ndarray, lane: list[float], bends: Mapping[Arc, list[float]]
) -> dict[Arc, float]:
    """Return where each arc reaches its child's box, across the direction of growth."""
    ports = {}
    for i, parents in enumerate(above):
        last = {j: bends[j, i][-1] if bends[j, i] else float(centre[j]) for j in parents}
        for k, j in enumerate(sorted(parents, key=lambda j: (last[j], j))):
            ports[j, i] = float(centre[i]) + lane[i] * (k - (len(parents) - 1) / 2)
    return ports


def _route(
    at: Callable[[float, float], tuple[float, float]],
    begin: tuple[float, float],
    curves: list[tuple[tuple[float, float], float]],
    tip: float,
    half: float,
) -> Route:
    """Return the line of an arc: straight past each level, in a curve from there to its next lane.

    `at` converts a place along and across the direction of growth to (x, y). For each level that the arc passes,
    `curves` has where along the direction it bends, and the lane that it then has. It begins at the border of its
    parent's box, and ends at `tip` along the direction; `half` is half the length of its text along it.
    """
    place, here = begin
    steps: list[Step] = [at(place, here)]
    for (a, b), lane in curves:
        middle = (a + b) / 2
        steps += [at(a, here), (*at(middle, here), *at(middle, lane), *at(b, lane))]
        here = lane
    steps.append(at(tip - ARROW, here))
    return Route(tuple(steps), at(tip, here), at(tip - ARROW - MARGIN - half, here))


def _packed(parts: Sequence[GraphLayout], width: float, down: bool) -> GraphLayout:
    """Return the parts in rows that are at most this wide, the largest first."""
    boxes: dict[int, Box] = {}
    routes: dict[Arc, Route] = {}
    x = y = row = widest = 0.0
    for part in sorted(parts, key=lambda part: (-part.height, -part.width)):
        if x and x + part.width > width:
            x, y, row = 0.0, y + row + APART, 0.0
        for node, box in part.boxes.items():
            boxes[node] = box.moved(x, y)
        for arc, route in part.routes.items():
            *steps, tip, text = shifted((*route.steps, route.tip, route.text), x, y)
            routes[arc] = Route(tuple(steps), tip, text)
        widest, row = max(widest, x + part.width), max(row, part.height)
        x += part.width + APART
    return GraphLayout(boxes, routes, widest, y + row, down)
