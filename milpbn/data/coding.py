"""Raw columns encoded with the states of given variables, and remarks that count the values without a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from milpbn.data.column import Column
from milpbn.data.dataset import MISSING, UNKNOWN, Dataset, Variable
from milpbn.data.variables import encode_column
from milpbn.errors import InputError


def encode_columns(
    columns: Mapping[str, Column], variables: Sequence[Variable], weights: NDArray[np.float64], name: str
) -> Dataset:
    """Encode raw columns, matched by name, with given variables.

    Categories that are not in the training rows become `UNKNOWN`, missing values without a state of their own
    `MISSING`. The values of a feature whose column is absent are `MISSING` even if missing values have a state, since
    that state stands for an empty cell of a column that was there. The notes count them. Other columns are ignored.

    Parameters
    ----------
    columns : mapping from name to Column
        The table. If the class column is absent, all classes are `MISSING`.
    variables : sequence of Variable
        Features first, the class variable last.
    weights : float64 array, shape (M,)
        Sample weights.
    name : str
        The table's name.

    Raises
    ------
    InputError
        If no feature has a column, or a value of a discretised feature is not a finite number.
    """
    codes = np.full((len(weights), len(variables)), MISSING, dtype=np.int32)
    unseen: dict[str, int] = {}
    missing: dict[str, int] = {}
    for i, variable in enumerate(variables):
        column = columns.get(variable.name)
        if column is None:
            continue
        codes[:, i] = encode_column(variable, column, repr(name))
        unseen[variable.name] = int(np.count_nonzero(codes[:, i] == UNKNOWN))
        missing[variable.name] = int(np.count_nonzero(codes[:, i] == MISSING))
    target = variables[-1].name
    no_class, new_class = missing.pop(target, 0), unseen.pop(target, 0)
    features = [v.name for v in variables[:-1]]
    absent = [feature for feature in features if feature not in columns]
    if len(absent) == len(features):
        raise InputError(
            f"The table {name!r} has none of the columns that the classifier knows, such as {features[0]!r}; is it "
            "another table, or one without a line of column names?"
        )
    notes = [
        *([f"There is no column {target!r}: the classes are unknown."] if target not in columns else []),
        *([f"Rows with a class label that training never saw: {new_class}."] if new_class else []),
        *([f"Rows without a class label: {no_class}."] if no_class else []),
        *_unseen_note(unseen),
        *_missing_note(absent, missing, len(features)),
    ]
    return Dataset(name, tuple(variables), codes, weights, tuple(notes))


def describe_absent(absent: Sequence[str], n_features: int) -> str:
    """Return words that name the columns that are absent, of the columns of so many features."""
    names = ", ".join(map(repr, absent))
    return f"{len(absent)} of {n_features} columns {'is' if len(absent) == 1 else 'are'} absent ({names})"


def _unseen_note(counts: Mapping[str, int]) -> list[str]:
    """Return a sentence with the total and the number in each column; no sentence if the total is zero."""
    total = sum(counts.values())
    what = "Values that training never saw, which contribute nothing to the class scores"
    return [f"{what}: {total} ({_places(counts)})."] if total else []


def _missing_note(absent: Sequence[str], missing: Mapping[str, int], n_features: int) -> list[str]:
    """Return a sentence on absent columns and missing values; no sentence if there are none."""
    total, parts = sum(missing.values()), []
    if absent:
        parts.append(describe_absent(absent, n_features))
    if total:
        parts.append(f"{total} {'value is' if total == 1 else 'values are'} missing ({_places(missing)})")
    return [f"{', '.join(parts)}: marginalised."] if parts else []


def _places(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} in {name!r}" for name, n in counts.items() if n)
