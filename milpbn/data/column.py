"""One raw column, factorised: its distinct values once, and which of them each row holds.

Text is parsed, compared and checked on the distinct values only, which is what makes reading fast.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from numbers import Integral, Real

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milpbn.errors import InputError

#: Text cells that mean "no value", after stripping white space; real nulls (None, NaN, NA) do too.
MISSING_MARKERS = frozenset({"", "?", "NA", "NaN", "nan"})

#: Largest magnitude up to which every integer is a float64, so that equal numbers are equal labels.
MAX_EXACT = 2.0**53 - 1

# float() alone would also take "1_000", "nan" and digits of other scripts.
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.IGNORECASE
)


def number_of(value: object) -> float:
    """Return the number that a raw value or its text stands for, NaN if it is none (booleans are none)."""
    if isinstance(value, str):
        text = value.strip()
        return float(text) if _NUMBER.fullmatch(text) else np.nan
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real | Decimal):
        return np.nan
    try:
        return float(value)
    except OverflowError:  # an int beyond float64
        return np.inf


def number_label(number: float) -> str:
    """Return the one label of a number: ``1`` for 1.0, else the shortest text that reads back the same."""
    return str(int(number)) if abs(number) <= MAX_EXACT and number == int(number) else repr(float(number))


def label_of(value: object) -> str:
    """Return the label of a raw value: text stripped of white space, numbers as `number_label`."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bytes):
        return value.decode(errors="replace").strip()
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, Integral):
        return str(int(value))
    return number_label(float(value)) if isinstance(value, Real | Decimal) else str(value)


@dataclass(frozen=True, eq=False)
class Column:
    """A raw column of M rows over K distinct values.

    Attributes
    ----------
    name : str
        Column name.
    codes : int64 array, shape (M,)
        Index of each row's value in `values`, -1 where it is missing.
    values : array, shape (K,)
        Distinct present values in order of appearance: a numeric array, or objects.
    declared : tuple of str or None
        Labels of the values that the file (ARFF nominal) or type (pandas categorical) allows.
    rows : int64 array, shape (M,)
        Row numbers in the source, from 0, for messages.
    """

    name: str
    codes: NDArray[np.int64]
    values: NDArray
    declared: tuple[str, ...] | None
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, series: pd.Series) -> Column:
        """Factorise a series whose integer index holds the row numbers in the source.

        Raises
        ------
        InputError
            If the cells hold lists or other containers instead of single values.
        """
        name = str(series.name)
        try:
            codes, uniques = pd.factorize(series)
        except TypeError:
            raise InputError(
                f"Column {name!r} holds containers such as lists, but each cell must be one value."
            ) from None
        values = np.asarray(uniques)
        if values.dtype.kind not in "iuf":
            values = np.empty(len(uniques), dtype=object)
            values[:] = list(uniques)
            present = np.array(
                [not (isinstance(v, str) and v.strip() in MISSING_MARKERS) for v in values], bool
            )
            renumbered = np.append(
                np.where(present, np.cumsum(present) - 1, -1), -1
            )  # the last one is for -1
            codes, values = renumbered[codes], values[present]
        declared = None
        if isinstance(series.dtype, pd.CategoricalDtype):
            labels = dict.fromkeys(label_of(v) for v in series.cat.categories)
            declared = tuple(label for label in labels if label not in MISSING_MARKERS)
        return cls(name, codes.astype(np.int64), values, declared, np.asarray(series.index, dtype=np.int64))

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """Distinct values as numbers, NaN for those that are none, shape (K,)."""
        if self.values.dtype.kind in "iuf":
            return self.values.astype(np.float64)
        return np.array([number_of(v) for v in self.values], dtype=np.float64)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels of the distinct values, length K; two values may share one (1 and "1")."""
        return tuple(label_of(v) for v in self.values)

    @cached_property
    def is_numeric(self) -> bool:
        """Whether there are values and all of them are numbers (infinities included)."""
        return self.numbers.size > 0 and not bool(np.isnan(self.numbers).any())

    def find_same_numbers(self) -> tuple[str, str] | None:
        """Return the first two labels that are different texts and the same number, if there are any."""
        first: dict[float, str] = {}
        for number, label in zip(self.numbers.tolist(), self.labels, strict=True):
            if first.setdefault(number, label) != label:
                return first[number], label
        return None

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which rows have no value, shape (M,)."""
        return self.codes < 0

    def take(self, positions: NDArray[np.int64]) -> Column:
        """Return the column's rows at the given positions, with the same distinct values."""
        return replace(self, codes=self.codes[positions], rows=self.rows[positions])

    def describe_first(self, chosen: NDArray[np.bool_]) -> str | None:
        """Return ``'text' in row 7``, the first row that holds one of the chosen distinct values, or None.

        Rows are counted from 1, a header line not counted.
        """
        positions = np.flatnonzero(np.append(chosen, False)[self.codes])  # code -1, missing, is not chosen
        if positions.size == 0:
            return None
        first = positions[0]
        return f"{label_of(self.values[self.codes[first]])!r} in row {self.rows[first] + 1}"

    def check_numeric(self, where: str, remedy: str) -> None:
        """Raise an InputError that names the first row whose value is no finite number.

        Parameters
        ----------
        where : str
            The table, as messages call it.
        remedy : str
            End of the sentence: what to do.
        """
        value = self.describe_first(~np.isfinite(self.numbers))
        if value is not None:
            raise InputError(f"Column {self.name!r} of {where} holds {value}, not a finite number; {remedy}.")
