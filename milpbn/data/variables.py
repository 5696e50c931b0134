"""Learning a variable's states from training rows, and encoding columns with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milpbn.data.column import Column
from milpbn.data.dataset import MISSING, UNKNOWN, Variable
from milpbn.data.labels import (
    MAX_EXACT,
    MISSING_MARKERS,
    StateLabels,
    label_of,
    number_label,
    number_of,
    truth_of,
)
from milpbn.data.options import States
from milpbn.errors import InputError

#: Label of the state that stands for missing values.
MISSING_LABEL = "?"


def learn_nominal(
    column: Column, rows: NDArray[np.int64], *, states: States = "seen", missing_state: bool = False
) -> Variable:
    """Return the variable of a nominal column.

    If all labels are numbers, they are compared and ordered by value ("1", 1 and 1.0 are one state); otherwise, and
    where `Column.differs_as_text`, they are compared and ordered as text. If `Column.is_boolean`, TRUE and true are one
    state. Declared states keep their order. `states` says whether the labels are those of the training rows, or those
    that the file or type declares, if it does. With `missing_state`, missing values get a state of their own, the last
    one, if the training rows have any.
    """
    seen = np.unique(column.codes[rows])
    has_missing = bool(seen.size and seen[0] < 0)
    seen = seen[seen >= 0]
    declared = column.declared is not None and states == "declared"
    if declared:
        labels = list(column.declared or ())
        numbers = np.array([number_of(label) for label in labels])
    else:
        labels = [column.labels[k] for k in seen]
        numbers = column.numbers[seen]
    exact = bool(numbers.size and np.all(np.abs(numbers) <= MAX_EXACT))  # NaN compares false
    numeric = exact and not column.differs_as_text
    if numeric:
        labels = [number_label(x) for x in (numbers if declared else np.sort(numbers))]
    elif not declared:
        labels = sorted(labels)
        if column.is_boolean:
            first: dict[bool | None, str] = {}
            for label in labels:
                first.setdefault(truth_of(label), label)
            labels = list(first.values())
    with_missing = missing_state and has_missing
    return Variable(
        column.name,
        (*dict.fromkeys(labels), *((MISSING_LABEL,) if with_missing else ())),
        numeric=numeric,
        missing_state=with_missing,
    )


def learn_continuous(
    column: Column, rows: NDArray[np.int64], cuts: Sequence[float], *, missing_state: bool = False
) -> Variable:
    """Return the variable of a continuous column with ascending cuts; without one, all numbers have the same state.

    With `missing_state`, missing values get a state of their own, the last one, if the training rows have any.
    """
    with_missing = missing_state and bool((column.codes[rows] < 0).any())
    return interval_variable(column.name, cuts, missing_state=with_missing)


def interval_variable(
    name: str, cuts: Sequence[float], *, missing_state: bool = False, column: str | None = None
) -> Variable:
    """Return the variable whose states are the intervals between cuts, and with `missing_state` the missing values."""
    labels = interval_labels(cuts) + ((MISSING_LABEL,) if missing_state else ())
    return Variable(name, labels, cuts=tuple(cuts), missing_state=missing_state, column=column)


def interval_labels(cuts: Sequence[float]) -> tuple[str, ...]:
    """Return the labels of the intervals between ascending cuts, such as ``(2.5, 4]``.

    Cuts are rounded to the fewest digits, at least six, with which they still differ; the exact cuts are in
    the variable's ``cuts``.
    """
    for digits in range(6, 18):
        texts = [f"{cut:.{digits}g}" for cut in cuts]
        if len(set(texts)) == len(texts):
            break
    edges = ["-inf", *texts, "inf"]
    closed = ["]"] * len(texts) + [")"]
    return tuple(f"({a}, {b}{end}" for a, b, end in zip(edges[:-1], edges[1:], closed, strict=True))


def coarser_codes(fine: Variable, coarse: Variable) -> NDArray[np.intp]:
    """Return the code of a coarse variable for each state of a finer one of the same column, which has all its cuts."""
    if fine == coarse or fine.cuts is None or coarse.cuts is None:
        return np.arange(fine.n_states)
    codes = np.searchsorted(np.array(coarse.cuts), np.array([*fine.cuts, np.inf]))
    return np.append(codes, coarse.n_states - 1) if fine.missing_state else codes


def encode_column(
    variable: Variable, column: Column, where: str = "the table", beside: Sequence[Variable] = ()
) -> NDArray[np.int32]:
    """Return the state codes of a raw column, shape (M,), by the rule of `milpbn.data.labels`.

    Values without a state get `UNKNOWN`. Missing values get their own state if the variable has one, else `MISSING`. So
    do labels of states that only other variables of the column have, those `beside` it: wider intervals. Raises
    `InputError` if the variable is discretised and a value is neither a finite number nor one of its intervals.
    """
    known, others_known = states_of(variable), [states_of(other) for other in beside]
    codes = np.full(len(column.values), UNKNOWN, dtype=np.int32)
    others = np.arange(len(codes))
    if variable.cuts is not None:
        codes[:] = np.searchsorted(np.array(variable.cuts), column.numbers, side="left")
        others = np.flatnonzero(~np.isfinite(column.numbers))
    missing = variable.n_states - 1 if variable.missing_state else MISSING
    for k in others:
        label = label_of(column.values[k])
        code = known.code(label)
        if code is None and any(each.code(label) is not None for each in others_known):
            code = MISSING
        codes[k] = code if code is not None else missing if label in MISSING_MARKERS else UNKNOWN
    if variable.cuts is not None:
        remedy = "the column was learnt as a continuous one; correct the value or empty the cell"
        column.check_numeric(where, remedy, others=codes != UNKNOWN)
    # A word such as None may be a state.
    words = [missing if (code := known.code(word)) is None else code for word in column.words]
    return column.of_rows(codes, missing, words)


def states_of(variable: Variable) -> StateLabels:
    """Return the states of the values that are not missing, to which labels belong."""
    present = variable.states[:-1] if variable.missing_state else variable.states
    return StateLabels(present, numeric=variable.numeric)


def encode_value(variables: Sequence[Variable], value: Any, where: str) -> list[int]:
    """Return the state codes of one raw value of a column in its variables, as `encode_column` does.

    The label of an interval is a value, too.

    Raises `InputError` if the variables are discretised and the value is neither a finite number nor the label of an
    interval, or if the value is a container.
    """
    variable = variables[0]
    column = Column.of(pd.Series([value], name=variable.name, dtype=object), where)
    number = np.isfinite(column.numbers).all()
    label = label_of(value)
    if variable.cuts is not None and not number and all(states_of(v).code(label) is None for v in variables):
        known = ", ".join(map(repr, variable.states))
        raise InputError(
            f"The value {value!r} of {variable.name!r} in {where} is neither a finite number nor one of the states "
            f"{known}."
        )
    return [int(encode_column(v, column, where, variables)[0]) for v in variables]
