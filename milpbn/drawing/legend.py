"""The legend of the picture of a network."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from milpbn.drawing.arcs import SMALL, STUB, ArcStyle, arrowhead, stub
from milpbn.drawing.graph import Graph, colours
from milpbn.drawing.layout import ARROW, GAP
from milpbn.drawing.scene import Box, Item, Label, Path, Scene
from milpbn.drawing.text import text_width

#: Width of the marks, and the size of the words behind them.
_MARK, _WORDS = 32.0, SMALL + 1


@dataclass(frozen=True)
class ArcMarks:
    """Which properties of arcs a picture shows.

    Attributes
    ----------
    loss : bool
        Arcs have numbers: what the score loses without them.
    proof : bool
        Arcs that are not proved to be in every optimum are dashed.
    no_loss : bool
        The score is known to lose nothing without any one arc, so that no arc has a number.
    """

    loss: bool
    proof: bool
    no_loss: bool = False

    def __bool__(self) -> bool:
        return self.loss or self.proof


def legend(graph: Graph, marks: ArcMarks, of_class: Scene, width: float) -> Scene:
    """Draw what colours and lines mean; a class without parents has its box here, with one arc for all of its arcs.

    Parameters
    ----------
    graph : Graph
        The structure.
    marks : ArcMarks
        Which properties of arcs the picture shows.
    of_class : Scene
        The box of the class.
    width : float
        Of the legend, as long as no single entry needs more.
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
    if marks and "feature" in kinds:
        entries.append(_entry(stub(0.0, 9.0, ArcStyle()), "arc from the class"))
    if marks.loss:
        entries.append(_entry([_line(3.5)], "number, width: what the score loses without the arc (nats)"))
    if marks.no_loss:
        entries.append(_entry([_line(1.5)], "the score loses nothing (0.00 nats) without any one arc"))
    if marks.proof:
        entries.append(_entry([_line(1.5)], "in every optimum"))
        entries.append(_entry([_line(1.5, dashed=True)], "not proved to be in every optimum"))
    return _in_rows(entries, width)


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
