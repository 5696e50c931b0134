"""Which columns of a table are features: those the user asks for, without identifiers, dates and free text.

A column whose states hardly repeat cannot help to classify other rows, but its tables fill the classifier. The
thresholds lie far from what real features have: over the 19 UCI tables of Peharz & Pernkopf (2012), read without
declared kinds, no nominal feature has more than 41 states, or more than .016 states per row, and no column of integers
has a different value in every row.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from datetime import date, datetime
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from milpbn.data.column import Column
from milpbn.data.dataset import LEFT_OUT
from milpbn.data.row_index import (
    ID_WORDS,
    LEAST_ROWS,
    OTHERS_REPEAT,
    is_made_up,
    is_named,
    is_row_index,
    is_unnamed,
    leading_labels,
    numbers_rows,
)

#: Why a column is left out: what it looks like, or because the options say so.
Why = Literal["identifier", "date", "free text", "row index", "empty", "asked"]
WHYS: tuple[Why, ...] = get_args(Why)

#: A nominal column with at most this many states is kept, whatever its name and its share of states.
FEW_STATES = 20
#: A nominal column with more states is kept if it has at most this many states per row, thus three rows per state.
MOST_STATES_PER_ROW = 1 / 3
#: Dates are kept as states if there are at most this many.
FEW_DATES = 10
#: Share of the different values of a column of dates that are dates; the others may be ``unknown`` or mistakes.
LEAST_DATES = 0.9
#: Rows from which different integers in a range with holes may be identifiers. In fewer, a plan may have set them.
MANY_ROWS = 50
#: Distinct integers, and rows per integer, of a column that may hold codes.
MOST_CODES, ROWS_PER_CODE = 30, 5
#: Free text has at least so many words in half of its values; identifiers have fewer.
WORDS = 3

_CODE_WORDS = {"code", "zip", "zipcode", "postcode", "postal", "plz", "icd", "category", "type"}
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?")
_OTHER_DATE = re.compile(
    r"(?:\d{4}([./-]) ?\d{1,2}\1 ?\d{1,2}|(\d{1,2})([./-]) ?(\d{1,2})\3 ?\d{2}(?:\d{2})?)(?:[ ,T]+\d{1,2}:\d{2}.*)?"
)
_MONTH = "(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-z]*"  # English and German
_NAMED_MONTH = re.compile(
    rf"(?:[a-z]{{2,9}}\.?,? )?(?:\d{{1,2}}(?:st|nd|rd|th)?[ .-]+{_MONTH}|{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?,?)"
    r"[ .-]+(?:\d{4}|\d{2})(?:[ ,]+\d{1,2}:\d{2}.*)?",
    re.IGNORECASE,
)
_JAPANESE_DATE = re.compile(r"(?:\d{4}|(?:令和|平成|昭和)(?:\d{1,2}|元)) ?年 ?\d{1,2} ?月 ?\d{1,2} ?日.*")
#: Characters of scripts without spaces between words; two of them count as a word.
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")


def look_alikes(
    columns: Mapping[str, Column], candidates: Collection[str], index: Collection[str] = ()
) -> dict[str, Why]:
    """Return the columns among some that are of no use as features, by name; see `looks_like`.

    `columns` are all but that of the weights, in their order. The first ones are a **row index** if their names say so
    (`milpbn.data.row_index.leading_labels`), and so are those that the source declares as the index of a data frame
    (`index`).
    """
    labels = {*leading_labels(list(columns)), *index}
    found: dict[str, Why | None] = {
        name: "row index" if name in labels else looks_like(column)
        for name, column in columns.items()
        if name in candidates
    }
    return {name: why for name, why in found.items() if why is not None}


def default_target(
    columns: Mapping[str, Column], nominal: Collection[str], index: Collection[str] = ()
) -> str | None:
    """Return the last column that does not number the rows; None if there is none.

    `columns` and `index` are those of `look_alikes`. Values are not looked at in columns that are declared `nominal`.
    """
    labels = {*leading_labels(list(columns)), *index}
    for name, column in reversed(list(columns.items())):
        why = "row index" if name in labels else None if name in nominal else looks_like(column)
        # Under a name, an empty column may be the class of rows whose labels are not known yet.
        unnamed = why == "empty" and is_unnamed(name)
        if not unnamed and why != "row index" and not (why == "identifier" and column.is_numeric):
            return name
    return None


def looks_like(column: Column) -> Why | None:
    """Return what a column looks like that is of no use as a feature; None for any other.

    - **row index**: row numbers, or any labels under a name that only row labels have
      (`milpbn.data.row_index.is_row_index`).
    - **empty**: no values.
    - **date**: at least `LEAST_DATES` of the values are dates or times (types of pandas and Python, or texts such as
      2024-05-31, 31.5.2024, 31 May 2024 and 2024年5月31日), more than `FEW_DATES` different ones, or a different one in
      every row. Numbers such as 20240531 count if all of them are days of the years 1900 to 2100, and there are more
      than `FEW_DATES`.
    - **free text**: more than `FEW_STATES` labels that are not numbers, and more than `MOST_STATES_PER_ROW` per row,
      half of them of `WORDS` words or more.
    - **identifier**: the same with fewer words; or integers that differ in every one of more than `FEW_STATES` rows,
      and rise or fall from row to row, fill a range without a hole, or, in at least `MANY_ROWS` rows, are so close
      together that other integers would repeat (but for one case in a million: the square of their number is more than
      2 `OTHERS_REPEAT` times their range); or any labels or integers that differ in every
      row, or integers that start again to count rows (`milpbn.data.row_index.numbers_rows`), under a name such as
      ``id``, ``customer_id`` or ``PassengerId``.
    """
    present = int(np.count_nonzero(~column.missing))
    distinct = column.n_labels
    unique = distinct == present
    if present == 0:
        return "empty"
    if is_row_index(column):
        return "row index"
    if column.is_numeric:
        if distinct > FEW_DATES and _numbers_are_dates(column):
            return "date"
        return "identifier" if _numbers_are_identifiers(column) else None
    if _holds_dates(column):
        return "date" if distinct > FEW_DATES or (unique and present >= LEAST_ROWS) else None
    if unique and present >= LEAST_ROWS and (is_named(column.name, ID_WORDS) or is_made_up(column.name)):
        return "identifier"
    if not has_many_states(column):
        return None
    words = np.median([_words(label) for label in column.labels])
    return "free text" if words >= WORDS else "identifier"


def has_many_states(column: Column) -> bool:
    """Return whether a column, taken as nominal, has too many states for a feature."""
    return column.n_labels > max(FEW_STATES, MOST_STATES_PER_ROW * np.count_nonzero(~column.missing))


def _numbers_are_identifiers(column: Column) -> bool:
    """Return whether numbers are integers that all differ and number the rows, or start again to do so."""
    if column.integers is None:
        return False
    numbers = column.integers[column.codes[~column.missing]]
    named = is_named(column.name, ID_WORDS)
    if column.n_numbers < len(numbers):
        return named and numbers_rows(numbers)
    if named and len(numbers) >= LEAST_ROWS:
        return True
    steps = np.diff(numbers)
    span = numbers.max() - numbers.min()
    n = len(numbers)
    crowded = span == n - 1 or (n >= MANY_ROWS and span < n**2 / (2 * OTHERS_REPEAT))
    return n > FEW_STATES and bool((steps > 0).all() or (steps < 0).all() or crowded)


def _numbers_are_dates(column: Column) -> bool:
    """Return whether all numbers are days in the form 20240531."""
    if column.integers is None or column.numbers.min() < 19000101 or column.numbers.max() > 21001231:
        return False
    for number in np.unique(column.integers).tolist():
        try:
            date(number // 10000, number // 100 % 100, number % 100)
        except ValueError:
            return False
    return True


def _words(text: str) -> int:
    """Return the number of words; two characters of a script without spaces count as one."""
    return max(len(text.split()), len(_UNSPACED.findall(text)) // 2)


def _holds_dates(column: Column) -> bool:
    """Return whether all values are dates or times, or nearly all."""
    values = column.values
    return len(values) > 0 and sum(_is_date(value) for value in values) >= LEAST_DATES * len(values)


def _is_date(value: object) -> bool:
    if not isinstance(value, str):
        return isinstance(value, date | np.datetime64 | pd.Period)  # datetime and Timestamp are dates, too
    text = value.strip()
    if _ISO_DATE.fullmatch(text):
        try:
            datetime.fromisoformat(text)
        except ValueError:
            return False
        return True
    if _NAMED_MONTH.fullmatch(text) or _JAPANESE_DATE.fullmatch(text):
        return True
    other = _OTHER_DATE.fullmatch(text)
    if other is None:
        return False
    day_and_month = [int(n) for n in (other[2], other[4]) if n is not None]
    return not day_and_month or (
        min(day_and_month) <= 12 and max(day_and_month) <= 31 and min(day_and_month) > 0
    )


def may_identify(column: Column, continuous: bool) -> bool:
    """Return whether a feature with more than `FEW_STATES` labels or integers has the name of an identifier.

    Its values repeat, such as the numbers of persons with several rows each (`looks_like` finds the others).
    """
    kind = column.integers is not None if continuous else True
    return kind and column.n_labels > FEW_STATES and is_named(column.name, ID_WORDS)


def may_be_codes(column: Column) -> bool:
    """Return whether integers that are taken as numbers may be codes, such as those of departments or postal areas.

    They may be if their name says so (``zip``, ``icd_code``), if a text has leading zeros, or if there are at most
    `MOST_CODES` of them, each in `ROWS_PER_CODE` rows on average, that begin with 0 or 1 and leave out no number, or
    leave out most numbers of their range (after division by their common divisor).
    """
    if not column.is_numeric or column.integers is None:
        return False
    if is_named(column.name, _CODE_WORDS):
        return True
    if any(label.startswith("0") and label.isdigit() and len(label) > 1 for label in column.labels):
        return True
    numbers = np.unique(column.numbers)
    if not 2 <= len(numbers) <= MOST_CODES or np.count_nonzero(~column.missing) < ROWS_PER_CODE * len(
        numbers
    ):
        return False
    steps = np.diff(numbers).astype(np.int64)
    span = int(steps.sum()) // int(np.gcd.reduce(steps))
    dense = span == len(numbers) - 1 and numbers[0] in (0, 1)
    return dense or span > 10 * len(numbers)


def describe_left_out(columns: Mapping[str, Column], left_out: Mapping[str, Why]) -> list[str]:
    """Return sentences that name the columns that are left out, and say how to keep them."""
    asked = [name for name, why in left_out.items() if why == "asked"]
    alike = {name: why for name, why in left_out.items() if why != "asked"}
    notes = [f"{LEFT_OUT}, as asked: {', '.join(asked)}."] if asked else []
    if alike:
        parts = [f"{name!r} {_appearance(columns[name], why)}" for name, why in alike.items()]
        first = shlex.quote(next(iter(alike)))
        notes.append(
            f"{LEFT_OUT}: {'; '.join(parts)}. To keep a column, name it in nominal or continuous (--nominal {first}) "
            "or list all features (--features)."
        )
    return notes


def left_out_of(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns of the training table that are no features, each with the reason.

    The provenance is that of a classifier, or another document with a summary of the data. A file may hold anything
    there, and whatever is no such record counts as none.
    """
    data = provenance.get("data")
    found = data.get("left_out") if isinstance(data, Mapping) else None
    return {k: v for k, v in found.items() if v in WHYS} if isinstance(found, Mapping) else {}


def _appearance(column: Column, why: Why) -> str:
    """Return what a column looks like, and its numbers of different values and of rows."""
    if why == "empty":
        return "has no values"
    what = "free text" if why == "free text" else f"{'an' if why == 'identifier' else 'a'} {why}"
    counts = f"{column.n_labels} different values in {np.count_nonzero(~column.missing)} rows"
    stray = f", nearly all of them numbers, but {column.stray_text}" if column.stray_text else ""
    return f"looks like {what} ({counts}{stray})"
