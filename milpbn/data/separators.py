"""What separates the cells of a text file: the one character that divides all of its lines into equally many."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from sys import intern
from typing import NamedTuple

from milpbn.data.numerals import is_number
from milpbn.errors import InputError

#: What may separate cells, in this order: names of columns have commas more often than pipes, and pipes more often than
#: semicolons or tabs.
SEPARATORS = "\t;|,"
#: How the separators are called.
WORDS = {"\t": "tabs", ";": "semicolons", "|": "pipes", ",": "commas", " ": "blanks"}
#: The line by which Excel is told the separator.
_SEP_LINE = re.compile(r'\ufeff?"?sep=([^\r\n])"?[ \t]*(?:\r\n|\r|\n)', re.IGNORECASE)


class TextRow(NamedTuple):
    """A row of a text file: its cells, and the line of the file in which it ends."""

    line: int
    cells: list[str]


@dataclass(frozen=True)
class Divided:
    """The rows of a text file, what separates their cells, and what else could have."""

    records: list[TextRow]
    separator: str
    rivals: tuple[str, ...] = ()


def divide(text: str, where: str, separator: str | None = None) -> Divided:
    """Divide the lines of a text into cells; quotes are respected, and lines without text left out.

    Parameters
    ----------
    separator : str, optional
        The separator; a blank stands for any number of blanks and tabs. By default it is the first of these:

        1. that of a first line such as ``sep=;``;
        2. that of `SEPARATORS` which divides all lines into equally many cells, and into more than one; of several,
           that with the largest share of columns of numbers, then the first;
        3. blanks, if they do and the first line has none of the others;
        4. that of `SEPARATORS` which is the most frequent in the first line, or the comma.

    Raises
    ------
    InputError
        If a quotation mark is not closed.
    """
    said = _SEP_LINE.match(text)
    if said:
        text = text[said.end() :]
    skipped = 1 if said else 0
    separator = separator or (said[1] if said else None)
    first = _first_line(text)
    candidates = [separator] if separator else [mark for mark in SEPARATORS if mark in first]
    found: dict[str, list[TextRow]] = {}
    if len(candidates) > 1 or (not candidates and len(first.split()) > 1):
        found = {m: rows for m in candidates or " " if (rows := _regular(text, m, where, skipped))}
    if not found:
        most = max(reversed(candidates), key=first.count, default=",")
        return Divided(list(_records(text, most, where, skipped)), most)
    best, *rivals = (
        sorted(found, key=lambda mark: -_share_of_numbers(found[mark])) if len(found) > 1 else found
    )
    return Divided(found[best], best, tuple(rivals))


def first_cells(text: str, separator: str | None = None) -> list[str]:
    """Return the cells of the first line that is no comment, of the beginning of a text; none if it has no line."""
    records = divide(text, "the text", separator).records
    return next((r.cells for r in records if not is_comment(r)), records[0].cells if records else [])


def is_comment(record: TextRow) -> bool:
    """Return whether a row begins with ``#`` and a blank, or has one cell that begins with ``#``."""
    first = record.cells[0].lstrip()
    return first.startswith("#") and (len(record.cells) == 1 or first[1:2].isspace())


def _first_line(text: str) -> str:
    """Return the first line that has text and is no comment, with a letter for what is in quotes."""
    lines = [line for line in re.findall(r"[^\r\n]+", text[: 1 << 20]) if line.strip()]
    line = next((line for line in lines if not line.lstrip().startswith("#")), "") or "".join(lines[:1])
    return "q".join(line.split('"')[::2])


def _regular(text: str, separator: str, where: str, skipped: int) -> list[TextRow] | None:
    """Return the rows if all of them have equally many cells, and more than one; comments do not count.

    The first row, the names, may have a cell more or up to two less (`milpbn.data.row_index.fit_header`).
    """
    try:
        records = list(_records(text, separator, where, skipped))
    except InputError:
        return None
    widths = [len(record.cells) for record in records if not is_comment(record)]
    width = widths[-1] if widths else 0
    regular = width > 1 and all(n == width for n in widths[1:]) and -1 <= width - widths[0] <= 2
    return records if regular else None


def _share_of_numbers(records: list[TextRow]) -> float:
    """Return the share of the columns that hold numbers and missing values only."""
    width = len(records[-1].cells)
    rows = [record.cells for record in records[1:] if len(record.cells) == width]
    return sum(all(not row[k].strip() or is_number(row[k]) for row in rows) for k in range(width)) / width


def _records(text: str, separator: str, where: str, skipped: int) -> Iterator[TextRow]:
    if separator == " ":
        text = "\n".join(line.strip() for line in re.split(r"\r\n|\r|\n", text.replace("\t", " ")))
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, strict=True, skipinitialspace=True
    )
    began = 1  # line in which the row that is read begins
    try:
        for row in reader:
            began = reader.line_num + 1
            if row:
                # Equal cells are one object: a table of a million rows takes half the memory.
                yield TextRow(reader.line_num + skipped, list(map(intern, row)))
    except csv.Error as error:
        last = reader.line_num
        lines = (
            f"Line {last + skipped}"
            if last == began
            else f"The row in lines {began + skipped} to {last + skipped}"
        )
        raise InputError(
            f"{lines} of {where} cannot be parsed: {error}; check the quotation marks."
        ) from None
