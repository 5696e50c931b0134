"""Read a table for prediction, and encode its rows with the variables of classifiers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from milpbn.data.cells import cells_of
from milpbn.data.coding import describe_absent, encode_columns
from milpbn.data.column import Column, take_column
from milpbn.data.dataset import Dataset, Variable
from milpbn.data.encodings import Encodings, check_seen
from milpbn.data.sources import Loaded, Source, load_source
from milpbn.data.table import Table, factorise
from milpbn.data.text_format import TextFormat
from milpbn.data.weights import row_weights
from milpbn.errors import DataWarning, warn


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
    `milpbn.data.coding.encode_columns`).

    Parameters
    ----------
    source, weights, data_dir, name
        As for `milpbn.data.read_table`, but rows of weight zero are kept.
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
        The arguments of `milpbn.data.read_table` about text files and missing values, from ``separator`` on. Columns
        that the variables know as numbers are read as such.

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
    cells = cells_of(loaded, {*numbers, str(weights)}, True)
    frame = cells.frame
    row_weight = np.ones(len(frame))
    if weights is not None:
        column = take_column(frame, weights, "weights", loaded.where)
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
