"""Pictures of explanations: a prediction as a waterfall, tables, importances, and margins."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from milpbn.drawing.chart import EDGES, SMALL, TITLE, Bar, bars, frame
from milpbn.drawing.scene import Box, Label, Path, Scene
from milpbn.drawing.text import BOLD, shortened, text_width, wrapped
from milpbn.errors import InputError
from milpbn.network.explanation import FamilyImportance, FamilyTable, LocalExplanation, Margins
from milpbn.plotting.columns import draw_column
from milpbn.util.plurals import counted
from milpbn.util.printing import printable


def draw_prediction(explanation: LocalExplanation, shown: int = 20, width: float = 680.0) -> Scene:
    """Draw the log-odds of a prediction as a waterfall: every bar begins where the one above it ends.

    Parameters
    ----------
    explanation : LocalExplanation
        Why a sample gets its class.
    shown : int
        Number of contributions beside the base rate, the largest; the others are one bar.
    width : float
        Of the picture, in pixels; it grows where this is not enough.
    """
    rows, at = [], 0.0
    for value, name in explanation.rows(shown):
        if not math.isfinite(value):
            raise InputError(
                "The prediction has an infinite contribution, since its tables are not smoothed; it cannot be drawn."
            )
        colour = "feature-edge" if value > 0 else "class-edge"
        rows.append(Bar(printable(name), at, at + value, f"{value:+.3f}", colour))
        at += value
    rows.append(Bar("sum", 0.0, explanation.log_odds, f"{explanation.log_odds:+.3f}", "line"))
    label, against = printable(explanation.label), printable(explanation.against)
    share = explanation.probabilities[explanation.classes.index(explanation.label)]
    lines = [f"P({label}) {'> 0.9999' if share > 0.99995 else f'= {share:.4g}'}"]
    if explanation.actual is not None:
        lines[0] += f"; the class is {printable(explanation.actual)}"
    return bars(
        rows,
        title=f"Row {explanation.sample + 1}: {label} against {against}",
        label="log-odds (nats)",
        lines=lines,
        width=width,
        names=0.45 * width,
    )


def draw_importances(importances: Sequence[FamilyImportance], shown: int = 30, width: float = 680.0) -> Scene:
    """Draw how much each feature's family moves the predictions, the most important first.

    The base rate of the classes is no feature's. It has no bar, and a line of the picture says how large it is.

    Parameters
    ----------
    importances : sequence of FamilyImportance
        As `milpbn.network.explanation.GlobalExplanation` has them.
    shown : int
        Number of bars.
    width : float
        Of the picture, in pixels; it grows where this is not enough.
    """
    features = [each for each in importances if each.part != "base rate"]
    lines = [f"{printable(each.name)}: {each.mean_absolute:.3f}" for each in importances[len(features) :]]
    rows = [
        Bar(printable(each.name), 0.0, each.mean_absolute, f"{each.mean_absolute:.3f}")
        for each in features[:shown]
        if math.isfinite(each.mean_absolute)
    ]
    if left := len(features) - len(rows):
        lines.append(f"{left} more {'is' if left == 1 else 'are'} not shown")
    return bars(
        rows,
        title="What each variable contributes to the predictions",
        label="mean absolute contribution to the log-odds (nats)",
        width=width,
        names=0.45 * width,
        lines=lines,
    )


def draw_margins(margins: Margins, name: str = "", width: float = 640.0) -> Scene:
    """Draw the histogram of the log-margins: wrong predictions, those below gamma, and all others.

    Parameters
    ----------
    margins : Margins
        Of the samples whose class is known.
    name : str
        Name of the data.
    width : float
        Of the picture, in pixels.
    """
    finite = margins.log_margins[np.isfinite(margins.log_margins)]
    if not finite.size:
        raise InputError("No sample has a finite log-margin, so that there is nothing to draw.")
    low, high = float(finite.min()), float(finite.max())
    gamma = margins.gamma
    marks = [0.0] if gamma is None else [0.0, gamma]
    low, high = min(low, *marks), max(high, *marks)
    # Bars end at 0 and at gamma, so that all samples of a bar are of one kind; a gamma near 0 is not worth a bar.
    step = max((high - low) / 30, 1e-9)
    if gamma is not None and gamma > step / 2:
        step = gamma / round(gamma / step)
    edges = np.arange(math.floor(low / step), math.ceil(high / step) + 1.5) * step
    heights, _ = np.histogram(margins.log_margins.clip(edges[0], edges[-1]), edges, weights=margins.weights)
    right = [("feature-edge", "right")]
    if gamma is not None:
        right = [("feature", "right, below gamma"), ("feature-edge", "at least gamma")]
    wrong = float(margins.weights[margins.log_margins < 0].sum() / margins.weights.sum())
    chart = frame(
        width,
        380.0,
        (float(edges[0]), float(edges[-1])),
        (0.0, 1.08 * max(float(heights.max()), 1e-9)),  # the name of gamma stands above the bars
        title=f"Margins{f' of {printable(name)}' if name else ''}: {100 * wrong:.2f} % are negative",
        labels=("log-margin (nats)", "samples"),
        notes=[("class-edge", "wrong"), *right],
    )
    for a, b, count in zip(edges[:-1], edges[1:], heights, strict=True):
        if count <= 0:
            continue
        colour = "class-edge" if b <= step / 2 else "feature-edge"
        if gamma is not None and colour == "feature-edge" and b <= gamma + step / 2:
            colour = "feature"
        x, y = chart.x(float(a)), chart.y(float(count))
        size = chart.x(float(b)) - x - 1.0, chart.y(0.0) - y
        said = counted(float(count), "sample")
        chart.scene.add(Box(x + 0.5, y, *size, colour, EDGES.get(colour, ""), title=said))
    if gamma is not None:
        x, top, text = chart.x(gamma), chart.y(chart.y.high), f"gamma {gamma:.3g}"
        fits = x - 5.0 - text_width(text, SMALL) >= chart.x.start
        chart.scene.add(
            Path(((x, chart.y(0.0)), (x, top)), "ink", width=1.5, dashed=True),
            Label(x - 5.0 if fits else x + 5.0, top + 10.0, text, SMALL, "end" if fits else "start"),
        )
    return chart.scene


def draw_table(table: FamilyTable, target: str, shown: int = 40) -> Scene:
    """Draw a family's table: for every cell the probability under each class, darker where it speaks for the class.

    A curve or an interaction of columns is drawn by `milpbn.plotting.columns.draw_column`.

    Parameters
    ----------
    table : FamilyTable
        One family with the class.
    target : str
        Name of the class variable.
    shown : int
        Number of rows, those with the largest log-ratios; the others are left out.
    """
    if table.form != "family":
        return draw_column(table, target)
    rows = [
        (
            ", ".join(f"{printable(n)} = {printable(v)}" for n, v in conditions) or printable(target),
            evidence,
            logs,
        )
        for (conditions, evidence), logs in zip(
            table.cells(), table.log_probabilities.reshape(-1, len(table.classes)), strict=True
        )
    ]
    keep = sorted(range(len(rows)), key=lambda k: float(rows[k][1].min()))[:shown]
    left, rows = len(rows) - len(keep), [rows[k] for k in sorted(keep)]
    names = [shortened(name, 420.0) for name, _, _ in rows]
    labels = [shortened(printable(name), 110.0, SMALL) for name in table.classes]
    first = 26.0 + max(text_width(name) for name in names)
    column = max(58.0, *(14.0 + text_width(label, SMALL) for label in labels))
    given = [*table.parents, target] if table.states else table.parents
    title = f"P({printable(table.variable)}{' | ' if given else ''}{', '.join(map(printable, given))})"
    width = max(first + column * len(labels) + 14.0, 28.0 + text_width(title, BOLD * TITLE), 420.0)
    scene = Scene(width, 0.0, description=title)
    scene.add(Label(14.0, 24.0, title, TITLE, bold=True))
    top = 46.0
    notes = "Darker: the class under which the row is more probable than under the others (log-ratios)."
    for line in wrapped(notes, width - 28.0, SMALL):
        scene.add(Label(14.0, top, line, SMALL, colour="muted"))
        top += 16.0
    for k, label in enumerate(labels):
        x = first + column * (k + 0.5)
        scene.add(Label(x, top + 12.0, label, SMALL, "middle", "muted", title=printable(table.classes[k])))
    top += 20.0
    for name, (full, evidence, logs) in zip(names, rows, strict=True):
        scene.add(Label(14.0, top + 16.0, name, title=full))
        for k, log in enumerate(logs):
            fill = "feature" if evidence[k] > -0.05 else ("unused" if evidence[k] > -1.0 else "")
            if np.ptp(evidence[np.isfinite(evidence)]) < 0.05 and np.isfinite(evidence).all():
                fill = ""  # the row is no evidence
            x = first + column * k
            scene.add(
                Box(x + 1.0, top + 1.0, column - 2.0, 22.0, fill, "grid", 3.0),
                Label(x + column / 2, top + 16.0, f"{math.exp(log):.3f}", SMALL, "middle"),
            )
        top += 24.0
    if left:
        said = f"{counted(left, 'more row')} {'tells' if left == 1 else 'tell'} the classes less apart"
        scene.add(Label(14.0, top + 14.0, said, SMALL, colour="muted"))
        top += 20.0
    scene.height = top + 14.0
    return scene
