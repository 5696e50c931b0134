"""A picture as a list of boxes, texts and paths, which every writer draws alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self, TypeAlias

from milpbn.drawing.text import LINE

#: Colours by role: on a light and on a dark ground.
COLOURS: dict[str, tuple[str, str]] = {
    "paper": ("#ffffff", "#15181d"),
    "ink": ("#1f2328", "#e6e8eb"),
    "muted": ("#59636e", "#9aa4af"),
    "grid": ("#d9dee4", "#373e47"),
    "shade": ("#e8ebef", "#2b313a"),
    "line": ("#4b5563", "#aab4bf"),
    "class": ("#fde4cc", "#59330f"),
    "class-edge": ("#b9480e", "#f0a065"),
    "feature": ("#dce9f8", "#1d3a5e"),
    "feature-edge": ("#2b6cb0", "#6fadf0"),
    "unused": ("#eef0f3", "#23282f"),
    "unused-edge": ("#868f9a", "#717b87"),
    "green": ("#23803a", "#6cc784"),
    "purple": ("#8a46c4", "#c49af0"),
    "pink": ("#c2256e", "#f28ab8"),
    "brown": ("#7a5a22", "#cfae6d"),
}
#: Roles of lines and points that are to be told apart.
SERIES = ("feature-edge", "class-edge", "green", "purple", "pink", "brown", "ink", "unused-edge")

#: Lengths of the dashes of dashed lines and of the gaps between them, in pixels.
DASHES = (5.0, 4.0)

#: Ends of a path's parts: (x, y) of a move or a straight line; (x1, y1, x2, y2, x, y) of a Bézier curve.
Step: TypeAlias = tuple[float, ...]


def shifted(steps: Iterable[Step], dx: float, dy: float) -> tuple[Step, ...]:
    """Return steps, or other points, at another place."""
    return tuple(tuple(value + (dy if k % 2 else dx) for k, value in enumerate(step)) for step in steps)


@dataclass(frozen=True)
class _Placed:
    x: float
    y: float

    def moved(self, dx: float, dy: float) -> Self:
        """Return the same at another place."""
        return replace(self, x=self.x + dx, y=self.y + dy)


@dataclass(frozen=True)
class Box(_Placed):
    """A rectangle; `fill` and `edge` are roles of `COLOURS`, or empty for none. `title` is shown under the pointer."""

    width: float
    height: float
    fill: str = ""
    edge: str = ""
    radius: float = 0.0
    line_width: float = 1.0
    dashed: bool = False
    title: str = ""


@dataclass(frozen=True)
class Label(_Placed):
    """A line of text; (x, y) is a point of its baseline, at its start, middle or end."""

    text: str
    size: float = 12.0
    anchor: str = "start"
    colour: str = "ink"
    bold: bool = False
    title: str = ""


@dataclass(frozen=True)
class Path:
    """Straight lines and curves from the first step on; filled if `fill` is a role, else drawn as a line."""

    steps: tuple[Step, ...]
    edge: str = ""
    fill: str = ""
    width: float = 1.0
    dashed: bool = False
    title: str = ""

    def moved(self, dx: float, dy: float) -> Path:
        """Return the same at another place."""
        return replace(self, steps=shifted(self.steps, dx, dy))


Item: TypeAlias = Box | Label | Path


@dataclass
class Scene:
    """A picture: its size in pixels of 1/96 inch, and its items in the order in which they are drawn.

    The description says what the picture shows, for readers who do not see it.
    """

    width: float
    height: float
    items: list[Item] = field(default_factory=list)
    description: str = ""

    def add(self, *items: Item) -> None:
        """Draw more on top."""
        self.items.extend(items)

    def place(self, other: Scene, x: float, y: float) -> None:
        """Draw another picture with its upper left corner at (x, y), and grow so that it fits."""
        self.items.extend(item.moved(x, y) for item in other.items)
        self.width, self.height = max(self.width, x + other.width), max(self.height, y + other.height)


def lines_of_text(
    x: float, middle: float, lines: Iterable[str], size: float = 12.0, **style: object
) -> list[Label]:
    """Return lines of text that are centred at a height; `style` holds further fields of `Label`."""
    texts = list(lines)
    first = middle - LINE * size * (len(texts) - 1) / 2 + 0.35 * size
    return [
        Label(x, first + k * LINE * size, text, size, **style)  # type: ignore[arg-type]
        for k, text in enumerate(texts)
    ]


def stacked(scenes: Iterable[Scene], gap: float = 18.0, *, beside: bool = False) -> Scene:
    """Return pictures below one another, or beside one another."""
    whole = Scene(0.0, 0.0)
    for scene in scenes:
        space = gap if whole.items else 0.0
        place = (whole.width + space, 0.0) if beside else (0.0, whole.height + space)
        whole.place(scene, *place)
        whole.description = " ".join(filter(None, (whole.description, scene.description)))
    return whole
