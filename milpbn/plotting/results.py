"""Pictures of results: the network, and incumbent and bound over time."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from milpbn.claims.parts import ProvedArcs
from milpbn.claims.result import Result
from milpbn.drawing.chart import Frame, frame
from milpbn.drawing.network import draw_network
from milpbn.drawing.scene import Path, Scene, stacked
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.solving.progress import show_gap
from milpbn.util.printing import printable


def draw_structure(
    structure: Structure,
    *,
    losses: Mapping[tuple[int, int], float] | None = None,
    proved: ProvedArcs | None = None,
    title: str = "",
    has_class: bool = True,
) -> Scene:
    """Draw a structure.

    Parameters
    ----------
    structure : Structure
        Any acyclic structure.
    losses : mapping of (parent, child) to float, optional
        What the score loses without each arc, in nats (`milpbn.solving.gains.arc_losses`).
    proved : ProvedArcs, optional
        Arcs that every optimum has; others are dashed.
    title : str, optional
        A line above the picture.
    has_class : bool
        Whether the last variable is a class.
    """
    index = {name: i for i, name in enumerate(structure.names)}
    inside = None if proved is None else {(index[j], index[i]) for j, i in proved.inside}
    shown = structure.names, structure.parents
    return draw_network(*shown, losses=losses, proved=inside, title=title, has_class=has_class)


def draw_trace(result: Result, width: float = 640.0) -> Scene:
    """Draw incumbent and bound over time, the gap between them shaded.

    Parameters
    ----------
    result : Result
        With a trace.
    width : float
        Of the picture, in pixels.

    Raises
    ------
    InputError
        If the result has no trace.
    """
    if not result.trace:
        raise InputError("The result has no trace to draw; it comes from a run that found nothing.")
    end = max(result.seconds.total, result.trace[-1][0])
    points = [*result.trace, (end, *result.trace[-1][1:])]
    t = np.maximum([p[0] for p in points], 1e-3)
    z = np.array([np.nan if p[1] is None else p[1] for p in points])
    b = np.array([np.nan if p[2] is None else p[2] for p in points])
    first, last = float(t.min()), float(t.max())
    if last < 1.05 * first:
        first, last = first / 1.5, last * 1.5
    chart = frame(
        width,
        380.0,
        (first, last),
        _limits(z, b),
        title=f"{printable(result.data.name)}: {_claim(result)}",
        labels=("seconds", "score (nats)"),
        log_x=True,
        notes=[("class-edge", "bound"), ("feature-edge", "incumbent"), ("shade", "gap")],
    )
    _shade(chart, t, z, b)
    _staircase(chart, t, b, "class-edge")
    _staircase(chart, t, z, "feature-edge")
    return chart.scene


def draw_result(result: Result, losses: Mapping[tuple[int, int], float] | None = None) -> Scene:
    """Draw the network, and beside or below it the trace.

    Raises
    ------
    InputError
        If the result has no structure or no trace.
    """
    if result.structure is None:
        raise InputError("The result has no structure to draw.")
    has_class = result.data.classes > 0
    network = draw_structure(result.structure, losses=losses, proved=result.proved, has_class=has_class)
    trace = draw_trace(result) if result.trace else Scene(0.0, 0.0)
    return stacked([network, trace], beside=network.width < 700 and network.height < 700)


def _claim(result: Result) -> str:
    """Return in a few words what is proved, and over what."""
    searched = result.searched
    claim = (
        "proved optimal" if result.optimal else f"gap {show_gap(searched.gap.relative_to_bound)} of the bound"
    )
    if result.subset is not None:
        claim += " over a subset of the samples"
    elif result.screened is not None:
        claim += " over the kept parent sets"
    return claim + result.among_clause


def _limits(z: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Return limits of the scores: with the first, trivial numbers, all later changes would be too small to see."""
    known = np.concatenate([z[np.isfinite(z)], b[np.isfinite(b)]])
    if not known.size:
        return 0.0, 1.0
    bottom = float(np.nanquantile(z, 0.25, method="higher")) if np.isfinite(z).any() else float(known.min())
    top = float(np.nanquantile(b, 0.75, method="lower")) if np.isfinite(b).any() else float(known.max())
    bottom, top = min(bottom, top), max(bottom, top)
    least = 1e-6 * max(1.0, abs(top))
    span = max(top - bottom, least)
    return bottom - 0.15 * span, top + 0.1 * span


def _staircase(chart: Frame, t: np.ndarray, values: np.ndarray, colour: str) -> None:
    """Draw values over time, from where they are inside the limits on; until then they are beyond the border."""
    steps: list[tuple[float, ...]] = []
    border = None
    for k, value in enumerate(values.tolist()):
        if not math.isfinite(value):
            continue
        x, y = chart.x(float(t[k])), chart.y(value)
        if not chart.y.low <= value <= chart.y.high:
            border = y
            continue
        if steps:
            steps.append((x, steps[-1][1]))
        elif border is not None:
            steps.append((x, border))
        steps.append((x, y))
    if len(steps) > 1:
        chart.scene.add(Path(tuple(steps), colour, width=2.0))


def _shade(chart: Frame, t: np.ndarray, z: np.ndarray, b: np.ndarray) -> None:
    upper: list[tuple[float, ...]] = []
    lower: list[tuple[float, ...]] = []
    for k in range(len(t) - 1):
        if not (math.isfinite(z[k]) and math.isfinite(b[k])):
            continue
        for at in (chart.x(float(t[k])), chart.x(float(t[k + 1]))):
            upper.append((at, chart.y(float(b[k]))))
            lower.append((at, chart.y(float(z[k]))))
    if upper:
        chart.scene.add(Path((*upper, *reversed(lower)), fill="shade"))
