"""What tests read of pictures and of pages."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np

from milpbn.drawing.scene import Box, Item, Label, Scene
from milpbn.drawing.text import BOLD, LINE, text_width


def of_kind(scene: Scene, kind: type, **fields: object) -> list:
    """Return the items of a kind that have these fields."""
    return [
        item
        for item in scene.items
        if isinstance(item, kind) and all(getattr(item, k) == v for k, v in fields.items())
    ]


def texts(scene: Scene) -> list[str]:
    return [item.text for item in of_kind(scene, Label)]


def titled(scene: Scene, kind: type, end: str = ";") -> dict[str, Item]:
    """Return the items of a kind that show a text under the pointer, by the beginning of this text."""
    return {item.title.split(end)[0]: item for item in of_kind(scene, kind) if item.title}


def rectangle(item: Item) -> tuple[float, float, float, float]:
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


def rectangles(items) -> np.ndarray:
    return np.array([rectangle(item) for item in items]).reshape(-1, 4)


def overlapping(a: np.ndarray, b: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """Return whether the rectangles of two lists share an area, shape (len(a), len(b))."""
    a, b = a[:, None], b[None]
    low, high = np.maximum(a[..., :2], b[..., :2]), np.minimum(a[..., 2:], b[..., 2:])
    return ((high - low) > eps).all(axis=-1)


def apart(a: np.ndarray, eps: float = 1e-6) -> bool:
    """Return whether no two rectangles of a list share an area."""
    return not (overlapping(a, a, eps) & ~np.eye(len(a), dtype=bool)).any()


class Page(HTMLParser):
    """What a page or a part of one shows; its elements must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def count(self, name: str) -> int:
        return sum(tag == name for tag, _ in self.tags)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and not {"style", "title"} & {*self.open}:
            self.text += data
