"""The attribute-relation file format (ARFF) of Weka and KEEL: dense and sparse rows, quoted and nominal values.

As in Weka, white space separates values as a comma does, and the rest of a line behind ``%`` is a comment. Values with
blanks or ``%`` that lack the quotes are read all the same where nothing else can be meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from milpbn.data.labels import ALWAYS_MISSING, number_of
from milpbn.data.raw_table import text_frame
from milpbn.errors import InputError
from milpbn.util.raw_files import most_unpacked
from milpbn.util.text_lines import content_lines

_NUMERIC = {"numeric", "real", "integer"}
_TEXT = {"string", "date"}

# A quoted text with backslash escapes, or bare text up to the next separator. The quantifiers are possessive (*+):
# with backtracking, a line of many blanks would take quadratic time.
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_CELL = re.compile(rf"[^\S\t]*+({_QUOTED}|[^,\t'\"]*+)[^\S\t]*+(?:,|\t|$)")
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|\S+?)\s*(\s|(?={{))\s*(.+)", re.IGNORECASE)
_TYPE = re.compile(r"[a-z]+", re.IGNORECASE)
#: The text before a comment behind a blank.
_UNCOMMENTED = re.compile(rf"((?:{_QUOTED}|[^'\"%\s]|\s++(?!%)|(?<!\s)%)*+)\s*+%.*", re.DOTALL)
_WORD = rf"(?:{_QUOTED}|[^\s,'\"]++)"
_WORDS = re.compile(rf"{_WORD}(?:\s*+,?\s*+(?<=[\s,]){_WORD})*+")
_SPARSE = re.compile(r"([0-9]{1,18})\s+(.+)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True)
class _Attribute:
    """A declared column; `values` are the allowed values of a nominal attribute, else None."""

    name: str
    values: tuple[str, ...] | None
    numeric: bool

    @cached_property
    def known(self) -> frozenset[str]:
        """The allowed values of a nominal attribute."""
        return frozenset(self.values or ())

    @property
    def default(self) -> str:
        """The value of an attribute that a sparse row leaves out: zero, or the first declared value."""
        return self.values[0] if self.values else "0"

    def allows(self, cell: str) -> bool:
        """Whether the cell holds an allowed value or a marker of a missing one."""
        if cell in ALWAYS_MISSING or cell in self.known:
            return True
        return self.values is None and not (self.numeric and np.isnan(number_of(cell)))


class _Attributes(list[_Attribute]):
    """The declared columns in their order."""

    @cached_property
    def defaults(self) -> list[str]:
        """The values of a sparse row that leaves all out."""
        return [attribute.default for attribute in self]


def parse_arff(text: str, where: str) -> pd.DataFrame:
    """Parse the text of an ARFF file.

    Columns are text, but nominal attributes are categoricals with the declared values in their order. Raises
    `InputError` if a line is malformed, a type is unknown or relational, a value is not declared or not a number, a row
    has another length, or rows have instance weights. The message names the line.
    """
    lines = content_lines(text, "%")
    attributes = _parse_header(lines, where)
    most = most_unpacked(len(text)) // len(attributes)
    rows: list[list[str]] = []
    for number, line in lines:
        if len(rows) == most:  # a short sparse row may stand for a very long dense one
            raise InputError(
                f"The ARFF file {where} holds more than {most} rows of {len(attributes)} attributes in {len(text)} "
                "characters; to read it all the same, write it as CSV and name that file."
            )
        rows.append(_read_row(line, attributes, f"Line {number} of {where}"))
    columns: list[np.ndarray | pd.Categorical] = []
    by_column = zip(*rows, strict=True) if rows else [()] * len(attributes)
    for attribute, column in zip(attributes, by_column, strict=True):
        cells = np.array(column, dtype=object)
        if attribute.values is None:
            columns.append(cells)
        else:
            cells[[cell in ALWAYS_MISSING and cell not in attribute.known for cell in column]] = None
            columns.append(pd.Categorical(cells, categories=list(attribute.values)))
    return text_frame([attribute.name for attribute in attributes], columns)


def _parse_header(lines: Iterator[tuple[int, str]], where: str) -> _Attributes:
    """Read the declarations up to and including ``@data``; an attribute that KEEL calls the output is the last one."""
    attributes = _Attributes()
    outputs: list[str] = []
    for number, line in lines:
        keyword = line.split(None, 1)[0].lower()
        if keyword == "@data":
            if not attributes:
                raise InputError(f"The ARFF file {where} declares no attributes before line {number}.")
            if outputs not in ([], [attributes[-1].name]):
                raise InputError(
                    f"The output {', '.join(outputs)} of {where} is not its last attribute; remove the line @outputs, "
                    "and name the class as target."
                )
            return attributes
        if keyword == "@attribute":
            attributes.append(_parse_attribute(line, f"Line {number} of {where}"))
        elif keyword in ("@output", "@outputs"):
            outputs = [_unquote(name.strip()) for name in line.split(None, 1)[1:] for name in name.split(",")]
        elif keyword not in ("@relation", "@input", "@inputs"):
            raise InputError(
                f"Line {number} of {where} is neither @relation, @attribute, @data nor a comment."
            )
    raise InputError(f"The ARFF file {where} has no @data line; it seems cut off.")


def _parse_attribute(line: str, at: str) -> _Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise InputError(f"{at} is not a valid ARFF attribute; it needs a name and a type.")
    name, _, kind = match.groups()
    name = _unquote(name)
    if kind.startswith("{"):
        if not kind.endswith("}"):
            kind = _without_comment(kind)
        if not kind.endswith("}"):
            raise InputError(f"{at} lacks the closing brace of the values of {name!r}.")
        values = _split_cells(kind[1:-1], at)
        if "" in values or len(set(values)) < len(values):
            raise InputError(f"{at} declares an empty value of {name!r}, or one twice.")
        return _Attribute(name, tuple(values), numeric=False)
    found = _TYPE.match(kind)  # KEEL adds a range, as in real[4.3, 7.9]
    word = found[0].lower() if found else kind
    if word not in _NUMERIC | _TEXT:
        raise InputError(f"{at} gives {name!r} the type {word!r}, which milpbn cannot read.")
    return _Attribute(name, None, numeric=word in _NUMERIC)


def _read_row(line: str, attributes: _Attributes, at: str) -> list[str]:
    """Return the values of a row: without a comment at its end if that is possible, else as the line stands.

    `at` names the line and the file.
    """
    bare = _without_comment(line) if "%" in line else line
    if bare != line:
        try:
            return _parse_row(bare, attributes, at)
        except InputError:
            pass
    return _parse_row(line, attributes, at)


def _without_comment(line: str) -> str:
    found = _UNCOMMENTED.fullmatch(line)
    return line if found is None else found[1].rstrip()


def _parse_row(line: str, attributes: _Attributes, at: str) -> list[str]:
    if line.startswith("{"):
        return _parse_sparse(line, attributes, at)
    cells = _split_row(line, len(attributes), at)
    if cells[-1].startswith("{") and len(cells) == len(attributes) + 1:
        raise InputError(f"{at} has an instance weight; put the weights into a column.")
    if len(cells) != len(attributes):
        raise InputError(f"{at} has {len(cells)} values for {len(attributes)} attributes.")
    cells = ["?" if cell == "<null>" else cell for cell in cells]  # KEEL's missing value
    for attribute, cell in zip(attributes, cells, strict=True):
        _check_cell(attribute, cell, at)
    return cells


def _split_row(line: str, n: int, at: str) -> list[str]:
    """Split a row into n values at commas and tabs, or else at white space as well."""
    try:
        cells = _split_cells(line, at)
    except InputError:
        cells = []
    if len(cells) < n and _WORDS.fullmatch(line):
        words = [_unquote(word) for word in re.findall(_WORD, line)]
        if len(words) == n:
            return words
    return cells or _split_cells(line, at)


def _check_cell(attribute: _Attribute, cell: str, at: str) -> None:
    """Raise InputError if the attribute does not allow the cell."""
    if not attribute.allows(cell):
        expected = "a number" if attribute.numeric else "among its declared values"
        raise InputError(f"{at}: the value {cell!r} of {attribute.name!r} is not {expected}.")


def _parse_sparse(line: str, attributes: _Attributes, at: str) -> list[str]:
    """Parse ``{0 x, 3 'y z'}``: positions of attributes, counted from 0, and their values."""
    if not line.endswith("}"):
        raise InputError(f"{at} lacks the closing brace of a sparse row.")
    cells, seen = list(attributes.defaults), set[int]()
    for pair in _split_pairs(line[1:-1]):
        match = _SPARSE.fullmatch(pair)
        if match is None or int(match[1]) >= len(attributes):
            raise InputError(f"{at} holds {pair!r}, which is not an attribute position with a value.")
        position, cell = int(match[1]), _unquote(match[2])
        if position in seen:
            raise InputError(f"{at} has two values of {attributes[position].name!r}.")
        seen.add(position)
        _check_cell(attributes[position], cell, at)
        cells[position] = cell
    return cells


def _split_pairs(text: str) -> list[str]:
    """Split the inside of a sparse row at the commas outside quotes."""
    return [pair.strip() for pair in re.findall(rf"(?:{_QUOTED}|[^,'\"])+", text) if pair.strip()]


def _split_cells(line: str, at: str) -> list[str]:
    """Split a line at commas and tabs outside quotes."""
    if "'" not in line and '"' not in line:
        return [cell.strip() for cell in line.replace("\t", ",").split(",")]
    cells: list[str] = []
    position, open_end = 0, True
    while open_end:
        match = _CELL.match(line, position)
        if match is None:
            raise InputError(f"{at} has a quote that does not enclose a whole value.")
        cells.append(_unquote(match[1].strip()))
        position = match.end()
        open_end = line[position - 1 : position] in {",", "\t"} and position > match.end(1)
    return cells


def _unquote(text: str) -> str:
    """Return a value without its quotes and escapes."""
    if len(text) < 2 or text[0] not in "'\"" or text[-1] != text[0]:
        return text
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text[1:-1])


def is_arff(text: str) -> bool:
    """Return whether a text begins with a declaration, as KEEL's files do whose names end in ``.dat``."""
    return next((line for _, line in content_lines(text, "%")), "").startswith("@")
