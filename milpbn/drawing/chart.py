"""Axes with ticks, and charts of bars and lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from milpbn.drawing.scene import Box, Item, Label, Path, Scene, lines_of_text
from milpbn.drawing.text import BOLD, shortened, text_width, wrapped

#: Font sizes of ticks and of titles.
SMALL, TITLE = 11.0, 13.0
#: Edges of what is filled with a pale colour, which would hardly stand out without one.
EDGES = {"feature": "feature-edge", "shade": "unused-edge"}


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers between two limits, at most this many."""
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return [low]
    raw = span / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9)), 10 * power)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten between two positive limits, with their double and fivefold where there are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1,) if len(powers) > 4 else (1, 2, 5)
    return [
        m * 10.0**k for k in powers for m in factors if low * (1 - 1e-9) <= m * 10.0**k <= high * (1 + 1e-9)
    ]


@dataclass(frozen=True)
class Scale:
    """Maps values to pixels, linearly or by logarithms; with texts, the positions 0, 1, ... are marked by them."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    texts: tuple[str, ...] = ()

    def __call__(self, value: float) -> float:
        """Return the pixel of a value; values beyond the limits are moved to them."""
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        """Values that are marked."""
        found = log_ticks(self.low, self.high) if self.log else []
        # Within less than a decade there are too few powers of ten.
        return found if len(found) > 2 else [t for t in ticks(self.low, self.high) if t > 0 or not self.log]


@dataclass(frozen=True)
class Frame:
    """The two scales of a chart, and the picture in which they are."""

    scene: Scene
    x: Scale
    y: Scale


def frame(
    width: float,
    height: float,
    x: tuple[float, float] | list[str],
    y: tuple[float, float],
    *,
    title: str = "",
    labels: tuple[str, str] = ("", ""),
    log_x: bool = False,
    notes: Sequence[tuple[str, str]] = (),
) -> Frame:
    """Draw axes, a grid and a legend in a picture of this size, in pixels.

    `x` and `y` are the limits of the axes, positive if logarithmic; for the x axis also texts of the positions 0, 1,
    ... to the last, of which as many are shown as fit. `labels` are the names of the axes, and `notes` the legend:
    roles of colours and what they stand for.
    """
    scene = Scene(width, height, description=title)
    top = 12.0
    if title:
        scene.add(
            Label(14.0, 24.0, shortened(title, width - 28, BOLD * TITLE), TITLE, bold=True, title=title)
        )
        top += 24.0
    top = _legend(scene, notes, top)
    if labels[1]:
        scene.add(Label(14.0, top + 11.0, labels[1], SMALL, colour="muted"))
        top += 20.0
    bottom = height - (46.0 if labels[0] else 30.0)
    texts = {value: f"{value:g}" for value in ticks(*y)}
    left = 22.0 + max((text_width(text, SMALL) for text in texts.values()), default=0.0)
    ends, named = ((0.0, len(x) - 1.0), tuple(x)) if isinstance(x, list) else (x, ())
    scale_x, scale_y = Scale(*ends, left, width - 18.0, log_x, named), Scale(*y, bottom, top + 4.0)
    for value, text in texts.items():
        at = scale_y(value)
        scene.add(
            Path(((left, at), (width - 18.0, at)), "grid"),
            Label(left - 6.0, at + 0.35 * SMALL, text, SMALL, "end", "muted"),
        )
    _ticks_below(scene, scale_x, bottom)
    scene.add(Path(((left, bottom), (width - 18.0, bottom)), "line"))
    if labels[0]:
        scene.add(Label((left + width - 18.0) / 2, height - 10.0, labels[0], SMALL, "middle", "muted"))
    return Frame(scene, scale_x, scale_y)


def _legend(scene: Scene, notes: Sequence[tuple[str, str]], top: float) -> float:
    """Draw the legend in as many rows as it needs, and return where what follows begins."""
    x = 14.0
    for k, (role, words) in enumerate(notes):
        wide = 36.0 + text_width(words, SMALL)
        if k and x + wide > scene.width:
            x, top = 14.0, top + 18.0
        scene.add(
            Box(x, top + 2.0, 14.0, 10.0, role, EDGES.get(role, ""), radius=2.0),
            Label(x + 20.0, top + 11.0, words, SMALL, colour="muted"),
        )
        x += wide
    return top + (20.0 if notes else 0.0)


def _ticks_below(scene: Scene, scale: Scale, bottom: float) -> None:
    """Draw the marks of an x axis, as many as do not overlap."""
    free = -math.inf
    values = range(len(scale.texts)) or scale.ticks
    for value, text in zip(values, scale.texts or [f"{value:g}" for value in values], strict=True):
        at, half = scale(value), text_width(text, SMALL) / 2
        if not text or at - half < free or at + half > scene.width:
            continue
        free = at + half + 6.0
        scene.add(
            Path(((at, bottom), (at, bottom + 4.0)), "line"),
            Label(at, bottom + 17.0, text, SMALL, "middle", "muted"),
        )


@dataclass(frozen=True)
class Bar:
    """A row of a chart of horizontal bars: its name at the left, the bar between two values, and a text behind it.

    Without a start, only the end is drawn, as a dot; all rows of a chart are the same kind. An interval is drawn as a
    line over the bar. The colour is a role.
    """

    name: str
    start: float | None
    end: float
    text: str = ""
    colour: str = "feature-edge"
    interval: tuple[float, float] | None = None


def bars(
    rows: Sequence[Bar],
    *,
    title: str = "",
    label: str = "",
    width: float = 680.0,
    zero: bool = True,
    names: float = 300.0,
    notes: Sequence[tuple[str, str]] = (),
    lines: Sequence[str] = (),
) -> Scene:
    """Draw horizontal bars below one another, or dots with intervals and their texts in a column at the right.

    Parameters
    ----------
    title, label : str
        Above the chart, and below its axis.
    zero : bool
        Whether 0 is among the axis's values.
    names : float
        Largest width of the names at the left, in pixels; they have two lines at most.
    notes : sequence of (role, str)
        The legend: colours and what they stand for.
    lines : sequence of str
        Further lines below the legend; long ones are wrapped.
    """
    dots = any(row.start is None for row in rows)
    shown = [wrapped(row.name, names, 12.0, most=2) for row in rows]
    heights = [24.0 + 14.0 * (len(lines) - 1) for lines in shown]
    left = 24.0 + max((text_width(line, 12.0) for lines in shown for line in lines), default=0.0)
    right = 24.0 + max((text_width(row.text, SMALL) for row in rows), default=0.0)
    width = max(width, left + right + 160.0)
    values = [v for row in rows for v in (row.start, row.end, *(row.interval or ())) if v is not None]
    values = [v for v in values if math.isfinite(v)] + ([0.0] if zero else [])
    low, high = min(values, default=0.0), max(values, default=1.0)
    if not zero:
        low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    # Texts of bars that go to the left are at their left ends.
    back = any(row.start is not None and row.end < row.start for row in rows)
    inner = left + (right - 12.0 if back else 0.0)
    scale = Scale(low, high, inner, width - right)
    scene = Scene(width, 0.0, description=title)
    top = 12.0
    if title:
        for line in wrapped(title, width - 28.0, BOLD * TITLE):
            scene.add(Label(14.0, top + 12.0, line, TITLE, bold=True))
            top += 20.0
        top += 2.0
    top = _legend(scene, notes, top)
    for text in lines:
        for line in wrapped(text, width - 28.0, SMALL, most=6):
            scene.add(Label(14.0, top + 11.0, line, SMALL, colour="muted"))
            top += 18.0
    bottom = top + 6.0 + sum(heights)
    for value in scale.ticks:
        role = "line" if dots and value == 0 else "grid"
        scene.add(Path(((scale(value), top + 2.0), (scale(value), bottom)), role))
    middle = top + 6.0
    for row, name, height in zip(rows, shown, heights, strict=True):
        middle += height / 2
        scene.add(*lines_of_text(left - 10.0, middle, name, 12.0, anchor="end", title=row.name))
        if row.start is None:
            scene.add(*_dot(row, scale, middle, width - 12.0))
        else:
            scene.add(*_bar(row, scale, middle, row.start))
        middle += height / 2
    _ticks_below(scene, scale, bottom)
    scene.height = bottom + (42.0 if label else 26.0)
    if label:
        scene.add(Label((inner + width - right) / 2, bottom + 35.0, label, SMALL, "middle", "muted"))
    return scene


def _interval(row: Bar, scale: Scale, middle: float) -> list[Item]:
    if row.interval is None or math.isnan(row.interval[0]):
        return []
    low, high = row.interval
    return [Path(((scale(low), middle), (scale(high), middle)), "line", width=2.0)]


def _dot(row: Bar, scale: Scale, middle: float, right: float) -> list[Item]:
    """Draw the end of a bar as a dot, and its text at the right border of the chart."""
    return [
        *_interval(row, scale, middle),
        Box(scale(row.end) - 4.5, middle - 4.5, 9.0, 9.0, row.colour, radius=4.5),
        Label(right, middle + 3.9, row.text, SMALL, "end", "muted"),
    ]


def _bar(row: Bar, scale: Scale, middle: float, begin: float, thick: float = 14.0) -> list[Item]:
    """Draw a bar with its text behind its end."""
    start, end = scale(begin), scale(row.end)
    items: list[Item] = [
        Box(min(start, end), middle - thick / 2, max(1.0, abs(end - start)), thick, row.colour, radius=2.0),
        *_interval(row, scale, middle),
    ]
    if row.text:
        reach = [start, end, *(scale(value) for value in row.interval or () if not math.isnan(value))]
        back = end < start
        x = min(reach) - 6.0 if back else max(reach) + 6.0
        wide = text_width(row.text, SMALL)
        # The grid does not cross out the number.
        items.append(Box(x - wide if back else x, middle - 6.5, wide, 13.0, "paper"))
        items.append(Label(x, middle + 3.9, row.text, SMALL, "end" if back else "start", "muted"))
    return items
