"""Finding and loading the source of a table: a file, a name, a data frame or arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import milpbn.instances as instances  # type: ignore[import-not-found,unused-ignore]
from milpbn.data.catalog import DATA_DIR_VARIABLE, catalog_names, find_data_dir, find_entry
from milpbn.data.frames import ArrowTable, column_of, frame_of, in_numbers, unmasked, warn_of_order
from milpbn.data.options import TextFormat
from milpbn.data.raw_table import RawTable, check_frame, generated_names
from milpbn.data.reading import path_extension, read_file
from milpbn.errors import InputError

#: Prefix that selects an embedded instance even if the catalog has an entry of the same name.
INSTANCE_PREFIX = "instance:"

#: Sources of a table: a path, the name of a catalog entry or an instance, a data frame of any library, an array, or a
#: pair (X, y).
Source = str | os.PathLike[str] | pd.DataFrame | ArrowTable | NDArray[Any] | tuple[Any, Any]


def load_source(
    source: Source | RawTable,
    data_dir: str | os.PathLike[str] | None = None,
    names: Sequence[str] | None = None,
    form: TextFormat | None = None,
) -> RawTable:
    """Load a table from any source.

    A string is first tried as the name of a file, then as a catalog name, then as an embedded instance;
    ``instance:NAME`` is always an embedded instance. What is loaded already is returned. `names` are those of the
    columns of arrays, the class last; by default ``x1``, ``x2``, ... and ``class``. With names, there may be no
    rows, an array may lack the class, and a line of a text file that has most of them is no row. Raises `InputError` if
    the source has an unknown type, cannot be found or read, or has unusable column names; or if an option is not for
    its kind.
    """
    if isinstance(source, RawTable):
        return source
    form = form or TextFormat()
    if isinstance(source, str | os.PathLike):
        raw = _load_path_or_name(source, data_dir, names, form)
    else:
        form.require_only(("na_values",), "data frames and arrays")
        raw = _load_object(source, names)
    return replace(raw, form=form)


def _load_object(source: Any, names: Sequence[str] | None) -> RawTable:
    """Load a table in memory."""
    if isinstance(source, np.ndarray):
        frame, where = _frame_of_array(source, names), "the array"
    elif isinstance(source, tuple):
        frame, where = _frame_of_pair(source, names), "the pair (X, y)"
    else:
        found = frame_of(source)
        if found is None:
            kind = type(source).__name__
            raise InputError(
                f"A table is read from a path, a name, a data frame or an array, not from a {kind}."
            )
        frame, where = found, "the data frame"
    used_up = hasattr(source, "read_next_batch")  # a stream without rows was probably read before
    frame = check_frame(frame, where, may_be_empty=bool(names) and not used_up)
    return RawTable(frame, where, has_class=isinstance(source, np.ndarray | tuple))


def _load_path_or_name(
    source: str | os.PathLike[str],
    data_dir: str | os.PathLike[str] | None,
    names: Sequence[str] | None,
    form: TextFormat,
) -> RawTable:
    path = Path(source)
    # Only a bare word can be a name. A string with a known file ending or a folder can only be a path.
    is_word = isinstance(source, str) and path.name == source and path_extension(path) is None
    instance = isinstance(source, str) and source.startswith(INSTANCE_PREFIX)
    if not instance and (not is_word or os.path.isfile(path)):
        return read_file(path, form, names or ())
    name = str(source).removeprefix(INSTANCE_PREFIX)
    if not instance:
        folder = find_data_dir(data_dir)
        entry = find_entry(name, folder) if folder else None
        if entry is not None:
            return replace(read_file(entry.path, form), name=name, entry=entry, untyped=True)
        embedded = list(instances.names())
        if name not in embedded:
            catalog = (
                f"not an entry of the catalog in {str(folder)!r} ({', '.join(catalog_names(folder))})"
                if folder
                else f"not a catalog name (neither --data-dir nor {DATA_DIR_VARIABLE} names a folder)"
            )
            raise InputError(
                f"{name!r} is not a file, {catalog} and not an embedded instance ({', '.join(embedded)})."
            )
    form.require_only(("na_values",), "embedded instances")
    where = f"the instance {name!r}"
    return RawTable(check_frame(instances.load(name), where), where, name, untyped=True)


def pair_of(source: Source, y: Any) -> Source:
    """Return features and labels that were given as two arguments as one source."""
    if isinstance(y, str):
        raise InputError(
            f"The second argument holds class labels, one per row, but is the text {y!r}; name the class column with "
            f"target={y!r}."
        )
    if isinstance(source, str | os.PathLike | tuple):
        raise InputError(
            "Class labels y go with an array or a data frame of features X; in a file the class is a column (target)."
        )
    return (source, y)


def _frame_of_array(array: NDArray[Any], names: Sequence[str] | None) -> pd.DataFrame:
    """Return an array as a frame, the class last; with names, the class may be absent."""
    if array.ndim != 2:
        raise InputError(f"An array of data must have two dimensions, rows by columns; it has {array.ndim}.")
    width = array.shape[1]
    if names is None:
        names = generated_names(width)
    elif width not in {len(names) - 1, len(names)}:
        raise InputError(f"The array has {width} columns, but the classifier has {len(names) - 1} features.")
    return in_numbers(pd.DataFrame(unmasked(array), columns=list(names[:width])))


def _frame_of_pair(pair: tuple[Any, ...], names: Sequence[str] | None) -> pd.DataFrame:
    """Return features and class labels as a frame, the class last."""
    if len(pair) != 2:
        raise InputError(f"A tuple of data must be a pair (X, y); it has {len(pair)} items.")
    X, y = pair
    if hasattr(X, "tocsr"):
        raise InputError("X is a sparse matrix; give it as X.toarray().")
    features = frame_of(X)
    if features is None:
        array = np.asanyarray(X)
        width = array.shape[1] if array.ndim == 2 else 0
        features = _frame_of_array(array, names or generated_names(width + 1))
    warn_of_order(X, y)
    labels = column_of(y)
    named = "class" if labels.name is None or labels.name == "" else str(labels.name)
    labels = labels.rename(names[-1] if names else named)
    if len(features) != len(labels):
        raise InputError(f"X has {len(features)} rows, but y has {len(labels)}; both need the same number.")
    joined = pd.concat([features.reset_index(drop=True), labels], axis=1)
    joined.attrs = dict(features.attrs)  # the index that is declared there
    return joined
