"""Pictures of what columns say: curves over intervals, and maps of what two columns say together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from milpbn.drawing.chart import SMALL, TITLE, frame
from milpbn.drawing.scene import SERIES, Box, Item, Label, Path, Scene, stacked
from milpbn.drawing.text import BOLD, shortened, text_width, wrapped
from milpbn.network.explanation import FamilyTable
from milpbn.network.explanation.wording import cuts_between
from milpbn.util.printing import printable

#: Most classes that a picture shows, those of which a column says most, and most joint states of three columns.
_CLASSES, _ROWS = 4, 30
#: Size of a picture and of a cell, in pixels, and most cuts that an axis names.
_WIDTH, _HEIGHT, _CELL, _NAMED = 480.0, 300.0, (44.0, 24.0), 8
#: Log-odds of which a cell has a pale and a full colour, in nats.
_PALE, _FULL = 0.1, 1.0


def draw_column(table: FamilyTable, target: str) -> Scene:
    """Draw a curve or an interaction, with log-odds of two classes, or log-probabilities beside their mean, in nats.

    An interaction of two columns is a map; of one of more columns, the joint states are drawn that say most.
    """
    values = {printable(name): each for name, each in _by_class(table)}
    two = len(table.classes) == 2
    classes = printable(target) if not two else f"{next(iter(values))} against {printable(table.classes[0])}"
    if len(values) < len(table.classes) > 2:
        classes += f" ({len(values)} of {len(table.classes)} classes)"
    name = printable(table.variable)
    cuts = cuts_between(table.states)
    unit = "log-odds (nats)" if two else "log-probabilities beside their mean (nats)"
    if table.form == "curve" and cuts is not None and len(cuts) > 1:
        return _curve(name, classes, unit, cuts, len(table.states), values)
    columns = ("", [classes] if two else list(values))
    cells = np.stack(list(values.values()), axis=-1).reshape(-1, len(values))
    if table.form == "curve":
        return _grid(f"{name}: {classes}", unit, ("", table.states), columns, cells)
    title = f"{' and '.join(map(printable, (*table.parents, table.variable)))} together"
    if len(table.parents) > 1:
        names = [", ".join(state for _, state in conditions) for conditions, _ in table.cells()]
        kept = sorted(np.argsort(-np.ptp(table.evidence, axis=-1).ravel(), kind="stable")[:_ROWS].tolist())
        return _grid(f"{title}: {classes}", unit, ("", [names[k] for k in kept]), columns, cells[kept])
    # Long names are at the left.
    axes = [(table.parents[0], table.parent_states[0]), (table.variable, table.states)]
    turned = cuts is None and cuts_between(axes[0][1]) is not None
    rows, beside = axes[::-1] if turned else axes
    panels = []
    for of_class, each in values.items():
        said = f"{title}: {classes if two else of_class}"
        panels.append(_grid(said, unit, rows, beside, each.T if turned else each))
    return stacked(panels)


def _by_class(table: FamilyTable) -> list[tuple[str, NDArray[np.float64]]]:
    """Return what is drawn of a table by class, in the shape of its cells."""
    if len(table.classes) == 2:
        return [(table.classes[1], table.log_ratios(table.classes[1], table.classes[0]))]
    logs = table.log_probabilities - table.log_probabilities.mean(axis=-1, keepdims=True)
    spread = np.ptp(logs.reshape(-1, len(table.classes)), axis=0)
    chosen = sorted(np.argsort(-spread, kind="stable")[:_CLASSES].tolist())
    return [(table.classes[c], logs[..., c]) for c in chosen]


def _curve(
    name: str,
    classes: str,
    unit: str,
    cuts: Sequence[float],
    n_states: int,
    values: dict[str, NDArray[np.float64]],
) -> Scene:
    """Draw step functions; all intervals are equally wide, and a missing value has a place at the right."""
    n = len(cuts) + 1
    every = -(-len(cuts) // _NAMED)
    texts = ["", *(_number(cut) if k % every == 0 else "" for k, cut in enumerate(cuts)), ""]
    texts += ["", "missing", ""] if n_states > n else []
    low, high = (float(f([f(each) for each in values.values()])) for f in (np.min, np.max))
    low, high = min(low, -0.05), max(high, 0.05)
    room = 0.05 * (high - low)
    notes = [] if len(values) == 1 else list(zip(SERIES, values, strict=False))
    chart = frame(
        _WIDTH,
        _HEIGHT,
        texts,
        (low - room, high + room),
        title=f"{name}: {classes}",
        labels=(f"{name} ({n} intervals, drawn equally wide)", unit),
        notes=notes,
    )
    zero = chart.y(0.0)
    chart.scene.add(Path(((chart.x.start, zero), (chart.x.end, zero)), "line"))
    for colour, (of_class, numbers) in zip(SERIES, values.items(), strict=False):
        heights = [chart.y(float(value)) for value in numbers]
        steps = [
            point for k in range(n) for point in ((chart.x(k), heights[k]), (chart.x(k + 1), heights[k]))
        ]
        chart.scene.add(Path(tuple(steps), colour, width=2.0, title=of_class))
        if n_states > n:
            chart.scene.add(
                Path(((chart.x(n + 1), heights[n]), (chart.x(n + 3), heights[n])), colour, width=2.0)
            )
    return chart.scene


def _grid(
    title: str,
    unit: str,
    rows: tuple[str, Sequence[str]],
    columns: tuple[str, Sequence[str]],
    values: NDArray[np.float64],
) -> Scene:
    """Draw numbers, shape (rows, columns), in coloured cells; rows and columns have a name and states each."""
    row_cuts, column_cuts = cuts_between(rows[1]), cuts_between(columns[1])
    places = _places(rows[1], row_cuts, _CELL[1], most=max(150.0, _WIDTH - 40.0 - 66.0 * values.shape[1]))
    first = 26.0 + max((text_width(text, SMALL) for text, _, _ in places), default=0.0)
    wide = max(_CELL[0], min(90.0, (_WIDTH - first - 14.0) / values.shape[1]))
    scene = Scene(first + wide * values.shape[1] + 14.0, 0.0, description=title)
    scene.width = max(scene.width, 360.0)
    top = 12.0
    for line in wrapped(title, scene.width - 28.0, BOLD * TITLE):
        scene.add(Label(14.0, top + 12.0, line, TITLE, bold=True))
        top += 20.0
    if rows[0]:
        unit += f"; rows: {printable(rows[0])}, columns: {printable(columns[0])}"
    for line in wrapped(unit, scene.width - 28.0, SMALL):
        scene.add(Label(14.0, top + 11.0, line, SMALL, colour="muted"))
        top += 16.0
    top += 20.0
    for (k, j), value in np.ndenumerate(values):
        scene.add(*_cell(first + wide * j, top + _CELL[1] * k, wide, float(value)))
    for label, at, where in _places(columns[1], column_cuts, wide, most=wide):
        scene.add(Label(first + at, top - 5.0, label, SMALL, "middle", "muted", title=where))
    for label, at, where in places:
        scene.add(Label(first - 8.0, top + at + 0.35 * SMALL, label, SMALL, "end", "muted", title=where))
    scene.height = top + _CELL[1] * values.shape[0] + 14.0
    return scene


def _places(
    states: Sequence[str], cuts: Sequence[float] | None, size: float, most: float
) -> list[tuple[str, float, str]]:
    """Return the texts of an axis, where they are, and what is shown under the pointer."""
    if cuts is None:
        names = [printable(state) for state in states]
        return [(shortened(name, most, SMALL), size * (k + 0.5), name) for k, name in enumerate(names)]
    found = [(_number(cut), size * (k + 1), "") for k, cut in enumerate(cuts)]
    last = [("missing", size * (len(states) - 0.5), "")] if len(states) > len(cuts) + 1 else []
    return found + last


def _number(cut: float) -> str:
    return f"{cut:.0f}" if 1e4 <= abs(cut) < 1e6 else f"{cut:.4g}"


def _cell(x: float, y: float, wide: float, value: float) -> list[Item]:
    side = "feature" if value > 0 else "class"
    full = abs(value) >= _FULL
    fill = "" if abs(value) < _PALE else f"{side}-edge" if full else side
    return [
        Box(x + 1.0, y + 1.0, wide - 2.0, _CELL[1] - 2.0, fill, "grid", 3.0),
        Label(
            x + wide / 2,
            y + 16.0,
            f"{round(value, 2) + 0.0:+.2f}",
            SMALL,
            "middle",
            "paper" if full else "ink",
        ),
    ]
