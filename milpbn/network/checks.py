"""Checks that variables, tables and a structure form a classifier."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from milpbn.data.dataset import LABEL_TYPES, Variable, by_column
from milpbn.errors import InputError
from milpbn.network.cpt import Cpt
from milpbn.network.structure import Structure
from milpbn.util.jsonable import shorten

#: How far the sum of a table's row may be from 1.
ROW_SUM_TOLERANCE = 1e-6


def check_variables(variables: Sequence[Variable], *, has_class: bool = True) -> None:
    """Check names, states, cuts and columns.

    `InputError` if there is no feature, a name or a state occurs twice, a variable has no states, the class has only
    one, cuts are not finite and ascending, their number does not fit the number of states, or a column is not possible.
    """
    if len(variables) < 2:
        needed = "one feature and the class variable" if has_class else "two variables"
        raise InputError(f"The classifier needs at least {needed}.")
    if twice := _repeated(v.name for v in variables):
        raise InputError(f"The variable name {twice[0]!r} occurs twice.")
    for variable in variables:
        _check_variable(variable)
    if has_class and variables[-1].n_states < 2:
        raise InputError(f"The class variable {variables[-1].name!r} has fewer than two states.")
    columns = by_column(variables)
    for variable in variables:
        if variable.column is None:
            continue
        if variable.name in columns and variable.name != variable.column:
            raise InputError(
                f"The variable {variable.name!r} codes the column {variable.column!r}, but has the name of another one."
            )
        if has_class and len(variables) - 1 in columns[variable.column]:
            raise InputError(
                f"The column {variable.column!r} of the class has another variable or another name."
            )
    for column, places in columns.items():
        _check_column(column, [variables[i] for i in places])


def _check_column(column: str, variables: Sequence[Variable]) -> None:
    """Check that one of the variables of a column tells the states of all others."""
    finest = max(variables, key=lambda v: v.n_states)
    for variable in variables if len(variables) > 1 else ():
        if variable.cuts is None or not set(variable.cuts) <= set(finest.cuts or ()):
            raise InputError(
                f"The variables {variable.name!r} and {finest.name!r} are of the column {column!r}, but not all cuts "
                "of the one are cuts of the other."
            )
        if variable.missing_state != finest.missing_state:
            raise InputError(
                f"The variables {variable.name!r} and {finest.name!r} are of the column {column!r}, but only one of "
                "them has a state of missing values."
            )


def _check_variable(variable: Variable) -> None:
    if not variable.states:
        raise InputError(f"The variable {variable.name!r} has no states.")
    if twice := _repeated(variable.states):
        raise InputError(f"The state {twice[0]!r} of {variable.name!r} occurs twice.")
    try:
        known = variable.label_type in LABEL_TYPES and len(variable.labels) == variable.n_states
    except (ValueError, OverflowError):  # a state is no number, or too large a one
        known = False
    if not known:
        raise InputError(
            f"The states of {variable.name!r} are not labels of the type {shorten(variable.label_type)}."
        )
    if variable.cuts is None:
        return
    if not all(math.isfinite(cut) for cut in variable.cuts):
        raise InputError(f"The cuts of {variable.name!r} are not all finite.")
    if any(a >= b for a, b in zip(variable.cuts, variable.cuts[1:], strict=False)):
        raise InputError(f"The cuts of {variable.name!r} do not ascend.")
    intervals = len(variable.cuts) + 1
    if variable.n_states != intervals + variable.missing_state:
        raise InputError(
            f"The variable {variable.name!r} has {variable.n_states} states, "
            f"but its cuts define {intervals} intervals."
        )


def check_cpts(cpts: Sequence[Cpt], variables: Sequence[Variable], structure: Structure | None) -> None:
    """Check that the tables belong to the structure and hold probabilities.

    Without a structure, the parents are any other variables in ascending order.
    `InputError` if names, order, parents or shapes differ, or if a row has a negative or infinite probability or does
    not sum to 1 within `ROW_SUM_TOLERANCE`.
    """
    if structure is not None and structure.names != tuple(v.name for v in variables):
        raise InputError("The structure and the variables have different names or a different order.")
    if len(cpts) != len(variables):
        raise InputError(f"The classifier has {len(variables)} variables and {len(cpts)} tables.")
    for i, cpt in enumerate(cpts):
        name = variables[i].name
        others = {*range(len(variables))} - {i}
        parents = tuple(sorted(others & {*cpt.parents})) if structure is None else structure.parents[i]
        if cpt.variable != i or cpt.parents != parents:
            than = "those that it can have" if structure is None else "the structure"
            raise InputError(
                f"The table of {name!r} has other parents than {than}, or has them in another order."
            )
        shape = tuple(variables[j].n_states for j in (*cpt.parents, i))
        if cpt.table.shape != shape:
            raise InputError(
                f"The table of {name!r} has the shape {cpt.table.shape}, but its states and parents need {shape}."
            )
        if not np.isfinite(cpt.table).all() or (cpt.table < 0).any():
            raise InputError(f"The table of {name!r} holds a probability that is negative or not finite.")
        if not np.allclose(cpt.table.sum(axis=-1), 1, rtol=0, atol=ROW_SUM_TOLERANCE):
            raise InputError(f"The table of {name!r} has a row whose probabilities do not sum to 1.")
        known = cpt.concentration
        if known is not None and not (
            known.shape == shape[:-1] and np.isfinite(known).all() and (known > 0).all()
        ):
            raise InputError(
                f"The concentrations of {name!r} are not a positive number for each row of its table."
            )


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
