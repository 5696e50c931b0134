"""What notebooks show of classifiers."""

from __future__ import annotations

from collections.abc import Sequence

from milpbn.data.dataset import Variable, by_column
from milpbn.drawing.html import card, folded, note, picture
from milpbn.drawing.network import draw_network
from milpbn.network.structure import Structure
from milpbn.util.plurals import counted

#: Classes that are named, and boxes that are drawn of several networks; the first network is drawn in any case.
_CLASSES, _BOXES = 10, 400


def network_card(
    variables: Sequence[Variable],
    n_arcs: int,
    n_parameters: int,
    structure: Structure | None = None,
    *,
    has_class: bool = True,
) -> str:
    """Return one network as HTML, with its picture, or without a structure a pseudo-TAN, whose arcs may form cycles."""
    rows = [
        *(
            [_classes(variables[-1]), ("features", len(by_column(variables[:-1])))]
            if has_class
            else [("variables", f"{len(variables)}, no class")]
        ),
        ("arcs", n_arcs),
        ("parameters", n_parameters),
    ]
    if structure is None:
        said = note("Its arcs may form cycles, so that there is no network to draw.")
        return card("Pseudo-TAN classifier", rows, said)
    drawn = draw_network(structure.names, structure.parents, has_class=has_class)
    return card("Bayesian network classifier" if has_class else "Bayesian network", rows, picture(drawn))


def average_card(
    variables: Sequence[Variable], structures: Sequence[Structure], scores: Sequence[str], n_parameters: int
) -> str:
    """Return an average of networks as HTML: the first network, and folded behind it as many more as are not too large.

    The variables are those of the first network. A score is what a network was learnt with, or "" if that is unknown.
    The parameters are those of all networks.
    """
    count, first = len(structures), structures[0]
    rows = [
        _classes(variables[-1]),
        ("features", len(by_column(variables[:-1]))),
        ("networks", f"{count}, each with weight 1/{count}; class probabilities are the mean of theirs"),
        ("parameters", f"{n_parameters} in all networks"),
    ]
    drawn = max(1, min(count, _BOXES // len(variables)))
    parts = []
    for k, (structure, score) in enumerate(zip(structures[:drawn], scores, strict=False)):
        about = counted(len(structure.arcs), "arc")
        if k:
            about += f", {len({*structure.arcs} - {*first.arcs})} of them not in the first network"
        heading = f"Network {k + 1} of {count}: " + "; ".join(filter(None, (about, score)))
        shown = picture(draw_network(structure.names, structure.parents))
        parts.append(folded(heading, shown, opened=k == 0))
    if drawn < count:
        further = counted(count - drawn, "further network")
        parts.append(
            note(f"{further} {'is' if count == drawn + 1 else 'are'} not drawn; members has all of them.")
        )
    return card("Average of Bayesian network classifiers", rows, "".join(parts))


def _classes(variable: Variable) -> tuple[str, str]:
    named = ", ".join(variable.states[:_CLASSES])
    return "class", f"{variable.name}: {named}{', ...' * (len(variable.states) > _CLASSES)}"
