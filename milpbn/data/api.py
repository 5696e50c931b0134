"""Read a `Table` from a path, a name, a data frame or arrays."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from typing import Any, cast, get_args

import numpy as np
import pandas as pd

from milpbn.data.catalog import CatalogEntry
from milpbn.data.cells import cells_of
from milpbn.data.column import Column, take_column
from milpbn.data.dataset import OWN_STATE
from milpbn.data.discretisation import Discretisation
from milpbn.data.kept import ColumnOptions, choose_columns, rows_to_keep
from milpbn.data.kinds import Kind, decide_kinds, describe_kinds, doubts_on_kinds
from milpbn.data.remarks import remark_on_index, remark_on_missing_codes
from milpbn.data.request import DataRequest
from milpbn.data.sources import Source, load_source
from milpbn.data.table import MISSING_POLICIES, Missing, Table, count_gaps, factorise
from milpbn.data.text_format import TextFormat
from milpbn.data.variables import States
from milpbn.data.weights import doubt_on_total, row_weights
from milpbn.errors import DataWarning, InputError, warn
from milpbn.util import stages


def read_table(
    source: Source,
    y: Any = None,
    *,
    target: str | None = None,
    drop: Collection[str] = (),
    features: Collection[str] = (),
    continuous: Collection[str] = (),
    nominal: Collection[str] = (),
    missing: Missing | None = None,
    weights: str | None = None,
    class_weights: Mapping[Any, float] | str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    name: str | None = None,
    states: States = "seen",
    discretise: str | Discretisation = "mdl",
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    na_values: Collection[Any] | Mapping[str, Collection[Any]] | None = None,
    header: bool | None = None,
) -> Table:
    """Read a table and decide on its target, types, missing values and weights.

    Parameters
    ----------
    source : path, str, DataFrame, array or tuple
        A file (see `milpbn.data.reading.read_frame`), a name of the catalog or of an embedded instance,
        a data frame (of pandas, polars, pyarrow or another library with Arrow data; an index is no column), a
        two-dimensional array with the class as its last column, or a pair (X, y). A
        string is first tried as the name of a file, then as a catalog name, then as an instance. Columns
        of arrays are called ``x1``, ``x2``, ... and ``class``.
    y : array-like, optional
        Class labels, one per row, if `source` is an array or data frame of features; the same as the pair (X, y).
    target : str, optional
        The class column; by default the last column that does not number the rows
        (`milpbn.data.left_out.default_target`), or y of a pair.
    drop : collection of str
        Columns that are not features.
    features : collection of str
        The features; all other columns are left out. By default all columns are features, except those that look like
        identifiers, dates or free text (`milpbn.data.left_out.looks_like`) and are neither declared continuous or
        nominal nor in a table of the catalog.
    continuous, nominal : collections of str
        Columns declared as continuous and as nominal. The kinds of the others come from the catalog or
        are detected (see `milpbn.data.kinds.detect_kind`).
    missing : {'drop', 'state', 'error'}, optional
        Drop rows with missing values, give the missing values of a feature a state of their own, or
        raise an error. The default is the catalog's choice, or 'drop' without one. Nulls and the words in
        `milpbn.data.labels.MISSING_MARKERS` are missing. 'state', too, drops rows without a class.
    weights : str, optional
        A column of sample weights; it is not a feature then. Rows of weight zero are dropped.
    class_weights : mapping from label to weight, or 'balanced', optional
        Factors on the weights; see `milpbn.data.weights.class_factors`.
    data_dir : path-like, optional
        The catalog's folder; by default the value of the environment variable ``MILPBN_DATA``.
    name : str, optional
        Name for reports; by default the file's stem or the source's name.
    states : {'seen', 'declared'}
        Take the states of nominal variables from the training rows, or from the declarations of an ARFF
        file or a pandas categorical.
    discretise : str or Discretisation
        How continuous features are cut into intervals: ``mdl``, or ``quantile:K``, ``uniform:K`` or ``kmeans:K`` with K
        intervals; see `milpbn.data.discretisation.Discretisation`. Cuts come from training rows only.
    separator, decimal, thousands, encoding : str, optional
        How a text file is written: the characters between cells, before decimal places and between thousands, and the
        name of its encoding. By default the file is looked at (`milpbn.data.separators`, `milpbn.data.numerals`).
    na_values : collection, or mapping from column name to collection, optional
        More values that mean a missing one, in every column or in those that are named.
    header : bool, optional
        Whether the first line of a text file holds the names of the columns. By default it does unless it looks like a
        row (`milpbn.data.delimited`); columns without names are called ``x1``, ``x2``, ... and ``class``.

    Raises
    ------
    InputError
        If the source cannot be read, or an option does not fit it.

    Warns
    -----
    DataWarning
        If columns were left out because of what they look like; they are named. If the kind of a column may be wrong,
        such as of integers that may be codes. If values may stand for missing ones, or a column that is kept may number
        the rows. If something was found in a text file that may be meant in another way, such as decimal commas. If
        weights sum to less than half the number of rows. And if rows with missing values were dropped, with their
        number. The table's notes say so, too.
    """
    stages.enter("reading")
    if y is not None:
        source = _pair(source, y)
    if missing is not None and missing not in MISSING_POLICIES:
        raise InputError(
            f"The missing value policy must be one of {', '.join(MISSING_POLICIES)}; got {missing!r}."
        )
    if states not in get_args(States):
        raise InputError(f"The states must be one of {', '.join(get_args(States))}; got {states!r}.")
    discretisation = Discretisation.parse(discretise)
    form = TextFormat.of(
        {
            **{"separator": separator, "decimal": decimal, "thousands": thousands},
            **{"encoding": encoding, "na_values": na_values, "header": header},
        }
    )
    loaded = load_source(source, data_dir, form=form)
    where, entry = loaded.where, loaded.entry
    options = ColumnOptions(
        target=None if target is None else str(target),
        drop=_names(drop),
        features=_names(features),
        continuous=_names(continuous),
        nominal=_names(nominal),
    )
    # A class is no number, unless the user says how numbers are written.
    texts = set(options.nominal)
    if decimal is None and thousands is None:
        texts.add(str(loaded.frame.columns[-1] if target is None else target))
    numbers = {*options.continuous, *(entry.continuous if entry else ()), str(weights)}
    cells = cells_of(loaded, numbers, entry is not None, texts)
    frame = cells.frame
    policy = missing or cast(Missing, entry.missing if entry else "drop")
    row_weight = np.ones(len(frame))
    if weights is not None:
        weight_column = take_column(frame, weights, "weights", where)
        weights = str(weight_column.name)
        row_weight = row_weights(Column.of(weight_column, where), where)
        frame = frame.drop(columns=weights)
    if frame.shape[1] < 2:
        raise InputError(
            f"The only column of {where} is {str(frame.columns[0])!r}; a table needs features and a class, separated "
            "by commas, semicolons or tabs."
        )
    columns = factorise(frame, where, untyped=loaded.untyped)
    if target is not None:
        take_column(frame, target, "target", where)
    chosen = choose_columns(columns, loaded, options)
    columns = chosen.columns
    *names, class_name = columns
    known = _catalog_kinds(entry, loaded.frame) if entry else None
    kinds = decide_kinds(
        columns, class_name, where, continuous=options.continuous, nominal=options.nominal, known=known
    )
    keep, dropped = rows_to_keep(columns, class_name, row_weight, policy, where)
    doubts = doubts_on_kinds(columns, names, kinds, options.declared if entry is None else names)
    if entry is None:
        doubts += remark_on_index(columns, chosen.undeclared)
        doubts += remark_on_missing_codes(chosen.candidates, names)
    doubts += doubt_on_total(row_weight[keep])
    for doubt in doubts:
        warn(doubt, DataWarning)
    own_state = [name for name in names if policy == "state" and columns[name].missing[keep].any()]
    notes = [
        *loaded.notes,
        *cells.notes,
        *chosen.notes,
        *describe_kinds(columns, names, kinds),
        *doubts,
        *dropped,
    ]
    notes += [f"{OWN_STATE}: {', '.join(own_state)}."] * bool(own_state)
    table = Table(
        name=name or loaded.name,
        frame=frame.loc[keep, list(columns)],
        kinds=kinds,
        weights=row_weight[keep],
        missing=policy,
        train_rows=entry.train_rows if entry else None,
        states=states,
        discretisation=discretisation,
        notes=tuple(notes),
        left_out=chosen.left_out,
        label_type=columns[class_name].label_type,
        untyped=loaded.untyped,
        gaps=count_gaps(columns, class_name) if policy == "drop" else {},
        form=form.lasting(cells.decimal),
    )
    if class_weights is not None:
        table = table.weigh_classes(class_weights)
    if not isinstance(source, str | os.PathLike):
        return table
    asked = {
        **asdict(options),
        "missing": policy if missing is not None or policy != "drop" else None,
        "weights": weights,
        "class_weights": class_weights,
        "data_dir": data_dir,
        "name": name,
        "states": None if states == "seen" else states,
        **form.options(),
    }
    return replace(table, request=DataRequest.of(source, asked))


def _pair(source: Source, y: Any) -> Source:
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


def _catalog_kinds(entry: CatalogEntry, frame: pd.DataFrame) -> dict[str, Kind]:
    unknown = [c for c in entry.continuous if c not in frame.columns]
    if unknown:
        raise InputError(
            f"The catalog calls {unknown[0]!r} of {entry.name!r} continuous, but there is no such column."
        )
    return {str(c): "continuous" if c in entry.continuous else "nominal" for c in frame.columns}


def _names(option: Collection[str]) -> tuple[str, ...]:
    return (option,) if isinstance(option, str) else tuple(str(name) for name in option)
