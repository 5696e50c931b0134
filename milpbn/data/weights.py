"""Sample weights: from a column of the table, and by class."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milpbn.data.column import Column
from milpbn.data.variables import encode_column, learn_nominal
from milpbn.errors import InputError

#: Most that weights may sum to.
LARGEST_SUM = 1e15


def row_weights(column: Column, where: str) -> NDArray[np.float64]:
    """Return the weights that a column holds, shape (M,).

    Raises
    ------
    InputError
        If a weight is missing, negative or no finite number (with its row), or all are zero.
    """
    if column.missing.any():
        row = column.rows[np.flatnonzero(column.missing)[0]] + 1
        raise InputError(
            f"The weight in row {row} of {where}, column {column.name!r}, is missing; give every row one."
        )
    column.check_numeric(where, "weights must be numbers that are not negative")
    negative = column.describe_first(column.numbers < 0)
    if negative is not None:
        raise InputError(
            f"The weight column {column.name!r} of {where} holds {negative}; weights must not be negative."
        )
    weights = column.numbers[column.codes]
    if not weights.any():
        raise InputError(f"All weights in column {column.name!r} of {where} are zero; some must be positive.")
    require_sum(weights, f"The weights in column {column.name!r} of {where}")
    return weights


def require_sum(weights: NDArray[np.float64], what: str) -> None:
    """Refuse weights whose sum is so large that products with it leave float64's range, or lose the smoothing.

    Raises
    ------
    InputError
        Beginning with `what`.
    """
    if not weights.sum() <= LARGEST_SUM:
        raise InputError(f"{what} sum to more than {LARGEST_SUM:g}; divide them by a large number.")


def class_factors(
    target: Column, spec: Mapping[object, float] | str, weights: NDArray[np.float64], train: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the factor that each row's weight gets for its class, shape (M,).

    Parameters
    ----------
    target : Column
        The class column.
    spec : mapping from label to weight, or 'balanced'
        Classes that the mapping leaves out have weight 1. With W the total weight of the training rows,
        W_c that of class c among them and C the number of classes there, 'balanced' gives W / (C W_c),
        so that all classes weigh the same and the total stays W.
    weights : float64 array, shape (M,)
        Sample weights.
    train : int64 array
        Positions of the training rows.

    Raises
    ------
    InputError
        For a label that is no class, a weight that is no positive number, or another word than 'balanced'.
    """
    everything = np.arange(len(target.codes))
    variable = learn_nominal(target, everything)
    classes = encode_column(variable, target)
    if spec != "balanced" and not isinstance(spec, Mapping):
        raise InputError(f"Class weights are a weight per class label or 'balanced', not {spec!r}.")
    if isinstance(spec, str):
        totals = np.bincount(classes[train], weights=weights[train], minlength=variable.n_states)
        present = totals > 0
        factors = np.where(present, totals.sum() / (present.sum() * np.where(present, totals, 1.0)), 1.0)
    else:
        factors = np.ones(variable.n_states)
        labels = pd.Series(list(spec), dtype=object, name=target.name)
        for label, code in zip(labels, encode_column(variable, Column.of(labels)), strict=True):
            if code < 0:
                known = ", ".join(variable.states)
                raise InputError(
                    f"The class weights name {label!r}, which is no class of {target.name!r} ({known})."
                )
            factors[code] = _positive(spec[label], label)
    return factors[classes]


def _positive(weight: object, label: object) -> float:
    """Return a class weight as a number, or refuse it."""
    try:
        number = float(weight)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = np.nan
    if not (np.isfinite(number) and number > 0):
        raise InputError(f"The class weight of {label!r} must be a positive number, not {weight!r}.")
    return number
