"""The cells of a raw table: which mean a missing value, and which texts are numbers in another way of writing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from milpbn.data.labels import find_markers, label_of, number_of
from milpbn.data.numerals import Marks, Written, choose, convert, is_number, is_plain, written
from milpbn.data.options import EVERY
from milpbn.data.raw_table import RawTable
from milpbn.errors import DataWarning, InputError, warn

#: A number behind a sign of comparison or before a unit.
_MEASURE = re.compile(
    r"(?P<sign>[<>\u2264\u2265~\u2248]=?|)\s*[+-]?[0-9]+(?:[.,][0-9]+)?\s*"
    r"(?P<unit>[^\W\d_][\w/\u00b2\u00b3]{0,5}|\u00b0[CF]|)"
)
#: Different cells that are looked at first to see whether most of a column may be numbers.
_FIRST = 50


def read_cells(
    raw: RawTable, numbers: Collection[str] = (), *, only_numbers: bool = False, texts: Collection[str] = ()
) -> RawTable:
    """Return a table with nulls for missing values, and with plain numbers where its cells are text without a type.

    The sentences about the form of the file and of numbers are issued as warnings. The columns `numbers` hold numbers,
    also where some of their cells do not look like it, and `texts` stay text. With `only_numbers`, as for a table for
    prediction, which may also lack columns, all columns but `numbers` stay as they are. Raises `InputError` if a value
    that means a missing one is given for a column that does not exist.
    """
    frame, form, where = raw.frame, raw.form, raw.where
    options = form.na_values.items()
    na_values = {key: v for key, v in options if not only_numbers or key == EVERY or key in frame}
    frame, absent = mark_missing(frame, na_values, where)
    asked = Marks(form.decimal or "", form.thousands or "")
    cells = {str(name): _different_texts(series) for name, series in frame.items()}
    cells |= {name: [cell for cell in cells[name] if is_number(cell)] for name in cells if name in numbers}
    found = {name: how for name, some in cells.items() if some and (how := written(some, asked))}
    decimals = {how.marks.decimal for how in found.values() if how.shows_decimal}
    changed: dict[str, pd.Series] = {}
    shown: list[str] = []
    notes: list[str] = []
    used: set[str] = set()
    for name in (n for n in cells if n in numbers or not (only_numbers or n in texts)):
        how = found.get(name)
        if how is None:
            notes += [] if only_numbers else _doubts(name, cells[name], where)
            continue
        marks, why = how.marks, ""
        if how.other is not None:
            marks, why = choose(how, cells[name], decimals, raw.separator, form.usual)
        plain = {} if how.plain and marks == Marks() else _plain_texts(cells[name], marks)
        if not raw.untyped:
            notes += [
                f"Column {name!r} of {where} is text, though {how.example!r} looks like a number; if it is one, turn "
                "the column into numbers."
            ] * bool(plain)
            continue
        if why and (plain or decimals != {"."}):
            notes.append(_undecided(name, how, marks, why))
            used.add(marks.decimal)
        if plain:
            changed[name] = frame[name].map(lambda cell, plain=plain: plain.get(cell, cell)).astype(object)
            shown.append(f"{name!r} ({how.example!r} as {_shown(how.example, marks)})")
            used |= {marks.decimal} if how.shows_decimal else set()
    if shown:
        frame, absent = mark_missing(frame.assign(**changed), absent, where)
        remedy = "" if only_numbers else _remedy(next(iter(changed)))
        notes.insert(0, f"Read as numbers: {', '.join(shown)}.{remedy}")
    if absent and not only_numbers:
        values = ", ".join(repr(value) for given in absent.values() for value in given)
        notes.append(f"No cell of {where} holds the missing value {values} that was given.")
    notes = [*raw.notes, *notes]
    for note in notes:
        warn(note, DataWarning)
    return replace(raw, frame=frame, notes=tuple(notes), decimal=used.pop() if len(used) == 1 else None)


def mark_missing(
    frame: pd.DataFrame, na_values: Mapping[str, Sequence[str]], where: str
) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Return a frame with nulls for the values that mean a missing one, and those values that no cell has.

    A cell has a value if its text or its number is that of the value. Raises `InputError` if there is no column of a
    name.
    """
    unknown = [name for name in na_values if name != EVERY and name not in frame]
    if unknown:
        raise InputError(
            f"The option 'na_values' names {unknown[0]!r}, which is not a column of {where} "
            f"({', '.join(map(str, frame.columns))})."
        )
    absent = {name: list(values) for name, values in na_values.items()}
    changed: dict[str, pd.Series] = {}
    for name, series in frame.items() if na_values else ():
        for key in (EVERY, str(name)):
            values = na_values.get(key, ())
            numbers = {number_of(value): value for value in values if is_plain(value)}
            hit = {}
            for cell in _distinct(series):
                label = label_of(cell)
                value = label if label in values else numbers.get(number_of(cell))
                if value is not None:
                    hit[cell] = value
            if hit:
                series = _without(series, list(hit))
                changed[str(name)] = series
                absent[key] = [value for value in absent[key] if value not in hit.values()]
    return frame.assign(**changed), {name: values for name, values in absent.items() if values}


def means_missing(value: Any, column: str, na_values: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a value of a column is one of those that mean a missing one, as `mark_missing` compares them."""
    cells = pd.Series([value], dtype=object)
    known = {key: values for key, values in na_values.items() if key in (EVERY, column)}
    marked, _ = mark_missing(pd.DataFrame({column: cells}), known, "the evidence")
    return not cells.isna().any() and bool(marked[column].isna().any())


def texts_of(series: pd.Series) -> list[str]:
    """Return the labels of the cells of a column; missing ones are empty."""
    return ["" if empty else label_of(cell) for cell, empty in zip(series, series.isna(), strict=True)]


def _without(series: pd.Series, values: list[object]) -> pd.Series:
    """Return a series with nulls instead of some values, without a change of the others."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return series.cat.remove_categories(values)
    exact = series.astype(object) if pd.api.types.is_integer_dtype(series.dtype) else series
    return exact.mask(series.isin(values), None)


def _distinct(series: pd.Series) -> list[Any]:
    """Return the different cells of a column without nulls; none if they are containers, which `Column` refuses."""
    try:
        return list(series.dropna().unique())
    except (TypeError, NotImplementedError):  # the latter is pyarrow's
        return []


def _different_texts(series: pd.Series) -> list[str]:
    """Return the different texts of a column without missing ones; none if it has other values or a type."""
    if not (pd.api.types.is_object_dtype(series.dtype) or pd.api.types.is_string_dtype(series.dtype)):
        return []
    if isinstance(series.dtype, pd.CategoricalDtype):
        return []
    cells = _distinct(series)
    if pd.api.types.infer_dtype(cells) != "string":
        return []
    return [cell for cell, absent in zip(cells, find_markers(cells), strict=True) if not absent]


def _plain_texts(cells: Sequence[str], marks: Marks) -> dict[str, str]:
    """Return the plain numbers of the cells that are none as they stand, or are others."""
    pairs = ((cell, convert(cell, marks)) for cell in cells)
    return {cell: text for cell, text in pairs if text is not None and number_of(cell) != float(text)}


def _remedy(name: str) -> str:
    return f" To keep a column as text, declare it nominal (--nominal {shlex.quote(name)})."


def _shown(cell: str, marks: Marks) -> str:
    return f"{float(convert(cell, marks) or 'nan'):.12g}"


def _undecided(name: str, how: Written, marks: Marks, why: str) -> str:
    """Return a sentence on a column whose numbers may be written in two ways."""
    assert how.other is not None
    other = how.other if marks == how.marks else how.marks
    word = {".": "point", ",": "comma"}[other.decimal]
    this, that = _shown(how.example, marks), _shown(how.example, other)
    return (
        f"In column {name!r}, {how.example!r} may be {this} or {that}; it is read as {this}, {why}. If that is wrong, "
        f"give --decimal {word} (decimal={other.decimal!r} in Python)."
    )


def _doubts(name: str, cells: Sequence[str], where: str) -> list[str]:
    """Return a sentence on a column of text of which nearly all values look like numbers that are not plain."""
    stays = f"Column {name!r} of {where} stays text"
    measures = [found for cell in cells if (found := _MEASURE.fullmatch(cell.strip()))]
    units = {found["unit"] for found in measures}
    if (
        len(measures) == len(cells) > 2
        and len(units) == 1
        and (units != {""} or any(f["sign"] for f in measures))
    ):
        example = next(found[0] for found in measures if found["sign"] or found["unit"])
        return [
            f"{stays}, though its values are numbers with a sign or a unit, such as {example!r}; remove it."
        ]
    if sum(map(is_number, cells[:_FIRST])) < 0.8 * len(cells[:_FIRST]):
        return []
    unusual = [cell for cell in cells if not is_plain(cell)]
    numbers = [cell for cell in unusual if is_number(cell)]
    texts = [cell for cell in unusual if not is_number(cell)]
    plain = len(cells) - len(unusual)
    if not numbers or 10 * len(texts) >= plain + len(numbers) or 10 * len(unusual) < plain:
        return []
    example = numbers[0].strip()
    if texts:
        return [
            f"{stays} because of {texts[0].strip()!r}; nearly all its values look like numbers, such as {example!r}. "
            "Correct it, or name it as a missing value (--na-values)."
        ]
    other = next(
        (cell.strip() for cell in cells if written(numbers[:1]) and not written([numbers[0], cell])), None
    )
    if other is not None:
        return [
            f"{stays}: its values look like numbers, but no one way of writing fits them all, such as {example!r} and "
            f"{other!r}; write all of them in one way."
        ]
    return [
        f"{stays}, though its values look like numbers, such as {example!r}. If they are, say how they are written "
        "(--decimal and --thousands)."
    ]
