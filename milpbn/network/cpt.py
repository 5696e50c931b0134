"""Conditional probability tables: estimation, and the log-joint they give for every class."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import UNKNOWN, Dataset, Variable
from milpbn.errors import InputError
from milpbn.network.structure import Structure

#: Most entries of one table (0.8 GB); a structure read from a file may ask for any number of parents.
MAX_TABLE_ENTRIES = 10**8
#: Beside a larger Laplace constant counts no longer matter.
LARGEST_SMOOTHING = 1e15
#: Entries of the log-joint computed at a time, so that the temporary arrays stay in the cache.
_CHUNK_ENTRIES = 1 << 18


@dataclass(frozen=True, eq=False)
class Cpt:
    """Conditional probability table of one variable.

    Attributes
    ----------
    variable : int
        Index of the variable.
    parents : tuple of int
        Ascending indices of its parents.
    table : float64 array, shape (states of each parent..., states of the variable)
        P(variable | parents), one axis per parent in the order of ``parents``; the last axis sums to 1.
    """

    variable: int
    parents: tuple[int, ...]
    table: NDArray[np.float64]


def fit_cpts(data: Dataset, structure: Structure, smoothing: float = 1.0) -> list[Cpt]:
    r"""Return the Laplace-smoothed maximum-likelihood tables of a structure.

    .. math:: \theta^i_{j|h} = \frac{n^i_{j|h} + a}{n^i_h + a \, sp(X_i)}

    with weighted counts n and smoothing constant a; a = 0 is P12 (2). A parent configuration without
    weight has, at a = 0 too, the uniform row.

    Parameters
    ----------
    data : Dataset
        Training samples, without unknown values.
    structure : Structure
        Parent sets over the data's variables, in the data's order.
    smoothing : float
        Laplace constant a >= 0 (P12 uses 1).

    Returns
    -------
    list of Cpt, length V
        One per variable, in order.

    Raises
    ------
    InputError
        If the structure is over other variables, a value has no state, ``smoothing`` is negative or
        beyond `LARGEST_SMOOTHING`, or a table would exceed `MAX_TABLE_ENTRIES`.
    """
    require_match(data, structure)
    if not 0 <= smoothing <= LARGEST_SMOOTHING:
        raise InputError(f"smoothing must be a number from 0 to {LARGEST_SMOOTHING:g}, got {smoothing}.")
    require_states(data)
    return [_fit_cpt(data, i, parents, smoothing) for i, parents in enumerate(structure.parents)]


def require_dataset(data: object) -> None:
    """Refuse what is no `Dataset`, such as a table.

    Raises
    ------
    InputError
        Saying how to get one.
    """
    if not isinstance(data, Dataset):
        raise InputError(
            f"A Dataset is needed, got a {type(data).__name__}; "
            "what `read_table` returns has one: `table.dataset()`."
        )


def require_match(data: Dataset, structure: Structure) -> None:
    """Refuse a structure over other variables, or over the data's in another order.

    Raises
    ------
    InputError
        Naming both.
    """
    require_dataset(data)
    if structure.names != data.names:
        raise InputError(
            f"The structure is over {list(structure.names)}, the data {data.name!r} over {list(data.names)}; "
            "both need the same variables in the same order."
        )


def require_states(data: Dataset) -> None:
    """Refuse training data with values that have no state.

    Raises
    ------
    InputError
        Naming the first column.
    """
    require_dataset(data)
    unknown = np.flatnonzero((data.codes == UNKNOWN).any(axis=0))
    if unknown.size:
        raise InputError(
            f"Column {data.names[unknown[0]]!r} of the training data {data.name!r} has values "
            "without a state; drop these rows or give missing values a state."
        )


def require_table(variables: Sequence[Variable], variable: int, parents: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a table, the parents' states first, and refuse one that is too large.

    Raises
    ------
    InputError
        Naming the variables and their numbers of states, if it would exceed `MAX_TABLE_ENTRIES`.
    """
    shape = tuple(variables[j].n_states for j in (*parents, variable))
    if math.prod(shape) > MAX_TABLE_ENTRIES:
        given = ", ".join(f"{variables[j].name!r} ({variables[j].n_states} states)" for j in parents)
        raise InputError(
            f"The table of {variables[variable].name!r} ({variables[variable].n_states} states) given {given} would "
            f"have {math.prod(shape)} entries, more than {MAX_TABLE_ENTRIES}; leave out columns with so many states "
            "(numbers of rows?), join rare states, or give it fewer parents."
        )
    return shape


def _fit_cpt(data: Dataset, variable: int, parents: tuple[int, ...], smoothing: float) -> Cpt:
    axes = [*parents, variable]
    shape = require_table(data.variables, variable, parents)
    size = math.prod(shape)
    cells = np.ravel_multi_index(tuple(data.codes[:, axes].T), shape)
    counts = np.bincount(cells, weights=data.weights, minlength=size).reshape(shape)
    totals = counts.sum(axis=-1, keepdims=True) + smoothing * shape[-1]
    table = np.full(shape, 1.0 / shape[-1])
    np.divide(counts + smoothing, totals, out=table, where=totals > 0)
    return Cpt(variable, parents, table)


def class_log_joint(
    codes: NDArray[np.int32],
    structure: Structure,
    cpts: Sequence[Cpt],
    n_classes: int,
    logarithm: Callable[[NDArray[np.float64]], NDArray[np.float64]] = np.log,
) -> NDArray[np.float64]:
    """Return log P(c, z_m) for every sample and every class (the logarithm of P12 (1)).

    An unknown state of a feature drops the feature's own factor; as a parent it gives the uniform row,
    1 / sp of the child.

    Parameters
    ----------
    codes : int32 array, shape (M, V)
        State codes, `UNKNOWN` (-1) allowed; the last column, the class, is ignored: each class in turn
        takes its place.
    structure : Structure
        The parent sets.
    cpts : sequence of Cpt, length V
        Their tables.
    n_classes : int
        Number of classes C.
    logarithm : callable
        Applied to the tables; `milpbn.network.fixed_point` has one of few bits.

    Returns
    -------
    float64 array, shape (M, C)
        Nats; ``-inf`` where an unsmoothed table holds 0.

    Raises
    ------
    InputError
        If the codes have another number of columns than the structure, or a code is out of range.
    """
    n_features = len(structure.names) - 1
    if codes.ndim != 2 or codes.shape[1] != n_features + 1:
        raise InputError(
            f"The samples must be an array with {n_features + 1} columns, one per variable, "
            f"the class last, got the shape {codes.shape}."
        )
    for cpt in cpts[:n_features]:
        column = codes[:, cpt.variable]
        if column.size and not (column.min() >= UNKNOWN and column.max() < cpt.table.shape[-1]):
            raise InputError(
                f"The codes of {structure.names[cpt.variable]!r} must lie between {UNKNOWN} and "
                f"{cpt.table.shape[-1] - 1}; encode the samples with the variables of the training data."
            )

    factors = [_factor(cpt, n_features, logarithm) for cpt in cpts]
    log_joint = np.empty((len(codes), n_classes))
    step = max(1, _CHUNK_ENTRIES // n_classes)
    for start in range(0, len(codes), step):
        columns = codes[start : start + step].T.astype(np.intp)
        total = np.zeros((columns.shape[1], n_classes))
        for features, table in factors:
            total += table[tuple(columns[j] for j in features)]
        log_joint[start : start + step] = total
    return log_joint


def _factor(
    cpt: Cpt, class_index: int, logarithm: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> tuple[list[int], NDArray[np.float64]]:
    """Return a table's features, and its logarithm with one axis per feature and the class axis last.

    Each feature axis gets one more slot at its end, which the code -1 hits by itself: 0 for the variable
    itself, log 1/sp for a parent. The class axis has length 1 where the class is not involved.
    """
    axes = [*cpt.parents, cpt.variable]
    with np.errstate(divide="ignore"):
        table = logarithm(cpt.table)
    padding = [(0, int(j != class_index)) for j in axes]
    uniform = float(logarithm(np.array([1.0 / table.shape[-1]]))[0])
    table = np.pad(table, padding, constant_values=uniform)
    if cpt.variable != class_index:
        table[..., -1] = 0.0
    if class_index not in axes:
        return axes, table[..., np.newaxis]
    table = np.moveaxis(table, axes.index(class_index), -1)
    return [j for j in axes if j != class_index], np.ascontiguousarray(table)
