"""Tables of other libraries as data frames of pandas: polars, pyarrow, and all that exchange Arrow data."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any, Protocol

import numpy as np
import pandas as pd

from milpbn.data.labels import BOOLEAN, MAX_EXACT
from milpbn.data.row_index import DECLARED_INDEX
from milpbn.errors import DataWarning, InputError, warn
from milpbn.util.extras import import_extra

#: Arrow's integers, and what pandas keeps them in beside nulls.
_INTEGERS = {
    f"{sign}int{bits}": pd.api.types.pandas_dtype(f"{sign.upper()}Int{bits}")
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}


class ArrowTable(Protocol):
    """A table that exchanges Arrow data: of polars, pyarrow, DuckDB, narwhals and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as a capsule of the Arrow C stream interface."""
        ...


def is_arrow(values: Any) -> bool:
    """Return whether a table or a column of another library than pandas exchanges Arrow data."""
    kind = type(values)
    arrow = hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "__arrow_c_array__")
    return arrow and not isinstance(values, pd.DataFrame | pd.Series)


def frame_of(table: Any) -> pd.DataFrame | None:
    """Return a table of any library as a data frame of pandas, and None for anything that is no table.

    Types become those that pandas reads from Parquet: categoricals stay categoricals, dates stay dates, durations
    become seconds, decimals floats, and nulls are missing values, beside which integers stay integers. Raises
    `InputError` if the table is not computed yet, or Arrow data cannot be converted.
    """
    if isinstance(table, pd.DataFrame):
        return in_numbers(table)
    kind = type(table)
    if not any(hasattr(kind, name) for name in ("columns", "schema")):  # an array, or one column
        return None
    what = f"{kind.__name__} of {kind.__module__.partition('.')[0]}"
    for method in ("toPandas", "collect", "compute"):
        if hasattr(kind, method):
            raise InputError(f"A {what} is not computed yet; give its rows, such as table.{method}().")
    if is_arrow(table):
        pyarrow = import_extra("pyarrow", "parquet", f"Reading a {what}")
        try:
            return frame_of_arrow(pyarrow.table(table), f"the {kind.__name__}")
        except pyarrow.ArrowException as error:
            raise InputError(f"A {what} cannot be read: {str(error).rstrip('.')}.") from None
    frame = table.to_pandas() if hasattr(kind, "to_pandas") else None
    return in_numbers(frame) if isinstance(frame, pd.DataFrame) else None


def in_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a data frame with its durations as seconds and its decimals and fractions as floats, also among objects.

    Columns whose numbers float64 may round, and those without durations and such numbers, stay as they are.
    """
    found = {k: _numbers(column) for k, (_, column) in enumerate(frame.items()) if column.dtype.kind in "mO"}
    frame = frame.copy(deep=False) if any(column is not None for column in found.values()) else frame
    for k, column in found.items():
        if column is not None:
            frame.isetitem(k, column.array)
    return frame


def _numbers(column: pd.Series) -> pd.Series | None:
    """Return the floats that a column's durations, decimals or fractions stand for; None if it has other values."""
    kind = "timedelta" if column.dtype.kind == "m" else pd.api.types.infer_dtype(column, skipna=True)
    if kind.startswith("timedelta"):
        return pd.to_timedelta(column).dt.total_seconds().astype(float)
    present = column[column.notna()] if kind in ("decimal", "mixed") else ()
    if not len(present) or not all(isinstance(v, Fraction | Decimal | float | Integral) for v in present):
        return None
    if any(isinstance(value, BOOLEAN) or abs(value) > MAX_EXACT for value in present):
        return None
    floats = column.map(float, na_action="ignore").astype(float)
    return floats if floats.nunique() == column.nunique() else None


def frame_of_arrow(table: Any, where: str) -> pd.DataFrame:
    """Return a table of pyarrow as a data frame.

    The columns that the table's pandas metadata name as the index are columns of the data frame, and its ``attrs`` has
    their names (`milpbn.data.row_index.DECLARED_INDEX`). Raises `InputError` if pyarrow cannot convert the table;
    `where` names it.
    """
    try:
        frame: pd.DataFrame = table.replace_schema_metadata(None).to_pandas()
        for k, column in enumerate(table.columns):
            if column.null_count and str(column.type) in _INTEGERS:
                frame.isetitem(k, _series(column).array)
    except (ValueError, NotImplementedError) as error:  # pyarrow's errors are among them
        raise InputError(f"The columns of {where} cannot be read: {str(error).rstrip('.')}.") from None
    try:
        described = table.schema.pandas_metadata or {}
    except (ValueError, TypeError):  # the metadata are not what pandas writes
        described = {}
    index = described.get("index_columns") if isinstance(described, dict) else None
    declared = index if isinstance(index, list) else []  # an index of the numbers 0 to M - 1 is no column
    frame = in_numbers(frame)
    frame.attrs = {DECLARED_INDEX: [str(name).strip() for name in declared if name in table.column_names]}
    return frame


def warn_of_order(X: Any, y: Any, name: str = "y") -> None:
    """Warn if X and y of pandas have the same row labels in another order, since rows go together by position."""
    if not (isinstance(X, pd.DataFrame) and isinstance(y, pd.Series | pd.DataFrame)):
        return
    if len(X) == len(y) and not X.index.equals(y.index) and {*X.index} == {*y.index}:
        text = f"The row labels (index) of {name} are those of X in another order, but rows go together by position"
        warn(f"{text}; if the labels tell which belong together, give {name}.loc[X.index].", DataWarning)


def _series(column: Any) -> pd.Series:
    """Return a column of pyarrow as a series; integers beside nulls stay integers, and are not rounded."""
    mapper = (lambda kind: _INTEGERS.get(str(kind))) if column.null_count else None
    series: pd.Series = column.to_pandas(types_mapper=mapper)
    return series


def unmasked(array: Any) -> Any:
    """Return a masked array with the values under the mask missing, and everything else unchanged."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if not np.ma.is_masked(array):
        return array.data
    if array.dtype.kind == "f" or (array.dtype.kind in "iu" and abs(array).max() <= MAX_EXACT):
        return np.ma.filled(array.astype(np.result_type(array.dtype, np.float32)), np.nan)
    cells = np.array(array.data, dtype=object)
    cells[np.ma.getmaskarray(array)] = None
    return cells


def column_of(labels: Any) -> pd.Series:
    """Return the labels of rows as a series with the index 0 .. M - 1, named as they are.

    The labels, shape (M,) or (M, 1), are a series of pandas or polars, an Arrow array, a table of one column, an array
    or a list. Raises `InputError` if there is not one label per row.
    """
    frame = frame_of(labels)
    if frame is not None:
        frame = frame.drop(columns=frame.attrs.get(DECLARED_INDEX, []))
        labels = frame.iloc[:, 0] if frame.shape[1] == 1 else frame
    if isinstance(labels, pd.Series):
        return labels.reset_index(drop=True)
    if is_arrow(labels):
        pyarrow = import_extra("pyarrow", "parquet", f"Reading a {type(labels).__name__}")
        name = getattr(labels, "name", None)
        return _series(pyarrow.chunked_array(labels)).rename(name)
    shape = np.shape(labels)
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
        raise InputError(f"y must hold one label per row of X; it has the shape {shape}.")
    return pd.Series(np.ravel(unmasked(labels)), name=getattr(labels, "name", None))
