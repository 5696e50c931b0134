"""Tables whose cells are separated by a character: which line holds the names, and which lines are no rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milpbn.data.labels import MISSING_MARKERS
from milpbn.data.numerals import is_number, rough_number
from milpbn.data.options import TextFormat
from milpbn.data.raw_table import RawTable, generated_names
from milpbn.data.row_index import fit_header
from milpbn.data.separators import WORDS, Divided, TextRow, divide, is_comment
from milpbn.errors import InputError

#: A column of numbers has few different ones if at most this many, each in so many rows on average.
_FEW, _REPEATED = 10, 5
#: Share of the columns whose name may be a value that no row has, where all others look like values.
_ODD = 0.1
#: Rows among which numbers below a text are looked for first.
_BEGINNING = 1000
#: Names and lines that a sentence shows.
_SHOWN = 3
#: Rows that are turned into columns at once.
_AT_ONCE = 1 << 16


def parse_delimited(
    text: str, form: TextFormat, where: str, separator: str | None = None, known: Collection[str] = ()
) -> RawTable:
    """Parse the text of a file, whose name in error messages is `where`.

    The separator of the file's format counts unless the user gives one; by default it is found (`divide`). A line that
    has most of the names of columns that a classifier knows (`known`) is no row. Raises `InputError` if a row has more
    or fewer cells than there are names, or a quotation mark is not closed.
    """
    divided = divide(text, where, form.separator or separator)
    notes = _on_separators(divided, where)
    found, records = _names_and_rows(divided.records, form.header, known, where, notes)
    if found:
        found = fit_header(found, [record.cells for record in records if not is_comment(record)])
    names = found or generated_names(len(records[0].cells) if records else 0, known)
    rows = _rows(records, names, where, notes)
    separator = divided.separator
    del divided, records
    columns = _columns(rows, len(names))
    if found and _begin_with_units(names, columns, where, notes):
        columns = columns[:, 1:]
    frame = pd.DataFrame(columns.T, columns=names, dtype=object, copy=False)
    return RawTable(frame, where, separator=separator, notes=tuple(notes))


def _columns(rows: list[list[str]], width: int) -> NDArray[np.object_]:
    """Return the cells, one column in a line; `rows` is emptied, so that a large table is not in memory twice."""
    columns = np.empty((width, len(rows)), dtype=object)
    for begin in range(0, len(rows), _AT_ONCE):
        part = slice(begin, min(begin + _AT_ONCE, len(rows)))
        columns[:, part] = np.array(rows[part], dtype=object).T
        rows[part] = [[]] * (part.stop - begin)
    return columns


def _on_separators(divided: Divided, where: str) -> list[str]:
    """Return a sentence on a separator that is not the only possible one, or not a usual one."""
    word = WORDS.get(divided.separator, "")
    if divided.rivals:
        others = " and ".join(WORDS[mark] for mark in divided.rivals)
        return [
            f"The cells of {where} are taken as separated by {word}, though {others} would divide all lines into "
            "equally many cells, too. If that is wrong, give --separator (separator in Python)."
        ]
    return [f"The cells of {where} are taken as separated by blanks."] if divided.separator == " " else []


def _names_and_rows(
    records: list[TextRow], header: bool | None, known: Collection[str], where: str, notes: list[str]
) -> tuple[list[str], list[TextRow]]:
    """Return the names of the columns, none if there are none, and the other lines without comments above them.

    The sentences about them are added to `notes`.
    """
    above = 0
    while above < len(records) - 1 and is_comment(records[above]):
        above += 1
    comments, records = records[:above], records[above:]
    if not records:
        return [], []
    first, values, asked = records[0].cells, list[str](), header is not None
    if header is None and 2 * sum(cell.strip() in known for cell in first) > min(len(first), len(known)) > 0:
        header = True
    if header is None:
        # A line of names is repeated where files were put together.
        below = [r.cells for r in records[1:] if len(r.cells) == len(first) and r.cells != first]
        header, values = _are_names(first, below)
    hidden = comments and not asked and (values or not header) and len(comments[-1].cells) == len(first)
    if hidden:  # the names stand behind the sign of a comment, as numpy writes them
        names = [comments[-1].cells[0].lstrip().lstrip("#"), *comments[-1].cells[1:]]
        notes.append(
            f"Line {comments.pop().line} of {where} begins with # and is taken as the names of the columns."
        )
    if comments:
        notes.append(f"Lines of {where} that begin with # are left out: {_lines(comments)}.")
    if hidden:
        return names, records
    shown = ", ".join(map(repr, values[:_SHOWN])) + (", ..." if len(values) > _SHOWN else "")
    if header:
        if values:
            notes.append(
                f"The first line of {where} is taken as the names of the columns, though some look like values "
                f"({shown}). If it is a row, give --no-header (header=False in Python)."
            )
        return first, records[1:]
    if values:
        last = generated_names(len(first), known)[-1]
        notes.append(
            f"The first line of {where} looks like a row ({shown}), not like names, so that the columns are called x1, "
            f"x2 and so on, and the last one {last!r}. If it holds names, give --header (header=True in Python)."
        )
    return [], records


def _are_names(first: Sequence[str], below: Sequence[Sequence[str]]) -> tuple[bool, list[str]]:
    """Return whether the cells of the first line are names, and those of them that look like values.

    A cell looks like a value of its column if it is a number and all cells below are, or if it is one of them. It does
    not if it is a text above numbers, or if the values below repeat and it is none of them. Numbers with equal steps,
    such as years or the numbers of pixels, are names unless a text is a value, and so are numbers most of which lie far
    outside of what their columns hold.
    """
    cells = [(cell.strip(), rough_number(cell)) for cell in first]
    for rows in (below[:_BEGINNING], below):
        values: list[str] = []
        texts = above_numbers = above_others = outside = 0
        columns = list(zip(*rows, strict=True)) or [()] * len(first)
        for (cell, number), column in zip(cells, columns, strict=True):
            present = {other.strip() for other in column} - MISSING_MARKERS
            if cell in MISSING_MARKERS or not present:
                continue
            numbers = all(map(is_number, present))
            few = len(present) <= _FEW and len(column) >= _REPEATED * len(present)
            if numbers and np.isnan(number):
                above_numbers += 1
            elif cell in present:
                values.append(cell)
                texts += not numbers
            elif numbers and not few:
                values.append(cell)
                known = [rough_number(other) for other in present]
                low, high = min(known), max(known)
                outside += not 2 * low - high <= number <= 2 * high - low
            elif numbers or len(column) >= 2 * len(present):
                above_others += 1
        if above_numbers or len(below) <= _BEGINNING:
            break
    numeric = [(cell, number) for cell, number in cells if not np.isnan(number)]
    steps = np.diff([number for _, number in numeric])
    even = len(set(steps)) == 1 and steps[0] != 0 and (len(steps) > 1 or abs(steps[0]) == 1)
    odd = above_others > _ODD * len(values) or 2 * outside > len(values)
    names = above_numbers > 0 or not values or odd or (even and not texts)
    if not names:
        return False, values
    return True, [cell for cell, _ in numeric] or ([] if above_numbers else values)


def _rows(records: list[TextRow], names: Sequence[str], where: str, notes: list[str]) -> list[list[str]]:
    """Return the cells of the rows, without comments and repeated lines of names."""
    rows: list[list[str]] = []
    comments: list[TextRow] = []
    repeated: list[TextRow] = []
    stripped = [name.strip() for name in names]
    for record in records:
        if len(record.cells) != len(names):
            if not record.cells[0].lstrip().startswith("#"):
                raise InputError(
                    f"Line {record.line} of {where} has {len(record.cells)} cells, but there are {len(names)} column "
                    "names; correct the line, or give the separator (--separator)."
                )
            comments.append(record)
        elif len(names) > 1 and [cell.strip() for cell in record.cells] == stripped:
            repeated.append(record)
        else:
            rows.append(record.cells)
    if comments:
        notes.append(f"Lines of {where} that begin with # are left out: {_lines(comments)}.")
    if repeated:
        notes.append(
            f"Lines of {where} that repeat the names of the columns are left out: {_lines(repeated)}."
        )
    return rows


def _begin_with_units(
    names: Sequence[str], columns: NDArray[np.object_], where: str, notes: list[str]
) -> bool:
    """Return whether the first row has units: texts above at least two columns of numbers, and no number."""
    if not len(columns) or len(columns[0]) < 3 or any(is_number(column[0]) for column in columns):
        return False
    units = {
        name: column[0].strip()
        for name, column in zip(names, columns, strict=True)
        if column[0].strip() not in MISSING_MARKERS
        and all(cell.strip() in MISSING_MARKERS or is_number(cell) for cell in column[1:])
        and any(map(is_number, column[1:]))
    }
    if len(units) < 2:
        return False
    shown = ", ".join(f"{unit!r} in {name.strip()!r}" for name, unit in list(units.items())[:_SHOWN])
    notes.append(f"The row below the names of {where} is left out, as it seems to hold units: {shown}.")
    return True


def _lines(records: Sequence[TextRow]) -> str:
    """Return how many lines, and the numbers of the first ones."""
    word, more = "line" if len(records) == 1 else "lines", ", ..." if len(records) > _SHOWN else ""
    return f"{len(records)} ({word} {', '.join(str(record.line) for record in records[:_SHOWN])}{more})"
