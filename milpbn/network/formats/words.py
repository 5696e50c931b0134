"""Names and labels as words, for formats and programs that hold no other text; the originals are kept in properties."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from milpbn.data.labels import number_label, number_of
from milpbn.drawing.network import node_boxes
from milpbn.drawing.scene import Box
from milpbn.network.classifier import Classifier
from milpbn.network.formats.plain_network import NAME, STATES, UNUSED, PlainNode, encode_words, plain_nodes


def in_words(nodes: Sequence[PlainNode], *, bif: bool = False, keywords: str = "") -> list[PlainNode]:
    """Return a network whose names and labels are words; the properties `NAME` and `STATES` have other originals.

    Words are ASCII letters, digits and underscores, a letter first, but none of the keywords. Labels of BIF files may
    also have dots and hyphens, begin with digits, or be integers in their usual spelling. Every variable has at least
    two states, as pyAgrum, bnlearn and SMILE want; see `UNUSED`.
    """
    names, excluded = [node.name for node in nodes], frozenset(keywords.split())
    words = dict(zip(names, _words(names, "v", True, bif, excluded), strict=True))
    found = []
    for node, original in zip(_with_two_states(nodes), nodes, strict=True):
        properties, states = dict(node.properties), _words(node.states, "s", False, bif, excluded)
        if words[node.name] != node.name:
            properties[NAME] = encode_words([node.name])
        if states != list(node.states):
            properties[STATES] = encode_words(original.states)
        parents = tuple(words[parent] for parent in node.parents)
        found.append(PlainNode(words[node.name], tuple(states), parents, node.table, properties))
    return found


def drawn_words(network: Classifier, keywords: str = "") -> list[tuple[PlainNode, str, Box]]:
    """Return the nodes of a network `in_words`, with their original names and their places in the drawing."""
    names, parents = network.structure.names, network.structure.parents
    nodes = in_words(plain_nodes(network, ""), keywords=keywords)
    return list(zip(nodes, names, node_boxes(names, parents, network.has_class), strict=True))


def _with_two_states(nodes: Sequence[PlainNode]) -> list[PlainNode]:
    """Return a network whose variables have at least two states; see `UNUSED`."""
    single = {node.name for node in nodes if len(node.states) == 1}
    padded = []
    for node in nodes:
        table = node.table
        for axis, parent in enumerate(node.parents):
            table = np.repeat(table, 2, axis) if parent in single else table
        if node.name in single:
            table = np.concatenate([table, np.zeros_like(table)], axis=-1)
            properties = {**node.properties, UNUSED: "yes"}
            node = replace(node, states=(*node.states, "unused"), properties=properties)
        padded.append(replace(node, table=table))
    return padded


def _words(texts: Sequence[str], prefix: str, names: bool, bif: bool, keywords: frozenset[str]) -> list[str]:
    """Return different words for texts; those for names are no integers, and differ in more than their case."""
    marks = ".-" if bif and not names else ""  # bnlearn takes none in names
    word = re.compile(rf"[A-Za-z][A-Za-z0-9_{marks}]*" + r"|[0-9]+[A-Za-z_][A-Za-z0-9_]*" * bif)

    def is_word(text: str, name: bool) -> bool:
        number = number_of(text)
        if number == number:  # a number: only integers in their usual spelling are read by all
            usual = abs(number) < 2**31 and "." not in text and number_label(number) == text
            return bif and not name and usual
        return text.lower() not in keywords and word.fullmatch(text) is not None

    taken: set[str] = set()
    words = []
    kept = {text for text in texts if is_word(text, names)}
    for text in texts:
        candidate = text
        if text not in kept:
            bare = re.sub(f"[^A-Za-z0-9{marks}]+", "_", text.replace("-inf", "minus_inf")).strip("_.-")
            good = is_word(bare, True) and bare[:1].isalpha()
            candidate = bare if good else f"{prefix}_{bare}".rstrip("_")
        numbered = itertools.chain([candidate], (f"{candidate}_{n}" for n in itertools.count(2)))
        chosen = next(
            w for w in numbered if (w.lower() if names else w) not in taken and (w == text or w not in kept)
        )
        taken.add(chosen.lower() if names else chosen)
        words.append(chosen)
    return words
