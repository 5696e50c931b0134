"""Samples whose rows are encoded in several ways, for predictors that have several sets of cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from milpbn.data.column import Column
from milpbn.data.dataset import MISSING, UNKNOWN, Dataset
from milpbn.errors import InputError, MilpbnWarning, warn


@dataclass(frozen=True, eq=False, repr=False)
class Encodings(Dataset):
    """The same rows in the codes of several sets of variables: those of the first set, and the others beside them.

    All sets have the same names of variables, and the same classes.

    Attributes
    ----------
    others : tuple of Dataset
        The rows in the codes of the other sets, in the same order.

    Raises
    ------
    InputError
        If the encodings are not of the same rows.
    """

    others: tuple[Dataset, ...] = ()

    def __post_init__(self) -> None:
        if any(len(other.codes) != len(self.codes) or (other.y != self.y).any() for other in self.others):
            raise InputError(f"The encodings of {self.name!r} are not of the same rows; encode one table.")

    @classmethod
    def of(cls, datasets: Sequence[Dataset]) -> Dataset:
        """Return encodings of the same rows as one object; of a single one, the dataset itself."""
        first, *others = datasets
        if not others:
            return first
        notes = dict.fromkeys(note for data in datasets for note in data.notes)
        return cls(
            first.name,
            first.variables,
            first.codes,
            first.weights,
            tuple(notes),
            first.left_out,
            form=first.form,
            others=tuple(others),
        )

    def take(self, rows: NDArray[np.integer] | Sequence[int]) -> Encodings:
        """Return the given rows in all encodings."""
        index = np.asarray(rows)
        return replace(
            self,
            codes=self.codes[index],
            weights=self.weights[index],
            others=tuple(other.take(index) for other in self.others),
        )


def encodings_of(data: Dataset) -> tuple[Dataset, ...]:
    """Return the encodings of some rows one by one; of a plain dataset, the dataset itself."""
    if not isinstance(data, Encodings):
        return (data,)
    first = Dataset(data.name, data.variables, data.codes, data.weights, data.notes, data.left_out)
    return first, *data.others


def check_seen(data: Dataset, columns: Mapping[str, Column], *, ignore: bool) -> None:
    """Refuse a table with a column of which no value occurs in the training data; it may be coded in another way.

    A column with one such value only, in any number of rows, is not refused: a small table may well have a new value.

    Parameters
    ----------
    data : Dataset
        The encoded rows. Where they are encoded in several ways, a value counts as unseen if it is in all of them.
    columns : mapping from name to Column
        The raw rows.
    ignore : bool
        Warn instead of refusing.

    Raises
    ------
    InputError
        If there is such a column; the sentence names it, and has some of its values and of the states.

    Warns
    -----
    MilpbnWarning
        If most values of a column in a table of several rows do not occur in the training data, and it is not refused.
    """
    for i, variable in enumerate(data.variables[:-1]):
        column = columns.get(variable.name)
        if column is None or len(data.codes) == 1:
            continue
        unseen = np.logical_and.reduce([one.codes[:, i] == UNKNOWN for one in encodings_of(data)])
        new, present = np.count_nonzero(unseen), np.count_nonzero(~column.missing)
        if 2 * new <= present:
            continue
        where = f"the column {variable.name!r} of {data.name!r}"
        if new < present:
            warn(
                f"{new} of {present} values of {where} do not occur in the training data, and contribute nothing; is "
                "it coded in another way?",
                MilpbnWarning,
            )
            continue
        said = f"No value of {where} occurs in the training data"
        values = list(dict.fromkeys(column.labels[k] for k in np.unique(column.codes[unseen])))
        if ignore or len(values) == 1:
            warn(f"{said}, so that the column is ignored; is it coded in another way?", MilpbnWarning)
            continue
        states = variable.states[: variable.n_states - variable.missing_state]
        raise InputError(
            f"{said}: it has {_some(values)}, and the classifier knows {_some(states)}. Code it as in the training "
            "data or leave it out. If its values are new indeed, let them contribute nothing (--ignore-unseen of "
            "predict, evaluate and explain; ignore_unseen=True of a classifier's encode in Python)."
        )


def _some(labels: Sequence[str]) -> str:
    return ", ".join(map(repr, labels[:3])) + (", ..." if len(labels) > 3 else "")


def unknown_values(data: Dataset) -> dict[str, int]:
    """Return the number of values that training never saw by feature, for features that have any.

    Where rows are encoded in several ways, a value counts that has no state in one of them.
    """
    return _counts(data, UNKNOWN)


def missing_values(data: Dataset) -> dict[str, int]:
    """Return the number of missing values without a state of their own by feature, for features that have any.

    Every value of a column that is absent counts. Where rows are encoded in several ways, a value counts that is
    missing in one of them.
    """
    return _counts(data, MISSING)


def _counts(data: Dataset, code: int) -> dict[str, int]:
    counts = np.logical_or.reduce([code == one.X for one in encodings_of(data)]).sum(axis=0)
    return {v.name: int(n) for v, n in zip(data.variables, counts, strict=False) if n}
