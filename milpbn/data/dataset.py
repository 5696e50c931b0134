"""Discrete data: variables with their states, and samples as integer codes.

All code after the reading of files works with a `Dataset`: features first, the class variable last, and each value an
integer code, the index of a state of its variable.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.request import DataRequest
from milpbn.data.sums import exact_parts, exact_sums, sums_of_others, sums_of_parts
from milpbn.errors import InputError
from milpbn.util.jsonable import shorten

#: Types of labels, what a variable's states were in the source: text, int64, float64 and bool, and other NumPy types.
LABEL_TYPES = (
    "text",
    "integer",
    "real",
    "boolean",
    "datetime",
    *("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"),
    "float32",
)
#: Code of a value without a state, such as a category that the training rows lack.
UNKNOWN = -1
#: Code of a feature's value that is not known: an empty cell without a state of its own, or a column that is absent.
MISSING = -2
#: Beginnings of the notes on dropped rows, on columns that are no features, and on features that no structure can use.
DROPPED, LEFT_OUT, UNUSED = "Rows dropped for", "Left out", "Features with one state only, not used"
#: Beginning of the note on features of a wide table that are not used (`milpbn.data.relevance`).
LESS_RELEVANT = f"{LEFT_OUT} are"
#: Beginning of the note on features with which no other feature is needed.
PREDICTS_CLASS = "Features that alone tell the class of every training row"
#: Beginning of the note on features whose missing values have a state.
OWN_STATE = "Missing values have a state of their own in"


def require_class(data: Any, what: str) -> None:
    """Refuse a table or data without a class; `what` needs one, and begins the sentence."""
    if not data.has_class:
        raise InputError(
            f"{what} needs a class, and the data {data.name!r} have none; name the class with --target (target)."
        )


def dropped_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """Return the notes on dropped rows, and on less relevant features (`milpbn.data.relevance`)."""
    return tuple(note for note in notes if note.startswith((DROPPED, LESS_RELEVANT)))


def notes_of_results(notes: Sequence[str]) -> tuple[str, ...]:
    """Return the notes that a result keeps: on what the search did not use, and on features that tell the class."""
    return tuple(note for note in notes if note.startswith((DROPPED, LEFT_OUT, UNUSED, PREDICTS_CLASS)))


@dataclass(frozen=True)
class Variable:
    """One discrete variable.

    Attributes
    ----------
    name : str
        Column name.
    states : tuple of str
        Label of each code 0, 1, ...; a discretised variable's labels are intervals, such as ``(2.5, 4]``.
    cuts : tuple of float or None
        Ascending cut points of a discretised continuous variable; None for a nominal variable. The code of
        a value is the number of cuts strictly below it, so that each interval is closed on the right.
    numeric : bool
        Whether a nominal variable's labels are numbers, compared by value ("1", 1 and 1.0 are one state).
    missing_state : bool
        Whether the last state stands for missing values (policy ``state``).
    label_type : str
        Type of the labels in the source, which predictions have as well, one of `LABEL_TYPES`. Variables that differ in
        it only are equal.
    column : str or None
        The raw column whose values it codes; None for the one of its own name. Two variables may code one column, such
        as coarse and fine intervals.
    """

    name: str
    states: tuple[str, ...]
    cuts: tuple[float, ...] | None = None
    numeric: bool = False
    missing_state: bool = False
    label_type: str = field(default="text", compare=False)
    column: str | None = None

    @property
    def raw_column(self) -> str:
        """Name of the raw column whose values it codes."""
        return self.name if self.column is None else self.column

    @property
    def n_states(self) -> int:
        """Number of states, sp(X) in the papers."""
        return len(self.states)

    @property
    def labels(self) -> NDArray[Any]:
        """The states in the type of the source, shape (sp,); text has the type object."""
        if self.label_type == "text":
            return np.array(self.states, dtype=object)
        if self.label_type == "boolean":
            return np.array([state.lower() == "true" for state in self.states])
        if self.label_type == "datetime":
            nanoseconds = any(len(state.partition(".")[2]) > 6 for state in self.states)
            return np.array(self.states, dtype="datetime64[ns]" if nanoseconds else "datetime64[us]")
        dtype = {"integer": "int64", "real": "float64"}.get(self.label_type, self.label_type)
        number = float if dtype.startswith("float") else int
        return np.array([number(state) for state in self.states], dtype)


def by_column(variables: Sequence[Variable]) -> dict[str, list[int]]:
    """Return the positions of the variables of each raw column, columns in the order of their first variables."""
    found: dict[str, list[int]] = {}
    for i, variable in enumerate(variables):
        found.setdefault(variable.raw_column, []).append(i)
    return found


def finest(variables: Sequence[Variable]) -> dict[str, int]:
    """Return the position of each raw column's variable with the most states."""
    columns = by_column(variables).items()
    return {column: max(places, key=lambda i: variables[i].n_states) for column, places in columns}


@dataclass(frozen=True)
class Dataset:
    """Samples over N discrete features and one class variable.

    Attributes
    ----------
    name : str
        Name for reports: the file's stem or the catalog name.
    variables : tuple of Variable, length V = N + 1
        Features in column order, the class variable last.
    codes : int32 array, shape (M, V)
        State codes; `UNKNOWN` (-1) for values without a state, `MISSING` (-2) for values that are not known. Training
        data have neither.
    weights : float64 array, shape (M,)
        Sample weights, positive in training data; all 1 if the table has no weights.
    notes : tuple of str
        Sentences for the user about the decisions made when reading: types, dropped rows.
    left_out : mapping from str to str
        Columns of the source that are no features, each with the reason, one of `milpbn.data.left_out.WHYS`.
    request : DataRequest or None
        How these rows were read; None if they come from no file and no name, or are a choice of rows.
    discretisation : str
        How the cut points were chosen, as in ``--discretise``; empty without a variable that has cut points.
    form : mapping
        The options of the table that hold for tables for prediction as well (`TextFormat.lasting`).
    has_class : bool
        Whether the last variable is a class. Without one, N leaves out a variable like the others.
    few_integers : tuple of str
        `milpbn.data.table.Table.few_integers` of its table.
    """

    name: str
    variables: tuple[Variable, ...]
    codes: NDArray[np.int32]
    weights: NDArray[np.float64]
    notes: tuple[str, ...] = field(default=(), compare=False)
    left_out: Mapping[str, str] = field(default_factory=dict, compare=False)
    request: DataRequest | None = field(default=None, compare=False)
    discretisation: str = field(default="", compare=False)
    form: Mapping[str, Any] = field(default_factory=dict, compare=False)
    has_class: bool = True
    few_integers: tuple[str, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        about = f"{self.n_features} features, {self.n_classes} classes of {shorten(self.variables[-1].name)}"
        if not self.has_class:
            about = f"{self.n_variables} variables, no class"
        return f"<Dataset {shorten(self.name)}: {self.n_samples} samples, {about}>"

    @property
    def n_samples(self) -> int:
        """Number of rows M."""
        return self.codes.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features N, without the class."""
        return len(self.variables) - 1

    @property
    def n_variables(self) -> int:
        """Number of variables V = N + 1."""
        return len(self.variables)

    @property
    def n_classes(self) -> int:
        """Number of states of the class variable."""
        return self.variables[-1].n_states

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all variables, the class last."""
        return tuple(v.name for v in self.variables)

    @cached_property
    def n_states(self) -> NDArray[np.int64]:
        """Numbers of states of all variables, shape (V,); not to be changed."""
        return np.array([v.n_states for v in self.variables], dtype=np.int64)

    @property
    def X(self) -> NDArray[np.int32]:  # noqa: N802  # the field's name
        """Feature codes, shape (M, N)."""
        return self.codes[:, :-1]

    @property
    def y(self) -> NDArray[np.int32]:
        """Class codes, shape (M,)."""
        return self.codes[:, -1]

    @property
    def labels(self) -> NDArray[np.object_]:
        """Labels of all values, shape (M, V); None for values without a state."""
        by_code = [np.array([*v.states, None], dtype=object) for v in self.variables]
        return np.column_stack(
            [labels[np.maximum(codes, -1)] for labels, codes in zip(by_code, self.codes.T, strict=True)]
        )

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of all that the learnt structure depends on (names, states, cuts, columns, codes and weights)."""
        digest = hashlib.sha256()
        described = [
            [v.name, list(v.states), v.cuts, *([] if v.column is None else [v.column])]
            for v in self.variables
        ]
        digest.update(json.dumps(described, ensure_ascii=True).encode())
        digest.update(np.ascontiguousarray(self.codes, dtype="<i4").tobytes())
        digest.update(np.ascontiguousarray(self.weights, dtype="<f8").tobytes())
        return digest.hexdigest()

    @cached_property
    def merged(self) -> Dataset:
        """The same data with identical rows merged into one row that has their total weight.

        The rows are in lexicographic order of their codes. Every score in this project is a weighted sum over
        samples, and total weights are exact up to a few roundings, so that merging changes no score.
        """
        unique, _ = self._distinct_rows
        return replace(self, codes=unique, weights=self.merged_weights(self.weights))

    def merged_weights(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of the given weights of the rows, shape (M,), for every row of `merged`."""
        unique, inverse = self._distinct_rows
        return exact_sums(inverse, weights, len(unique))

    def total_weights(self, index: NDArray[np.integer], size: int) -> NDArray[np.float64]:
        """Return the total weight of the rows of each group, float64 array of shape (size,).

        `index` has the group of each row, shape (M,), from 0 to ``size - 1``.
        """
        return sums_of_parts(index, self._parts, size)

    def other_weights(self, totals: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        """Return, for each cell of total weights, the sum of the other cells along an axis; shape of `totals`.

        The other cells are added, because the total minus one cell would lose digits. Only if all sums of weights are
        exact, as those of whole numbers are, the sum is such a difference, which is then exact, too.
        """
        if len(self._parts) > 1:
            return sums_of_others(totals, axis)
        return totals.sum(axis=axis, keepdims=True) - totals

    @cached_property
    def total_weight(self) -> float:
        """The sum of all weights, M in the papers."""
        return float(self.total_weights(np.zeros(self.n_samples, dtype=np.int64), 1)[0])

    @cached_property
    def _parts(self) -> list[NDArray[np.float64]]:
        """The weights as parts whose sums are exact (`milpbn.data.sums.exact_parts`)."""
        return exact_parts(self.weights)

    @cached_property
    def _distinct_rows(self) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """The distinct rows in lexicographic order, and the index of each row among them."""
        # Rows are packed into a few int64 keys, which sort ten times as fast as rows, and without the interpreter lock.
        keys, room = [np.zeros(self.n_samples, dtype=np.int64)], 2**62
        for j, states in enumerate(self.n_states.tolist()):
            if room < states + 2:
                keys.append(np.zeros(self.n_samples, dtype=np.int64))
                room = 2**62
            keys[-1] *= states + 2
            keys[-1] += self.codes[:, j] + np.int64(2)  # UNKNOWN (-1) and MISSING (-2) count as states here
            room //= states + 2
        order = np.lexsort(keys[::-1])
        differs = np.zeros(self.n_samples, dtype=bool)
        differs[:1] = True
        for key in keys:
            differs[1:] |= np.diff(key[order]) != 0
        inverse = np.empty(self.n_samples, dtype=np.intp)
        inverse[order] = np.cumsum(differs) - 1
        return self.codes[order[differs]], inverse

    def of_columns(self) -> Dataset:
        """Return the rows with one variable per raw column, its finest one, under the name of the column."""
        columns = by_column(self.variables).values()
        finest = [max(places, key=lambda i: self.variables[i].n_states) for places in columns]
        data = self.of_variables([self.names[i] for i in finest])
        variables = (replace(v, name=v.raw_column, column=None) for v in data.variables)
        return replace(data, variables=tuple(variables))

    def of_variables(self, names: Sequence[str]) -> Dataset:
        """Return the rows with some of the variables, given by their names."""
        chosen = [self.names.index(name) for name in names]
        variables = tuple(self.variables[i] for i in chosen)
        return replace(self, variables=variables, codes=self.codes[:, chosen], request=None)

    def take(self, rows: NDArray[np.integer] | Sequence[int]) -> Dataset:
        """Return the given rows with the same variables."""
        index = np.asarray(rows)
        return replace(self, codes=self.codes[index], weights=self.weights[index], request=None)
