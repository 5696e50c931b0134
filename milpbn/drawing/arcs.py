"""What is drawn of a structure's variables and arcs.

Number and width of an arc are what the score loses without it; a dashed arc is not proved to be in every optimum.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from milpbn.drawing.layered import Arc
from milpbn.drawing.layout import ARROW
from milpbn.drawing.scene import DASHES, Item, Label, Path, Step
from milpbn.drawing.text import text_width
from milpbn.util.graphs import families_with_class

#: Font size of the numbers at arcs.
SMALL = 10.0
#: Line widths: of an arc whose loss is 0, of the arc with the largest loss, and of all arcs if no losses are known.
_THIN, _THICK, _PLAIN = 1.2, 4.5, 1.5
#: The short arrow of an arc from the class: its length, two dashes and a gap before the arrowhead, the height of its
#: row in the box, and the space before its number.
STUB, ROW, _SPACE = 2 * DASHES[0] + DASHES[1] + ARROW, 14.0, 4.0


@dataclass(frozen=True)
class Graph:
    """A structure as it is drawn: names, the class last if there is one, and the indices of each variable's parents."""

    names: Sequence[str]
    parents: Sequence[Sequence[int]]
    has_class: bool = True

    @property
    def of_class(self) -> int:
        """Index of the class variable, or the number of variables if there is none."""
        return len(self.names) - self.has_class

    @cached_property
    def arcs(self) -> list[Arc]:
        """The arcs that are drawn as lines: all but those from the class, as (parent, child)."""
        return [(j, i) for i, ps in enumerate(self.parents) for j in ps if j != self.of_class]

    @cached_property
    def dependent(self) -> frozenset[int]:
        """The features that have the class as a parent."""
        return frozenset(i for i, ps in enumerate(self.parents) if self.of_class in ps)

    @property
    def arcs_of_class(self) -> list[Arc]:
        """The arcs from the class, as (class, child); each is a short arrow in its child's box, or not drawn."""
        return [(self.of_class, i) for i in sorted(self.dependent)]

    @cached_property
    def used(self) -> frozenset[int]:
        """The variables that are in a family with the class; predictions depend on no other feature."""
        return families_with_class(self.parents) if self.has_class else frozenset(range(len(self.names)))

    def kind(self, i: int) -> str:
        """Return what a variable is to the class: "class", "feature" (its child), "plain" or "unused"."""
        if i == self.of_class:
            return "class"
        if i not in self.used:
            return "unused"
        return "feature" if i in self.dependent else "plain"


def colours(kind: str) -> tuple[str, str]:
    """Return the roles of the fill and the edge of a box of this kind."""
    return ("paper", "line") if kind == "plain" else (kind, f"{kind}-edge")


@dataclass(frozen=True)
class ArcStyle:
    """How an arc is drawn: dashed if it is not proved that every optimum has it, with what the score loses without it.

    The text is empty if the loss is unknown. The tooltip, the same in words, follows the arc's name in the text under
    the pointer.
    """

    width: float = _PLAIN
    dashed: bool = False
    text: str = ""
    tooltip: str = ""

    @property
    def half(self) -> float:
        """Half the breadth of the arrowhead."""
        return max(3.4, 1.1 * self.width)

    @property
    def row(self) -> float:
        """Width of `stub`."""
        return STUB + (_SPACE + text_width(self.text, SMALL) if self.text else 0.0)


def arc_styles(
    graph: Graph, losses: Mapping[Arc, float] | None, proved: Collection[Arc] | None
) -> dict[Arc, ArcStyle]:
    """Return the style of every arc; without numbers where none of them would be more than 0.00.

    Losses are in nats. Without `proved`, the arcs that every optimum has, no arc is dashed.
    """
    arcs = [*graph.arcs, *graph.arcs_of_class]
    known = {arc: losses[arc] for arc in arcs if losses and arc in losses}
    largest = max(known.values(), default=0.0)
    numbers = any(float(amount(value)) for value in known.values())
    styles = {}
    for arc in arcs:
        width, text, tooltip = _PLAIN, "", ""
        if arc in known:
            worth = amount(known[arc])
            text = worth if numbers else ""
            tooltip = f": the score loses {worth} nats without it"
            # Widths grow with the square root: an arc from the class is often worth ten times an arc between features.
            share = max(0.0, known[arc]) / largest if largest > 0 else 0.0
            width = _THIN + (_THICK - _THIN) * math.sqrt(share)
        sure = proved is None or arc in proved
        if proved is not None:
            tooltip += "; in every optimum" if sure else "; not proved to be in every optimum"
        styles[arc] = ArcStyle(width, not sure, text, tooltip)
    return styles


def amount(value: float) -> str:
    """Return a score with about three digits."""
    digits = next((d for d in (2, 1) if abs(round(value, d)) < 10.0 ** (3 - d)), 0)
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def arrowhead(tip: Step, down: bool, half: float, colour: str = "line") -> Path:
    """Return the head of an arrow that points down or to the right; `half` is half its breadth."""
    x, y = tip
    if down:
        return Path(((x, y), (x - half, y - ARROW), (x + half, y - ARROW)), fill=colour)
    return Path(((x, y), (x - ARROW, y - half), (x - ARROW, y + half)), fill=colour)


def stub(x: float, middle: float, style: ArcStyle, title: str = "") -> list[Item]:
    """Return an arc from the class: a short arrow in the colour of the class, and behind it its number.

    It begins at x, and is centred on the height `middle`; the title is shown under the pointer.
    """
    tip = (x + STUB, middle)
    items: list[Item] = [
        Path(((x, middle), (x + STUB - ARROW, middle)), "class-edge", width=style.width, dashed=style.dashed),
        arrowhead(tip, False, style.half, "class-edge"),
    ]
    if style.text:
        base = middle + 0.35 * SMALL
        items.append(Label(x + STUB + _SPACE, base, style.text, SMALL, colour="muted", title=title))
    return items
