"""The Bayesian interchange format (BIF, version 0.15), as pgmpy and pyAgrum read and write it.

These programs accept different labels: pyAgrum only words of ASCII letters and integers, pgmpy no commas, and names
that differ in more than the case of letters. So every name and label is written as a word that both of them read. Where
this word differs from the original, the original is in the properties ``milpbn_name`` and ``milpbn_states``,
percent-encoded. Reading is more generous: quoted labels, labels with spaces, lists without commas, comments and
properties are understood.

pyAgrum reads the probabilities of BIF files in single precision; XMLBIF files keep all digits there.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from milpbn.data.labels import number_label, number_of
from milpbn.network.classifier import Classifier
from milpbn.network.formats.bif_reader import read_nodes
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import (
    NAME,
    STATES,
    UNUSED,
    PlainNode,
    as_classifier,
    encode_words,
    plain_nodes,
)

_KEYWORDS = {"network", "variable", "probability", "property", "type", "discrete", "table", "default"}
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*|[0-9]+[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def to_bif(classifier: AnyClassifier) -> str:
    """Return a classifier as the text of a BIF file; its probabilities have all digits.

    Raises `InputError` if it is not one network.
    """
    originals = plain_nodes(classifier, "A BIF file")
    nodes = _with_two_states(originals)
    words = dict(zip([n.name for n in nodes], _words((n.name for n in nodes), "v", names=True), strict=True))
    labels = {node.name: _words(node.states, "s") for node in nodes}
    parts = ["network milpbn {\n}\n"]
    for node, original in zip(nodes, originals, strict=True):
        properties = dict(node.properties)
        if words[node.name] != node.name:
            properties[NAME] = encode_words([node.name])
        if labels[node.name] != list(node.states):
            properties[STATES] = encode_words(original.states)
        lines = [f"  property {key} = {value} ;\n" for key, value in properties.items()]
        parts.append(
            f"variable {words[node.name]} {{\n"
            f"  type discrete [ {len(node.states)} ] {{ {', '.join(labels[node.name])} }};\n{''.join(lines)}}}\n"
        )
    for node in nodes:
        given = f" | {', '.join(words[name] for name in node.parents)}" if node.parents else ""
        rows = node.table.reshape(-1, len(node.states)).tolist()
        if node.parents:
            cases = itertools.product(*(labels[name] for name in node.parents))
            starts = [f"({', '.join(case)})" for case in cases]
        else:
            starts = ["table"]
        lines = [f"  {a} {', '.join(map(repr, row))};\n" for a, row in zip(starts, rows, strict=True)]
        parts.append(f"probability ( {words[node.name]}{given} ) {{\n{''.join(lines)}}}\n")
    return "".join(parts)


def _with_two_states(nodes: Sequence[PlainNode]) -> list[PlainNode]:
    """Return a network whose variables have at least two states, as pyAgrum wants; see `UNUSED`."""
    single = {node.name for node in nodes if len(node.states) == 1}
    padded = []
    for node in nodes:
        table = node.table
        for axis, parent in enumerate(node.parents):
            table = np.repeat(table, 2, axis) if parent in single else table
        if node.name in single:
            table = np.concatenate([table, np.zeros_like(table)], axis=-1)
            node = replace(
                node, states=(*node.states, "unused"), properties={**node.properties, UNUSED: "yes"}
            )
        padded.append(replace(node, table=table))
    return padded


def _words(texts: Iterable[str], prefix: str, names: bool = False) -> list[str]:
    """Return different words for texts, the texts themselves where they are words that every program reads.

    Words for names are no integers, and differ in more than the case of letters.
    """
    texts = list(texts)
    plain = [text if _is_word(text, names) else None for text in texts]
    taken: set[str] = set()
    words = []
    kept = {word for word in plain if word is not None}
    for text, word in zip(texts, plain, strict=True):
        candidate = word
        if candidate is None:
            bare = re.sub(r"[^A-Za-z0-9.-]+", "_", text.replace("-inf", "minus_inf"), flags=re.ASCII).strip(
                "_.-"
            )
            candidate = (
                bare if _is_word(bare, True) and bare[:1].isalpha() else f"{prefix}_{bare}".rstrip("_")
            )
        numbered = itertools.chain([candidate], (f"{candidate}_{n}" for n in itertools.count(2)))
        chosen = next(
            w for w in numbered if (w.lower() if names else w) not in taken and (w == word or w not in kept)
        )
        taken.add(chosen.lower() if names else chosen)
        words.append(chosen)
    return words


def _is_word(text: str, name: bool) -> bool:
    if text.lower() in _KEYWORDS:
        return False
    number = number_of(text)
    if number == number:  # a number: only integers in their usual spelling are read by all
        return not name and abs(number) < 2**31 and "." not in text and number_label(number) == text
    return _WORD.fullmatch(text) is not None


def from_bif(text: str, target: str | None = None) -> Classifier:
    """Return the classifier in the text of a BIF file.

    `target` is the name of the class variable; files that milpbn wrote name it themselves. Raises `InputError` if the
    text is not BIF, or not a network of discrete variables; the sentence names the line where there is one.
    """
    return as_classifier(read_nodes(text), target, "BIF")
