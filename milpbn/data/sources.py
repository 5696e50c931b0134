"""Finding and loading the source of a table: a file, a name, a data frame or arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import milpbn.instances as instances  # type: ignore[import-not-found,unused-ignore]
from milpbn.data.catalog import DATA_DIR_VARIABLE, CatalogEntry, catalog_names, find_data_dir, find_entry
from milpbn.data.delimited import generated_names
from milpbn.data.frames import ArrowTable, column_of, frame_of, unmasked
from milpbn.data.reading import check_frame, path_extension, path_stem, read_file
from milpbn.data.row_index import DECLARED_INDEX
from milpbn.data.text_format import TextFormat
from milpbn.errors import InputError

#: Prefix that selects an embedded instance even if the catalog has an entry of the same name.
INSTANCE_PREFIX = "instance:"

#: Endings of files whose cells are text of any meaning.
UNTYPED = (".csv", ".tsv", ".arff")

#: Sources of a table: a path, the name of a catalog entry or an instance, a data frame of any library, an array, or a
#: pair (X, y).
Source = str | os.PathLike[str] | pd.DataFrame | ArrowTable | NDArray[Any] | tuple[Any, Any]


@dataclass(frozen=True)
class Loaded:
    """A loaded source.

    Attributes
    ----------
    frame : DataFrame
        Raw columns with checked names, index 0 .. M - 1.
    name : str
        Name for reports.
    where : str
        Name of the table in error messages.
    entry : CatalogEntry or None
        The table's catalog entry; None without one.
    untyped : bool
        Whether the cells are text because the file has no types: CSV, TSV, and all but nominal columns of ARFF.
    has_class : bool
        Whether the last column is the class in any case: of an array, and of a pair (X, y).
    form : TextFormat
        What the user says about the file.
    separator : str or None
        What separates the cells of the file.
    notes : tuple of str
        Sentences about how the file was read.
    """

    frame: pd.DataFrame
    name: str
    where: str
    entry: CatalogEntry | None = None
    untyped: bool = False
    has_class: bool = False
    form: TextFormat = field(default_factory=TextFormat)
    separator: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def index(self) -> tuple[str, ...]:
        """Columns that the file, or the Arrow table, declares as the index of a data frame."""
        return tuple(self.frame.attrs.get(DECLARED_INDEX, ()))


def load_source(
    source: Source | Loaded,
    data_dir: str | os.PathLike[str] | None = None,
    names: Sequence[str] | None = None,
    form: TextFormat | None = None,
) -> Loaded:
    """Load a table from any source.

    A string is first tried as the name of a file, then as a catalog name, then as an embedded instance;
    ``instance:NAME`` is always an embedded instance.

    Parameters
    ----------
    source : path, str, DataFrame, array, tuple or Loaded
        See `milpbn.data.read_table`; what is loaded already is returned.
    data_dir : path-like, optional
        The catalog's folder, by default the value of the environment variable ``MILPBN_DATA``.
    names : sequence of str, optional
        Column names for arrays, the class last; by default ``x1``, ``x2``, ... and ``class``. With names,
        an array may lack the class. A line of a text file that has most of them is no row.
    form : TextFormat, optional
        What the user says about a text file.

    Raises
    ------
    InputError
        If the source has an unknown type, cannot be found or read, or has unusable column names; or if an option is
        not for its kind.
    """
    if isinstance(source, Loaded):
        return source
    form = form or TextFormat()
    loaded = _load(source, data_dir, names, form)
    return replace(loaded, form=form)


def _load(
    source: Source,
    data_dir: str | os.PathLike[str] | None,
    names: Sequence[str] | None,
    form: TextFormat,
) -> Loaded:
    if not isinstance(source, str | os.PathLike):
        form.require_only(("na_values",), "data frames and arrays")
    if isinstance(source, np.ndarray):
        return replace(_loaded(_frame_of_array(source, names), "table", "the array"), has_class=True)
    if isinstance(source, tuple):
        return replace(_loaded(_frame_of_pair(source, names), "table", "the pair (X, y)"), has_class=True)
    if not isinstance(source, str | os.PathLike):
        frame = frame_of(source)
        if frame is not None:
            return _loaded(frame, "table", "the data frame")
        kind = type(source).__name__
        raise InputError(f"A table is read from a path, a name, a data frame or an array, not from a {kind}.")
    if isinstance(source, str) and source.startswith(INSTANCE_PREFIX):
        form.require_only(("na_values",), "embedded instances")
        return _load_instance(source.removeprefix(INSTANCE_PREFIX))
    path = Path(source)
    # Only a bare word can be a name. A string with a known file ending or a folder can only be a path.
    is_word = isinstance(source, str) and path.name == source and path_extension(path) is None
    if is_word and not os.path.isfile(path):
        return _load_name(str(source), data_dir, form)
    return _load_file(path, path_stem(path), names or (), form)


def _load_file(
    path: Path, name: str, names: Sequence[str], form: TextFormat, entry: CatalogEntry | None = None
) -> Loaded:
    raw = read_file(path, form, names)
    untyped = entry is not None or path_extension(path) in UNTYPED
    return Loaded(
        raw.frame, name, repr(str(path)), entry, untyped=untyped, separator=raw.separator, notes=raw.notes
    )


def _loaded(frame: pd.DataFrame, name: str, where: str) -> Loaded:
    return Loaded(check_frame(frame, where), name, where)


def _load_name(name: str, data_dir: str | os.PathLike[str] | None, form: TextFormat) -> Loaded:
    """Load a catalog entry or an embedded instance."""
    folder = find_data_dir(data_dir)
    entry = find_entry(name, folder) if folder else None
    if entry is not None:
        return _load_file(entry.path, name, (), form, entry)
    embedded = list(instances.names())
    if name in embedded:
        form.require_only(("na_values",), "embedded instances")
        return _load_instance(name)
    catalog = (
        f"not an entry of the catalog in {str(folder)!r} ({', '.join(catalog_names(folder))})"
        if folder
        else f"not a catalog name (neither --data-dir nor {DATA_DIR_VARIABLE} names a folder)"
    )
    raise InputError(
        f"{name!r} is not a file, {catalog} and not an embedded instance ({', '.join(embedded)})."
    )


def _load_instance(name: str) -> Loaded:
    return replace(_loaded(instances.load(name), name, f"the instance {name!r}"), untyped=True)


def _frame_of_array(array: NDArray[Any], names: Sequence[str] | None) -> pd.DataFrame:
    """Return an array as a frame, the class last; with names, the class may be absent."""
    if array.ndim != 2:
        raise InputError(f"An array of data must have two dimensions, rows by columns; it has {array.ndim}.")
    width = array.shape[1]
    if names is None:
        names = generated_names(width)
    elif width not in {len(names) - 1, len(names)}:
        raise InputError(f"The array has {width} columns, but the classifier has {len(names) - 1} features.")
    return pd.DataFrame(unmasked(array), columns=list(names[:width]))


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
    labels = column_of(y)
    named = "class" if labels.name is None or labels.name == "" else str(labels.name)
    labels = labels.rename(names[-1] if names else named)
    if len(features) != len(labels):
        raise InputError(f"X has {len(features)} rows, but y has {len(labels)}; both need the same number.")
    joined = pd.concat([features.reset_index(drop=True), labels], axis=1)
    joined.attrs = dict(features.attrs)  # the index that is declared there
    return joined
