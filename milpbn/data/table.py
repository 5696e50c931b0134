"""A raw table together with all decisions about it, from which discrete data sets are made.

Each call of `Table.dataset` learns labels and cuts again, from the given rows only. That is how
cross-validation keeps test rows out of the discretisation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from milpbn.data.column import Column
from milpbn.data.dataset import DROPPED, OWN_STATE, UNUSED, Dataset, Variable, dropped_notes, require_class
from milpbn.data.discretisation import BOOSTED, Discretisation
from milpbn.data.encodings import encode_columns
from milpbn.data.kinds import Kind
from milpbn.data.left_out import Why
from milpbn.data.options import Missing, States
from milpbn.data.remarks import remark_on_leaks
from milpbn.data.request import DataRequest
from milpbn.data.variables import encode_column, learn_continuous, learn_nominal
from milpbn.data.weights import class_factors, effective_copies, require_range
from milpbn.errors import DataWarning, InputError, warn
from milpbn.util import stages
from milpbn.util.jsonable import shorten

#: What to do where too few rows are without missing values.
OWN_STATES = (
    "give missing values a state of their own with the missing value policy 'state' (--missing state)"
)
#: Beginning of the note of `Table.in_units`.
IN_UNITS = "Leave-one-out scores leave one unit of weight out"


@dataclass(frozen=True, eq=False)
class Table:
    """Raw data and the decisions about them; made by `milpbn.data.read_table`.

    Attributes
    ----------
    name : str
        Name for reports.
    frame : DataFrame, M rows
        Raw features in column order, the target last if there is one. The index holds the rows' numbers in the source,
        counted from 0, without those of dropped rows.
    kinds : mapping from column name to 'nominal' or 'continuous'
        Kinds of all columns; the target is nominal.
    weights : float64 array, shape (M,)
        Positive sample weights, those of classes included.
    missing : {'drop', 'state', 'error'}
        Policy for missing values: rows with missing values have been dropped, missing values get a state
        of their own, or the table has none.
    train_rows : int or None
        Number of training rows, which come first in the source; the others are test rows. None without a
        split.
    states : {'seen', 'declared'}
        Whether the states of nominal variables are those of the training rows or the declared ones.
    discretisation : Discretisation
        How the cuts of continuous features are found.
    notes : tuple of str
        Sentences for the user about the decisions made when reading.
    left_out : mapping from column name to str
        Columns of the source that are not in `frame`, each with the reason, one of `milpbn.data.left_out.WHYS`.
    label_type : str
        Type of the class labels in predictions, one of `milpbn.data.dataset.LABEL_TYPES`.
    request : DataRequest or None
        How the table was read; None if it comes from no file and no name.
    untyped : bool
        Whether cells are text because the source has no types.
    gaps : mapping from column name to int
        Numbers of missing values in features of rows that were dropped for them.
    row_weights : float64 array, shape (M,), or None
        The weights before `reweighted` and `in_units`: how many rows each row stands for. None if they are the same.
    class_weights : mapping from label to float, 'balanced' or None
        The factors of classes that the weights contain; see `milpbn.data.weights.class_factors`.
    units : bool
        Whether all weights have been multiplied by one factor so that the smallest is at least 1.
    form : mapping
        `Dataset.form` of its rows.
    has_class : bool
        Whether the last column is a class.
    few_integers : tuple of str
        Features whose kind nobody declared, nominal only because they hold few different integers.
    """

    name: str
    frame: pd.DataFrame
    kinds: Mapping[str, Kind]
    weights: NDArray[np.float64]
    missing: Missing = "drop"
    train_rows: int | None = None
    states: States = "seen"
    discretisation: Discretisation = field(default_factory=Discretisation)
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, Why] = field(default_factory=dict)
    label_type: str = "text"
    request: DataRequest | None = None
    untyped: bool = False
    gaps: Mapping[str, int] = field(default_factory=dict)
    row_weights: NDArray[np.float64] | None = None
    class_weights: Mapping[Any, float] | str | None = None
    units: bool = False
    form: Mapping[str, Any] = field(default_factory=dict)
    has_class: bool = True
    few_integers: tuple[str, ...] = ()

    def __repr__(self) -> str:
        features = f"{len(self.features)} feature{'' if len(self.features) == 1 else 's'}"
        target = f"class {shorten(self.target)}" if self.has_class else "no class"
        return f"<Table {shorten(self.name)}: {self.n_rows} rows, {features}, {target}>"

    @property
    def target(self) -> str:
        """Name of the class column; InputError if there is none."""
        require_class(self, "Table.target")
        return str(self.frame.columns[-1])

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features in column order; without a class, of all columns."""
        return tuple(str(c) for c in self.frame.columns[: -1 if self.has_class else None])

    @property
    def n_rows(self) -> int:
        """Number of rows M, without dropped rows."""
        return len(self.frame)

    @property
    def train_indices(self) -> NDArray[np.int64]:
        """Positions of the training rows; all rows if there is no split."""
        return np.flatnonzero(self.frame.index < (np.inf if self.train_rows is None else self.train_rows))

    @property
    def test_indices(self) -> NDArray[np.int64]:
        """Positions of the test rows; none if there is no split."""
        return np.flatnonzero(self.frame.index >= (np.inf if self.train_rows is None else self.train_rows))

    @cached_property
    def complete(self) -> NDArray[np.bool_]:
        """Rows without missing values, shape (M,); under the policy 'state' there may be others."""
        missing = [column.missing for column in self.columns.values()]
        return ~np.logical_or.reduce(missing)

    def changed(self, **attributes: Any) -> Table:
        """Return this table with other attributes, but the same frame, whose factorised columns are kept."""
        table = replace(self, **attributes)
        table.__dict__["columns"] = self.columns  # they take seconds in a large table
        return table

    def reweighted(self, weights: NDArray[np.float64]) -> Table:
        """Return this table with other weights, shape (M,); the rows still stand for as many rows as before."""
        base = self.weights if self.row_weights is None else self.row_weights
        return self.changed(weights=weights, row_weights=base)

    def of_complete_rows(self) -> Table:
        """Return this table, read with the policy 'state', as the policy 'drop' would have read it."""
        kept, total = self.complete, self.n_rows
        dropped = f"{DROPPED} missing values: {total - np.count_nonzero(kept)} of {total}."
        notes = (note for note in self.notes if not note.startswith((OWN_STATE, IN_UNITS)))
        rows = self.of_rows(np.flatnonzero(kept))
        table = replace(
            rows,
            weights=rows.weights if rows.row_weights is None else rows.row_weights,
            missing="drop",
            notes=(*notes, *([] if kept.all() else [dropped])),
            gaps=count_gaps(self.columns, self.target if self.has_class else None),
            row_weights=None,
        )
        # Balanced class weights, and the smallest weight, are those of the rows that are left.
        if self.class_weights is not None:
            table = table.weigh_classes(self.class_weights)
        return table.in_units() if self.units else table

    def weigh_classes(self, spec: Mapping[Any, float] | str) -> Table:
        """Return the table with weights multiplied by factors of classes (`milpbn.data.weights.class_factors`)."""
        require_class(self, "A weight per class (--class-weights, class_weights)")
        factors = class_factors(self.columns[self.target], spec, self.weights, self.train_indices)
        weights = self.weights * factors
        require_range(weights, f"The class weights' products with the rows' weights of {self.name!r}")
        return self.reweighted(weights).changed(class_weights=spec)

    def in_units(self) -> Table:
        """Return the table with weights of at least 1, as leave-one-out scores need them: all times one factor."""
        least = min(1.0, float(self.weights.min()))
        if least == 1:
            return self.changed(units=True)
        weights = self.weights / least
        require_range(weights, f"The weights of {self.name!r}, divided by the smallest,")
        note = f"{IN_UNITS} of every sample, so all weights are multiplied by {1 / least:.6g}: the smallest is 1."
        return self.reweighted(weights).changed(units=True, notes=(*self.notes, note))

    def of_rows(self, positions: NDArray[np.int64]) -> Table:
        """Return a table of the rows at these positions in `frame`, with the same decisions."""
        base = None if self.row_weights is None else self.row_weights[positions]
        return replace(
            self, frame=self.frame.iloc[positions], weights=self.weights[positions], row_weights=base
        )

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The factorised columns, by name."""
        return factorise(self.frame, untyped=self.untyped)

    def dataset(self, rows: str | ArrayLike = "train") -> Dataset:
        """Learn states and cuts from the given rows, and return these rows encoded.

        Parameters
        ----------
        rows : {'train', 'test', 'all'}, int array or bool array
            The rows; an int array holds positions in `frame`, whose order is kept, and a bool array is a mask.

        Raises
        ------
        InputError
            If there are no such rows, or if all of them belong to one class.
        """
        stages.enter("discretising")
        index = self._positions(rows)
        class_variable, classes = (
            self._classes(index) if self.has_class else (None, np.zeros(len(index), dtype=np.int32))
        )
        if class_variable is None and self.discretisation.method in ("mdl", BOOSTED):
            self._refuse_supervised()
        own_state = self.missing == "state"
        weights = self.weights[index]
        # The MDL criterion counts rows, and a class weight is no number of rows.
        base = weights if self.row_weights is None else self.row_weights[index]
        counted = effective_copies(weights, base)
        n_classes = 1 if class_variable is None else class_variable.n_states
        values, continuous = self.values(index, all_features=self.discretisation.method == BOOSTED)
        cuts = self.discretisation.cuts_of_all(values, continuous, classes, n_classes, counted)
        variables: list[Variable] = []
        for name, is_continuous, own in zip(self.features, continuous, cuts, strict=True):
            column = self.columns[name]
            if is_continuous:
                learnt = learn_continuous(column, index, own.tolist(), missing_state=own_state)
            else:
                learnt = learn_nominal(column, index, states=self.states, missing_state=own_state)
            variables.append(learnt)
        unused = [v.name for v in variables if v.n_states == 1]
        if class_variable is not None:
            variables.append(replace(class_variable, label_type=self.label_type))
        codes = np.empty((len(index), len(variables)), dtype=np.int32)
        for i, v in enumerate(variables):
            codes[:, i] = encode_column(v, self.columns[v.name])[index]
        distinct = [len(self.columns[name].values) for name in self.features]
        seen = class_variable is not None and isinstance(rows, str)
        leaks = remark_on_leaks(variables, codes, distinct) if seen else []
        for leak in leaks:
            warn(leak, DataWarning)
        notes = (
            *self.notes,
            *leaks,
            *([f"{UNUSED}: {', '.join(unused)}."] if unused else []),
        )
        return Dataset(
            self.name,
            tuple(variables),
            codes,
            weights,
            notes,
            self.left_out,
            self._request(rows),
            str(self.discretisation) if any(v.cuts for v in variables) else "",
            self.form,
            self.has_class,
            self.few_integers,
        )

    def values(
        self, index: NDArray[np.int64], *, all_features: bool = True
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the features of some rows as numbers, shape (M, N), and which are continuous, shape (N,).

        Labels that are no numbers are numbered in the order of their texts. Missing values are NaN. Without
        `all_features`, only continuous columns are filled, so that the others take no memory.
        """
        found = np.empty((len(index), len(self.features)), order="C" if all_features else "F")
        for i, name in enumerate(self.features):
            if not all_features and self.kinds[name] != "continuous":
                continue
            column = self.columns[name]
            numbers = column.numbers
            if self.kinds[name] != "continuous" and not column.is_numeric:
                numbers = np.unique(column.labels, return_inverse=True)[1].astype(np.float64)
            found[:, i] = column.of_rows(numbers, np.nan)[index]
        return found, np.array([self.kinds[name] == "continuous" for name in self.features], dtype=bool)

    def _refuse_supervised(self) -> None:
        """Refuse continuous columns, which the method cuts by a class."""
        numbers = [name for name in self.features if self.kinds[name] == "continuous"]
        if numbers:
            raise InputError(
                f"The column {numbers[0]!r} of {self.name!r} is continuous, and the cuts of "
                f"{self.discretisation.method} need a class; choose other cuts, such as --discretise quantile:5 "
                "(discretise), or declare the column nominal."
            )

    def _classes(self, index: NDArray[np.int64]) -> tuple[Variable, NDArray[np.int32]]:
        """Return the class variable and the class codes of some rows; InputError if all are of one class."""
        target = self.columns[self.target]
        class_variable = learn_nominal(target, index, states=self.states)
        classes = encode_column(class_variable, target)[index]
        if len(np.unique(classes)) < 2:
            label = class_variable.states[classes[0]]
            rows = "The only training row" if len(index) == 1 else f"Every one of {len(index)} training rows"
            dropped = "".join(f" {note}" for note in dropped_notes(self.notes))
            if self.gaps:
                lacking = ",".join(lacking_most(self.gaps))
                remedy = f"Leave out the columns that lack most values (--drop {lacking})"
                dropped += f" {remedy}, or {OWN_STATES}."
            raise InputError(
                f"{rows} of {self.name!r} has the class {label!r}; a classifier needs at least two classes.{dropped}"
            )
        return class_variable, classes

    def _request(self, rows: str | ArrayLike) -> DataRequest | None:
        """Return how to read the given rows, with what was decided since the table was read; None for other rows."""
        if self.request is None or not isinstance(rows, str) or rows == "test":
            return None
        cuts = str(self.discretisation)
        changed: dict[str, str | None] = {"discretise": None if cuts == str(Discretisation()) else cuts}
        if self.missing != "drop" or "missing" in self.request.options:
            changed["missing"] = self.missing
        found = self.request.with_options(**changed)
        return replace(found, rows="all") if rows == "all" else found

    def encode(
        self, variables: Sequence[Variable], rows: str | ArrayLike = "all", *, has_class: bool = True
    ) -> Dataset:
        """Encode rows with given variables; see `milpbn.data.encodings.encode_columns`.

        Rows that the policy 'drop' removed are not encoded, as in Peharz and Pernkopf (2012), while
        `milpbn.data.read_samples` keeps every row. The notes of the result are only about the encoding.
        """
        index = self._positions(rows)
        columns = {name: column.take(index) for name, column in self.columns.items()}
        return encode_columns(columns, variables, self.weights[index], self.name, has_class=has_class)

    def _positions(self, rows: str | ArrayLike) -> NDArray[np.int64]:
        """Return the positions of rows given by name, as positions, or as a mask."""
        if isinstance(rows, str):
            named = {"train": self.train_indices, "test": self.test_indices, "all": np.arange(self.n_rows)}
            if rows not in named:
                raise InputError(f"Rows are 'train', 'test', 'all' or positions, not {rows!r}.")
            index, what = named[rows], f"{rows} rows"
        else:
            index, what = np.asarray(rows), "chosen rows"
            if index.dtype == bool and index.shape == (self.n_rows,):
                index = np.flatnonzero(index)
            integral = index.size == 0 or index.dtype.kind in "iu"
            if index.ndim != 1 or not integral or (index < 0).any() or (index >= self.n_rows).any():
                raise InputError(
                    f"Positions of rows of {self.name!r} are integers from 0 to {self.n_rows - 1}."
                )
        if index.size == 0:
            raise InputError(f"The table {self.name!r} has no {what}.")
        return index.astype(np.int64)


def factorise(frame: pd.DataFrame, where: str = "the table", *, untyped: bool = False) -> dict[str, Column]:
    """Return the columns of a frame whose index holds row numbers; the other arguments are those of `Column.of`."""
    return {str(name): Column.of(series, where, untyped=untyped) for name, series in frame.items()}


def count_gaps(columns: Mapping[str, Column], target: str | None) -> dict[str, int]:
    """Return the number of missing values of each feature that has some."""
    counts = {
        name: int(np.count_nonzero(column.missing)) for name, column in columns.items() if name != target
    }
    return {name: count for name, count in counts.items() if count}


def lacking_most(gaps: Mapping[str, int]) -> list[str]:
    """Return the features that lack at least half as many values as the one that lacks most."""
    return [name for name, count in gaps.items() if 2 * count >= max(gaps.values())]
