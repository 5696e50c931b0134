"""Names and labels as words, for formats and programs that hold no other text; the originals are kept in properties."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from milpbn.data.labels import number_label, number_of
from milpbn.network.formats.plain_network import NAME, STATES, UNUSED, PlainNode, encode_words


@dataclass(frozen=True)
class Spelling:
    """Which words a format takes: ASCII letters, digits and these marks, a letter first, but none of the keywords.

    With `digits`, labels may also be integers in their usual spelling, and words may begin with digits.
    """

    marks: str = "_"
    digits: bool = False
    keywords: frozenset[str] = frozenset()

    def is_word(self, text: str, name: bool) -> bool:
        """Return whether the format holds a name, or a label, as it is."""
        if text.lower() in self.keywords:
            return False
        number = number_of(text)
        if number == number:  # a number: only integers in their usual spelling are read by all
            usual = abs(number) < 2**31 and "." not in text and number_label(number) == text
            return self.digits and not name and usual
        words = rf"[A-Za-z][A-Za-z0-9{re.escape(self.marks)}]*"
        return (
            re.fullmatch(words + r"|[0-9]+[A-Za-z_][A-Za-z0-9_]*" * self.digits, text, re.ASCII) is not None
        )


def in_words(nodes: Sequence[PlainNode], spelling: Spelling) -> list[PlainNode]:
    """Return a network whose names and labels are words; the properties `NAME` and `STATES` have other originals.

    Every variable has at least two states, as pyAgrum, bnlearn and SMILE want; see `UNUSED`.
    """
    padded = _with_two_states(nodes)
    words = dict(
        zip([n.name for n in nodes], _words((n.name for n in nodes), "v", spelling, True), strict=True)
    )
    found = []
    for node, original in zip(padded, nodes, strict=True):
        properties, states = dict(node.properties), _words(node.states, "s", spelling, False)
        if words[node.name] != node.name:
            properties[NAME] = encode_words([node.name])
        if states != list(node.states):
            properties[STATES] = encode_words(original.states)
        parents = tuple(words[parent] for parent in node.parents)
        found.append(PlainNode(words[node.name], tuple(states), parents, node.table, properties))
    return found


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
            node = replace(
                node, states=(*node.states, "unused"), properties={**node.properties, UNUSED: "yes"}
            )
        padded.append(replace(node, table=table))
    return padded


def _words(texts: Iterable[str], prefix: str, spelling: Spelling, names: bool) -> list[str]:
    """Return different words for texts, the texts themselves where they are words.

    Words for names are no integers, and differ in more than the case of letters.
    """
    texts = list(texts)
    plain = [text if spelling.is_word(text, names) else None for text in texts]
    taken: set[str] = set()
    words = []
    kept = {word for word in plain if word is not None}
    other = rf"[^A-Za-z0-9{re.escape(spelling.marks.replace('_', ''))}]+"
    for text, word in zip(texts, plain, strict=True):
        candidate = word
        if candidate is None:
            bare = re.sub(other, "_", text.replace("-inf", "minus_inf"), flags=re.ASCII).strip("_.-")
            candidate = (
                bare
                if spelling.is_word(bare, True) and bare[:1].isalpha()
                else f"{prefix}_{bare}".rstrip("_")
            )
        numbered = itertools.chain([candidate], (f"{candidate}_{n}" for n in itertools.count(2)))
        chosen = next(
            w for w in numbered if (w.lower() if names else w) not in taken and (w == word or w not in kept)
        )
        taken.add(chosen.lower() if names else chosen)
        words.append(chosen)
    return words
