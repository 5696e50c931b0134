"""Remarks on values and columns that are used as they stand, but may not be what they seem."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import lgamma, log

import numpy as np
from numpy.typing import NDArray

from milpbn.data.column import Column
from milpbn.data.dataset import PREDICTS_CLASS, Variable
from milpbn.data.labels import ALWAYS_MISSING, label_of
from milpbn.data.row_index import is_made_up, is_row_index

#: Words that may stand for a missing value, in small letters; some spellings of them always do.
_WORDS = {
    *("n/a", "#n/a", "#na", "<na>", "na", "n.a.", "null", "(null)", "nil", "none", "(none)", "nan", "-nan"),
    *("unknown", "unk", "not known", "not available", "no data", "missing", "undefined", "blank", "(blank)"),
    *("-", "--", "---", ".", "..", "...", "??", "k.a.", "keine angabe", "unbekannt", "fehlt", "inconnu"),
    *("desconocido", "sconosciuto", "onbekend", "不明", "未知"),
}
#: Numbers that often stand for a missing value.
_CODES = frozenset(
    {-1.0, -7.0, -8.0, -9.0, 9.0} | {s * float(d * n) for s in (1, -1) for d in "789" for n in range(2, 7)}
)
#: A number that ends the range and is so many times as frequent as any other of at least so many may be a code.
_TIMES, _OTHERS = 2, 10
#: A feature that tells the class by chance with a lower probability than this gets a remark.
_CHANCE = 1e-3


def remark_on_index(columns: Mapping[str, Column], names: Collection[str]) -> list[str]:
    """Return a sentence on columns that are kept under a name that programs give to row numbers, if there are any."""
    found = []
    for name in filter(is_made_up, names):
        column = columns[name]
        integers = column.integers if column.is_numeric else None
        if integers is not None and integers.min() >= 0 and not is_row_index(column):
            found.append(name)
    if not found:
        return []
    return [
        f"Integers under a name that programs give to row numbers, taken as features: {', '.join(map(repr, found))}. "
        "If they number the rows, leave them out (--drop, or drop in Python)."
    ]


def remark_on_missing_codes(columns: Mapping[str, Column], names: Collection[str]) -> list[str]:
    """Return sentences on values that may stand for missing ones, and on words that are missing values but may not be.

    The former are words, such as ``unknown``, and numbers such as -1, 9, 99 and -999 far from all others of their
    column, the latter words such as ``None``. Numbers are looked at in the columns `names` only.
    """
    found, words = [], []
    for name, column in columns.items():
        for word in sorted({*column.words} - ALWAYS_MISSING):
            count = np.count_nonzero(
                column.of_rows(np.zeros(len(column.values)), 0, [w == word for w in column.words])
            )
            words.append(_described(word, name, int(count)))
        if column.is_numeric:
            values = _codes_of(column) if name in names else []
        else:
            # Estimators put quotation marks around classes such as nan.
            values = [k for k, label in enumerate(column.labels) if label.strip("'").casefold() in _WORDS]
        counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.values))
        for k in values:
            if counts[k]:
                found.append(_described(label_of(column.values[k]).strip("'"), name, counts[k]))
    remarks = []
    if words:
        remarks.append(
            f"Words that are taken as missing values, as pandas does: {'; '.join(words)}. Where such a word is a "
            "value, write another one."
        )
    if found:
        remarks.append(
            f"Values that may stand for missing ones, taken as they are: {'; '.join(found)}. If they do, name them as "
            "missing values (--na-values, or na_values in Python)."
        )
    return remarks


def remark_on_confusable_labels(columns: Mapping[str, Column]) -> list[str]:
    """Return a sentence on labels that look the same, such as the two forms in which Unicode writes an umlaut."""
    found = []
    for name, column in columns.items():
        seen = Counter(map(_as_seen, () if column.is_numeric else {*column.labels}))
        found += [f"{label!r} in column {name!r}" for label, count in seen.items() if count > 1]
    if not found:
        return []
    return [
        "Labels that look the same but differ in white space or in how Unicode writes them, and so are different "
        f"states: {', '.join(sorted(found))}. If they mean the same, write them in one way."
    ]


def _as_seen(label: str) -> str:
    """Return a label in one form of Unicode, with single blanks and without characters that are not shown."""
    if label.isascii() and "  " not in label:
        return label
    text = unicodedata.normalize("NFC", label)  # NFKC would make m2 of m²
    return " ".join("".join(c for c in text if unicodedata.category(c) != "Cf").split())


def _described(label: str, name: str, count: int) -> str:
    return f"{label!r} in column {name!r} ({count} row{'' if count == 1 else 's'})"


def _codes_of(column: Column) -> list[int]:
    """Return the positions of a column's distinct numbers that may stand for a missing value.

    They lie outside the range of the others, and are further from it than it is wide; or they are negative and no
    other number is; or they are by far the most frequent of many.
    """
    numbers = column.numbers
    special = np.isin(numbers, list(_CODES))
    ordinary = numbers[~special & np.isfinite(numbers)]
    if not special.any() or len(np.unique(ordinary)) < 2:
        return []
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(numbers))
    usual = counts[~special].max()
    low, high = ordinary.min(), ordinary.max()
    found = []
    for k in np.flatnonzero(special).tolist():
        number = numbers[k]
        if low <= number <= high:
            continue
        far = number - high >= high - low or (low - number >= high - low and number != -1)
        negative = number < 0 <= low and len(ordinary) > 2
        frequent = len(ordinary) >= _OTHERS and counts[k] > _TIMES * usual
        if far or negative or frequent:
            found.append(k)
    return found


def remark_on_leaks(
    variables: Sequence[Variable], codes: NDArray[np.int32], n_values: Sequence[int]
) -> list[str]:
    """Return a sentence on features that alone tell the class of every row, if there are any.

    A feature of K states does so by chance in at most C^K of all assignments of the M classes to the rows, whose number
    is a multinomial coefficient; a discretised one in as many for each choice of its K - 1 cuts. A remark needs that
    this share, times the number of features, is below `_CHANCE`. The codes, shape (M, V), are those of the training
    rows; `n_values` are the numbers of different values of each feature before it was discretised.
    """
    y, n_classes = codes[:, -1], variables[-1].n_states
    sizes = np.bincount(y)
    ways = lgamma(len(y) + 1) - sum(lgamma(size + 1) for size in sizes.tolist())
    most = log(_CHANCE) + ways - log(max(1, len(variables) - 1))
    found = []
    for variable, column, values in zip(variables[:-1], codes.T, n_values, strict=False):
        states = variable.n_states
        if states < 2:
            continue
        present = np.bincount(column * n_classes + y, minlength=states * n_classes).reshape(states, -1) > 0
        places = max(1, values - 1)  # of cuts
        choices = lgamma(places + 1) - lgamma(states) - lgamma(max(1, places - states + 2))
        cost = states * log(n_classes) + (choices if variable.cuts is not None else 0.0)
        if (present.sum(axis=1) <= 1).all() and cost < most:
            found.append(variable.name)
    if not found:
        return []
    return [
        f"{PREDICTS_CLASS}: {', '.join(map(repr, found))}. Check that their values are known before the class is; "
        "if not, leave them out (--drop, or drop in Python)."
    ]
