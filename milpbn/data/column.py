"""A factorised raw column: its distinct values, and the index of each row's value.

Text is parsed, compared and checked only once per distinct value, which makes reading fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milpbn.data.dataset import LABEL_TYPES
from milpbn.data.labels import (
    ALWAYS_MISSING,
    BOOLEAN,
    MAX_EXACT,
    MISSING_MARKERS,
    find_markers,
    label_of,
    labels_of,
    number_of,
    numbers_of,
    truth_of,
)
from milpbn.errors import InputError


def _integer_of(value: object) -> int:
    """Return the integer that a value or text stands for, without rounding."""
    return int(value) if isinstance(value, Integral) else int(Decimal(str(value).strip()))


def _factorise(series: pd.Series) -> tuple[NDArray[np.int64], Any]:
    """Return what `pandas.factorize` does, for any byte order and with True and 1, False and 0 as different values."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        series = series.astype(dtype.newbyteorder("="))
    elif dtype.kind == "f" and hasattr(dtype, "numpy_dtype"):
        # Nullable and Arrow's floats: NaN may be a value of its own beside nulls.
        series = pd.Series(series.to_numpy(dtype=dtype.numpy_dtype, na_value=np.nan))
    codes, uniques = pd.factorize(series)
    # pandas takes True for 1. Rows are looked at only if one of the distinct values may stand for both.
    mixed = pd.api.types.is_object_dtype(dtype) and pd.api.types.infer_dtype(uniques) != "string"
    if mixed and any(_is_bit(value) for value in uniques):
        booleans = series.map(lambda value: isinstance(value, BOOLEAN))
        if booleans.any() and series[~booleans].map(_is_bit).any():
            return pd.factorize(series.where(~booleans, series.map(str)))
    return codes, uniques


def _is_bit(value: object) -> bool:
    """Return whether a value equals 0 or 1; booleans do."""
    return isinstance(value, (*BOOLEAN, Real, Decimal)) and value in (0, 1)


@dataclass(frozen=True, eq=False)
class Column:
    """A raw column of M rows over K distinct values."""

    name: str
    #: Index of each row's value in `values`; negative if the value is missing: -1 for a null, and -2 - k for
    #: ``words[k]``. Shape (M,).
    codes: NDArray[np.signedinteger]
    #: Distinct values in order of appearance, without missing ones; a numeric array or an array of objects. Shape (K,).
    values: NDArray
    #: Labels of the values that the file (ARFF nominal) or the type (pandas categorical) allows.
    declared: tuple[str, ...] | None
    #: Row numbers in the source, counted from 0, for error messages. Shape (M,).
    rows: NDArray[np.int64]
    #: Whether the cells are text only because they come from a file without types, such as CSV.
    untyped: bool = False
    #: Distinct texts that mean a missing value.
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, series: pd.Series, where: str = "the table", *, untyped: bool = False) -> Column:
        """Factorise a series whose integer index holds the row numbers in the source.

        `untyped` says that the cells are text because the file has no types; a categorical has its own in any case.
        Raises `InputError` if the cells hold lists or other containers instead of single values.
        """
        name = str(series.name)
        try:
            codes, uniques = _factorise(series)
        except (TypeError, NotImplementedError):  # the latter is pyarrow's
            raise InputError(
                f"Column {name!r} of {where} holds containers such as lists, but each cell must be one value; "
                "leave the column out (--drop, or drop in Python)."
            ) from None
        values, words = np.asarray(uniques), []
        declared = None
        markers = MISSING_MARKERS
        if isinstance(series.dtype, pd.CategoricalDtype):
            markers = ALWAYS_MISSING if untyped else MISSING_MARKERS  # a file that declares values is ARFF
            labels = dict.fromkeys(label_of(v) for v in series.cat.categories)
            declared = tuple(label for label in labels if label not in markers)
        if values.dtype.kind not in "iuf":
            values = np.empty(len(uniques), dtype=object)
            values[:] = list(uniques)
            absent = find_markers(values, markers)
            if absent.any():
                words = [v.strip() for v in values[absent]]
                # The last number is that of code -1.
                renumbered = np.append(np.where(absent, -1 - np.cumsum(absent), np.cumsum(~absent) - 1), -1)
                codes, values = renumbered[codes], values[~absent]
        rows = np.asarray(series.index, dtype=np.int64)
        # The smallest type that holds all codes, their number included, since a large table has many.
        codes = codes.astype(np.min_scalar_type(-len(values) - len(words) - 2))
        return cls(name, codes, values, declared, rows, untyped and declared is None, tuple(words))

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """Distinct values as numbers, shape (K,); NaN for values that are not numbers."""
        if self.values.dtype.kind in "iuf":
            return self.values.astype(np.float64)
        return numbers_of(self.values)

    @cached_property
    def integers(self) -> NDArray[Any] | None:
        """The distinct values as integers, shape (K,); None if one of them is not a finite integer (1.0 is one).

        The dtype is int64, or object with Python's integers if a magnitude exceeds `MAX_EXACT`.
        """
        if not np.all(np.isfinite(self.numbers) & (np.floor(self.numbers) == self.numbers)):
            return None
        if not self.numbers.size or np.abs(self.numbers).max() <= MAX_EXACT:
            return self.numbers.astype(np.int64)
        return np.array([_integer_of(value) for value in self.values], dtype=object)

    @property
    def n_numbers(self) -> int:
        """How many different numbers the values are."""
        return int(np.unique(self.numbers if self.integers is None else self.integers).size)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels of the K distinct values; two values may share a label (1 and "1")."""
        return labels_of(self.values)

    @cached_property
    def n_labels(self) -> int:
        """How many different labels the values have."""
        return len(self.values) if self.values.dtype.kind in "iuf" else len(set(self.labels))

    @cached_property
    def is_numeric(self) -> bool:
        """Whether the column has values and all of them are numbers; infinities count as numbers."""
        return self.numbers.size > 0 and not bool(np.isnan(self.numbers).any())

    @property
    def label_type(self) -> str:
        """The type that all values have, one of `milpbn.data.dataset.LABEL_TYPES`; ``text`` if they differ in it.

        Of cells that are text because the file has no types, it is the type that pandas would read them as.
        """
        if self.untyped:
            return self._text_type
        if not len(self.values):
            return "text"
        if self.values.dtype.kind in "iuf":
            usual = {"int64": "integer", "float64": "real"}
            name = usual.get(self.values.dtype.name, self.values.dtype.name)
            return name if name in LABEL_TYPES else "real"
        for name, types in (("boolean", BOOLEAN), ("integer", Integral), ("real", (Real, Decimal))):
            if all(
                isinstance(v, types) and (types is BOOLEAN or not isinstance(v, BOOLEAN)) for v in self.values
            ):
                return name
        times = all(isinstance(v, pd.Timestamp) and v.tz is None for v in self.values)
        return "datetime" if times else "text"

    @property
    def _text_type(self) -> str:
        if self.is_numeric:
            whole = all(label.lstrip("+-").isdigit() for label in self.labels)
            return "integer" if whole else "real"
        return "boolean" if self.is_boolean and len(set(map(truth_of, self.labels))) == 2 else "text"

    @cached_property
    def differs_as_text(self) -> bool:
        """Whether the values are text by their type, and two that differ are the same number (01 and 1).

        They are different states then: whoever has numbers in mind gives them as numbers. A file without types has
        text only.
        """
        if self.untyped or not all(isinstance(value, str) for value in self.values):
            return False
        labels = set(self.declared or self.labels)
        numbers = np.unique(numbers_of(labels))
        return len(numbers) < len(labels) and bool((abs(numbers) <= MAX_EXACT).all())

    @cached_property
    def is_boolean(self) -> bool:
        """Whether the cells are text of a file without types, and all of them are true or false, in any case."""
        return (
            self.untyped and bool(self.labels) and all(truth_of(label) is not None for label in self.labels)
        )

    def find_same(self) -> tuple[str, str] | None:
        """Return the first two labels that differ as text and are the same number or truth value; None without any.

        Numbers that float64 does not hold exactly are left out.
        """
        first: dict[object, str] = {}
        for number, label in zip(self.numbers.tolist(), self.labels, strict=True):
            meaning = truth_of(label) if self.is_boolean else number if abs(number) <= MAX_EXACT else label
            if first.setdefault(meaning, label) != label:
                return first[meaning], label
        return None

    def of_rows(
        self, of_values: NDArray[Any], of_missing: object, of_words: Sequence[object] = ()
    ) -> NDArray[Any]:
        """Return what belongs to each row's value, shape (M,), from what belongs to each distinct one.

        `of_missing` belongs to a null, and to all `words` unless `of_words` has a value for each of these.
        """
        # Negative codes count from the end.
        ends = [*reversed(of_words or [of_missing] * len(self.words)), of_missing]
        return np.concatenate([of_values, np.array(ends, dtype=of_values.dtype)])[self.codes]

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether each row's value is missing, shape (M,)."""
        return self.codes < 0

    def take(self, positions: NDArray[np.int64]) -> Column:
        """Return the column's rows at the given positions, with the same distinct values."""
        return replace(self, codes=self.codes[positions], rows=self.rows[positions])

    def describe_first(self, chosen: NDArray[np.bool_]) -> str | None:
        """Return text like ``'text' in row 7`` for the first row that holds one of the chosen values, or None.

        `chosen` has shape (K,). Rows are counted from 1, without a header line.
        """
        positions = np.flatnonzero(self.of_rows(chosen, False))
        if positions.size == 0:
            return None
        first = positions[0]
        return f"{label_of(self.values[self.codes[first]])!r} in row {self.rows[first] + 1}"

    @property
    def stray_text(self) -> str | None:
        """Text like ``'abc' in row 7`` for the first value that is no number, if nearly all others are; else None."""
        texts = np.isnan(self.numbers)
        few = 0 < 10 * np.count_nonzero(texts) < np.count_nonzero(~texts)
        return self.describe_first(texts) if few else None

    def check_numeric(self, where: str, remedy: str, *, others: NDArray[np.bool_] | None = None) -> None:
        """Check that all values are finite numbers.

        The distinct values `others`, bool array of shape (K,), need not be numbers; `remedy` ends the message. Raises
        `InputError` if a value is not a finite number; the message names the first such row.
        """
        value = self.describe_first(~np.isfinite(self.numbers) & (True if others is None else ~others))
        if value is not None:
            raise InputError(f"Column {self.name!r} of {where} holds {value}, not a finite number; {remedy}.")

    def check_apart(self, where: str, *, nominal: bool) -> None:
        """Check that no two different integers or decimals are one number in float64, or one label if `nominal`.

        Raises `InputError` with the first two that are.
        """
        order = np.argsort(self.numbers, kind="stable")
        for k in np.flatnonzero(np.diff(self.numbers[order]) == 0):
            one, other = (self.values[j] for j in order[k : k + 2])
            same_label = label_of(one) == label_of(other)
            if _exact(one) != _exact(other) and (same_label or not nominal):
                raise InputError(
                    f"Column {self.name!r} of {where} holds {one} and {other}, which are one number in float64; "
                    "subtract the smallest value from all of them, or turn the column into text and declare it nominal."
                )


def _exact(value: object) -> object:
    """Return the number that a value stands for without rounding; of short texts, as floats are written, rounded."""
    if not isinstance(value, str):
        return int(value) if isinstance(value, Integral) else value
    number = number_of(value)
    return Decimal(value.strip()) if abs(number) > MAX_EXACT else number


def take_column(frame: pd.DataFrame, name: object, option: str, where: str) -> pd.Series:
    """Return the column that an option names; a number stands for itself.

    Raises `InputError` if it is no name, or no column has it.
    """
    if not isinstance(name, str | int | float | tuple | np.integer):
        raise InputError(f"The option {option!r} must be the name of a column, got a {type(name).__name__}.")
    if str(name) not in frame.columns:
        columns = ", ".join(str(c) for c in frame.columns)
        raise InputError(
            f"The option {option!r} names {str(name)!r}, which is not a column of {where} ({columns})."
        )
    return frame[str(name)]
