"""Row numbers and row labels: columns that say which row it is, known by their names, places and values.

pandas, R and the libraries around them write the labels of the rows into files as a column of their own. It has no
name, the name of the data frame's index, or a name that the program makes up when it reads the file again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np

from milpbn.data.column import Column
from milpbn.errors import InputError

#: Key in the ``attrs`` of a data frame: the columns that the file, or the Arrow table, declares as its index.
DECLARED_INDEX = "milpbn: index columns"

#: Fewer rows show nothing, except under a name that is only given to row labels.
LEAST_ROWS = 5
#: Integers in any order number the rows of a larger table if they are at most so many times as many as the rows.
MOST_PER_ROW = 10
#: They also do if M integers drawn below the square of M over this number would hardly all differ (1 in 1000 times).
OTHERS_REPEAT = 14
#: Tables that were put together start to count again: in at most so many parts, with more than so many numbers.
MOST_PARTS, FEW_NUMBERS = 10, 20

#: Names of first columns that only row labels have, and of those that may follow: pandas, pyarrow, readr and readxl, R.
_LABELS = {
    r"unnamed: ?0(?:_level_0)?(?:\.\d+)*": r"unnamed: ?\d+(?:_level_0)?(?:\.\d+)*",
    r"__index_level_0__": r"__index_level_\d+__",
    r"level_0": r"level_\d+",
    r"\.\.\.1": r"\.\.\.\d+",
    r"\.?row[._ ]?names?": r"(?!)",
}
_FIRST = re.compile("|".join(_LABELS), re.IGNORECASE)
_UNNAMED = re.compile(r"unnamed: ?\d+(?:_level_0)?(?:\.\d+)*|__index_level_\d+__|\.\.\.\d+", re.IGNORECASE)
_STORED = re.compile(r"__index_level_\d+__")
#: Names that columns without a name, and indices without one, get; other columns may have them, too.
_MADE_UP = re.compile(
    rf"{_FIRST.pattern}|{_UNNAMED.pattern}|level_\d+|index(?:\.\d+)?|(?-i:X(?:\.\d+)?)", re.IGNORECASE
)
#: Other names of row numbers: of programs that number columns, and of people.
_COUNTERS = re.compile(
    r"(?-i:X1)|v1|var_?1|field_?1|column_?[01]|_?c0|rn|rows?|idx|row[._ ]?(?:id|nr|no|num|number|count|idx|index)"
    r"|row_number\(\)|#|n°|№|obs\.?|observation|record|seq|counter|num|number|nummer|case|casenum|s[lr]?[._ ]*no\.?"
    r"|serial(?:[._ ]?(?:no|nr|num|number))?|lfd[._ ]*nr\.?|序号|编号|番号|번호",
    re.IGNORECASE,
)
#: Words in which the names of identifiers end.
ID_WORDS = {"id", "ids", "uid", "uuid", "guid", "identifier", "identif", "rowid", "rownum", "nr", "no"}


def is_made_up(name: str) -> bool:
    """Return whether pandas, R or a library around them gives a column without a name this name."""
    return _MADE_UP.fullmatch(name) is not None


def is_unnamed(name: str) -> bool:
    """Return whether pandas, pyarrow, readr or readxl gives this name to a column, or an index, that has none."""
    return _UNNAMED.fullmatch(name) is not None


def may_name_rows(name: str) -> bool:
    """Return whether row numbers may have this name; then the values decide."""
    return is_made_up(name) or _COUNTERS.fullmatch(name) is not None


def is_named(name: str, words: Collection[str]) -> bool:
    """Return whether a name ends in one of some words, such as ``id`` of ``customer_id`` and ``CustomerID``.

    A name may also begin with ``id``, if that is one of the words; and ``index`` is a name by itself.
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    parts = [part for part in re.split(r"[^a-z]+", spaced.lower()) if part]
    return bool(parts) and (parts[-1] in words or (parts[0] == "id" and "id" in words) or parts == ["index"])


def leading_labels(names: Sequence[str]) -> list[str]:
    """Return the first columns whose names say that they hold row labels, whatever the values are."""
    found: list[str] = []
    follows = "(?!)"  # nothing
    for name in names:
        begins = next(
            (after for first, after in _LABELS.items() if re.fullmatch(first, name, re.IGNORECASE)), None
        )
        follows = begins or follows
        if begins is None and not re.fullmatch(follows, name, re.IGNORECASE):
            break
        found.append(name)
    return found


def is_row_index(column: Column) -> bool:
    """Return whether a column numbers the rows: it has a name of row numbers, and `numbers_rows` is true.

    Names that only row labels have need no more than integers from 0, whatever they are.
    """
    if _STORED.fullmatch(column.name):
        return True
    if not may_name_rows(column.name) or not column.is_numeric or column.integers is None:
        return False
    numbers = column.integers[column.codes[~column.missing]]
    if _FIRST.fullmatch(column.name):
        return bool(numbers.min() >= 0)
    index = re.fullmatch(r"index(?:\.\d+)?", column.name, re.IGNORECASE)
    return numbers_rows(numbers, most_parts=len(numbers) if index else MOST_PARTS)


def numbers_rows(numbers: np.ndarray, most_parts: int = MOST_PARTS) -> bool:
    """Return whether integers are row numbers, also those of a part of a table or of tables that were put together.

    They are if there are at least `LEAST_ROWS` rows, no number is negative, and one of this holds:

    - all differ, and they are 0 to M - 1 or 1 to M in any order;
    - all differ, and they rise or fall from row to row, or there are more than `FEW_NUMBERS`; the largest is less than
      `MOST_PER_ROW` times the number of rows, or than the square of this number divided by `OTHERS_REPEAT`;
    - they rise from row to row, except where one of at most `most_parts` parts begins; the parts have at least
      `LEAST_ROWS` rows on average, and more than `FEW_NUMBERS` different numbers if `most_parts` is `MOST_PARTS`;
    - they never fall, there are more than `FEW_NUMBERS`, and `most_parts` is more than `MOST_PARTS`;
    - in any order, there are more than `FEW_NUMBERS` from 0 or 1 without a hole, none is more frequent than a smaller
      one, and none more frequent than `MOST_PARTS`.

    The integers, shape (M,), are in the order of the rows.
    """
    rows = len(numbers)
    if rows < LEAST_ROWS or numbers.min() < 0:
        return False
    steps = np.diff(numbers)
    distinct, counts = np.unique(numbers, return_counts=True)
    no_hole = distinct[0] <= 1 and distinct[-1] - distinct[0] == len(distinct) - 1
    if len(distinct) == rows:
        in_order = bool((steps > 0).all() or (steps < 0).all())
        largest = max(MOST_PER_ROW * rows, rows**2 / OTHERS_REPEAT)
        a_part = distinct[-1] < largest and (in_order or rows > FEW_NUMBERS)
        return bool(no_hole or a_part)
    many = len(distinct) > FEW_NUMBERS
    if many and no_hole and counts[0] <= MOST_PARTS and (np.diff(counts) <= 0).all():
        return True
    if many and most_parts > MOST_PARTS and (steps >= 0).all():
        return True
    parts = 1 + int(np.count_nonzero(steps <= 0))
    return (many or most_parts > MOST_PARTS) and parts <= most_parts and rows >= LEAST_ROWS * parts


def fit_header(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a name per cell of the rows of a text file; names that the header lacks are empty.

    R's ``write.table`` and pandas' ``index_label=False`` leave out the names of the row labels, which come first. Some
    programs write a separator after the last cell of every row. A header of the wrong length is returned as it is if
    this is no explanation, or if both may be: row numbers come first, and the last cells are empty.
    """
    widths = {len(row) for row in rows}
    if len(widths) != 1 or widths == {len(header)}:
        return list(header)
    width = widths.pop()
    more = width - len(header)
    if more < 0:
        return list(header) if any(name.strip() for name in header[width:]) else list(header[:width])
    columns = [[cell.strip() for cell in column] for column in zip(*rows, strict=True)]
    last = next((k for k, column in enumerate(reversed(columns)) if any(column)), width)
    after = min(last, more)  # separators after the last cell
    labels = list(zip(*columns[: max(1, more - after)], strict=True))
    first = header[0].strip() if header else ""
    numbers = all(re.fullmatch("[0-9]{1,15}", label) for label, *_ in labels)
    different = 1 < len(set(labels)) == len(labels) or (
        numbers and numbers_rows(np.array([label for label, *_ in labels], dtype=np.int64))
    )
    different = different and not (may_name_rows(first) or is_named(first, ID_WORDS))
    if after == more:
        counts = (
            different
            and labels[0][0] in ("0", "1")
            and labels[-1][0] == str(len(labels) - (labels[0][0] == "0"))
        )
        return list(header) if counts else [*header, *[""] * more]
    return [*[""] * (more - after), *header, *[""] * after] if different else list(header)


def name_unnamed(names: Sequence[str], empty: Sequence[bool], where: str) -> list[str]:
    """Return the names, with those of pandas, such as ``Unnamed: 0``, for row labels and empty columns that have none.

    Raises `InputError` if another column has no name: one that has values and does not come first.
    """
    found = list(names)
    leading = True
    for position, name in enumerate(names):
        leading = leading and (not name or is_unnamed(name))
        if name:
            continue
        if not leading and not empty[position]:
            raise InputError(f"Column {position + 1} of {where} has no name; give every column a name.")
        found[position] = f"Unnamed: {position}"
        while found[position] in names:
            found[position] += ".1"
    return found
