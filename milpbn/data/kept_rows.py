"""Which rows of a table are kept, by missing values and weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from milpbn.data.column import Column
from milpbn.data.dataset import DROPPED
from milpbn.data.table import OWN_STATES, Missing
from milpbn.errors import DataWarning, InputError, warn


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
