"""The picture of a Bayesian network classifier's structure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from milpbn.drawing.layout import ARROW, GAP, GraphLayout, Placed, grid, lay_out
from milpbn.drawing.scene import Box, Item, Label, Path, Scene, lines_of_text, stacked
from milpbn.drawing.text import BOLD, LINE, printable, shortened, text_width, wrapped
from milpbn.util.graphs import families_with_class

#: Font sizes of names and of smaller texts, and the largest width of a line of a name.
_SIZE, _SMALL, _NAME = 12.0, 10.0, 150.0
#: Space between a name and its box, and around the picture.
_PAD_X, _PAD_Y, _BORDER = 9.0, 5.5, 16.0
#: Line widths of the weakest and the strongest arc.
_THIN, _THICK = 1.2, 4.5

Arc = tuple[int, int]


@dataclass(frozen=True)
class Graph:
    """A structure as it is drawn.

    Attributes
    ----------
    names : sequence of str, length V
        Variable names, the class variable last.
    parents : sequence of sequences of int, length V
        Indices of each variable's parents.
    """

    names: Sequence[str]
    parents: Sequence[Sequence[int]]

    @property
    def of_class(self) -> int:
        """Index of the class variable."""
        return len(self.names) - 1

    @property
    def arcs(self) -> list[Arc]:
        """The arcs that are drawn as lines: all but those from the class, as (parent, child)."""
        return [(j, i) for i, ps in enumerate(self.parents) for j in ps if j != self.of_class]

    @property
    def dependent(self) -> set[int]:
        """The features that have the class as a parent."""
        return {i for i, ps in enumerate(self.parents) if self.of_class in ps}

    @property
    def used(self) -> frozenset[int]:
        """The variables that are in a family with the class; predictions depend on no other feature."""
        return families_with_class(self.parents)


def draw_network(
    names: Sequence[str],
    parents: Sequence[Sequence[int]],
    *,
    losses: Mapping[Arc, float] | None = None,
    proved: Collection[Arc] | None = None,
    title: str = "",
) -> Scene:
    """Draw a structure.

    Colours say how features are related to the class, so that its arcs do not hide those between features. Features
    that no prediction depends on are grey, and stand apart if they have no arcs.

    Parameters
    ----------
    names : sequence of str, length V
        Variable names, the class variable last.
    parents : sequence of sequences of int, length V
        Indices of each variable's parents, without a cycle.
    losses : mapping of (parent, child) to float, optional
        What the score loses without each arc, in nats: a text and the width of its line. Arcs from the class count too:
        what they are worth is shown where the pointer rests on the child's box.
    proved : collection of (parent, child), optional
        Arcs that every optimum has; all others are dashed. By default nothing is said of this.
    title : str, optional
        A line above the picture.
    """
    graph = Graph(names, parents)
    linked = {i for arc in graph.arcs for i in arc}
    strengths = {arc: value for arc, value in (losses or {}).items() if arc in set(graph.arcs)}
    texts = {arc: _amount(value) for arc, value in strengths.items()}
    letters = {i: BOLD * _SIZE if i == graph.of_class else _SIZE for i in range(len(names))}
    boxes = {i: wrapped(name, _NAME, letters[i]) for i, name in enumerate(names)}
    sizes = {i: _box_size(lines, letters[i]) for i, lines in boxes.items()}
    layout = lay_out(
        {i: sizes[i] for i in sorted(linked)},
        graph.arcs,
        {arc: text_width(text, _SMALL) for arc, text in texts.items()},
    )
    alone = [i for i in range(len(names) - 1) if i not in linked]
    lone = [i for i in alone if i in graph.used]
    unused = [i for i in alone if i not in graph.used]
    # Features without arcs fill a page's width if there are many of them.
    width = max(layout.width, min(1000.0, 130.0 * len(alone) ** 0.5), 560.0)
    parts = [_legend(graph, sizes, boxes, width, bool(losses), proved is not None and bool(graph.arcs))]
    if title:
        letters_of_title = BOLD * 1.15 * _SIZE
        line = shortened(printable(title), width, letters_of_title)
        head = Scene(text_width(line, letters_of_title), 18.0)
        head.add(Label(0.0, 14.0, line, 1.15 * _SIZE, bold=True))
        parts.insert(0, head)
    if graph.arcs:
        parts.append(_linked(graph, layout, boxes, strengths, texts, proved, losses or {}))
    if lone:
        caption = "features without feature parents and children" if graph.arcs else ""
        parts.append(_alone(graph, lone, sizes, boxes, width, caption, losses or {}))
    if unused:
        parts.append(_alone(graph, unused, sizes, boxes, width, f"not used ({len(unused)})", {}))
    inner = stacked(parts)
    scene = Scene(0.0, 0.0)
    scene.place(inner, _BORDER, _BORDER)
    scene.width, scene.height = scene.width + _BORDER, scene.height + _BORDER
    scene.description = _description(graph)
    return scene


def _description(graph: Graph) -> str:
    features = len(graph.names) - 1
    return (
        f"Bayesian network of {printable(graph.names[-1])}: {len(graph.used) - 1} of {features} features are used, "
        f"{len(graph.arcs)} arcs between features or to the class"
    )


def _box_size(lines: Sequence[str], letters: float) -> tuple[float, float]:
    width = max(text_width(line, letters) for line in lines)
    return max(36.0, width + 2 * _PAD_X), len(lines) * LINE * _SIZE + 2 * _PAD_Y


def _amount(value: float) -> str:
    """Return a score with about three digits."""
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else (f"{value:.1f}" if size >= 10 else f"{value:.2f}")


def _kind(graph: Graph, i: int) -> str:
    if i == graph.of_class:
        return "class"
    if i not in graph.used:
        return "unused"
    return "feature" if i in graph.dependent else "plain"


def _node(graph: Graph, i: int, place: Placed, lines: Sequence[str], loss: float | None) -> list[Item]:
    """Return a variable's box and its name; the whole name and its parents are shown under the pointer."""
    kind = _kind(graph, i)
    fill, edge = _colours(kind)
    above = ", ".join(printable(graph.names[j]) for j in graph.parents[i]) or "none"
    title = f"{printable(graph.names[i])}; parents: {above}"
    if loss is not None:
        title += f"; the score loses {_amount(loss)} nats without the arc from the class"
    box = Box(place.x, place.y, place.width, place.height, fill, edge, 5.0, title=title)
    middle = place.y + place.height / 2
    return [
        box,
        *lines_of_text(
            place.x + place.width / 2,
            middle,
            lines,
            _SIZE,
            anchor="middle",
            colour="muted" if kind == "unused" else "ink",
            bold=kind == "class",
            title=title,
        ),
    ]


def _linked(
    graph: Graph,
    layout: GraphLayout,
    boxes: Mapping[int, Sequence[str]],
    strengths: Mapping[Arc, float],
    texts: Mapping[Arc, str],
    proved: Collection[Arc] | None,
    losses: Mapping[Arc, float],
) -> Scene:
    """Draw the variables with arcs: first the lines, then the boxes, then the texts of the arcs."""
    scene = Scene(layout.width, layout.height)
    largest = max(strengths.values(), default=0.0)
    labels: list[Item] = []
    for (j, i), route in layout.routes.items():
        width = 1.5
        if (j, i) in strengths and largest > 0:
            width = _THIN + (_THICK - _THIN) * max(0.0, strengths[j, i]) / largest
        sure = proved is None or (j, i) in proved
        title = f"{printable(graph.names[j])} → {printable(graph.names[i])}"
        if (j, i) in texts:
            title += f": the score loses {texts[j, i]} nats without it"
        if proved is not None:
            title += "; in every optimum" if sure else "; not proved to be in every optimum"
        scene.add(
            Path(route.steps, "line", width=width, dashed=not sure, title=title),
            _arrowhead(route.tip, layout.down, max(3.4, 1.1 * width)),
        )
        if not sure:
            # A gap of the dashes must not part the arrowhead from its line.
            (x, y), back = route.steps[-1][-2:], 7.0
            before = (x, y - back) if layout.down else (x - back, y)
            scene.add(Path((before, (x, y)), "line", width=width))
        if (j, i) in texts:
            text, (x, y) = texts[j, i], route.text
            wide = text_width(text, _SMALL)
            labels.append(Box(x - wide / 2 - 1, y - 6.5, wide + 2, 13.0, "paper"))
            labels.append(Label(x, y + 0.35 * _SMALL, text, _SMALL, "middle", "muted"))
    for i, place in layout.boxes.items():
        scene.add(*_node(graph, i, place, boxes[i], losses.get((graph.of_class, i))))
    scene.add(*labels)
    return scene


def _arrowhead(tip: tuple[float, float], down: bool, half: float) -> Path:
    x, y = tip
    if down:
        return Path(((x, y), (x - half, y - ARROW), (x + half, y - ARROW)), fill="line")
    return Path(((x, y), (x - ARROW, y - half), (x - ARROW, y + half)), fill="line")


def _alone(
    graph: Graph,
    nodes: Sequence[int],
    sizes: Mapping[int, tuple[float, float]],
    boxes: Mapping[int, Sequence[str]],
    width: float,
    caption: str,
    losses: Mapping[Arc, float],
) -> Scene:
    """Draw variables without lines, in rows."""
    placed = grid([sizes[i] for i in nodes], width)
    top = 20.0 if caption else 0.0
    scene = Scene(max(placed.width, text_width(caption, _SMALL + 1)), placed.height + top)
    if caption:
        scene.add(Label(0.0, 11.0, caption, _SMALL + 1, colour="muted"))
    for k, i in enumerate(nodes):
        box = placed.boxes[k]
        place = Placed(box.x, box.y + top, box.width, box.height)
        scene.add(*_node(graph, i, place, boxes[i], losses.get((graph.of_class, i))))
    return scene


def _legend(
    graph: Graph,
    sizes: Mapping[int, tuple[float, float]],
    boxes: Mapping[int, Sequence[str]],
    width: float,
    weighed: bool,
    proved: bool,
) -> Scene:
    """Draw what colours and lines mean; a class without parents has its box here, with one arc for all of its arcs."""
    last, kinds = graph.of_class, {_kind(graph, i) for i in range(len(graph.names) - 1)}
    line = Path(((0.0, 9.0), (26.0, 9.0)), "line", width=1.5)
    entries: list[Scene] = []
    if not graph.parents[last]:
        w, h = sizes[last]
        stub = Scene(w, h)
        stub.add(*_node(graph, last, Placed(0.0, 0.0, w, h), boxes[last], None))
        if "feature" in kinds:
            stub.add(
                Path(((w, h / 2), (w + 26.0 - ARROW, h / 2)), "line", width=1.5),
                _arrowhead((w + 26.0, h / 2), False, 3.4),
            )
            stub.place(_entry(_swatch("feature"), "every blue feature"), w + 26.0, h / 2 - 9.0)
        entries.append(stub)
    elif "feature" in kinds:
        entries.append(_entry(_swatch("feature"), "has the class as a parent"))
    for kind, words in (
        ("plain", "does not have the class as a parent"),
        ("unused", "changes no prediction"),
    ):
        if kind in kinds:
            entries.append(_entry(_swatch(kind), words))
    if weighed and graph.arcs:
        entries.append(_entry(replace(line, width=3.5), "what the score loses without the arc (nats)"))
    if proved:
        entries.append(_entry(line, "in every optimum"))
        entries.append(_entry(replace(line, dashed=True), "not proved to be in every optimum"))
    rows: list[list[Scene]] = [[]]
    for entry in entries:
        if rows[-1] and sum(e.width + 2 * GAP for e in rows[-1]) + entry.width > width:
            rows.append([])
        rows[-1].append(entry)
    legend, y = Scene(0.0, 0.0), 0.0
    for row in rows:
        height, x = max((e.height for e in row), default=0.0), 0.0
        for entry in row:
            legend.place(entry, x, y + (height - entry.height) / 2)
            x += entry.width + 2 * GAP
        y += height + 6.0
    return legend


def _swatch(kind: str) -> Box:
    return Box(0.0, 2.0, 22.0, 14.0, *_colours(kind), radius=4.0)


def _colours(kind: str) -> tuple[str, str]:
    return ("paper", "line") if kind == "plain" else (kind, f"{kind}-edge")


def _entry(mark: Box | Path, words: str) -> Scene:
    entry = Scene(32.0 + text_width(words, _SMALL + 1), 18.0)
    entry.add(mark, Label(32.0, 13.0, words, _SMALL + 1, colour="muted"))
    return entry
