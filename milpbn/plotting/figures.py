"""Pictures of figures: learners side by side, and accuracy over bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from milpbn.drawing.chart import Bar, bars, frame
from milpbn.drawing.scene import Box, Path, Scene
from milpbn.drawing.text import printable
from milpbn.errors import InputError


def draw_comparison(document: Mapping[str, Any]) -> Scene:
    """Draw the test accuracies of ``milpbn compare --output`` as dots with their intervals, the best first.

    Parameters
    ----------
    document : mapping
        The contents of the file. Where it lacks intervals there are none in the picture, and where it lacks test rows
        the accuracies are those of the training rows.

    Raises
    ------
    InputError
        If it is not such a file, or has no accuracies.
    """
    rows = document.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) and "name" in row for row in rows):
        raise InputError("This is not the output of milpbn compare: it has no rows of learners.")
    key = "test" if any(_is_number(row.get("test")) for row in rows) else "training"
    known = sorted((row for row in rows if _is_number(row.get(key))), key=lambda row: -row[key])
    if not known:
        raise InputError("No learner of the comparison has an accuracy, so that there is nothing to draw.")
    found = []
    for row in known:
        intervals = row.get("intervals") if isinstance(row.get("intervals"), Mapping) else {}
        pair = intervals.get(key)
        interval = None
        if isinstance(pair, (list, tuple)) and len(pair) == 2 and all(map(_is_number, pair)):
            interval = (100.0 * pair[0], 100.0 * pair[1])
        exact = (
            row.get("gap") is not None
            and isinstance(row.get("details"), Mapping)
            and "bound" in row["details"]
        )
        found.append(
            Bar(
                printable(str(row["name"])),
                100.0 * row[key],
                100.0 * row[key],
                f"{100.0 * row[key]:.2f}",
                "class-edge" if exact else "feature-edge",
                interval,
            )
        )
    data = document.get("data")
    name = printable(str(data.get("name", ""))) if isinstance(data, Mapping) else ""
    left = [printable(str(row["name"])) for row in rows if row not in known]
    lines = ["orange: exact structures; blue: other learners"]
    if any(bar.interval for bar in found):
        lines[0] += "; lines: 95 % intervals"
    if left:
        lines.append(f"without accuracy: {', '.join(left)}")
    return bars(
        found,
        title=f"{name}: accuracy on the {key} rows" if name else f"Accuracy on the {key} rows",
        label="accuracy (%)",
        zero=False,
        dots=True,
        lines=lines,
    )


def draw_widths(figures: Sequence[tuple[int, float]], double: float, title: str = "") -> Scene:
    """Draw accuracy over bits per parameter, beside that of double precision (figure 2 of Pernkopf et al. 2011).

    Parameters
    ----------
    figures : sequence of (int, float)
        Bits and accuracy, as `milpbn.network.fixed_point.accuracy_by_width` returns them.
    double : float
        Accuracy with float64 parameters.
    title : str
        Above the picture.
    """
    values = [100.0 * accuracy for _, accuracy in figures]
    low, high = min(*values, 100.0 * double), max(*values, 100.0 * double)
    space = max(0.05 * (high - low), 0.1)
    bits = [float(width) for width, _ in figures]
    chart = frame(
        600.0,
        380.0,
        (min(bits), max(*bits, min(bits) + 1.0)),
        (low - space, high + space),
        title=printable(title),
        labels=("bits per parameter", "accuracy (%)"),
        notes=[("class-edge", "double precision"), ("feature-edge", "fixed point")],
    )
    level = chart.y(100.0 * double)
    chart.scene.add(Path(((chart.x.start, level), (chart.x.end, level)), "class-edge", width=1.5))
    places = [(chart.x(b), chart.y(v)) for b, v in zip(bits, values, strict=True)]
    if len(places) > 1:
        chart.scene.add(Path(tuple(places), "feature-edge", width=2.0))
    chart.scene.add(*(Box(x - 3.0, y - 3.0, 6.0, 6.0, "feature-edge", radius=3.0) for x, y in places))
    return chart.scene


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
