"""Pictures of figures: learners side by side, accuracy over bits, and points with their convex hulls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from milpbn.drawing.chart import Bar, bars, frame
from milpbn.drawing.scene import SERIES, Box, Path, Scene, stacked
from milpbn.errors import InputError
from milpbn.network.additive.record import AdditiveFit
from milpbn.network.discrimination import NAMES, RARE
from milpbn.network.monitoring import Monitoring
from milpbn.util.printing import printable


def draw_comparison(document: Mapping[str, Any]) -> Scene:
    """Draw the accuracies of ``milpbn compare --output`` with their intervals, and the differences to one learner.

    Where a class has less than 10 % of the rows, ROC-AUC takes the place of the accuracy.

    Parameters
    ----------
    document : mapping
        The contents of the file. Where it lacks intervals or differences there are none in the picture, and where it
        lacks test rows the accuracies are those of the training rows.

    Raises
    ------
    InputError
        If it is not such a file, or has no accuracies.
    """
    rows = document.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) and "name" in row for row in rows):
        raise InputError("This is not the output of milpbn compare: it has no rows of learners.")
    try:
        return _compared(document, rows)
    except InputError:
        raise
    except (AttributeError, TypeError, ValueError):
        raise InputError(
            "This is not the output of milpbn compare: a learner's figures are no numbers."
        ) from None


def _compared(document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Scene:
    key = "test" if any(row.get("test") is not None for row in rows) else "training"
    if (document.get("rarest_share") or 1.0) < RARE and any(row.get("roc_auc") is not None for row in rows):
        key = "roc_auc"  # which says more of a rare class
    known = sorted((row for row in rows if row.get(key) is not None), key=lambda row: -row[key])
    left = [printable(str(row["name"])) for row in rows if row not in known]
    if not known:
        raise InputError("No learner of the comparison has an accuracy, so that there is nothing to draw.")
    panels = [_accuracies(document, known, left, key)]
    differences = [row for row in known if _difference(row, key) is not None]
    if differences:
        panels.append(_differences(str(document.get("against", "the first")), differences, key))
    return stacked(panels, 6.0)


def _accuracies(
    document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], left: Sequence[str], key: str
) -> Scene:
    found = [
        Bar(
            printable(str(row["name"])),
            None,
            100.0 * row[key],
            f"{100.0 * row[key]:.2f}",
            "class-edge" if _is_exact(row) else "feature-edge",
            _percent((row.get("intervals") or {}).get(key)),
        )
        for row in rows
    ]
    name = printable(str((document.get("data") or {}).get("name", "")))
    lines = ["Lines are 95 % intervals."] if any(bar.interval for bar in found) else []
    if left:
        lines.append(f"Without {_named(key)}: {', '.join(left)}.")
    where, what = f"on the {'training' if key == 'training' else 'test'} rows", _named(key)
    if document.get("folds") is not None and key != "training":
        repeats = document.get("repeats") or 1
        where = f"over {document['folds']} folds{f', {repeats} times' if repeats > 1 else ''}"
    notes = [("class-edge", "exact search"), ("feature-edge", "other learners")]
    return bars(
        found,
        title=f"{name}: {what} {where}" if name else f"{what[0].upper()}{what[1:]} {where}",
        label=f"{what} (%)",
        zero=False,
        notes=notes if any(map(_is_exact, rows)) else [],
        lines=lines,
    )


def _differences(against: str, rows: Sequence[Mapping[str, Any]], key: str) -> Scene:
    """Draw paired differences in accuracy, grey where the interval holds 0."""
    found = []
    for row in rows:
        value, interval = _difference(row, key) or (0.0, None)
        colour = "unused-edge"
        if interval is not None and not interval[0] <= 0.0 <= interval[1]:
            colour = "class-edge" if _is_exact(row) else "feature-edge"
        text = f"{value:+.2f}".replace("-0.00", "+0.00")
        found.append(Bar(printable(str(row["name"])), None, value, text, colour, interval))
    return bars(
        found,
        title=f"Difference to {printable(against)} on the same rows",
        label=f"points of {_named(key)}; a grey dot cannot be told from 0",
    )


def _named(key: str) -> str:
    return NAMES.get(key, "accuracy")


def _is_exact(row: Mapping[str, Any]) -> bool:
    """Whether a row of a comparison is of an exact search, which states a bound."""
    return row.get("gap") is not None and "bound" in (row.get("details") or {})


def _percent(pair: Sequence[float | None] | None) -> tuple[float, float] | None:
    """Return two shares as percentages; None if one is unknown."""
    low, high = pair or (None, None)
    return None if low is None or high is None else (100.0 * low, 100.0 * high)


def _difference(row: Mapping[str, Any], key: str) -> tuple[float, tuple[float, float] | None] | None:
    """Return a difference in accuracy and its interval, in points."""
    found = (row.get("differences") or {}).get(key) or {}
    if found.get("value") is None:
        return None
    return 100.0 * found["value"], _percent((found.get("low"), found.get("high")))


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


def draw_shifts(found: Monitoring, most: int = 40) -> Scene:
    """Draw the largest population stability indices of `milpbn.network.monitoring.monitor`, at most this many."""
    shown = sorted(found.shifts, key=lambda shift: -shift.psi)[:most]
    colours = ["class-edge" if shift.alarm else "feature-edge" for shift in shown]
    return bars(
        [
            Bar(printable(shift.name), 0.0, shift.psi, f"{shift.psi:.3f}", colour, (0.0, shift.chance))
            for shift, colour in zip(shown, colours, strict=True)
        ],
        title=f"New rows of {printable(found.data)} beside {printable(found.reference or 'the training rows')}",
        label="population stability index",
        width=480.0,
        notes=[("class-edge", "alarm"), ("feature-edge", "no alarm")],
        lines=["Lines: the range of 99 % of the indices if nothing changed."],
    )


def draw_choice(fit: AdditiveFit) -> Scene:
    """Draw the log-losses of the recipe ``accurate``'s candidates on held-out rows minus the chosen one's, in nats."""
    found = []
    for trial in sorted(fit.trials, key=lambda trial: (trial is not fit.choice, trial.difference)):
        more, error = trial.difference, trial.standard_error
        text, colour = f"{more:+.4f} ± {error:.4f}", "feature-edge" if more > error else "unused-edge"
        if trial is fit.choice:
            text, colour = "chosen", "class-edge"
        text += "; " + " ".join(f"{strength:.2g}" for strength in trial.strengths)
        found.append(Bar(trial.describe(), None, more, text, colour, (more - error, more + error)))
    compared, _, *rest = fit.describe()
    columns = "At the right: difference ± standard error; ridge and smoothness of main effects, and of interactions."
    return bars(
        found,
        title="What held-out training rows say of the candidates",
        label="log-loss minus that of the chosen one (nats); lines are one standard error",
        notes=[
            ("class-edge", "chosen"),
            ("feature-edge", "worse"),
            ("unused-edge", "hardly to be told from it"),
        ],
        lines=[f"Chosen: {compared}.", *([] if fit.complete else rest[-1:]), columns],
    )


def draw_points(
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str = "",
    labels: tuple[str, str] = ("", ""),
    x: tuple[float, float] | None = None,
    shown: float = 0.9,
) -> Scene:
    """Draw points of several colours, with the lower part of the convex hull of each colour.

    Parameters
    ----------
    series : mapping of str to sequence of (float, float)
        The points of each colour, at least one in all.
    labels : (str, str)
        Names of the axes.
    x : (float, float), optional
        Limits of the first axis; by default those of the points.
    shown : float
        Share of the points that the picture reaches up to, from the lowest; it says how many are above.
    """
    points = [point for own in series.values() for point in own]
    heights = np.array([y for _, y in points])
    low, high = float(heights.min()), float(np.quantile(heights, shown))
    space = 0.05 * (high - low) or 0.5
    left, right = x or (min(place for place, _ in points), max(place for place, _ in points))
    beyond = int(np.count_nonzero(heights > high + space))
    chart = frame(
        480.0,
        380.0,
        (left, right if right > left else left + 1.0),
        (low - space, high + space),
        title=printable(title),
        labels=(labels[0] + (f" ({beyond} above the picture)" if beyond else ""), labels[1]),
        notes=list(zip(SERIES, map(printable, series), strict=False)),
    )
    for role, own in zip(SERIES, series.values(), strict=False):
        inside = [(x, y) for x, y in own if y <= high + space]
        chart.scene.add(
            *(Box(chart.x(x) - 2.0, chart.y(y) - 2.0, 4.0, 4.0, role, radius=2.0) for x, y in inside)
        )
        line = tuple((chart.x(x), chart.y(y)) for x, y in lower_hull(inside))
        if len(line) > 1:
            chart.scene.add(Path(line, role, width=1.5))
    return chart.scene


def lower_hull(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the corners of the lower part of the convex hull from left to right; no point is below this line."""
    hull: list[tuple[float, float]] = []
    for x, y in sorted(points):
        if hull and hull[-1][0] == x:
            continue  # the lowest point of the same x came first
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (x - x0) < (y - y0) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, y))
    return hull
