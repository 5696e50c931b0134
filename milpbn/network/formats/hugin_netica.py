"""Hugin's ``.net`` files, and Netica's ``.dne`` and ``.dnet`` files, which are read: blocks of fields in braces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from milpbn.data.labels import StateLabels, number_label, number_of
from milpbn.errors import InputError
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import (
    NO_TABLE,
    PlainNode,
    interval_states,
    one_network,
    with_tables,
)
from milpbn.network.formats.tokens import END, PERCENT, Token, TokenReader, blank_separated, numbers_in
from milpbn.network.formats.words import drawn_words

_KEYWORDS = "net class node potential data discrete continuous decision utility function label states"


def to_net(classifier: AnyClassifier) -> str:
    """Return a classifier as the text of a Hugin file, whose nodes are where the drawing has them.

    Raises `InputError` if it is not one network.
    """
    drawn = drawn_words(one_network(classifier, "A Hugin file"), _KEYWORDS)
    parts, top = ["net {\n  node_size = (80 40);\n}\n"], max(box.y + box.height for *_, box in drawn)
    for node, name, box in drawn:
        fields = {
            "states": '("' + '" "'.join(node.states) + '")',
            "label": '"' + name.translate(str.maketrans('"\\\n\r', "'/  ")) + '"',
            "position": f"({box.x + box.width / 2:.0f} {top - box.y - box.height / 2:.0f})",  # upwards
            **{key: f'"{value}"' for key, value in node.properties.items()},
        }
        lines = "".join(f"  {key} = {value};\n" for key, value in fields.items())
        parts.append(f"node {node.name} {{\n{lines}}}\n")
    for node, *_ in drawn:
        given = f" | {' '.join(node.parents)}" if node.parents else ""
        parts.append(f"potential ( {node.name}{given} ) {{\n  data = {_nested(node.table)};\n}}\n")
    return "".join(parts)


def _nested(table: np.ndarray, indent: str = "\n          ") -> str:
    """Return a table in parentheses, one pair per parent and around each row."""
    if table.ndim == 1:
        return f"({' '.join(map(repr, table.tolist()))})"
    return f"({indent.join(_nested(part, indent + ' ') for part in table)})"


def read_net(text: str) -> list[PlainNode]:
    """Return the nodes of a Hugin file, which may be in a class; rows of tables are normalised, as in Hugin.

    Raises `InputError` if the text is not Hugin's, or not a network of discrete chance nodes with tables.
    """
    declared, lists = [], []
    reader = _BlockReader(text, PERCENT)
    for before, token, after in zip(reader.tokens, reader.tokens[1:], reader.tokens[2:], strict=False):
        # Their lists have semicolons, which end no field.
        if before.is_mark("{", "}", ";") and token.text.lower() == "instance" and not after.is_mark("=", "{"):
            raise InputError(
                f"Line {token.line} has {after.text[:40]!r}, an instance of a class; only networks without instances "
                "can be read: save the expanded network, whose nodes are all in one class."
            )
    for outer in reader.block(()).blocks:
        for block in outer.blocks if outer.kind == "class" else [outer]:
            if block.kind.startswith("potential"):
                name, *given = [t.text for t in block.head[1:] if not t.is_mark("(", ")", ",")] or [""]
                if given[:1] not in ([], ["|"]) or "data" not in block.fields:
                    raise InputError(f"The potential of {name!r}{block.place} has no data, or several nodes.")
                lists.append((name, given[1:], block.numbers("data"), block.place))
            elif block.kind in ("node", "discrete node"):
                own = {key: "".join(block.texts(key)) for key in block.fields}
                states = tuple(block.texts("states") or block.texts("state_values"))
                if block.text("subtype") == "INTERVAL":
                    names, edges = block.texts("states"), block.numbers("state_values")
                    states, cut = interval_states(edges, names, block.refusal)
                    own = {**cut, **own}
                declared.append(PlainNode(block.name, states, (), NO_TABLE, own))
            elif block.kind or block.name.lower() != "net":
                raise block.refusal(f"is of the kind {block.kind!r}; only discrete chance nodes can be read")
    return with_tables(declared, lists, weights=True)


def read_dne(text: str) -> list[PlainNode]:
    """Return the nodes of a Netica file, without findings; those that are cut at levels take numbers.

    Raises `InputError` if the text is not Netica's, or not a network of chance nodes with tables.
    """
    nets = [block for block in _BlockReader(text).block(()).blocks if block.kind == "bnet"]
    if len(nets) != 1:
        raise InputError("It has no block 'bnet', so it is not a Netica file.")
    declared, lists = [], []
    for block in nets[0].blocks:
        kind = block.text("kind") or "NATURE"
        if block.kind != "node" or kind == "CONSTANT":
            continue
        if kind != "NATURE":
            raise block.refusal(f"is of the kind {kind}; only chance nodes (NATURE) can be read")
        names, levels = block.texts("states"), block.numbers("levels")
        own: dict[str, str] = {}
        if block.text("discrete") == "FALSE" or (levels and not names and "discrete" not in block.fields):
            states, own = interval_states(levels, names, block.refusal)
        else:
            count = number_of(block.text("numstates"))
            plain = [f"state{k}" for k in range(int(count) if 0 < count < 10**6 else 0)]
            states = tuple(names or map(number_label, levels)) or tuple(block.texts("statetitles") or plain)
        declared.append(PlainNode(block.name, states, (), NO_TABLE, own))
        parents = block.texts("parents")
        if sum(t.is_mark(",") for t in block.fields.get("parents", [])) >= max(len(parents), 1):
            raise block.refusal("has an input without a node; connect or delete it")
        lists.append((block.name, parents, _netica_values(block, states), block.place))
    return with_tables(declared, lists)


def _netica_values(block: _Block, states: Sequence[str]) -> list[float]:
    """Return the values of a node's table, from ``probs`` or ``functable``; ``#2`` is the third state."""
    key = "probs" if "probs" in block.fields else "functable"
    if key not in block.fields:
        raise block.refusal(
            "has no table; give it one in Netica (from an equation: Equation To Table), and save the network"
        )
    edges = block.numbers("levels")
    cut = interval_states(edges, (), block.refusal)[0] if len(edges) == len(states) + 1 else states
    ranges = StateLabels(cut, numeric=True)
    codes = {f"#{k}": k for k in range(len(states))}
    named = codes | {label: k for k, label in enumerate(states)}
    values: list[float] = []
    for token in block.fields[key]:
        number = 0.0 if token.text == "@imposs" else number_of(token.text)
        code = codes.get(token.text) if key == "probs" else named.get(token.text, ranges.code(token.text))
        if key == "probs" and number == number:
            values.append(number)
        elif code is not None:
            values += [float(k == code) for k in range(len(states))]
        elif not token.is_mark("(", ")", ","):
            raise token.refused(f"in the table of {block.name!r}, which is not one of its states")
    return values


@dataclass
class _Block:
    """A block: the tokens before its brace, its fields by their names in lower case, and the blocks in it."""

    head: Sequence[Token]
    fields: dict[str, list[Token]] = field(default_factory=dict)
    blocks: list[_Block] = field(default_factory=list)

    def __post_init__(self) -> None:
        words = [token.text for token in self.head if not token.is_mark("(", ")", ",", "|")]
        # The name ends the head, or comes first in its parentheses.
        place = next((k for k, token in enumerate(self.head) if token.is_mark("(")), max(len(words) - 1, 0))
        self.kind, self.name = " ".join(words[:place]).lower(), (words[place:] or [""])[0]
        self.place = f" (line {self.head[0].line})" if self.head else ""

    def refusal(self, what: str) -> InputError:
        return InputError(f"The node {self.name!r}{self.place} {what}.")

    def texts(self, key: str) -> list[str]:
        """Return the texts of a field, without parentheses around all of them; none if there is no such field."""
        tokens = self.fields.get(key, [])
        bare = len(tokens) > 1 and tokens[0].is_mark("(") and tokens[-1].is_mark(")")
        return blank_separated(tokens[1:-1] if bare else tokens)

    def text(self, key: str) -> str:
        return (self.texts(key) or [""])[0].upper()

    def numbers(self, key: str) -> list[float]:
        return numbers_in(self.fields.get(key, []))


class _BlockReader(TokenReader):
    def block(self, head: Sequence[Token], depth: int = 0) -> _Block:
        """Read up to the brace that ends a block; without a head, to the end of the file."""
        block = _Block(head)
        words: list[Token] = []
        while head or self.position < len(self.tokens):
            token = self.next()
            if token.is_mark("}") and head and not words:
                return block
            if token.is_mark("=") and words:
                block.fields[words[-1].text.lower()] = self.value(depth)
            elif token.is_mark("{") and words and depth < 9:
                block.blocks.append(self.block(words, depth + 1))
            elif token.is_mark("{", "}"):
                raise token.refused("where none is expected")
            elif not token.is_mark(";"):
                words.append(token)
                continue
            words = []
        if words:
            raise words[0].refused("outside of every block")
        return block

    def value(self, depth: int) -> list[Token]:
        """Return the tokens of a field's value without a block in it, such as Netica's ``font {size = 9;}``."""
        name, brace = (*self.tokens[self.position : self.position + 2], END, END)[:2]
        if brace.is_mark("{") and not name.is_mark("(", ")", ",", "|", "=", ";") and depth < 9:
            self.position += 2
            self.block([name], depth + 1)
            if extra := self.until_semicolon(nested=True):
                raise extra[0].refused("after a block, where ';' is expected")
            return []
        return self.until_semicolon(nested=True)
