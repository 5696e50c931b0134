"""GeNIe's ``.xdsl`` files, those of the SMILE library: nodes with their tables, and in an extension their places."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise
from math import prod
from xml.sax.saxutils import escape

import numpy as np

from milpbn.data.labels import number_of
from milpbn.errors import InputError
from milpbn.network.cpt import MAX_TABLE_ENTRIES
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import NO_TABLE, PlainNode, one_network, with_tables
from milpbn.network.formats.words import drawn_words
from milpbn.network.formats.xmlbif import FORBIDDEN, parse_xml


def to_xdsl(classifier: AnyClassifier) -> str:
    """Return a classifier as the text of a GeNIe file, whose nodes are where the drawing has them.

    Raises `InputError` if it is not one network.
    """
    network = one_network(classifier, "A GeNIe file")
    drawn = drawn_words(network)
    smile = '<smile version="1.0" id="milpbn" numsamples="10000" discsamples="10000">'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', smile, "  <nodes>"]
    for i in network.structure.topological_order():  # SMILE knows parents only after their nodes
        node = drawn[i][0]
        values = " ".join(map(repr, node.table.ravel().tolist()))
        lines.append(f'    <cpt id="{node.name}">')
        lines += [f'      <state id="{state}" />' for state in node.states]
        lines += [f"      <parents>{' '.join(node.parents)}</parents>"] * bool(node.parents)
        lines.append(f"      <probabilities>{values}</probabilities>")
        lines += [f'      <property id="{key}">{escape(v)}</property>' for key, v in node.properties.items()]
        lines.append("    </cpt>")
    lines += ["  </nodes>", "  <extensions>", '    <genie version="1.0" app="milpbn" name="milpbn">']
    for node, original, box in drawn:
        corners = f"{box.x:.0f} {box.y:.0f} {box.x + box.width:.0f} {box.y + box.height:.0f}"
        name = escape(FORBIDDEN.sub("?", original))
        lines += [f'      <node id="{node.name}">', f"        <name>{name}</name>"]
        lines += [f"        <position>{corners}</position>", "      </node>"]
    return "\n".join([*lines, "    </genie>", "  </extensions>", "</smile>"]) + "\n"


def read_xdsl(text: str) -> list[PlainNode]:
    """Return the nodes of a GeNIe file; deterministic and noisy-MAX nodes become tables.

    Raises `InputError` if the text is not GeNIe's, or not a network of such nodes; the sentence names the node.
    """
    root = parse_xml(text)
    elements = root.findall("nodes/*")
    if root.tag != "smile" or not elements or root.find("dynamic") is not None:
        raise InputError("It is XML, but not GeNIe's of a static network, with elements smile and nodes.")
    # SMILE lists parents first; the extension of milpbn's files has the order of the columns.
    order = {element.get("id"): i for i, element in enumerate(root.iter("node"))}
    elements.sort(key=lambda element: order.get(element.get("id"), 0))
    declared, lists = [], []
    for element in elements:
        name, states = element.get("id", ""), tuple(state.get("id", "") for state in element.findall("state"))
        if element.tag not in ("cpt", "deterministic", "noisymax"):
            what = f"is of the kind {element.tag}; only cpt, deterministic and noisymax nodes can be read"
            raise InputError(f"The node {name!r} {what}.")
        own = {p.get("id", ""): (p.text or "").strip() for p in element.findall("property")}
        declared.append(PlainNode(name, states, (), NO_TABLE, own))
    # aGrUM's tables have the first parent fastest, those of GeNIe and all others the last one.
    step = -1 if any("aGrUM" in genie.get("app", "") for genie in root.iter("genie")) else 1
    sizes = {node.name: len(node.states) for node in declared}
    for element, node in zip(elements, declared, strict=True):
        parents = _words(element, "parents")[::step]
        if element.tag == "noisymax":
            values = _noisy_max(element, len(node.states), [sizes.get(parent, 0) for parent in parents])
        else:
            found = _words(element, "resultingstates")
            strange = next((result for result in found if node.states and result not in node.states), None)
            if strange is not None:
                raise InputError(
                    f"The node {node.name!r} has the result {strange!r}, which is none of its states."
                )
            values = [float(s == result) for result in found for s in node.states]
            values = values or [number_of(word) for word in _words(element, "probabilities")]
        lists.append((node.name, parents, values, ""))
    return with_tables(declared, lists)


def _words(element: ET.Element, tag: str) -> list[str]:
    return (element.findtext(tag) or "").split()


def _noisy_max(element: ET.Element, n: int, sizes: list[int]) -> list[float]:
    """Return the table of a noisy-MAX node (Diez 1993) with n states, the strongest first, and parents of these sizes.

    There is a column per parent and state, by strength, and one of the leak. The probability that the node is at least
    as weak as a state is the product of that of the columns.
    """
    numbers, strengths = ([*map(number_of, _words(element, tag))] for tag in ("parameters", "strengths"))
    edges = np.cumsum([0, *sizes])
    orders = [strengths[a:b] for a, b in pairwise(edges)]
    right = len(strengths) == edges[-1] and all(sorted(o) == list(range(len(o))) for o in orders)
    right = right and all(0 <= number <= 1 for number in numbers)
    if not right or len(numbers) != n * (edges[-1] + 1) or prod(map(float, sizes)) * n > MAX_TABLE_ENTRIES:
        what = "strengths that are no orders of its parents' states, or other parameters"
        raise InputError(f"The noisy-MAX node {element.get('id')!r} has {what}.")
    weaker = np.array(numbers).reshape(-1, n)[:, ::-1].cumsum(axis=1)[:, ::-1]  # P(the state or a weaker one)
    table = weaker[-1]
    for order, (a, b) in zip(orders, pairwise(edges), strict=True):
        table = table[..., np.newaxis, :] * weaker[a:b][np.argsort(order)]
    table[..., :-1] -= table[..., 1:].copy()
    return np.maximum(table, 0.0).ravel().tolist()
