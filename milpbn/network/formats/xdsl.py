"""GeNIe's ``.xdsl`` files, those of the SMILE library: nodes with their tables, and in an extension their places."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import prod
from xml.sax.saxutils import escape

import numpy as np

from milpbn.data.labels import number_of
from milpbn.drawing.network import node_boxes
from milpbn.errors import InputError
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import MAX_TABLE_ENTRIES
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import as_classifier, nodes_of_lists, one_network, plain_nodes
from milpbn.network.formats.words import Spelling, in_words
from milpbn.network.formats.xmlbif import FORBIDDEN, parse_xml

#: Colours of the class and of the others.
_COLOURS = {True: "ffd9b3", False: "e5f6f7"}


def to_xdsl(classifier: AnyClassifier) -> str:
    """Return a classifier as the text of a GeNIe file, whose nodes are where the drawing has them.

    Raises `InputError` if it is not one network.
    """
    originals = plain_nodes(classifier, "A GeNIe file")
    structure = one_network(classifier, "A GeNIe file").structure
    has_class = one_network(classifier, "A GeNIe file").has_class
    nodes = in_words(originals, Spelling())
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<smile version="1.0" id="milpbn" numsamples="10000" discsamples="10000">',
        "  <nodes>",
    ]
    for node in (
        nodes[i] for i in structure.topological_order()
    ):  # SMILE knows parents only after their nodes
        lines.append(f'    <cpt id="{node.name}">')
        lines += [f'      <state id="{state}" />' for state in node.states]
        lines += [f"      <parents>{' '.join(node.parents)}</parents>"] * bool(node.parents)
        values = " ".join(map(repr, node.table.ravel().tolist()))
        lines.append(f"      <probabilities>{values}</probabilities>")
        lines += [f'      <property id="{key}">{escape(v)}</property>' for key, v in node.properties.items()]
        lines.append("    </cpt>")
    lines += ["  </nodes>", "  <extensions>", '    <genie version="1.0" app="milpbn" name="milpbn">']
    boxes = node_boxes(structure.names, structure.parents, has_class=has_class)
    for i, node in enumerate(nodes):
        box, colour = boxes[i], _COLOURS[has_class and i == len(nodes) - 1]
        corners = f"{box.x:.0f} {box.y:.0f} {box.x + box.width:.0f} {box.y + box.height:.0f}"
        lines += [
            f'      <node id="{node.name}">',
            f"        <name>{escape(FORBIDDEN.sub('?', originals[i].name))}</name>",
            f'        <interior color="{colour}" />',
            '        <outline color="000080" />',
            '        <font color="000000" name="Arial" size="8" />',
            f"        <position>{corners}</position>",
            "      </node>",
        ]
    return "\n".join([*lines, "    </genie>", "  </extensions>", "</smile>"]) + "\n"


def from_xdsl(text: str, target: str | None = None) -> Classifier:
    """Return the classifier in the text of a GeNIe file.

    `target` is the name of the class variable; files that milpbn wrote name it themselves. Deterministic and noisy-MAX
    nodes become tables. Raises `InputError` if the text is not GeNIe's, or not a network of such nodes; the sentence
    names the node.
    """
    root = parse_xml(text)
    group = root.find("nodes")
    if root.tag != "smile" or group is None:
        raise InputError("It is XML without elements smile and nodes, so it is not a GeNIe file.")
    if root.find("dynamic") is not None:
        raise InputError("It is a dynamic network; unroll it in GeNIe.")
    elements: dict[str, ET.Element] = {}
    for element in group:
        name = element.get("id", "").strip()
        if element.tag not in _VALUES:
            raise InputError(
                f"The node {name!r} is of the kind {element.tag}; only those of the kinds cpt, deterministic and "
                "noisymax can be read."
            )
        if not name or name in elements:
            raise InputError(
                f"It has {'the node ' + repr(name) + ' twice' if name else 'a node without id'}."
            )
        elements[name] = element
    # SMILE lists parents first; the extension of milpbn's files has the order of the columns.
    order = {e.get("id", ""): i for i, e in enumerate(root.iter("node"))}
    names = sorted(elements, key=order.__getitem__) if order.keys() == elements.keys() else list(elements)
    states, properties = {}, {}
    for name in names:
        states[name] = tuple(state.get("id", "").strip() for state in elements[name].findall("state"))
        properties[name] = {
            p.get("id", ""): (p.text or "").strip() for p in elements[name].findall("property")
        }
        if not states[name]:
            raise InputError(f"The node {name!r} has no states.")
    lists = []
    for name in names:
        parents = _words(elements[name], "parents")
        sizes = [len(states.get(parent, ())) for parent in parents]
        values = _VALUES[elements[name].tag](elements[name], states[name], sizes)
        lists.append((name, parents, values, ""))
    return as_classifier(nodes_of_lists(states, properties, lists), target, "GeNIe")


def _words(element: ET.Element, tag: str) -> list[str]:
    return "".join(element.findtext(tag) or "").split()


def _numbers(element: ET.Element, tag: str) -> list[float]:
    numbers = list(map(number_of, _words(element, tag)))
    if not numbers or any(x != x for x in numbers):
        raise InputError(f"The node {element.get('id')!r} has no {tag}, or {tag} that are not numbers.")
    return numbers


def _table(element: ET.Element, states: Sequence[str], sizes: Sequence[int]) -> list[float]:
    return _numbers(element, "probabilities")


def _function(element: ET.Element, states: Sequence[str], sizes: Sequence[int]) -> list[float]:
    """Return the table of a deterministic node, which names a state for every case of its parents."""
    found = _words(element, "resultingstates")
    if not found or not set(found) <= set(states):
        other = next((state for state in found if state not in states), None)
        said = "has no resultingstates" if other is None else f"names the state {other!r}, which it has not"
        raise InputError(f"The deterministic node {element.get('id')!r} {said}.")
    return [float(state == result) for result in found for state in states]


def _noisy_max(element: ET.Element, states: Sequence[str], sizes: Sequence[int]) -> list[float]:
    """Return the table of a noisy-MAX node (Diez 1993), whose first state is the strongest.

    There is a column per parent and state, by strength, the last of them without effect, and one of the leak. The
    probability that the node is at least as weak as a state is the product of that of the columns.
    """
    where = f"The noisy-MAX node {element.get('id')!r}"
    n, numbers = len(states), _numbers(element, "parameters")
    strengths = _numbers(element, "strengths") if sizes else []
    edges = np.cumsum([0, *sizes])
    orders = [np.array(strengths[a:b]) for a, b in pairwise(edges)]
    if len(strengths) != edges[-1] or any(sorted(o) != list(range(len(o))) for o in orders):
        raise InputError(f"{where} has strengths that are no orders of its parents' states.")
    if len(numbers) != n * (edges[-1] + 1) or prod(map(float, sizes)) * n > MAX_TABLE_ENTRIES:
        raise InputError(f"{where} has {len(numbers)} parameters, but needs {n * (edges[-1] + 1)}.")
    columns = np.array(numbers).reshape(-1, n)
    if any(columns[b - 1, -1] != 1 for b in edges[1:]):
        raise InputError(f"{where} has a parent whose weakest state has an effect.")
    weaker = columns[:, ::-1].cumsum(axis=1)[:, ::-1]  # P(the state or a weaker one)
    table = weaker[-1]
    for order, (a, b) in zip(orders, pairwise(edges), strict=True):
        by_state = weaker[a:b][np.argsort(order)]
        table = table[..., None, :] * by_state
    table = table - np.append(table[..., 1:], np.zeros((*table.shape[:-1], 1)), axis=-1)
    return np.maximum(table, 0.0).ravel().tolist()


#: The values of a table by the kind of a node.
_VALUES: Mapping[str, Callable[[ET.Element, Sequence[str], Sequence[int]], list[float]]] = {
    "cpt": _table,
    "deterministic": _function,
    "noisymax": _noisy_max,
}
