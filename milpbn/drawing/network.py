"""The picture of a Bayesian network classifier's structure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from milpbn.drawing.arcs import ROW, SMALL, STUB, Arc, ArcStyle, Graph, arc_styles, arrowhead, colours, stub
from milpbn.drawing.layout import APART, ARROW, GAP, GraphLayout, grid, lay_out
from milpbn.drawing.scene import Box, Item, Label, Path, Scene, lines_of_text, stacked
from milpbn.drawing.text import BOLD, LINE, shortened, text_width, wrapped
from milpbn.util.plurals import counted
from milpbn.util.printing import printable

#: Font size of names, and the largest width of a line of a name.
_SIZE, _NAME = 12.0, 150.0
#: Space between a name and its box, and around the picture.
_PAD_X, _PAD_Y, _BORDER = 9.0, 5.5, 16.0
#: Width of the marks, and the size of the words behind them.
_MARK, _WORDS = 32.0, SMALL + 1


def draw_network(
    names: Sequence[str],
    parents: Sequence[Sequence[int]],
    *,
    losses: Mapping[Arc, float] | None = None,
    proved: Collection[Arc] | None = None,
    title: str = "",
    has_class: bool = True,
) -> Scene:
    """Draw a structure, whose last variable is the class if it `has_class`; see `milpbn.plotting.draw_structure`.

    Features that have the class as a parent are coloured, so that the arcs from the class need not be drawn and do not
    hide those between features. If losses or proved arcs are given, an arc from the class is a short arrow in its
    child's box. Features that no prediction depends on are grey; those without arcs are beside the picture. A loss is a
    number at the arc, and the width of its line.
    """
    graph = Graph(names, parents, has_class)
    styles = arc_styles(graph, losses, proved)
    numbers, known = any(style.text for style in styles.values()), proved is not None and bool(styles)
    stubs = numbers or known
    nodes = {
        i: _node(graph, i, styles.get((graph.of_class, i)) if stubs else None) for i in range(len(names))
    }
    linked = {i for arc in graph.arcs for i in arc}
    layout = lay_out(
        {i: nodes[i].size for i in sorted(linked)},
        graph.arcs,
        {arc: text_width(styles[arc].text, SMALL) for arc in graph.arcs if styles[arc].text},
    )
    alone = [i for i in range(graph.of_class) if i not in linked]
    lone = [i for i in alone if i in graph.used]
    unused = [i for i in alone if i not in graph.used]
    # Features without arcs fill a page's width if there are many of them; a small network still fits a phone.
    width = max(layout.width, min(1000.0, 130.0 * len(alone) ** 0.5), 448.0)
    of_arcs = _entries_of_arcs(numbers, bool(losses) and bool(styles), known)
    parts = [_legend(graph, nodes[graph.of_class].scene(), of_arcs, stubs, width)] if has_class else []
    if not has_class and of_arcs:
        parts = [_in_rows(of_arcs, width)]
    if title:
        letters_of_title = BOLD * 1.15 * _SIZE
        line = shortened(printable(title), width, letters_of_title)
        head = Scene(text_width(line, letters_of_title), 18.0)
        head.add(Label(0.0, 14.0, line, 1.15 * _SIZE, bold=True))
        parts.insert(0, head)
    if graph.arcs:
        parts.append(_linked(graph, layout, nodes, styles))
    if lone:
        kind = "features without feature" if has_class else "variables without"
        caption = f"{kind} parents and children" if graph.arcs else ""
        parts.append(_alone([nodes[i] for i in lone], width, caption))
    if unused:
        parts.append(_alone([nodes[i] for i in unused], width, f"not used ({len(unused)})"))
    inner = stacked(parts)
    scene = Scene(0.0, 0.0)
    scene.place(inner, _BORDER, _BORDER)
    scene.width, scene.height = scene.width + _BORDER, scene.height + _BORDER
    scene.description = _description(graph)
    return scene


def node_boxes(names: Sequence[str], parents: Sequence[Sequence[int]], has_class: bool = True) -> list[Box]:
    """Return the boxes of all variables, for programs that draw every arc, those from the class included.

    A class without parents is on top. All other variables are placed as `draw_network` places those with arcs.
    """
    graph = Graph(names, parents, has_class)
    sizes = {i: _node(graph, i, None).size for i in range(len(names))}
    on_top = has_class and not parents[-1]
    width, height = sizes.pop(graph.of_class) if on_top else (0.0, 0.0)
    layout, down = lay_out(sizes, graph.arcs), (height + 2 * APART) * on_top
    boxes = {i: replace(box, y=box.y + down) for i, box in layout.boxes.items()}
    top = Box(max(0.0, layout.width - width) / 2, 0.0, width, height)
    return [boxes.get(i, top) for i in range(len(names))]


def _description(graph: Graph) -> str:
    arcs = counted(len(graph.arcs), "arc")
    if not graph.has_class:
        return f"Bayesian network of {counted(graph.of_class, 'variable')}, {arcs}"
    used, features = len(graph.used - {graph.of_class}), counted(graph.of_class, "feature")
    return (
        f"Bayesian network of {printable(graph.names[-1])}: {used} of {features} {'is' if used == 1 else 'are'} used, "
        f"{arcs} between features or to the class"
    )


@dataclass(frozen=True)
class _Node:
    """A variable's box: its name, and if something is known of its arc from the class, this arc below the name."""

    kind: str
    lines: Sequence[str]
    title: str
    style: ArcStyle | None

    @property
    def size(self) -> tuple[float, float]:
        letters = BOLD * _SIZE if self.kind == "class" else _SIZE
        width = max(text_width(line, letters) for line in self.lines)
        height = len(self.lines) * LINE * _SIZE
        if self.style is not None:
            width, height = max(width, self.style.row), height + ROW
        return max(36.0, width + 2 * _PAD_X), height + 2 * _PAD_Y

    def items(self, place: Box) -> list[Item]:
        """Return the box with what is in it; the whole name and its parents are shown under the pointer."""
        row = ROW if self.style is not None else 0.0
        centre, middle = place.x + place.width / 2, place.y + place.height / 2
        fill, edge = colours(self.kind)
        items: list[Item] = [
            replace(place, fill=fill, edge=edge, radius=5.0, title=self.title),
            *lines_of_text(
                centre,
                middle - row / 2,
                self.lines,
                _SIZE,
                anchor="middle",
                colour="muted" if self.kind == "unused" else "ink",
                bold=self.kind == "class",
                title=self.title,
            ),
        ]
        if self.style is not None:
            below = middle + len(self.lines) * LINE * _SIZE / 2
            items += stub(centre - self.style.row / 2, below, self.style, self.title)
        return items

    def scene(self) -> Scene:
        """Return the box alone, in its own size."""
        scene = Scene(*self.size)
        scene.add(*self.items(Box(0.0, 0.0, *self.size)))
        return scene


def _node(graph: Graph, i: int, style: ArcStyle | None) -> _Node:
    kind = graph.kind(i)
    above = ", ".join(printable(graph.names[j]) for j in graph.parents[i]) or "none"
    title = f"{printable(graph.names[i])}; parents: {above}"
    if style is not None:
        title += f"; arc from the class{style.tooltip}"
    lines = wrapped(graph.names[i], _NAME, BOLD * _SIZE if kind == "class" else _SIZE)
    return _Node(kind, lines, title, style)


def _linked(
    graph: Graph, layout: GraphLayout, nodes: Mapping[int, _Node], styles: Mapping[Arc, ArcStyle]
) -> Scene:
    """Draw the variables with arcs: first the lines, then the boxes, then the texts of the arcs."""
    scene = Scene(layout.width, layout.height)
    labels: list[Item] = []
    for (j, i), route in layout.routes.items():
        style = styles[j, i]
        title = f"{printable(graph.names[j])} → {printable(graph.names[i])}{style.tooltip}"
        scene.add(
            Path(route.steps, "line", width=style.width, dashed=style.dashed, title=title),
            arrowhead(route.tip, layout.down, style.half),
        )
        if style.dashed:
            # A gap of the dashes must not part the arrowhead from its line.
            (x, y), back = route.steps[-1][-2:], 7.0
            before = (x, y - back) if layout.down else (x - back, y)
            scene.add(Path((before, (x, y)), "line", width=style.width))
        if style.text:
            x, y = route.text
            wide = text_width(style.text, SMALL)
            labels.append(Box(x - wide / 2 - 1, y - 6.5, wide + 2, 13.0, "paper"))
            labels.append(Label(x, y + 0.35 * SMALL, style.text, SMALL, "middle", "muted"))
    for i, place in layout.boxes.items():
        scene.add(*nodes[i].items(place))
    scene.add(*labels)
    return scene


def _alone(nodes: Sequence[_Node], width: float, caption: str) -> Scene:
    """Draw variables without lines, in rows."""
    placed = grid([node.size for node in nodes], width)
    top = 20.0 if caption else 0.0
    scene = Scene(max(placed.width, text_width(caption, SMALL + 1)), placed.height + top)
    if caption:
        scene.add(Label(0.0, 11.0, caption, SMALL + 1, colour="muted"))
    for k, node in enumerate(nodes):
        scene.add(*node.items(placed.boxes[k].moved(0.0, top)))
    return scene


def _legend(graph: Graph, of_class: Scene, of_arcs: Sequence[Scene], stubs: bool, width: float) -> Scene:
    """Draw what colours and lines mean; a class without parents has its box here, with one arc for all of its arcs.

    The entries of arcs come last. With `stubs`, the boxes of the children of the class have its arcs. The legend is no
    wider than `width` as long as no single entry needs more.
    """
    kinds = {graph.kind(i) for i in range(graph.of_class)}
    entries: list[Scene] = []
    if not graph.parents[graph.of_class]:
        entries.append(_box_of_class(of_class, "feature" in kinds))
    elif "feature" in kinds:
        entries.append(_entry([_swatch("feature")], "has the class as a parent"))
    for kind, words in (
        ("plain", "does not have the class as a parent"),
        ("unused", "changes no prediction"),
    ):
        if kind in kinds:
            entries.append(_entry([_swatch(kind)], words))
    if stubs and "feature" in kinds:
        entries.append(_entry(stub(0.0, 9.0, ArcStyle()), "arc from the class"))
    return _in_rows([*entries, *of_arcs], width)


def _entries_of_arcs(numbers: bool, losses: bool, proved: bool) -> list[Scene]:
    """Return what the legend says of arcs: of their numbers, or that all losses are 0, and of dashes."""
    entries = []
    if numbers:
        entries.append(_entry([_line(3.5)], "number, width: what the score loses without the arc (nats)"))
    elif losses:
        entries.append(_entry([_line(1.5)], "the score loses nothing (0.00 nats) without any one arc"))
    if proved:
        entries.append(_entry([_line(1.5)], "in every optimum"))
        entries.append(_entry([_line(1.5, dashed=True)], "not proved to be in every optimum"))
    return entries


def _box_of_class(of_class: Scene, arrow: bool) -> Scene:
    entry = Scene(0.0, 0.0)
    entry.place(of_class, 0.0, 0.0)
    if arrow:
        start, middle = of_class.width, of_class.height / 2
        line = Path(((start, middle), (start + STUB + 4.0 - ARROW, middle)), "class-edge", width=1.5)
        tip = (start + STUB + 4.0, middle)
        entry.add(line, arrowhead(tip, False, 3.4, "class-edge"))
        entry.place(_entry([_swatch("feature")], "every blue feature"), tip[0], middle - 9.0)
    return entry


def _in_rows(entries: Collection[Scene], width: float) -> Scene:
    rows: list[list[Scene]] = [[]]
    for entry in entries:
        if rows[-1] and sum(e.width + 2 * GAP for e in rows[-1]) + entry.width > width:
            rows.append([])
        rows[-1].append(entry)
    drawn, y = Scene(0.0, 0.0), 0.0
    for row in rows:
        height, x = max((e.height for e in row), default=0.0), 0.0
        for entry in row:
            drawn.place(entry, x, y + (height - entry.height) / 2)
            x += entry.width + 2 * GAP
        y += height + 6.0
    return drawn


def _line(width: float, dashed: bool = False) -> Path:
    return Path(((0.0, 9.0), (26.0, 9.0)), "line", width=width, dashed=dashed)


def _swatch(kind: str) -> Box:
    return Box(0.0, 2.0, 22.0, 14.0, *colours(kind), radius=4.0)


def _entry(mark: Collection[Item], words: str) -> Scene:
    entry = Scene(_MARK + text_width(words, _WORDS), 18.0)
    entry.add(*mark, Label(_MARK, 13.0, words, _WORDS, colour="muted"))
    return entry
