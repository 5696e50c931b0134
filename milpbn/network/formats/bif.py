"""The Bayesian interchange format (BIF, version 0.15), as pgmpy, pyAgrum and bnlearn read it, and many programs write.

These programs accept different labels: pyAgrum only words of ASCII letters and integers, pgmpy no commas, and names
that differ in more than the case of letters; bnlearn no marks in names. So every name and label is written as a word
that all of them read. Where it differs from the original, this is in the properties ``milpbn_name`` and
``milpbn_states``, percent-encoded. pyAgrum reads the probabilities in single precision; XMLBIF files keep all digits
there.

When a file is read, labels stay as they are. Without quotes they may hold any character but commas, also brackets,
signs and single marks, as bnlearn and pgmpy write them; commas only within intervals such as ``(0.5, 1.5]``.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from milpbn.data.labels import intervals_of, number_of
from milpbn.errors import InputError
from milpbn.network.cpt import MAX_TABLE_ENTRIES
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import (
    NO_TABLE,
    PlainNode,
    TableList,
    plain_nodes,
    reader_of,
    with_tables,
)
from milpbn.network.formats.tokens import END, Token, TokenReader, blank_separated, numbers_in
from milpbn.network.formats.words import in_words

_KEYWORDS = "network variable probability property type discrete table default"


def to_bif(classifier: AnyClassifier) -> str:
    """Return a classifier as the text of a BIF file; its probabilities have all digits.

    Raises `InputError` if it is not one network.
    """
    nodes = in_words(plain_nodes(classifier, "A BIF file"), bif=True, keywords=_KEYWORDS)
    labels = {node.name: node.states for node in nodes}
    parts = ["network milpbn {\n}\n"]
    for node in nodes:
        lines = [f"  property {key} = {value} ;\n" for key, value in node.properties.items()]
        parts.append(
            f"variable {node.name} {{\n"
            f"  type discrete [ {len(node.states)} ] {{ {', '.join(node.states)} }};\n{''.join(lines)}}}\n"
        )
    for node in nodes:
        given = f" | {', '.join(node.parents)}" if node.parents else ""
        rows = node.table.reshape(-1, len(node.states)).tolist()
        cases = itertools.product(*(labels[name] for name in node.parents))
        starts = [f"({', '.join(case)})" if case else "table" for case in cases]
        lines = [f"  {a} {', '.join(map(repr, row))};\n" for a, row in zip(starts, rows, strict=True)]
        parts.append(f"probability ( {node.name}{given} ) {{\n{''.join(lines)}}}\n")
    return "".join(parts)


class _Parser(TokenReader):
    """A recursive descent over the tokens of a file; `declared` are the variables so far, without tables."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.declared: dict[str, PlainNode] = {}

    def nodes(self) -> list[PlainNode]:
        """Return the nodes in the order of their declarations."""
        tables = []
        while self.position < len(self.tokens):
            token = self.next()
            keyword = token.text.lower()
            if keyword == "network":
                for mark in "{}":
                    while not self.next().is_mark(mark):
                        pass
            elif keyword == "variable":
                self.variable(token.line)
            elif keyword == "probability":
                tables.append(self.probability(token.line))
            else:
                raise token.refused("at the beginning, where BIF has network, variable or probability")
        return with_tables(list(self.declared.values()), tables)

    def expect(self, mark: str) -> None:
        """Pass a mark, or refuse the file."""
        token = self.next()
        if not token.is_mark(mark):
            raise token.refused(f"where BIF has {mark!r}")

    def items(self, *ends: str) -> tuple[list[str], Token]:
        """Return the texts, of several words, between commas up to one of the end marks, and that mark."""
        found: list[Token] = []
        while not (token := self.next()).is_mark(*ends):
            if not token.quoted and token.text in "{}();":
                raise token.refused(f"where {' or '.join(ends)} is expected")
            found.append(token)
        return _items(found), token

    def labels(self, end: str) -> list[Token]:
        """Return the tokens of labels up to their end mark, and pass it; other marks are part of the labels.

        A parenthesis ends a list if numbers follow, and a brace if a semicolon or white space does, unless a label has
        an opening brace. A semicolon is within a label if white space does not follow.
        """
        found: list[Token] = []
        opened = 0
        while True:
            token = self.next()
            following = self.tokens[self.position] if self.position < len(self.tokens) else END
            if token.is_mark(end):
                number = number_of(following.text) == number_of(following.text)
                spaced = bool(following.before) and not opened and not following.is_mark(",")
                if following is END or (number if end == ")" else following.is_mark(";") or spaced):
                    return found
            if token.is_mark(";") and following.before:
                raise token.refused(f"where {end} is expected")
            opened += token.is_mark("{") - token.is_mark("}")
            found.append(token)

    def variable(self, line: int) -> None:
        """Read a variable block, after its keyword in a line."""
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
                raise token.refused("where a variable has type or property")
            kind, _ = self.items("{")
            count = re.fullmatch(
                r"discrete\s*\[\s*(\d{1,9})\s*\]", kind[0] if len(kind) == 1 else "", re.I | re.A
            )
            if count is None:
                raise InputError(
                    f"Line {token.line} does not declare a discrete variable and how many states."
                )
            found = self.labels("}")
            states = _items(found, int(count[1]))
            if len(states) != int(count[1]) and not any(t.is_mark(",") for t in found):
                states = blank_separated(found)
            if len(states) != int(count[1]):
                said = f"Line {token.line} declares {count[1]} states and lists {len(states)}"
                raise InputError(f"{said}; labels with commas need double quotes.")
            self.expect(";")
        if len(name) != 1 or states is None:
            raise InputError(f"Line {token.line} ends a variable without a name or without states.")
        if name[0] in self.declared:
            raise InputError(f"Line {line} declares the variable {name[0]!r} a second time.")
        self.declared[name[0]] = PlainNode(name[0], tuple(states), (), NO_TABLE, properties)

    def property(self) -> dict[str, str]:
        """Return a property as {key: value}; one that is not of the form key = value is left out."""
        tokens = self.until_semicolon()
        text = "".join(token.text for token in tokens)
        key, equals, value = text.partition("=")
        return {key.strip(): value.strip()} if equals else {}

    def family(self, line: int) -> tuple[str, tuple[str, ...]]:
        """Read a variable and its parents in parentheses."""
        self.expect("(")
        head, end = self.items("|", ")")
        if end.text == "|":
            parents, _ = self.items(")")
        elif len(head) == 1 and head[0] not in self.declared:
            head, parents = (words := head[0].split())[:1], words[1:]
        else:
            head, parents = head[:1], head[1:]
        if len(head) != 1:
            raise InputError(f"Line {line} does not name one variable before the bar.")
        for name in (*head, *parents):
            if name not in self.declared:
                raise InputError(f"Line {line} names {name!r}, which is not a variable declared above it.")
        return head[0], tuple(parents)

    def probability(self, line: int) -> TableList:
        """Read a probability block, after its keyword in a line, and return what `with_tables` wants."""
        name, parents = self.family(line)
        rows: dict[tuple[str, ...], list[float]] = {}
        whole: dict[str, list[float]] = {}
        self.expect("{")
        while not (token := self.next()).is_mark("}"):
            keyword = token.text.lower()
            if token.is_mark("("):
                case = tuple(_items(self.labels(")"), len(parents)))
                if case in rows:
                    raise InputError(f"Line {token.line} gives a row of {name!r} a second time.")
                rows[case] = numbers_in(self.until_semicolon())
            elif keyword in ("table", "default"):
                whole[keyword] = numbers_in(self.until_semicolon())
            elif keyword == "property":
                self.property()
            else:
                raise token.refused("where a row of a table is expected")
        states = [self.declared[other].states for other in (*parents, name)]
        if math.prod(map(len, states)) > MAX_TABLE_ENTRIES:
            raise InputError(f"The table of {name!r} has more than {MAX_TABLE_ENTRIES} entries.")
        table = _table(states, rows, whole, f"The table of {name!r} (line {line})")
        return name, parents, table.ravel().tolist(), f" (line {line})"


def _items(tokens: Sequence[Token], n: int | None = None) -> list[str]:
    """Return the texts between commas, without outer blanks; if not `n`, commas in intervals separate none."""
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token.is_mark(","):
            groups.append([])
        else:
            groups[-1].append(token)
    texts = ["".join(token.before + token.text for token in group) for group in groups if group]
    # Quoted text keeps its own blanks.
    stripped = [
        text.removeprefix(group[0].before) for text, group in zip(texts, filter(None, groups), strict=True)
    ]
    if n in (None, len(texts)):
        return stripped
    merged: list[str] = []
    for text, bare in zip(texts, stripped, strict=True):
        whole = f"{merged[-1]},{text}" if merged else bare
        if merged and intervals_of([whole])[0] is not None:
            merged[-1] = whole
        else:
            merged.append(bare)
    return merged


def _table(
    states: Sequence[tuple[str, ...]],
    rows: Mapping[tuple[str, ...], list[float]],
    whole: Mapping[str, list[float]],
    where: str,
) -> NDArray[np.float64]:
    """Return a table from its rows, by the states of the parents, and its lists ``table`` and ``default``."""
    *shape, n = map(len, states)
    table: NDArray[np.float64] = np.full((*shape, n), np.nan)
    default = whole.get("default")
    for values, what in ((default, "default row"), *((row, "row") for row in rows.values())):
        if values is not None and len(values) != n:
            raise InputError(f"{where} has a {what} of {len(values)} values for {n} states.")
    if "table" in whole:
        if len(whole["table"]) != table.size:
            raise InputError(f"{where} has {len(whole['table'])} values, but needs {table.size}.")
        # The values of `table` list the variable's own states slowest.
        table = np.moveaxis(np.array(whole["table"]).reshape(n, *shape), 0, -1)
    elif default is not None:
        table[...] = default
    codes = [{label: code for code, label in enumerate(labels)} for labels in states[:-1]]
    for case, values in rows.items():
        if len(case) != len(codes) or any(s not in c for s, c in zip(case, codes, strict=True)):
            said = f"{where} has a row for {', '.join(case)[:80]!r}"
            raise InputError(f"{said}, which are not states of its parents.")
        table[tuple(c[s] for s, c in zip(case, codes, strict=True))] = values
    if np.isnan(table).any():
        raise InputError(f"{where} lacks a row for some states of its parents.")
    return table


from_bif = reader_of(lambda text: _Parser(text).nodes(), "BIF")
