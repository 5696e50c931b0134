"""Graphviz pictures of structures: the DOT language."""

from __future__ import annotations

from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import one_network
from milpbn.network.structure import Structure


def to_dot(structure: Structure) -> str:
    """Return a structure as a Graphviz digraph in which the class variable is a box.

    Features outside the Markov blanket of the class, which change no prediction, are grey.
    """
    names, used = [_dot_quote(name) for name in structure.names], structure.markov_blanket
    lines = [f"  {names[-1]} [shape=box];"]
    lines += [
        f"  {name};" if i in used else f"  {name} [color=gray, fontcolor=gray];"
        for i, name in enumerate(names[:-1])
    ]
    lines += [f"  {names[parent]} -> {names[child]};" for parent, child in structure.arcs]
    return "digraph structure {\n" + "\n".join(lines) + "\n}\n"


def classifier_to_dot(classifier: AnyClassifier) -> str:
    """Return the structure of a classifier as `to_dot` does.

    Raises `InputError` if the classifier is not one network.
    """
    return to_dot(one_network(classifier, "A DOT file").structure)


def _dot_quote(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r").replace("\n", "\\n")
    return f'"{escaped}"'
