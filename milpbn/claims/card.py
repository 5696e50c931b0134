"""What a notebook shows of a result."""

from __future__ import annotations

from typing import Any

from milpbn.drawing.html import card, picture
from milpbn.drawing.network import draw_network


def result_card(result: Any) -> str:
    """Return a `milpbn.Result` as HTML: the problem, the score with its bound and gap, and the network."""
    data, structure, proved = result.data, result.structure, result.proved
    limit = "" if result.limit is None else f" (limit: {result.limit})"
    over = " over representative samples" if result.subset is not None else ""
    over = " over the kept parent sets" if result.screened is not None else over
    bound, gap = result.searched.bound, result.searched.gap
    rows = [
        ("data", f"{data.name}: {result.described_data}"),
        ("score", result.described_score),
        ("status", f"{result.reason}{limit}{result.among_clause}"),
        ("incumbent", _nats(result.objective)),
        (f"bound{over}", _nats(bound)),
        (f"gap{over}", None if gap.absolute is None else _gap(gap.absolute, gap.relative_to_bound)),
        ("bound over all samples", None if result.subset is None else _nats(result.bound)),
        ("seconds", f"{result.seconds.total:.2f}"),
        ("classifier", None if result.average is None else "; ".join(result.average.describe())),
    ]
    drawn = ""
    if structure is not None:
        index = {name: i for i, name in enumerate(structure.names)}
        inside = None if proved is None else {(index[j], index[i]) for j, i in proved.inside}
        named, shown = data.classes > 0, (structure.names, structure.parents)
        drawn = picture(draw_network(*shown, proved=inside, has_class=named))
    return card("milpbn result", rows, drawn)


def _nats(value: float | None) -> str | None:
    return None if value is None else f"{value:.6f} nats"


def _gap(absolute: float, relative: float | None) -> str:
    share = "" if relative is None else f" ({100 * relative:.3g} % of the bound)"
    return f"{absolute:.6f} nats{share}"
