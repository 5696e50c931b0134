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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from milpbn.data.column import number_label, number_of
from milpbn.errors import InputError
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import MAX_TABLE_ENTRIES
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import (
    NAME,
    STATES,
    UNUSED,
    PlainNode,
    as_classifier,
    encode_words,
    one_network,
    plain_nodes,
)

_KEYWORDS = {"network", "variable", "probability", "property", "type", "discrete", "table", "default"}
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*|[0-9]+[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|(?P<text>"(?:[^"\\]|\\.)*+")|(?P<mark>[{}()\[\];,|=])|(?P<word>(?:(?!//|/\*)[^\s{}()\[\];,|="])++)""",
    re.DOTALL,
)


def to_bif(classifier: AnyClassifier) -> str:
    """Return a classifier as the text of a BIF file; its probabilities have all digits.

    Raises
    ------
    InputError
        If it is not one network.
    """
    originals = plain_nodes(one_network(classifier, "A BIF file"))
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

    Parameters
    ----------
    text : str
        Text of the file.
    target : str, optional
        Name of the class variable; files that milpbn wrote name it themselves.

    Raises
    ------
    InputError
        If the text is not BIF, or not a network of discrete variables; the sentence names the line where there is one.
    """
    return as_classifier(_Parser(text).nodes(), target, "BIF")


@dataclass(frozen=True)
class _Token:
    text: str
    line: int
    quoted: bool = False

    def is_mark(self, mark: str) -> bool:
        return self.text == mark and not self.quoted


@dataclass
class _Block:
    """A variable while the file is read; `rows` has the lines of its table by the states of its parents."""

    name: str
    states: tuple[str, ...]
    properties: dict[str, str]
    parents: tuple[str, ...] = ()
    rows: dict[tuple[str, ...], list[float]] = field(default_factory=dict)
    table: list[float] | None = None
    default: list[float] | None = None
    line: int = 0


class _Parser:
    """A recursive descent over the tokens of a file."""

    def __init__(self, text: str) -> None:
        self.tokens = list(_tokens(text))
        self.position = 0

    def nodes(self) -> list[PlainNode]:
        """Return the nodes in the order of their declarations."""
        blocks: dict[str, _Block] = {}
        filled: set[str] = set()
        while self.position < len(self.tokens):
            token = self.next()
            keyword = token.text.lower()
            if keyword == "network":
                while not self.next().is_mark("{"):
                    pass
                while not self.next().is_mark("}"):
                    pass
            elif keyword == "variable":
                block = self.variable()
                if block.name in blocks:
                    raise InputError(f"Line {token.line} declares the variable {block.name!r} a second time.")
                blocks[block.name] = block
            elif keyword == "probability":
                block = self.probability(blocks, token.line)
                if block.name in filled:
                    raise InputError(f"Line {token.line} gives {block.name!r} a second table.")
                filled.add(block.name)
            else:
                raise InputError(
                    f"Line {token.line} begins with {token.text[:40]!r}, where BIF has network, variable or "
                    "probability."
                )
        if not blocks:
            raise InputError("It declares no variable, so it is not a BIF file.")
        missing = [name for name in blocks if name not in filled]
        if missing:
            raise InputError(f"It has no probability block of the variable {missing[0]!r}.")
        return [_node(block, blocks) for block in blocks.values()]

    def next(self) -> _Token:
        """Return the next token."""
        if self.position == len(self.tokens):
            raise InputError("It ends within a block; it seems cut off.")
        self.position += 1
        return self.tokens[self.position - 1]

    def expect(self, mark: str) -> None:
        """Pass a mark, or refuse the file."""
        token = self.next()
        if not token.is_mark(mark):
            raise InputError(f"Line {token.line} has {token.text[:40]!r} where BIF has {mark!r}.")

    def words(self, *ends: str) -> tuple[list[_Token], _Token]:
        """Return the tokens up to one of the end marks, and that mark."""
        found: list[_Token] = []
        while True:
            token = self.next()
            if not token.quoted and token.text in ends:
                return found, token
            if not token.quoted and token.text in "{}();":
                raise InputError(
                    f"Line {token.line} has {token.text!r} where {' or '.join(ends)} is expected."
                )
            found.append(token)

    def items(self, *ends: str) -> tuple[list[str], _Token]:
        """Return texts that are separated by commas up to an end mark; a text may consist of several words."""
        tokens, end = self.words(*ends)
        return _items(tokens), end

    def variable(self) -> _Block:
        """Read a variable block, after its keyword."""
        name, _ = self.items("{")
        properties: dict[str, str] = {}
        states: list[str] | None = None
        while True:
            token = self.next()
            if token.is_mark("}"):
                break
            if token.text.lower() == "property":
                properties.update(self.property())
                continue
            if token.text.lower() != "type":
                raise InputError(
                    f"Line {token.line} has {token.text[:40]!r} where a variable has type or property."
                )
            kind, _ = self.words("{")
            numbers = [t.text for t in kind if not t.quoted and t.text.isdecimal() and len(t.text) < 10]
            if not kind or kind[0].text.lower() != "discrete" or len(numbers) != 1:
                raise InputError(
                    f"Line {token.line} does not declare a discrete variable with a number of states."
                )
            found, _ = self.words("}")
            states = _items(found)
            if len(states) != int(numbers[0]) and not any(t.is_mark(",") for t in found):
                states = [t.text for t in found]
            if len(states) != int(numbers[0]):
                raise InputError(
                    f"Line {token.line} declares {numbers[0]} states and lists {len(states)}; labels with commas "
                    "need double quotes."
                )
            self.expect(";")
        if len(name) != 1 or states is None:
            raise InputError(f"Line {token.line} ends a variable without a name or without states.")
        return _Block(name[0], tuple(states), properties)

    def property(self) -> dict[str, str]:
        """Return a property as {key: value}; one that is not of the form key = value is left out."""
        tokens = self.until_semicolon()
        text = "".join(token.text for token in tokens)
        key, equals, value = text.partition("=")
        return {key.strip(): value.strip()} if equals else {}

    def until_semicolon(self) -> list[_Token]:
        """Return the tokens up to a semicolon."""
        found: list[_Token] = []
        while not (token := self.next()).is_mark(";"):
            found.append(token)
        return found

    def probability(self, blocks: dict[str, _Block], line: int) -> _Block:
        """Read a probability block, after its keyword, into the block of its variable."""
        self.expect("(")
        head, end = self.items("|", ")")
        if end.text == "|":
            parents, _ = self.items(")")
        elif len(head) == 1 and head[0] not in blocks:
            head, parents = (words := head[0].split())[:1], words[1:]
        else:
            head, parents = head[:1], head[1:]
        if len(head) != 1:
            raise InputError(f"Line {line} does not name one variable before the bar.")
        for name in (*head, *parents):
            if name not in blocks:
                raise InputError(f"Line {line} names {name!r}, which is not a variable declared above it.")
        block = blocks[head[0]]
        block.parents, block.line = tuple(parents), line
        self.expect("{")
        while not (token := self.next()).is_mark("}"):
            keyword = token.text.lower()
            if token.is_mark("("):
                case, _ = self.items(")")
                if tuple(case) in block.rows:
                    raise InputError(f"Line {token.line} gives a row of {block.name!r} a second time.")
                block.rows[tuple(case)] = self.numbers(token.line)
            elif keyword == "table":
                block.table = self.numbers(token.line)
            elif keyword == "default":
                block.default = self.numbers(token.line)
            elif keyword == "property":
                self.property()
            else:
                raise InputError(
                    f"Line {token.line} has {token.text[:40]!r} where a row of a table is expected."
                )
        return block

    def numbers(self, line: int) -> list[float]:
        """Return a list of probabilities up to a semicolon."""
        tokens = self.until_semicolon()
        numbers = [number_of(t.text) for t in tokens if not t.is_mark(",")]
        if any(x != x for x in numbers):
            raise InputError(f"Line {line} begins a list of probabilities with a value that is not a number.")
        return numbers


def _tokens(text: str) -> Iterator[_Token]:
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise InputError(f"Line {line} has a quote or a comment without an end.")
        if match.lastgroup == "text":
            yield _Token(re.sub(r"\\(.)", r"\1", match[0][1:-1]), line, quoted=True)
        elif match.lastgroup is not None:
            yield _Token(match[0], line)
        line += match[0].count("\n")
        position = match.end()


def _items(tokens: Sequence[_Token]) -> list[str]:
    """Return the texts between commas; words of one text are joined by a space."""
    groups: list[list[str]] = [[]]
    for token in tokens:
        if token.is_mark(","):
            groups.append([])
        else:
            groups[-1].append(token.text)
    return [" ".join(group) for group in groups if group]


def _node(block: _Block, blocks: dict[str, _Block]) -> PlainNode:
    """Return a node with its table filled."""
    parents = [blocks[name] for name in block.parents]
    shape = [len(parent.states) for parent in parents]
    n = len(block.states)
    if np.prod([*map(float, shape), n]) > MAX_TABLE_ENTRIES:
        raise InputError(f"The table of {block.name!r} has more than {MAX_TABLE_ENTRIES} entries.")
    where = f"The table of {block.name!r} (line {block.line})"
    table: NDArray[np.float64] = np.full((*shape, n), np.nan)
    for values, what in ((block.default, "default row"), *((row, "row") for row in block.rows.values())):
        if values is not None and len(values) != n:
            raise InputError(f"{where} has a {what} of {len(values)} values for {n} states.")
    if block.table is not None:
        if len(block.table) != table.size:
            raise InputError(f"{where} has {len(block.table)} values, but needs {table.size}.")
        # The values of `table` list the variable's own states slowest.
        table = np.moveaxis(np.array(block.table).reshape(n, *shape), 0, -1)
    elif block.default is not None:
        table[...] = block.default
    codes = [{label: code for code, label in enumerate(parent.states)} for parent in parents]
    for case, values in block.rows.items():
        if len(case) != len(parents) or any(s not in c for s, c in zip(case, codes, strict=True)):
            raise InputError(
                f"{where} has a row for {', '.join(case)[:80]!r}, which are not states of its parents."
            )
        table[tuple(c[s] for s, c in zip(case, codes, strict=True))] = values
    if np.isnan(table).any():
        raise InputError(f"{where} lacks a row for some states of its parents.")
    return PlainNode(block.name, block.states, block.parents, table, block.properties)
