"""Read tables: a `Table` to learn from, with its class, features and rows, and samples whose class is predicted."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milpbn.data.cells import read_cells
from milpbn.data.column import Column, take_column
from milpbn.data.dataset import DROPPED, OWN_STATE, Dataset, Variable, by_column
from milpbn.data.discretisation import Discretisation
from milpbn.data.encodings import Encodings, check_seen, describe_absent, encode_columns
from milpbn.data.kinds import decide_kinds, describe_kinds, doubts_on_kinds, holds_few_integers
from milpbn.data.left_out import Why, default_target, describe_left_out, look_alikes
from milpbn.data.options import DefaultTarget, Missing, ReadingOptions, States, TextFormat
from milpbn.data.raw_table import RawTable, generated_names
from milpbn.data.remarks import remark_on_confusable_labels, remark_on_index, remark_on_missing_codes
from milpbn.data.request import DataRequest
from milpbn.data.row_index import is_unnamed
from milpbn.data.sources import Source, load_source, pair_of
from milpbn.data.table import OWN_STATES, Table, count_gaps, factorise, lacking_most
from milpbn.data.weights import doubt_on_total, weights_in
from milpbn.errors import DataWarning, InputError, warn
from milpbn.util import stages


def read_table(
    source: Source,
    y: Any = None,
    *,
    target: str | DefaultTarget | None = DefaultTarget.LAST,
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
    target : str, None or DefaultTarget.LAST
        The class column. With None the data have no class, and a network of all variables is learnt.
    drop, features, continuous, nominal, missing, weights, class_weights, data_dir, name, states, discretise
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
    if target is None and (y is not None or isinstance(source, tuple)):
        raise InputError(
            "y holds class labels, and target=None says that there is no class; leave out one of them."
        )
    stages.enter("reading")
    return _read_table(source if y is None else pair_of(source, y), options)


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
    has_class: bool = True,
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
    has_class : bool
        Whether the last variable is a class; without one it is a feature, too.
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
        data = Encodings.of([source.encode(variables, has_class=has_class) for variables in sets])
        check_seen(data, source.columns, ignore=ignore_unseen)
        return data
    form = form if isinstance(form, TextFormat) else TextFormat.of(form or {})
    everything = [v for variables in sets for v in variables]
    raw = load_source(source, data_dir, list(by_column(sets[0])), form)
    numbers = {v.raw_column for v in everything if v.numeric or v.cuts is not None}
    raw = read_cells(raw, {*numbers, str(weights)}, only_numbers=True)
    row_weight = weights_in(raw.frame, weights, raw.where)
    features = list(by_column(sets[0][:-1] if has_class else sets[0]))
    absent = [name for name in features if name not in raw.frame.columns]
    if absent:
        warn(f"{describe_absent(absent, len(features))}: marginalised.", DataWarning)
    needed = {v.raw_column for v in everything}
    used = raw.frame[[c for c in raw.frame.columns if c in needed]]
    columns = factorise(used, raw.where, untyped=raw.untyped)
    coded = [
        encode_columns(columns, variables, row_weight, name or raw.name, has_class=has_class)
        for variables in sets
    ]
    data = Encodings.of([replace(d, notes=(*raw.notes, *d.notes)) for d in coded])
    check_seen(data, columns, ignore=ignore_unseen)
    return data


def _read_table(source: Source, options: ReadingOptions) -> Table:
    """Do the same as `read_table`, with the options in one object."""
    discretisation = Discretisation.parse(options.discretise)
    raw = _plain_cells(_single_values(load_source(source, options.data_dir, form=options), options), options)
    where, entry, frame = raw.where, raw.entry, raw.frame
    weights = weights_in(frame, options.weights, where)
    if options.weights is not None:
        frame = frame.drop(columns=str(options.weights))
    if options.target is None and list(frame.columns) == generated_names(frame.shape[1]):
        frame = frame.rename(columns={frame.columns[-1]: f"x{frame.shape[1]}"})  # no column is called class
    if frame.shape[1] < 2:
        raise InputError(
            f"The only column of {where} is {str(frame.columns[0])!r}; a table needs two or more, separated by "
            "commas, semicolons or tabs."
        )
    everything = factorise(frame, where, untyped=raw.untyped)
    if options.target is not None and options.target is not DefaultTarget.LAST:
        take_column(frame, options.target, "target", where)
    chosen = _choose_columns(everything, raw, options)
    columns = chosen.columns
    class_name = chosen.target
    names = [name for name in columns if name != class_name]
    kinds = decide_kinds(columns, class_name, raw, options)
    policy = options.missing or (entry.missing if entry else "drop")
    keep, dropped = _rows_to_keep(columns, class_name, weights, policy, where)
    doubts = doubts_on_kinds(columns, names, kinds, options.declared if entry is None else names)
    if entry is None:
        doubts += remark_on_index(columns, chosen.undeclared)
        doubts += remark_on_missing_codes(chosen.candidates, names)
        doubts += remark_on_confusable_labels(columns)
    doubts += doubt_on_total(weights[keep])
    for doubt in doubts:
        warn(doubt, DataWarning)
    own_state = [name for name in names if policy == "state" and columns[name].missing[keep].any()]
    notes = [*raw.notes, *chosen.notes, *describe_kinds(columns, names, kinds), *doubts, *dropped]
    notes += [f"{OWN_STATE}: {', '.join(own_state)}."] * bool(own_state)
    path = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    # The cells of a large file are not copied where nothing is left out. A caller's frame is, as it may change later.
    whole = path is not None and bool(keep.all()) and list(frame.columns) == list(columns)
    table = Table(
        name=options.name or raw.name,
        frame=frame if whole else frame.loc[keep, list(columns)],
        kinds=kinds,
        weights=weights[keep],
        missing=policy,
        train_rows=entry.train_rows if entry else None,
        states=options.states,
        discretisation=discretisation,
        notes=tuple(notes),
        left_out=chosen.left_out,
        has_class=class_name is not None,
        label_type="text" if class_name is None else columns[class_name].label_type,
        untyped=raw.untyped,
        gaps=count_gaps(columns, class_name) if policy == "drop" else {},
        form=options.lasting(raw.decimal),
        few_integers=tuple(n for n in chosen.undeclared if holds_few_integers(columns[n], kinds[n])),
    )
    if options.class_weights is not None:
        table = table.weigh_classes(options.class_weights)
    if path is not None:
        stored = replace(options, missing=options.missing if policy == "drop" else policy).stored()
        table = replace(table, request=DataRequest(path, options=stored))
    if whole:
        table.__dict__["columns"] = columns  # the cached property, which would factorise the same cells again
    return table


def _single_values(raw: RawTable, options: ReadingOptions) -> RawTable:
    """Return the table with empty cells in columns that options leave out and that hold lists, which none may."""
    names = [str(name) for name in raw.frame.columns]
    target = names[-1] if options.target is DefaultTarget.LAST else str(options.target)
    used = {target, *(options.features or names)} - {*options.drop}
    empty = {
        str(name): None
        for name, cells in raw.frame.items()
        if name not in used and cells.dtype.kind == "O" and not all(map(pd.api.types.is_scalar, cells))
    }
    return replace(raw, frame=raw.frame.assign(**empty)) if empty else raw


def _plain_cells(raw: RawTable, options: ReadingOptions) -> RawTable:
    """Return the table with nulls for missing values, and with plain numbers."""
    texts = set(options.nominal)
    # A class is no number, unless the user says how numbers are written.
    if options.decimal is None and options.thousands is None and options.target is not None:
        texts.add(str(raw.frame.columns[-1] if options.target is DefaultTarget.LAST else options.target))
    known = raw.entry.continuous if raw.entry else ()
    numbers = {*options.continuous, *known, str(options.weights)}
    return read_cells(raw, numbers, only_numbers=raw.entry is not None, texts=texts)


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The columns of a table by their use.

    `columns` are the features in their order, and the class, `target`, last if there is one; `candidates` are these and
    those that were left out because of what they look like. Neither an option nor the catalog says anything of the
    features `undeclared`. The notes are sentences about the choice.
    """

    columns: dict[str, Column]
    candidates: dict[str, Column]
    undeclared: tuple[str, ...]
    left_out: dict[str, Why]
    notes: list[str]
    target: str | None


def _choose_columns(columns: Mapping[str, Column], raw: RawTable, options: ReadingOptions) -> _Chosen:
    """Choose the class and the features, and warn of columns that are left out because of what they look like.

    A target that the options name exists. Raises `InputError` if an option names a column that does not exist, options
    contradict one another, or no feature is left.
    """
    where, entry = raw.where, raw.entry
    target: str | None = (last := list(columns)[-1])
    if options.target is not DefaultTarget.LAST:
        target = None if options.target is None else str(options.target)
    elif not raw.has_class and (entry is None or is_unnamed(last)):
        target = default_target(columns, options.nominal, raw.index) or last
    columns = {name: columns[name] for name in sorted(columns, key=lambda name: name == target)}
    asked = _left_out_by_options(list(columns), target, where, options)
    undeclared = [name for name in columns if name not in (*asked, *options.declared, target)]
    if options.features:
        undeclared = []
    elif entry is not None:  # it says what the columns are, if they have names
        undeclared = [name for name in undeclared if is_unnamed(name)]
    left_out = {**asked, **look_alikes(columns, undeclared, raw.index)}
    notes = describe_left_out(columns, left_out)
    if options.target is DefaultTarget.LAST and target != last:
        notes.append(f"The class is the last of the other columns, {target!r}.")
    if len(columns) - len(left_out) < 2:
        raise InputError(f"No column of {where} is left as a feature. {' '.join(notes)}")
    if by_themselves := notes[bool(asked) :]:
        warn(" ".join(by_themselves), DataWarning)
    return _Chosen(
        {name: column for name, column in columns.items() if name not in left_out},
        {name: column for name, column in columns.items() if name not in asked},
        tuple(name for name in undeclared if name not in left_out),
        left_out,
        notes,
        target,
    )


def _left_out_by_options(
    names: Sequence[str], target: str | None, where: str, options: ReadingOptions
) -> dict[str, Why]:
    """Return the columns that the options leave out: those of `drop`, and those not in `features` if there are any."""
    for option in ("drop", "features"):
        for name in getattr(options, option):
            if name not in names:
                raise InputError(
                    f"The option {option!r} names {name!r}, which is not a column of {where} ({', '.join(names)})."
                )
            if name == target:
                raise InputError(
                    f"The option {option!r} names {name!r}, which is the target; leave it out of the option, or name "
                    "another target."
                )
    drop, features = options.drop, options.features
    both = [name for name in features if name in drop]
    if both:
        raise InputError(f"Column {both[0]!r} is in both 'drop' and 'features'; leave it out of one of them.")
    asked: dict[str, Why] = {
        name: "asked" for name in names if name in drop or (features and name not in (*features, target))
    }
    for name in options.declared:
        if name in asked:
            raise InputError(
                f"Column {name!r} is declared nominal or continuous, but 'drop' or 'features' leaves it out; keep one."
            )
    return asked


def _nothing_left(columns: Mapping[str, Column], target: str | None, where: str) -> str:
    """Return what is missing in a table of which no row can be kept, and what to do."""
    if target is not None and columns[target].missing.all():
        return f"No row of {where} has a class in column {target!r}; name another target."
    empty = [name for name, column in columns.items() if column.missing.all()]
    if not empty:
        return f"Every row of {where} has missing values and was dropped; {OWN_STATES}."
    return (
        f"Every row of {where} was dropped, as there are no values in {', '.join(map(repr, empty))}; leave "
        f"{'it' if len(empty) == 1 else 'them'} out (--drop {','.join(empty)}), or {OWN_STATES}."
    )


def _mostly(columns: Mapping[str, Column], target: str | None) -> str:
    """Return which features lack most values, as a part of a sentence."""
    most = lacking_most(count_gaps(columns, target))
    return f" (most of them in {', '.join(map(repr, most))})" if most else ""


def _rows_to_keep(
    columns: Mapping[str, Column],
    target: str | None,
    weights: NDArray[np.float64],
    policy: Missing,
    where: str,
) -> tuple[NDArray[np.bool_], list[str]]:
    """Return which rows are kept, shape (M,), and a sentence on every reason why rows are dropped."""
    missing = np.zeros(len(weights), dtype=bool) if target is None else columns[target].missing
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
        absent += "" if policy == "state" or 2 * missing.sum() < len(missing) else _mostly(columns, target)
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
