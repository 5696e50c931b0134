"""Read a `Table` from a path, a name, a data frame or arrays."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from milpbn.data.cells import read_cells
from milpbn.data.column import take_column
from milpbn.data.dataset import OWN_STATE
from milpbn.data.discretisation import Discretisation
from milpbn.data.kept import choose_columns, rows_to_keep
from milpbn.data.kinds import decide_kinds, describe_kinds, doubts_on_kinds
from milpbn.data.options import Missing, ReadingOptions, States
from milpbn.data.raw_table import RawTable
from milpbn.data.remarks import remark_on_index, remark_on_missing_codes
from milpbn.data.request import DataRequest
from milpbn.data.sources import Source, load_source, pair_of
from milpbn.data.table import Table, count_gaps, factorise
from milpbn.data.weights import doubt_on_total, weights_in
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
        A file (see `milpbn.data.reading.read_file`), a name of the catalog or of an embedded instance,
        a data frame (of pandas, polars, pyarrow or another library with Arrow data; an index is no column), a
        two-dimensional array with the class as its last column, or a pair (X, y). A
        string is first tried as the name of a file, then as a catalog name, then as an instance. Columns
        of arrays are called ``x1``, ``x2``, ... and ``class``.
    y : array-like, optional
        Class labels, one per row, if `source` is an array or data frame of features; the same as the pair (X, y).
    target, drop, features, continuous, nominal, missing, weights, class_weights, data_dir, name, states, discretise
        Which columns and rows are used, and how; see `milpbn.data.options.ReadingOptions`.
    separator, decimal, thousands, encoding, na_values, header
        How a text file is written; see `milpbn.data.options.TextFormat`.

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
    options = ReadingOptions.of(locals())
    stages.enter("reading")
    return _read(source if y is None else pair_of(source, y), options)


def _read(source: Source, options: ReadingOptions) -> Table:
    """Do the same as `read_table`, with the options in one object."""
    discretisation = Discretisation.parse(options.discretise)
    raw = _cells(load_source(source, options.data_dir, form=options), options)
    where, entry, frame = raw.where, raw.entry, raw.frame
    weights = weights_in(frame, options.weights, where)
    if options.weights is not None:
        frame = frame.drop(columns=str(options.weights))
    if frame.shape[1] < 2:
        raise InputError(
            f"The only column of {where} is {str(frame.columns[0])!r}; a table needs features and a class, separated "
            "by commas, semicolons or tabs."
        )
    everything = factorise(frame, where, untyped=raw.untyped)
    if options.target is not None:
        take_column(frame, options.target, "target", where)
    chosen = choose_columns(everything, raw, options)
    columns = chosen.columns
    *names, class_name = columns
    kinds = decide_kinds(columns, class_name, raw, options)
    policy = options.missing or (entry.missing if entry else "drop")
    keep, dropped = rows_to_keep(columns, class_name, weights, policy, where)
    doubts = doubts_on_kinds(columns, names, kinds, options.declared if entry is None else names)
    if entry is None:
        doubts += remark_on_index(columns, chosen.undeclared)
        doubts += remark_on_missing_codes(chosen.candidates, names)
    doubts += doubt_on_total(weights[keep])
    for doubt in doubts:
        warn(doubt, DataWarning)
    own_state = [name for name in names if policy == "state" and columns[name].missing[keep].any()]
    notes = [*raw.notes, *chosen.notes, *describe_kinds(columns, names, kinds), *doubts, *dropped]
    notes += [f"{OWN_STATE}: {', '.join(own_state)}."] * bool(own_state)
    table = Table(
        name=options.name or raw.name,
        frame=frame.loc[keep, list(columns)],
        kinds=kinds,
        weights=weights[keep],
        missing=policy,
        train_rows=entry.train_rows if entry else None,
        states=options.states,
        discretisation=discretisation,
        notes=tuple(notes),
        left_out=chosen.left_out,
        label_type=columns[class_name].label_type,
        untyped=raw.untyped,
        gaps=count_gaps(columns, class_name) if policy == "drop" else {},
        form=options.lasting(raw.decimal),
    )
    if options.class_weights is not None:
        table = table.weigh_classes(options.class_weights)
    if not isinstance(source, str | os.PathLike):
        return table
    stored = replace(options, missing=options.missing if policy == "drop" else policy).stored()
    return replace(table, request=DataRequest(os.fspath(source), options=stored))


def _cells(raw: RawTable, options: ReadingOptions) -> RawTable:
    """Return the table with nulls for missing values, and with plain numbers."""
    texts = set(options.nominal)
    # A class is no number, unless the user says how numbers are written.
    if options.decimal is None and options.thousands is None:
        texts.add(str(raw.frame.columns[-1] if options.target is None else options.target))
    known = raw.entry.continuous if raw.entry else ()
    numbers = {*options.continuous, *known, str(options.weights)}
    return read_cells(raw, numbers, only_numbers=raw.entry is not None, texts=texts)
