"""Sample weights from a column of the table, and weights of classes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milpbn.data.column import Column, take_column
from milpbn.data.variables import encode_column, learn_nominal
from milpbn.errors import InputError

#: The smallest positive weight that is accepted, and the largest sum of all weights.
SMALLEST, LARGEST_SUM = 1e-15, 1e15


def weights_in(frame: pd.DataFrame, name: str | None, where: str) -> NDArray[np.float64]:
    """Return the weights in the column that the option `weights` names, shape (M,); 1 for every row without one.

    Raises `InputError` if a weight is missing, negative or not a finite number, or if all are zero. The message names
    the row.
    """
    if name is None:
        return np.ones(len(frame))
    column = Column.of(take_column(frame, name, "weights", where), where)
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
    require_range(weights, f"The weights in column {column.name!r} of {where}")
    return weights


def require_range(weights: NDArray[np.float64], what: str) -> None:
    """Check that weights are within the range for which `milpbn.problem.rounding` bounds the rounding errors.

    `what` begins the error messages, a plural. Raises `InputError` if a weight is not a finite number, negative, or
    positive and below 1e-15; or if the sum exceeds 1e15.
    """
    if not weights.sum() <= LARGEST_SUM:
        raise InputError(f"{what} sum to more than {LARGEST_SUM:g}; divide them by a large number.")
    if not (weights >= 0).all():
        raise InputError(f"{what} must be numbers that are not negative.")
    least = float(weights[weights > 0].min(initial=np.inf))
    if least < SMALLEST:
        raise InputError(
            f"{what} go down to {least:g}, below {SMALLEST:g}; multiply all by a large number, or drop such rows by "
            "the weight 0."
        )


def class_factors(
    target: Column, spec: Mapping[object, float] | str, weights: NDArray[np.float64], train: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the factor on each row's weight that belongs to its class, shape (M,).

    Classes that are not in the mapping `spec` have the factor 1. 'balanced' means W / (C W_c), where W is the total
    weight of the training rows, W_c that of class c, and C the number of classes in the training rows: all classes get
    the same weight, and the total stays W. `train` has the positions of the training rows. Raises `InputError` if a
    label is not a class, a weight is not a positive number, or `spec` is another word than 'balanced'.
    """
    everything = np.arange(len(target.codes))
    variable = learn_nominal(target, everything)
    classes = encode_column(variable, target)
    if spec != "balanced" and not isinstance(spec, Mapping):
        raise InputError(f"Class weights must map class labels to weights, or be 'balanced'; got {spec!r}.")
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
                    f"The class weights name {label!r}, which is not a class of {target.name!r} ({known})."
                )
            try:
                factors[code] = float(spec[label])
            except (TypeError, ValueError):
                factors[code] = np.nan
            if not (np.isfinite(factors[code]) and factors[code] > 0):
                raise InputError(
                    f"The class weight of {label!r} must be a positive number, not {spec[label]!r}."
                )
    return factors[classes]


def doubt_on_total(weights: NDArray[np.float64]) -> list[str]:
    """Return a sentence if the weights, all positive, sum to less than half the number of rows; else nothing."""
    total, n = float(weights.sum()), len(weights)
    if total >= n / 2:
        return []
    return [
        f"The weights of {n} rows sum to {total:.3g}, which counts as so many rows; if the weights are shares, "
        f"multiply them by {n / total:.3g}, so that cuts and parameters rest on {n} rows."
    ]


def effective_copies(weights: NDArray[np.float64], copies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights times one factor, so that they sum to the effective number of rows.

    Kish's effective size of rows with factors f, each in n copies, is (sum n f)^2 / sum n f^2: the number of rows
    without factors whose shares vary as much. It is the number of copies if all factors are equal. The weights, those
    of classes included, and the copies, how many rows each row stands for without them, are positive and have shape
    (M,).
    """
    factors = weights / copies
    factors = factors / factors.max()  # so that no square overflows
    return copies * factors * (float(copies @ factors) / float(copies @ factors**2))
