"""Read a table for prediction, and encode its rows with the variables of classifiers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from milpbn.data.cells import read_cells
from milpbn.data.dataset import Dataset, Variable
from milpbn.data.encodings import Encodings, check_seen, describe_absent, encode_columns
from milpbn.data.options import TextFormat
from milpbn.data.raw_table import RawTable
from milpbn.data.sources import Source, load_source
from milpbn.data.table import Table, factorise
from milpbn.data.weights import weights_in
from milpbn.errors import DataWarning, warn


def read_samples(source: Source, variables: tuple[Variable, ...], **options: Any) -> Dataset:
    """Do the same as `read_encodings` for one set of variables."""
    return read_encodings(source, (variables,), **options)


def read_encodings(
    source: Source | RawTable | Table,
    sets: Sequence[tuple[Variable, ...]],
    *,
    weights: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    name: str | None = None,
    form: TextFormat | Mapping[str, Any] | None = None,
    ignore_unseen: bool = False,
) -> Dataset:
    """Read a table for prediction, and encode every row, in the table's order, with variables of classifiers.

    Columns are matched by name; other columns are ignored, and the class column may be absent. A value without a state
    becomes `UNKNOWN`, a missing one or one of an absent column `MISSING`; the notes count them (see
    `milpbn.data.encodings.encode_columns`). The table is read once. The result has the type `Encodings` if there are
    several sets. With `ignore_unseen`, there is a warning where `milpbn.data.encodings.check_seen` would refuse a
    column none of whose values has a state.

    Parameters
    ----------
    source, weights, data_dir, name
        As for `milpbn.data.read_table`, but rows of weight zero are kept. A `Table` has weights of its own; all its
        rows are encoded.
    sets : sequence of tuples of Variable
        Sets of variables with the same names: features first, the class variable last.
    form : TextFormat or mapping, optional
        The arguments of `milpbn.data.read_table` about text files and missing values, from ``separator`` on. Columns
        that the variables know as numbers are read as such.

    Raises
    ------
    InputError
        For an unreadable source, a table with no feature's column, or a value or column that cannot be encoded.

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
    form = form if isinstance(form, TextFormat) else TextFormat.of(form or {})
    everything = [v for variables in sets for v in variables]
    raw = load_source(source, data_dir, [v.name for v in sets[0]], form)
    numbers = {v.name for v in everything if v.numeric or v.cuts is not None}
    raw = read_cells(raw, {*numbers, str(weights)}, only_numbers=True)
    row_weight = weights_in(raw.frame, weights, raw.where)
    absent = [v.name for v in sets[0][:-1] if v.name not in raw.frame.columns]
    if absent:
        warn(f"{describe_absent(absent, len(sets[0]) - 1)}: marginalised.", DataWarning)
    needed = {v.name for v in everything}
    used = raw.frame[[c for c in raw.frame.columns if c in needed]]
    columns = factorise(used, raw.where, untyped=raw.untyped)
    coded = [encode_columns(columns, variables, row_weight, name or raw.name) for variables in sets]
    data = Encodings.of([replace(d, notes=(*raw.notes, *d.notes)) for d in coded])
    check_seen(data, columns, ignore=ignore_unseen)
    return data
