"""Read a `Table` from a path, a name, a data frame or arrays, and encode the rows of a prediction."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milpbn.data.catalog import CatalogEntry
from milpbn.data.cells import Cells, read_cells
from milpbn.data.column import Column
from milpbn.data.dataset import DROPPED, OWN_STATE, Dataset, Variable
from milpbn.data.discretisation import Discretisation
from milpbn.data.encodings import Encodings, check_seen
from milpbn.data.kinds import Kind, decide_kinds, describe_kinds, doubts_on_kinds
from milpbn.data.left_out import chosen_features, default_target, describe_left_out, look_alikes
from milpbn.data.remarks import remark_on_index, remark_on_missing_codes
from milpbn.data.request import DataRequest
from milpbn.data.row_index import is_unnamed
from milpbn.data.sources import Loaded, Source, load_source
from milpbn.data.table import (
    MISSING_POLICIES,
    OWN_STATES,
    Missing,
    Table,
    count_gaps,
    describe_absent,
    encode_columns,
    factorise,
)
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
    # A class is no number, unless the user says how numbers are written.
    texts = set(_names(nominal))
    if decimal is None and thousands is None:
        texts.add(str(loaded.frame.columns[-1] if target is None else target))
    numbers = {*_names(continuous), *(entry.continuous if entry else ()), str(weights)}
    cells = _read_cells(loaded, numbers, entry is not None, texts)
    frame = cells.frame
    policy = missing or cast(Missing, entry.missing if entry else "drop")

    row_weight = np.ones(len(frame))
    if weights is not None:
        weights = _column_name(weights, "weights")
        row_weight = row_weights(Column.of(_take_column(frame, weights, "weights", where), where), where)
        frame = frame.drop(columns=weights)
    if frame.shape[1] < 2:
        raise InputError(
            f"The only column of {where} is {str(frame.columns[0])!r}; a table needs features and a class, separated "
            "by commas, semicolons or tabs."
        )
    columns = factorise(frame, where, untyped=loaded.untyped)
    class_name = last = str(frame.columns[-1])
    if target is not None:
        class_name = str(_take_column(frame, _column_name(target, "target"), "target", where).name)
    elif not loaded.has_class and (entry is None or is_unnamed(last)):
        class_name = default_target(columns, _names(nominal), loaded.index) or last
    frame = frame[[*(c for c in frame.columns if c != class_name), class_name]]
    columns = {name: columns[name] for name in frame.columns}
    asked = chosen_features(list(columns), class_name, where, drop=_names(drop), features=_names(features))
    declared = (*_names(continuous), *_names(nominal))
    _require_kept(asked, declared)
    kept = [name for name in columns if name not in asked]
    by_itself = [] if features else [name for name in kept if name not in (*declared, class_name)]
    if entry is not None:  # it says what the columns are, if they have names
        by_itself = [name for name in by_itself if is_unnamed(name)]
    left_out = {**asked, **look_alikes(columns, by_itself, loaded.index)}
    about = describe_left_out(columns, left_out)
    if target is None and class_name != last:
        about.append(f"The class is the last of the other columns, {class_name!r}.")
    if len(left_out) == len(columns) - 1:
        raise InputError(f"No column of {where} is left as a feature. {' '.join(about)}")
    if by_themselves := about[bool(asked) :]:
        warn(" ".join(by_themselves), DataWarning)
    frame = frame.drop(columns=list(left_out))
    judged = {name: column for name, column in columns.items() if name not in asked}
    columns = {name: column for name, column in columns.items() if name not in left_out}
    names = [str(c) for c in frame.columns[:-1]]
    known = _catalog_kinds(entry, loaded.frame) if entry else None
    kinds = decide_kinds(
        columns, class_name, where, continuous=_names(continuous), nominal=_names(nominal), known=known
    )
    keep, dropped = _rows_to_keep(columns, class_name, row_weight, policy, where)
    doubts = doubts_on_kinds(columns, names, kinds, declared if entry is None else names)
    if entry is None:
        doubts += remark_on_index(columns, [name for name in by_itself if name in names])
        doubts += remark_on_missing_codes(judged, names)
    doubts += doubt_on_total(row_weight[keep])
    for doubt in doubts:
        warn(doubt, DataWarning)
    notes = [*loaded.notes, *cells.notes, *about, *describe_kinds(columns, names, kinds), *doubts, *dropped]
    own_state = [name for name in names if policy == "state" and columns[name].missing[keep].any()]
    if own_state:
        notes.append(f"{OWN_STATE}: {', '.join(own_state)}.")
    table = Table(
        name=name or loaded.name,
        frame=frame[keep],
        kinds=kinds,
        weights=row_weight[keep],
        missing=policy,
        train_rows=entry.train_rows if entry else None,
        states=states,
        discretisation=discretisation,
        notes=tuple(notes),
        left_out=left_out,
        label_type=columns[class_name].label_type,
        untyped=loaded.untyped,
        gaps=count_gaps(columns, class_name) if policy == "drop" else {},
        form=form.lasting(cells.decimal),
    )
    if class_weights is not None:
        table = table.weigh_classes(class_weights)
    if not isinstance(source, str | os.PathLike):
        return table
    options = {
        "target": None if target is None else str(target),
        "drop": _names(drop),
        "features": _names(features),
        "continuous": _names(continuous),
        "nominal": _names(nominal),
        "missing": policy if missing is not None or policy != "drop" else None,
        "weights": weights,
        "class_weights": class_weights,
        "data_dir": data_dir,
        "name": name,
        "states": None if states == "seen" else states,
        **form.options(),
    }
    return replace(table, request=DataRequest.of(source, options))


def read_samples(
    source: Source,
    variables: tuple[Variable, ...],
    *,
    weights: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    name: str | None = None,
    form: TextFormat | Mapping[str, Any] | None = None,
    ignore_unseen: bool = False,
) -> Dataset:
    """Read a table for prediction, and encode every row, in the table's order, with a classifier's variables.

    Columns are matched by name; other columns are ignored, and the class column may be absent. A value
    without a state becomes `UNKNOWN`, a missing one or one of an absent column `MISSING`; the notes count them (see
    `milpbn.data.table.encode_columns`).

    Parameters
    ----------
    source, weights, data_dir, name
        As for `read_table`, but rows of weight zero are kept.
    variables : tuple of Variable
        Features first, the class variable last.
    form : TextFormat or mapping, optional
        See `read_encodings`.
    ignore_unseen : bool
        Warn where `milpbn.data.encodings.check_seen` would refuse a column none of whose values has a state.

    Raises
    ------
    InputError
        For an unreadable source, a table with no feature's column, or a value or column that cannot be encoded.
    """
    return read_encodings(
        source,
        (variables,),
        weights=weights,
        data_dir=data_dir,
        name=name,
        form=form,
        ignore_unseen=ignore_unseen,
    )


def read_encodings(
    source: Source | Loaded | Table,
    sets: Sequence[tuple[Variable, ...]],
    *,
    weights: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    name: str | None = None,
    form: TextFormat | Mapping[str, Any] | None = None,
    ignore_unseen: bool = False,
) -> Dataset:
    """Do the same as `read_samples` for several sets of variables; the table is read once.

    Parameters
    ----------
    source, weights, data_dir, name, ignore_unseen
        As for `read_samples`. A `Table` has weights of its own; all its rows are encoded.
    sets : sequence of tuples of Variable
        Sets of variables with the same names.
    form : TextFormat or mapping, optional
        The arguments of `read_table` about text files and missing values, from ``separator`` on. Columns that the
        variables know as numbers are read as such.

    Returns
    -------
    Dataset
        Of one set a `Dataset`, of several an `Encodings`.

    Warns
    -----
    DataWarning
        If features have no column; they are named. (Missing values in a column that is there are only counted in the
        notes.)
    MilpbnWarning
        See `milpbn.data.encodings.check_seen`.
    """
    if isinstance(source, Table):
        data = Encodings.of([source.encode(variables) for variables in sets])
        check_seen(data, source.columns, ignore=ignore_unseen)
        return data
    names = [v.name for v in sets[0]]
    loaded = load_source(
        source, data_dir, names, form if isinstance(form, TextFormat) else TextFormat.of(form or {})
    )
    numbers = {v.name for variables in sets for v in variables if v.numeric or v.cuts is not None}
    cells = _read_cells(loaded, {*numbers, str(weights)}, True)
    frame = cells.frame
    row_weight = np.ones(len(frame))
    if weights is not None:
        column = _take_column(frame, _column_name(weights, "weights"), "weights", loaded.where)
        row_weight = row_weights(Column.of(column, loaded.where), loaded.where)
    needed = {v.name for variables in sets for v in variables}
    absent = [v.name for v in sets[0][:-1] if v.name not in frame.columns]
    if absent:
        warn(f"{describe_absent(absent, len(sets[0]) - 1)}: marginalised.", DataWarning)
    used = frame[[c for c in frame.columns if c in needed]]
    columns = factorise(used, loaded.where, untyped=loaded.untyped)
    coded = [encode_columns(columns, variables, row_weight, name or loaded.name) for variables in sets]
    data = Encodings.of([replace(d, notes=(*loaded.notes, *cells.notes, *d.notes)) for d in coded])
    check_seen(data, columns, ignore=ignore_unseen)
    return data


def _read_cells(
    loaded: Loaded, numbers: Collection[str], only_numbers: bool, texts: Collection[str] = ()
) -> Cells:
    """Return the cells of a source (`read_cells`), and issue the sentences about its form as warnings."""
    cells = read_cells(
        loaded.frame,
        loaded.form,
        loaded.where,
        untyped=loaded.untyped,
        separator=loaded.separator,
        numbers=numbers,
        only_numbers=only_numbers,
        texts=texts,
    )
    for note in (*loaded.notes, *cells.notes):
        warn(note, DataWarning)
    return cells


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


def _require_kept(asked: Mapping[str, str], declared: Collection[str]) -> None:
    """Refuse a declared kind of a column that the options leave out."""
    for name in declared:
        if name in asked:
            raise InputError(
                f"Column {name!r} is declared nominal or continuous, but 'drop' or 'features' leaves it out; keep one."
            )


def _column_name(name: object, option: str) -> str:
    """Return the name of a column as text; a number stands for itself."""
    if not isinstance(name, str | int | float | np.integer):
        raise InputError(f"The option {option!r} must be the name of a column, got a {type(name).__name__}.")
    return str(name)


def _take_column(frame: pd.DataFrame, name: str, option: str, where: str) -> pd.Series:
    if name not in frame.columns:
        columns = ", ".join(str(c) for c in frame.columns)
        raise InputError(
            f"The option {option!r} names {name!r}, which is not a column of {where} ({columns})."
        )
    return frame[name]


def _catalog_kinds(entry: CatalogEntry, frame: pd.DataFrame) -> dict[str, Kind]:
    unknown = [c for c in entry.continuous if c not in frame.columns]
    if unknown:
        raise InputError(
            f"The catalog calls {unknown[0]!r} of {entry.name!r} continuous, but there is no such column."
        )
    return {str(c): "continuous" if c in entry.continuous else "nominal" for c in frame.columns}


def _names(option: Collection[str]) -> tuple[str, ...]:
    return (option,) if isinstance(option, str) else tuple(str(name) for name in option)


def _nothing_left(columns: Mapping[str, Column], target: str, where: str) -> str:
    """Return what is missing in a table of which no row can be kept, and what to do."""
    if columns[target].missing.all():
        return f"No row of {where} has a class in column {target!r}; name another target."
    empty = [name for name, column in columns.items() if column.missing.all()]
    if not empty:
        return f"Every row of {where} has missing values and was dropped; {OWN_STATES}."
    return (
        f"Every row of {where} was dropped, as there are no values in {', '.join(map(repr, empty))}; leave "
        f"{'it' if len(empty) == 1 else 'them'} out (--drop {','.join(empty)}), or {OWN_STATES}."
    )


def _rows_to_keep(
    columns: Mapping[str, Column], target: str, weights: NDArray[np.float64], policy: Missing, where: str
) -> tuple[NDArray[np.bool_], list[str]]:
    """Return which rows are kept, shape (M,), and a sentence on every reason why rows are dropped."""
    missing = columns[target].missing
    if policy != "state":
        missing = np.logical_or.reduce([c.missing for c in columns.values()])
    if policy == "error" and missing.any():
        row = np.flatnonzero(missing)[0]
        name = next(name for name, c in columns.items() if c.missing[row])
        raise InputError(
            f"The value in row {row + 1} of {where}, column {name!r}, is missing; fill it in, or choose the "
            "missing value policy 'drop' or 'state'."
        )
    if missing.all():
        raise InputError(_nothing_left(columns, target, where))
    weightless = weights == 0
    keep = ~missing & ~weightless
    if not keep.any():
        raise InputError(f"All rows of {where} without missing values have the weight zero.")
    absent = "a missing class" if policy == "state" else "missing values"
    if missing.any():
        remedy = (
            "" if policy == "state" else "; missing='state' gives missing values a state of their own instead"
        )
        warn(
            f"{DROPPED} {absent}: {np.count_nonzero(missing)} of {len(missing)} of {where}{remedy}.",
            DataWarning,
        )
    reasons = {absent: missing, "a weight of zero": weightless & ~missing}
    notes = [
        f"{DROPPED} {reason}: {np.count_nonzero(rows)} of {len(rows)}."
        for reason, rows in reasons.items()
        if rows.any()
    ]
    return keep, notes
