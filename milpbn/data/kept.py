"""Which column of a table is the class, which ones are features, and which rows are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.data.column import Column
from milpbn.data.dataset import DROPPED
from milpbn.data.left_out import Why, default_target, describe_left_out, look_alikes
from milpbn.data.options import Missing, ReadingOptions
from milpbn.data.raw_table import RawTable
from milpbn.data.row_index import is_unnamed
from milpbn.data.table import OWN_STATES
from milpbn.errors import DataWarning, InputError, warn


@dataclass(frozen=True, eq=False)
class ChosenColumns:
    """The columns of a table by their use.

    `columns` are the features in their order, and the class last; `candidates` are these and those that were left out
    because of what they look like. Neither an option nor the catalog says anything of the features `undeclared`. The
    notes are sentences about the choice.
    """

    columns: dict[str, Column]
    candidates: dict[str, Column]
    undeclared: tuple[str, ...]
    left_out: dict[str, Why]
    notes: list[str]


def choose_columns(columns: Mapping[str, Column], raw: RawTable, options: ReadingOptions) -> ChosenColumns:
    """Choose the class and the features, and warn of columns that are left out because of what they look like.

    A target that the options name exists. Raises `InputError` if an option names a column that does not exist, options
    contradict one another, or no feature is left.
    """
    where, entry = raw.where, raw.entry
    target = last = list(columns)[-1]
    if options.target is not None:
        target = str(options.target)
    elif not raw.has_class and (entry is None or is_unnamed(last)):
        target = default_target(columns, options.nominal, raw.index) or last
    columns = {name: columns[name] for name in (*(n for n in columns if n != target), target)}
    asked = _asked(list(columns), target, where, options)
    undeclared = [name for name in columns if name not in (*asked, *options.declared, target)]
    if options.features:
        undeclared = []
    elif entry is not None:  # it says what the columns are, if they have names
        undeclared = [name for name in undeclared if is_unnamed(name)]
    left_out = {**asked, **look_alikes(columns, undeclared, raw.index)}
    notes = describe_left_out(columns, left_out)
    if options.target is None and target != last:
        notes.append(f"The class is the last of the other columns, {target!r}.")
    if len(left_out) == len(columns) - 1:
        raise InputError(f"No column of {where} is left as a feature. {' '.join(notes)}")
    if by_themselves := notes[bool(asked) :]:
        warn(" ".join(by_themselves), DataWarning)
    return ChosenColumns(
        {name: column for name, column in columns.items() if name not in left_out},
        {name: column for name, column in columns.items() if name not in asked},
        tuple(name for name in undeclared if name not in left_out),
        left_out,
        notes,
    )


def _asked(names: Sequence[str], target: str, where: str, options: ReadingOptions) -> dict[str, Why]:
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


def rows_to_keep(
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
