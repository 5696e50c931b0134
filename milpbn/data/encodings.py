"""Samples whose rows are encoded in several ways, for predictors that have several sets of cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING, UNKNOWN, Dataset
from milpbn.errors import InputError


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
