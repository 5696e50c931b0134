"""Pictures: of a result, the network and incumbent and bound over time; of a classifier, accuracy over bits.

They need the extra ``[plot]``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from milpbn.claims.result import Result
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.solving.progress import show_gap
from milpbn.util.atomic import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Picture formats that can be written.
SUFFIXES = (".png", ".svg", ".pdf")
_CLASS, _FEATURE, _UNUSED, _ARC, _CLASS_ARC = "#d95f02", "#4575b4", "#bdbdbd", "#333333", "#d9d9d9"


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise InputError(
            "Pictures need matplotlib and networkx; install them with: pip install milpbn[plot]."
        ) from None
    matplotlib.use("Agg", force=False)
    import matplotlib.pyplot as plt

    return plt


def layout(structure: Structure) -> dict[int, tuple[float, float]]:
    """Return a place for every variable: the class on top, each feature below its feature parents.

    Parameters
    ----------
    structure : Structure
        Any acyclic structure.

    Returns
    -------
    dict of int to (float, float)
        x and y; features without feature parents lie in the second row, and rows are ordered so that children
        come near the middle of their parents.
    """
    last = len(structure.names) - 1
    depth: dict[int, int] = {}
    for i in structure.topological_order():
        above = [depth[j] for j in structure.parents[i] if j != last and j in depth]
        depth[i] = 0 if i == last else 1 + max(above, default=0)
    place = {last: (0.0, 0.0)}
    for level in range(1, max(depth.values(), default=0) + 1):
        row = [i for i, d in depth.items() if d == level and i != last]

        def middle(i: int) -> float:
            xs = [place[j][0] for j in structure.parents[i] if j != last and j in place]
            return float(np.mean(xs)) if xs else 0.0

        row.sort(key=lambda i: (middle(i), i))
        width = max(1.0, len(row) - 1.0)
        for k, i in enumerate(row):
            # Neighbours of long rows are shifted a little in height, so that their names do not meet.
            x = 0.0 if len(row) == 1 else 2.0 * k / width - 1.0
            place[i] = (x, -level - 0.28 * (k % 2) * (len(row) > 4))
    return place


def _axes(axes: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes to draw in: by default those of a new figure of this size in inches."""
    plt = _pyplot()
    return plt.subplots(figsize=size)[1] if axes is None else axes


def _finished(axes: Axes) -> Axes:
    """Add the legend, and remove the frame's upper and right line."""
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def plot_structure(structure: Structure, axes: Axes | None = None) -> Axes:
    """Draw a structure: arcs from the class in light grey, arcs between features in black.

    Features outside the Markov blanket of the class, which change no prediction, are grey.

    Raises
    ------
    InputError
        If the extra ``[plot]`` is not installed.
    """
    axes = _axes(axes, (8, 5))
    import networkx as nx

    last = len(structure.names) - 1
    graph = nx.DiGraph()
    graph.add_nodes_from(range(last + 1))
    graph.add_edges_from(structure.arcs)
    place, used = layout(structure), structure.markov_blanket
    with_class = [a for a in structure.arcs if last in a]
    rest = [a for a in structure.arcs if last not in a]
    options: dict[str, Any] = {"ax": axes, "node_size": 900, "arrowsize": 12}
    nx.draw_networkx_edges(graph, place, edgelist=with_class, edge_color=_CLASS_ARC, **options)
    nx.draw_networkx_edges(graph, place, edgelist=rest, edge_color=_ARC, width=1.6, **options)
    for i, name in enumerate(structure.names):
        colour = _CLASS if i == last else _FEATURE if i in used else _UNUSED
        axes.text(
            *place[i],
            _printable(name).replace("-", "-\n") if len(name) > 14 else _printable(name),
            parse_math=False,
            ha="center",
            va="center",
            fontsize=7,
            color="white",
            bbox={"boxstyle": "round,pad=0.35", "fc": colour, "ec": "none"},
        )
    axes.margins(0.12)
    axes.set_axis_off()
    return axes


def plot_trace(result: Result, axes: Axes | None = None) -> Axes:
    """Draw incumbent and bound over time, the gap between them shaded.

    Raises
    ------
    InputError
        If the extra ``[plot]`` is not installed or the result has no trace.
    """
    axes = _axes(axes, (6, 4))
    if not result.trace:
        raise InputError("The result has no trace to draw; it comes from a run that found nothing.")
    end = max(result.seconds.total, result.trace[-1][0])
    points = [*result.trace, (end, *result.trace[-1][1:])]
    t = np.array([p[0] for p in points])
    z = np.array([np.nan if p[1] is None else p[1] for p in points])
    b = np.array([np.nan if p[2] is None else p[2] for p in points])
    axes.step(t, b, where="post", color=_CLASS, label="bound")
    axes.step(t, z, where="post", color=_FEATURE, label="incumbent")
    axes.fill_between(t, z, b, step="post", color="#bbbbbb", alpha=0.35, linewidth=0)
    if result.objective is not None and np.isfinite(b).any():
        # With the first, trivial bounds in the picture all later changes would be too small to see.
        top = float(np.nanquantile(b, 0.75))
        span = max(top - result.objective, 1e-6 * max(1.0, abs(top)))
        axes.set_ylim(result.objective - 0.35 * span, top + 0.05 * span)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.set_xlabel("seconds")
    axes.set_ylabel("score (nats)")
    searched = result.searched
    proved = (
        "proved optimal" if result.optimal else f"gap {show_gap(searched.gap.relative_to_bound)} of the bound"
    )
    if result.subset is not None:
        proved += " over a subset of the samples"
    elif result.screened is not None:
        proved += " over the kept parent sets"
    axes.set_title(f"{_printable(result.data.name)}: {proved}", parse_math=False)
    return _finished(axes)


def plot_widths(figures: Sequence[tuple[int, float]], double: float, axes: Axes | None = None) -> Axes:
    """Draw accuracy over bits per parameter, beside that of double precision (figure 2 of Pernkopf et al. 2011).

    Parameters
    ----------
    figures : sequence of (int, float)
        Bits and accuracy, as `milpbn.network.fixed_point.accuracy_by_width` returns them.
    double : float
        Accuracy with float64 parameters.
    axes : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If the extra ``[plot]`` is not installed.
    """
    axes = _axes(axes, (6, 4))
    bits, accuracies = zip(*figures, strict=True)
    axes.axhline(100 * double, color=_CLASS, linewidth=1, label="double precision")
    axes.plot(bits, 100 * np.array(accuracies), color=_FEATURE, marker=".", label="fixed point")
    axes.set_xlabel("bits per parameter")
    axes.set_ylabel("accuracy (%)")
    return _finished(axes)


def save_picture(result: Result, path: str | os.PathLike[str]) -> None:
    """Write one picture with the network on the left and the trace on the right.

    Parameters
    ----------
    result : Result
        With a structure.
    path : path
        ``.png``, ``.svg`` or ``.pdf``; written atomically.

    Raises
    ------
    InputError
        If the suffix is another, the result has no structure, or the extra ``[plot]`` is missing.
    """
    check_picture(path)
    if result.structure is None:
        raise InputError("The result has no structure to draw.")
    figure, (left, right) = _pyplot().subplots(1, 2, figsize=(13, 5), width_ratios=(1.35, 1))
    with _saved(figure, path):
        plot_structure(result.structure, left)
        plot_trace(result, right)


def save_widths(
    figures: Sequence[tuple[int, float]], double: float, title: str, path: str | os.PathLike[str]
) -> None:
    """Write the picture of `plot_widths` with a title; path and errors are as in `save_picture`."""
    check_picture(path)
    figure, axes = _pyplot().subplots(figsize=(6, 4))
    with _saved(figure, path):
        plot_widths(figures, double, axes)
        axes.set_title(_printable(title), parse_math=False)


def check_picture(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` if a file's suffix is not one of `SUFFIXES`, or the extra ``[plot]`` is not installed."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InputError(f"A picture file ends in {', '.join(SUFFIXES)}; {os.fspath(path)!r} does not.")
    _pyplot()


def _printable(name: str) -> str:
    """Return a name without characters that picture files or fonts cannot show, such as line breaks."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


@contextmanager
def _saved(figure: Any, path: str | os.PathLike[str]) -> Iterator[None]:
    """Write a figure, whole or not at all, once the block has drawn it."""
    try:
        yield
        figure.tight_layout()
        with atomic_path(path) as temporary:
            figure.savefig(temporary, dpi=120)
    finally:
        _pyplot().close(figure)
