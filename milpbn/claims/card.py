"""What a notebook shows of a result."""

from __future__ import annotations

from collections.abc import Collection

from milpbn.claims.about import DataSummary
from milpbn.claims.parts import Arc, Searched
from milpbn.drawing.html import card, picture
from milpbn.drawing.network import draw_network
from milpbn.network.structure import Structure
from milpbn.util.plurals import counted


def result_card(
    data: DataSummary,
    score: str,
    status: str,
    objective: float | None,
    searched: Searched,
    over: str,
    structure: Structure | None,
    proved: Collection[Arc] | None,
    seconds: float,
    classifier: str | None = None,
) -> str:
    """Return a result as HTML: the problem, the score with its bound and gap, and the network.

    Parameters
    ----------
    data, objective, searched, structure
        As `milpbn.claims.result.Result` has them.
    score : str
        The score in full (`Result.described_score`).
    status : str
        Reason and limit in words.
    over : str
        What bound and gap are over if not over all structures and samples; else empty.
    proved : collection of (parent, child), optional
        Arcs that every optimum has.
    seconds : float
        Wall-clock time of the run.
    classifier : str, optional
        What the classifier is if it is not the network alone.
    """
    gap, behind = searched.gap, f" over {over}" if over else ""
    rows = [
        ("data", f"{data.name}: {counted(data.samples, 'sample')}, {counted(data.features, 'feature')}"),
        ("score", score),
        ("status", status),
        ("incumbent", _nats(objective)),
        (f"bound{behind}", _nats(searched.bound)),
        (f"gap{behind}", None if gap.absolute is None else _gap(gap.absolute, gap.relative_to_bound)),
        ("seconds", f"{seconds:.2f}"),
        ("classifier", classifier),
    ]
    drawn = ""
    if structure is not None:
        index = {name: i for i, name in enumerate(structure.names)}
        inside = None if proved is None else {(index[j], index[i]) for j, i in proved}
        drawn = picture(draw_network(structure.names, structure.parents, proved=inside))
    return card("milpbn result", rows, drawn)


def _nats(value: float | None) -> str | None:
    return None if value is None else f"{value:.6f} nats"


def _gap(absolute: float, relative: float | None) -> str:
    share = "" if relative is None else f" ({100 * relative:.3g} % of the bound)"
    return f"{absolute:.6f} nats{share}"
