"""A table before any decision about it: raw cells, and where they come from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from milpbn.data.catalog import CatalogEntry
from milpbn.data.column import Column
from milpbn.data.options import TextFormat
from milpbn.data.row_index import DECLARED_INDEX, name_unnamed
from milpbn.errors import InputError


@dataclass(frozen=True, eq=False)
class RawTable:
    """The cells of a source.

    The frame has raw columns; once `milpbn.data.sources.load_source` has read it, with checked names and the index 0 ..
    M - 1. `where` names the table in error messages, and `name` in reports. The cells are text because the file has no
    types if the table is `untyped`: CSV, TSV, and all but nominal columns of ARFF. The last column is the class in any
    case if it `has_class`: of an array, and of a pair (X, y). `decimal` is the decimal mark of the columns whose
    numbers were not plain; None if there are none, or if they differ in it.
    """

    frame: pd.DataFrame
    where: str
    name: str = "table"
    entry: CatalogEntry | None = None
    untyped: bool = False
    has_class: bool = False
    form: TextFormat = field(default_factory=TextFormat)
    separator: str | None = None
    decimal: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def index(self) -> tuple[str, ...]:
        """Columns that the file, or the Arrow table, declares as the index of a data frame."""
        return tuple(self.frame.attrs.get(DECLARED_INDEX, ()))


def text_frame(names: Sequence[str], columns: Sequence[np.ndarray | pd.Categorical]) -> pd.DataFrame:
    """Return a frame of the given columns without inferring types; names need not be unique yet."""
    series = [
        pd.Series(column, dtype=None if isinstance(column, pd.Categorical) else object) for column in columns
    ]
    return pd.concat(series, axis=1).set_axis(list(names), axis=1) if series else pd.DataFrame()


def generated_names(n: int, known: Collection[str] = ()) -> list[str]:
    """Return the names of columns that have none: ``x1``, ``x2``, ..., and ``class`` for the last.

    The last one is no class if a classifier knows it under the name of a feature.
    """
    names = [f"x{k + 1}" for k in range(n)]
    return names if not names or names[-1] in known else [*names[:-1], "class"]


def check_frame(frame: pd.DataFrame, where: str, *, may_be_empty: bool = False) -> pd.DataFrame:
    """Return the frame with column names as text and the index 0 .. M - 1.

    First columns without a name, and empty ones, are called ``Unnamed: 0`` and so on (`name_unnamed`). Raises
    `InputError` if the name of another column is empty, a name occurs twice, or there are no rows and there must be.
    """
    frame = frame.reset_index(drop=True)
    names = ["" if c is None or c is pd.NA or c != c else str(c).strip() for c in frame.columns]
    empty = [not name and bool(Column.of(frame.iloc[:, k]).missing.all()) for k, name in enumerate(names)]
    names = name_unnamed(names, empty, where)
    repeated = pd.Index(names).duplicated()
    if repeated.any():
        raise InputError(
            f"The column name {names[repeated.argmax()]!r} occurs more than once in {where}; names must differ, and "
            "the first line of a text file must hold them (if it is a row, give --no-header)."
        )
    if frame.empty and not (may_be_empty and names):
        raise InputError(f"There are no rows in {where}; a table needs column names and at least one row.")
    return frame.set_axis(names, axis=1)
