"""Samples together with the raw columns that they code, for learners that make no use of our cuts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from milpbn.data.dataset import UNKNOWN, Dataset
from milpbn.data.table import Table
from milpbn.errors import InputError

#: Largest number of the columns; forests compute in float32.
LARGEST = 1e37


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RawData(Dataset):
    """Samples, and the rows of the table that they code."""

    #: The table with all its rows.
    table: Table
    #: The position of each sample in the table. Shape (M,).
    positions: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, data: Dataset, table: Table, positions: NDArray[np.int64]) -> RawData:
        """Return samples that code the rows of a table at these positions, in this order."""
        own = {each.name: getattr(data, each.name) for each in fields(Dataset)}
        return cls(**own, table=table, positions=positions)

    def take(self, rows: NDArray[np.integer] | Sequence[int]) -> RawData:
        """Return the given rows with the same variables."""
        index = np.asarray(rows)
        return RawData.of(super().take(index), self.table, self.positions[index])

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the codes and of the raw columns."""
        rows = pd.util.hash_pandas_object(self.frame, index=False).to_numpy()
        return hashlib.sha256(super().sha256.encode() + rows.tobytes()).hexdigest()

    @property
    def part(self) -> Table:
        """The rows as a table of their own."""
        return replace(self.table.of_rows(self.positions), train_rows=None)

    @property
    def numbers(self) -> list[str]:
        """Names of the features that hold numbers; few different integers are numbers, too, unless declared nominal."""
        table = self.table
        return [n for n in table.features if table.kinds[n] == "continuous" or n in table.few_integers]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The features, shape (M, N): numbers as float64, others as categories of the training rows.

        A missing or infinite number is NaN, and so is a category that is missing or that the training rows lack.
        Numbers beyond `LARGEST` are that number, since scaling would overflow.
        """
        numbers = set(self.numbers)
        values, _ = self.table.values(self.positions)
        values[~np.isfinite(values)] = np.nan
        values = values.clip(-LARGEST, LARGEST)
        columns: dict[str, Any] = {}
        for i, variable in enumerate(self.variables[:-1]):
            codes, states = np.maximum(self.codes[:, i], UNKNOWN), pd.Index(variable.states)
            own = variable.name in numbers
            columns[variable.name] = values[:, i] if own else pd.Categorical.from_codes(codes, states)
        return pd.DataFrame(columns)


def raw_data(source: Any) -> RawData:
    """Return the argument, or refuse what has no raw columns."""
    if not isinstance(source, RawData):
        raise InputError("Learners on raw columns take the rows of a table, in milpbn compare --raw.")
    return source


@dataclass(frozen=True, eq=False)
class RawRows:
    """Training rows for a classifier of scikit-learn."""

    #: `RawData.frame`. M rows.
    frame: pd.DataFrame
    #: Names of the columns of each kind.
    numbers: list[str]
    texts: list[str]
    #: Class codes. Shape (M,).
    classes: NDArray[np.integer]
    #: Sample weights; None if all are 1. Shape (M,), or None.
    weights: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, data: RawData) -> RawRows:
        """Take the rows of training data."""
        numbers = data.numbers
        texts = [name for name in data.names[:-1] if name not in numbers]
        weights = None if (data.weights == 1.0).all() else data.weights
        return cls(data.frame, numbers, texts, data.y, weights)

    def encoder(self, *steps: tuple[Any, list[str]], drop: str | None = "if_binary") -> Any:
        """Return a transformer: steps on columns of numbers, and indicators of categories and of missing numbers.

        The steps see the median of the training rows in place of a missing number.
        """
        fill = partial(SimpleImputer, strategy="median", keep_empty_features=True)
        one_hot = OneHotEncoder(handle_unknown="ignore", drop=drop, sparse_output=False)
        lacking = [name for name in self.numbers if self.frame[name].isna().any()]
        return make_column_transformer(
            *((make_pipeline(fill(), step), names) for step, names in steps),
            (MissingIndicator(features="all"), lacking),
            (one_hot, self.texts),
        )
