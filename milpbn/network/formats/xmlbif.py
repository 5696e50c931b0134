"""XMLBIF (version 0.3), the XML form of the Bayesian interchange format, as pgmpy, pyAgrum, Weka and others read it.

Names and labels are text, so that labels such as ``(-inf, 48.5]`` stay as they are. A table lists its values with the
variable's own states fastest, and the first parent slowest. Files are written without a document type, because
pyAgrum refuses it; it is skipped when reading.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from xml.sax.saxutils import escape

import numpy as np

from milpbn.data.labels import number_of
from milpbn.errors import InputError
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import MAX_TABLE_ENTRIES
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import (
    STATES,
    PlainNode,
    as_classifier,
    encode_words,
    plain_nodes,
)

#: Characters that XML 1.0 cannot hold.
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_xmlbif(classifier: AnyClassifier) -> str:
    """Return a classifier as the text of an XMLBIF file; its probabilities have all digits.

    Raises `InputError` if it is not one network, or a name is not text that XML can hold.
    """
    nodes = plain_nodes(classifier, "An XMLBIF file")
    for node in nodes:
        if _changes(node.name):
            raise InputError(
                f"The name {node.name!r} begins or ends with white space, or has characters that XML cannot hold; "
                "rename the column, or write a .bif file."
            )
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<BIF VERSION="0.3">',
        "<NETWORK>",
        "<NAME>milpbn</NAME>",
    ]
    for node in nodes:
        properties = dict(node.properties)
        states = list(node.states)
        if any(map(_changes, states)):
            properties[STATES] = encode_words(states)
            states = [f"s{code}" for code in range(len(states))]
        lines += ['<VARIABLE TYPE="nature">', f"  <NAME>{escape(node.name)}</NAME>"]
        lines += [f"  <OUTCOME>{escape(state)}</OUTCOME>" for state in states]
        lines += [f"  <PROPERTY>{key} = {escape(value)}</PROPERTY>" for key, value in properties.items()]
        lines.append("</VARIABLE>")
    for node in nodes:
        lines += ["<DEFINITION>", f"  <FOR>{escape(node.name)}</FOR>"]
        lines += [f"  <GIVEN>{escape(parent)}</GIVEN>" for parent in node.parents]
        rows = node.table.reshape(-1, len(node.states)).tolist()
        lines += [
            "  <TABLE>",
            *("    " + " ".join(map(repr, row)) for row in rows),
            "  </TABLE>",
            "</DEFINITION>",
        ]
    return "\n".join([*lines, "</NETWORK>", "</BIF>"]) + "\n"


def _changes(text: str) -> bool:
    """Whether readers of XML would change a text, or could not read it."""
    return not text or text != " ".join(text.split()) or FORBIDDEN.search(text) is not None


def from_xmlbif(text: str, target: str | None = None) -> Classifier:
    """Return the classifier in the text of an XMLBIF file.

    `target` is the name of the class variable; files that milpbn wrote name it themselves. Raises `InputError` if the
    text is not XMLBIF, or not a network of discrete variables.
    """
    if "<!ENTITY" in text:
        raise InputError("It declares XML entities, which no network needs; delete the declarations.")
    try:
        root = ET.fromstring(text)
    except (ET.ParseError, ValueError, RecursionError) as error:
        raise InputError(f"It is not XML ({error}).") from None
    for element in root.iter():  # some programs name a namespace
        element.tag = str(element.tag).rpartition("}")[2]
    network = root if root.tag == "NETWORK" else root.find("NETWORK")
    if network is None:
        raise InputError("It is XML without an element NETWORK, so it is not an XMLBIF file.")
    states: dict[str, tuple[str, ...]] = {}
    properties: dict[str, dict[str, str]] = {}
    for element in network.findall("VARIABLE"):
        name = _text(element, "NAME")
        if name in states:
            raise InputError(f"It declares the variable {name!r} twice.")
        if element.get("TYPE", "nature").lower() != "nature":
            raise InputError(
                f"The variable {name!r} is a {element.get('TYPE')} node, not one of a Bayesian network."
            )
        pairs = [(found.text or "").partition("=") for found in element.findall("PROPERTY")]
        properties[name] = {key.strip(): value.strip() for key, equals, value in pairs if equals}
        labels = tuple((outcome.text or "").strip() for outcome in element.findall("OUTCOME"))
        if not labels:
            raise InputError(f"The variable {name!r} has no outcomes.")
        states[name] = labels
    nodes: dict[str, PlainNode] = {}
    for element in network.findall("DEFINITION"):
        name = _text(element, "FOR")
        if name in nodes:
            raise InputError(f"It defines the variable {name!r} twice.")
        parents = tuple((given.text or "").strip() for given in element.findall("GIVEN"))
        unknown = [other for other in (name, *parents) if other not in states]
        if unknown:
            raise InputError(
                f"The definition of {name!r} names {unknown[0]!r}, which is not a declared variable."
            )
        shape = [len(states[other]) for other in (*parents, name)]
        values = [number_of(word) for word in _text(element, "TABLE").split()]
        if np.prod(list(map(float, shape))) > MAX_TABLE_ENTRIES or len(values) != np.prod(shape):
            raise InputError(
                f"The table of {name!r} has {len(values)} values, but needs {np.prod(list(map(float, shape))):.0f}."
            )
        nodes[name] = PlainNode(
            name, states[name], parents, np.array(values).reshape(shape), properties[name]
        )
    missing = [name for name in states if name not in nodes]
    if missing or not states:
        raise InputError(
            f"It has no definition of the variable {missing[0]!r}." if missing else "It declares no variable."
        )
    return as_classifier([nodes[name] for name in states], target, "XMLBIF")


def _text(element: ET.Element, tag: str) -> str:
    """Return the text of a child element, without comments and white space around it."""
    child = element.find(tag)
    if child is None:
        raise InputError(f"An element {element.tag} lacks its {tag}.")
    return "".join(child.itertext()).strip()
