"""Which features shall be monotone, as a user writes it, and in the codes of a classifier's variables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from milpbn.data.dataset import Variable, by_column, finest
from milpbn.data.labels import label_of
from milpbn.data.variables import states_of
from milpbn.errors import InputError
from milpbn.util.jsonable import json_safe
from milpbn.util.options import quoted

#: Most labels in a sentence.
_SHOWN = 8
_RISING, _FALLING = ("+", "1", "increasing"), ("-", "-1", "decreasing")


@dataclass(frozen=True)
class MonotoneConstraint:
    """The log-odds never fall along the states of a column, or never rise."""

    column: str
    #: Whether the log-odds never fall; else they never rise.
    rising: bool
    #: The states in ascending order; empty for that of intervals, numbers, dates or truth values.
    states: tuple[str, ...]
    #: The classes in ascending order, each against the one before; of two the last is the one to detect.
    classes: tuple[str, ...]

    @property
    def word(self) -> str:
        """What ``--monotone`` has behind the column."""
        return ":".join(self.states) or ("+" if self.rising else "-")

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return json_safe(vars(self))

    def __str__(self) -> str:
        """Return what never falls or rises, in words."""
        of = repr(self.classes[-1]) if len(self.classes) == 2 else "each class against the one before"
        states = f" ({' < '.join(self.states)})" if self.states else ""
        return f"the log-odds of {of} never {'fall' if self.rising else 'rise'} in {self.column!r}{states}"


def any_monotone(asked: object) -> bool:
    """Return whether a constraint is asked for: neither by None nor by an empty mapping, nor by the number 0 alone."""
    values = asked.values() if isinstance(asked, Mapping) else np.atleast_1d(np.asarray(asked, dtype=object))
    return asked is not None and any(_word(value) != "0" for value in values)


def _word(value: object) -> str:
    return f"{value:g}" if isinstance(value, Real) else str(value)


def read_monotone(
    asked: object, variables: Sequence[Variable], positive: str | None = None
) -> tuple[MonotoneConstraint, ...]:
    """Return the monotone constraints that a user asks for, in the columns of these variables, the class last.

    A mapping has by column ``+`` or 1 if the log-odds never fall, ``-`` or -1 if they never rise, 0 for none, or the
    states in the order along which they never fall; its ``positive`` may name the class of two that is meant,
    ``--positive`` also where a column is called ``positive``, and else it is the argument `positive`. A sequence has a
    number for each column, as scikit-learn's ``monotonic_cst``. `InputError` if a column is no feature or its states
    have no order, or the classes have none.
    """
    columns = by_column(variables[:-1])
    if not isinstance(asked, Mapping):
        numbers = np.atleast_1d(np.asarray(asked, dtype=object)).tolist()
        if len(numbers) != len(columns):
            raise InputError(
                "Monotone features (--monotone, monotone) are a mapping such as {'age': '+'}, or a 1, 0 or -1 for each "
                f"of the {len(columns)} features; got {len(numbers)}."
            )
        asked = dict(zip(columns, numbers, strict=True))
    given = {str(key).strip(): value for key, value in asked.items()}
    for key in ("positive", "--positive"):  # the second also where a column has the name of the first
        if key not in columns:
            positive = given.pop(key, positive)
    if not any_monotone(given):
        return ()
    classes = _ordered_classes(variables[-1], None if positive is None else label_of(positive))
    found = []
    for name, value in given.items():
        word = _word(value)
        if word == "0":
            continue
        if name not in columns:
            raise InputError(
                f"--monotone (monotone) names {name!r}, which is not among the features: {_listed(columns)}."
            )
        states: tuple[str, ...] = ()
        if word not in (*_RISING, *_FALLING):
            own = states_of(variables[columns[name][0]]).states
            ordered = value if isinstance(value, list | tuple) else _between_colons(word, own)
            states = tuple(map(label_of, ordered))
        constraint = MonotoneConstraint(name, word not in _FALLING, states, classes)
        StateOrder.of(constraint, variables)  # refuses states without an order
        found.append(constraint)
    return tuple(found)


def _between_colons(word: str, states: Sequence[str]) -> Sequence[str]:
    """Return the states in a text that has colons between them; they may have colons themselves."""
    found = sorted(states, key=word.find)
    return found if ":".join(found) == word else word.split(":")


def _listed(labels: Collection[str]) -> str:
    """Return the first labels in words."""
    first = [repr(label) for label, _ in zip(labels, range(_SHOWN), strict=False)]
    return ", ".join(first) + (f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else "")


def _ordered_classes(target: Variable, positive: str | None) -> tuple[str, ...]:
    """Return the classes in ascending order: of two the positive one last, else as numbers."""
    if len(target.states) == 2:
        if positive is not None and positive not in target.states:
            raise InputError(
                f"--positive (positive) must be one of {', '.join(map(repr, target.states))}, got {positive!r}."
            )
        return tuple(sorted(target.states, key=lambda label: label == (positive or target.states[1])))
    order = states_of(target).ascending()
    if order is None:
        raise InputError(
            f"Monotone features (--monotone, monotone) need two classes, or classes that are numbers; {target.name!r} "
            f"has the {len(target.states)} classes {_listed(target.states)}."
        )
    return tuple(target.states[k] for k in order)


@dataclass(frozen=True)
class StateOrder:
    """The order of the states of a monotone column, in the codes of a classifier's variables."""

    #: Positions of the column's variables.
    places: tuple[int, ...]
    #: The one of them with the most states.
    finest: int
    #: Its states, without that of missing values, in the order along which the log-odds never fall.
    codes: tuple[int, ...]
    #: The classes in ascending order.
    classes: tuple[int, ...]

    @classmethod
    def of(cls, constraint: MonotoneConstraint, variables: Sequence[Variable]) -> StateOrder:
        """Return the order in the codes of variables; `InputError` if they lack the column, or it has no such order."""
        column = constraint.column
        places = by_column(variables[:-1]).get(column)
        if places is None:
            raise InputError(f"The classifier has no column {column!r} that could be monotone.")
        widest = finest(variables[:-1])[column]
        variable = variables[widest]
        own, option = states_of(variable), quoted(column)
        if not constraint.states:
            codes = own.ascending()
        elif variable.cuts is not None:
            raise InputError(
                f"The states of {column!r} are intervals, which have an order; write --monotone {option}=+ "
                "if the log-odds never fall, or - if they never rise."
            )
        elif sorted(constraint.states) == sorted(own.states):
            codes = [own.states.index(state) for state in constraint.states]
        else:
            raise InputError(
                f"--monotone (monotone) gives {column!r} the states {_listed(constraint.states)}; it has to name "
                f"each of its states once: {_listed(own.states)}."
            )
        if codes is None:
            raise InputError(
                f"The states of {column!r} have no order of their own: {_listed(own.states)}. Write them in their "
                f"order with colons, as in --monotone {option}=low:medium:high (in Python a list), or leave the "
                "feature out of --monotone."
            )
        states = variables[-1].states
        if sorted(constraint.classes) != sorted(states):
            raise InputError(
                f"The classes are {', '.join(map(repr, states))}, and {column!r} is to be monotone for others."
            )
        codes = codes if constraint.rising else codes[::-1]
        return cls(
            tuple(places), widest, tuple(codes), tuple(states.index(label) for label in constraint.classes)
        )
