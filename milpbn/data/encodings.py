"""Raw columns encoded with the states of given variables, also in several ways, and remarks on values without a state.

Predictors that are averages have several sets of variables, with different cuts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from milpbn.data.column import Column
from milpbn.data.dataset import MISSING, UNKNOWN, Dataset, Variable, by_column
from milpbn.data.variables import encode_column
from milpbn.errors import InputError, MilpbnWarning, warn


def encode_columns(
    columns: Mapping[str, Column],
    variables: Sequence[Variable],
    weights: NDArray[np.float64],
    name: str,
    *,
    has_class: bool = True,
) -> Dataset:
    """Encode raw columns, matched by name, with given variables, of which several may code one column.

    Categories that are not in the training rows become `UNKNOWN`, missing values without a state of their own
    `MISSING`. The values of a feature whose column is absent are `MISSING` even if missing values have a state, since
    that state stands for an empty cell of a column that was there. The notes count them. Other columns are ignored. If
    the class column is absent, all classes are `MISSING`. `weights` has shape (M,). Raises `InputError` if no feature
    has a column, or a value of a discretised feature is not a finite number.
    """
    codes = np.full((len(weights), len(variables)), MISSING, dtype=np.int32)
    for column, places in by_column(variables).items():
        beside = [variables[i] for i in places] if len(places) > 1 else []
        for i in places if column in columns else []:
            codes[:, i] = encode_column(variables[i], columns[column], repr(name), beside)
    data = Dataset(name, tuple(variables), codes, weights, has_class=has_class)
    missing = {feature: count for feature, count in missing_values(data).items() if feature in columns}
    target = variables[-1].name
    no_class, new_class = (int(np.count_nonzero(data.y == code)) for code in (MISSING, UNKNOWN))
    features = list(by_column(_features(data)))
    absent = [feature for feature in features if feature not in columns]
    if len(absent) == len(features):
        raise InputError(
            f"The table {name!r} has none of the columns that the classifier knows, such as {features[0]!r}; is it "
            "another table, or one without a line of column names?"
        )
    named = target in columns or not has_class
    notes = [
        *([] if len(weights) else ["There are no rows."]),
        *([] if named else [f"There is no column {target!r}: the classes are unknown."]),
        *(
            [f"Rows with a class label that training never saw: {new_class}."]
            if has_class and new_class
            else []
        ),
        *([f"Rows without a class label: {no_class}."] if has_class and named and no_class else []),
        *_unseen_note(unknown_values(data)),
        *_missing_note(absent, missing, len(features)),
    ]
    return replace(data, notes=tuple(notes))


def _features(data: Dataset) -> tuple[Variable, ...]:
    return data.variables[:-1] if data.has_class else data.variables


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
    return ", ".join(f"{n} in {name!r}" for name, n in counts.items())


@dataclass(frozen=True, eq=False, repr=False)
class Encodings(Dataset):
    """The same rows in the codes of several sets of variables: those of the first set, and the others beside them.

    All sets are of the same columns, and have the same classes. `others` has the rows in the codes of the other
    sets, in the same order. Raises `InputError` if the encodings are not of the same rows.
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
    Where rows are encoded in several ways, a value counts as unseen if it is in all of them. With `ignore`, such a
    column is warned of instead.

    Raises
    ------
    InputError
        If there is such a column; the sentence names it, and has some of its values and of the states.

    Warns
    -----
    MilpbnWarning
        If most values of a column in a table of several rows do not occur in the training data, and it is not refused.
    """
    coded = [_codes_by_column(one) for one in encodings_of(data)]
    for name, places in by_column(_features(data)).items():
        column = columns.get(name)
        if column is None or len(data.codes) == 1:
            continue
        unseen = np.logical_and.reduce([(codes[name] == UNKNOWN).all(axis=1) for codes in coded])
        new, present = np.count_nonzero(unseen), np.count_nonzero(~column.missing)
        if 2 * new <= present:
            continue
        where = f"the column {name!r} of {data.name!r}"
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
        variable = data.variables[places[0]]
        states = variable.states[: variable.n_states - variable.missing_state]
        raise InputError(
            f"{said}: it has {_some(values)}, and the classifier knows {_some(states)}. Code it as in the training "
            "data or leave it out. If its values are new indeed, let them contribute nothing (--ignore-unseen of "
            "predict, evaluate and explain; ignore_unseen=True of a classifier's encode in Python)."
        )


def _some(labels: Sequence[str]) -> str:
    return ", ".join(map(repr, labels[:3])) + (", ..." if len(labels) > 3 else "")


def unknown_values(data: Dataset) -> dict[str, int]:
    """Return the number of values that training never saw by column, for features' columns that have any.

    Where rows are encoded in several ways, a value counts that has no state in one of them.
    """
    return _counts(data, UNKNOWN)


def missing_values(data: Dataset) -> dict[str, int]:
    """Return the number of missing values without a state of their own by column, for features' columns that have any.

    Every value of a column that is absent counts. Where rows are encoded in several ways, a value counts that is
    missing in one of them.
    """
    return _counts(data, MISSING)


def _counts(data: Dataset, code: int) -> dict[str, int]:
    coded = [_codes_by_column(one) for one in encodings_of(data)]
    found = {
        name: np.logical_or.reduce([(codes[name] == code).any(axis=1) for codes in coded])
        for name in coded[0]
    }
    return {name: int(rows.sum()) for name, rows in found.items() if rows.any()}


def _codes_by_column(data: Dataset) -> dict[str, NDArray[np.int32]]:
    """Return the codes of the features of each raw column, shape (M, variables of the column)."""
    return {name: data.codes[:, places] for name, places in by_column(_features(data)).items()}
