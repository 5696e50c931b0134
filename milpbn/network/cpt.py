"""Conditional probability tables: their estimation, and the log-joint of every class that follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING, UNKNOWN, Dataset, Variable, by_column
from milpbn.data.sums import log_share
from milpbn.data.variables import coarser_codes
from milpbn.data.weights import require_range
from milpbn.errors import InputError
from milpbn.network.prior import (
    UNIFORM,
    Prior,
    PseudoCounts,
    check_towards,
    prior_parents,
    shrunk_counts,
    uniform_counts,
)
from milpbn.network.structure import Structure

#: Largest number of entries of one table (0.8 GB); a structure read from a file may have any number of parents.
MAX_TABLE_ENTRIES = 10**8
#: Largest Laplace constant; under a larger one, counts no longer change the probabilities.
LARGEST_SMOOTHING = 1e15
#: Number of entries of the log-joint that are computed together, so that temporary arrays stay in the cache.
_CHUNK_ENTRIES = 1 << 18


@dataclass(frozen=True, eq=False)
class Cpt:
    """The conditional probability table of one variable."""

    #: Index of the variable.
    variable: int
    #: Ascending indices of its parents.
    parents: tuple[int, ...]
    #: P(variable | parents), shape (states of each parent..., states of the variable), one axis per parent in the order
    #: of ``parents``; the last axis sums to 1.
    table: NDArray[np.float64]
    #: By how many rows each distribution is known, pseudo-counts among them, shape (states of each parent...). With
    #: the table it makes the Dirichlet distribution of the true probabilities. None if that is no smoothed counts.
    concentration: NDArray[np.float64] | None = None


def occurring(variables: Sequence[Variable], cpt: Cpt) -> NDArray[np.bool_]:
    """Return the cells of a table whose states can occur together, in its shape: all but those within one column."""
    axes = [*cpt.parents, cpt.variable]
    cells, codes = np.ones(cpt.table.shape, dtype=bool), np.ogrid[tuple(map(slice, cpt.table.shape))]
    for places in by_column([variables[i] for i in axes]).values():
        finest = max(places, key=lambda k: variables[axes[k]].n_states)
        for k in places:
            of_finest = coarser_codes(variables[axes[finest]], variables[axes[k]])
            cells &= of_finest[codes[finest]] == codes[k]
    return cells


def fit_cpts(
    data: Dataset, structure: Structure, smoothing: float = 1.0, smoothing_towards: str = UNIFORM
) -> list[Cpt]:
    r"""Return the smoothed maximum-likelihood tables of a structure.

    .. math:: \theta^i_{j|h} = \frac{n^i_{j|h} + a}{n^i_h + a \, sp(X_i)}

    with weighted counts n and the smoothing constant a. With a = 0 it is equation (2) of Peharz and Pernkopf (2012,
    P12). A parent configuration without samples has the uniform row, even with a = 0. These are Laplace-smoothed
    tables; `milpbn.network.prior` has the formula of tables that are smoothed towards another one.

    Parameters
    ----------
    data : Dataset
        Training samples, without unknown values.
    structure : Structure
        Parent sets over the data's variables, in the data's order.
    smoothing : float
        Laplace constant a >= 0 (P12 uses 1).
    smoothing_towards : str
        What the tables are smoothed towards: ``uniform``, ``marginal`` or ``class``.

    Returns
    -------
    list of Cpt, length V
        One per variable, in order.

    Raises
    ------
    InputError
        If the structure has other variables than the data, a value has no state, ``smoothing`` is negative or
        above `LARGEST_SMOOTHING`, ``smoothing_towards`` is unknown, or a table would have more than
        `MAX_TABLE_ENTRIES` entries.
    """
    require_match(data, structure)
    check_smoothing(smoothing)
    check_towards(smoothing_towards)
    require_states(data)
    prior = Prior(smoothing, smoothing_towards)
    return [_fit_cpt(data, i, parents, prior) for i, parents in enumerate(structure.parents)]


def check_smoothing(smoothing: float) -> None:
    """Raise `InputError` unless a Laplace constant is between 0 and `LARGEST_SMOOTHING`."""
    if not 0 <= smoothing <= LARGEST_SMOOTHING:
        raise InputError(f"smoothing must be a number from 0 to {LARGEST_SMOOTHING:g}, got {smoothing}.")


def require_dataset(data: object) -> None:
    """Raise `InputError` if an argument is not a `Dataset`, such as a `Table`; the message says how to get one."""
    if not isinstance(data, Dataset):
        raise InputError(
            f"A Dataset is needed, got a {type(data).__name__}; "
            "`table.dataset()` makes one of the table that `read_table` returns."
        )


def require_match(data: Dataset, structure: Structure) -> None:
    """Raise `InputError` if a structure does not have the variables of the data in the same order."""
    require_dataset(data)
    if structure.names != data.names:
        raise InputError(
            f"The structure is over {list(structure.names)}, the data {data.name!r} over {list(data.names)}; "
            "both need the same variables in the same order."
        )


def require_states(data: Dataset) -> None:
    """Raise `InputError` if a value of training data has no state, or a weight is out of range."""
    require_dataset(data)
    require_range(data.weights, f"The weights of the training data {data.name!r}")
    unknown = np.flatnonzero((data.codes < 0).any(axis=0))
    if unknown.size:
        raise InputError(
            f"Column {data.names[unknown[0]]!r} of the training data {data.name!r} has values "
            "without a state; drop these rows or give missing values a state."
        )


def require_table(variables: Sequence[Variable], variable: int, parents: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a table, the parents' numbers of states first; `InputError` if it has too many entries."""
    shape = tuple(variables[j].n_states for j in (*parents, variable))
    if math.prod(shape) > MAX_TABLE_ENTRIES:
        given = ", ".join(f"{variables[j].name!r} ({variables[j].n_states} states)" for j in parents)
        raise InputError(
            f"The table of {variables[variable].name!r} ({variables[variable].n_states} states) given {given} would "
            f"have {math.prod(shape)} entries, more than {MAX_TABLE_ENTRIES}; leave out columns with so many states "
            "(are they row numbers?), join rare states, or give the variable fewer parents."
        )
    return shape


def _fit_cpt(data: Dataset, variable: int, parents: tuple[int, ...], prior: Prior) -> Cpt:
    counts = _counts(data, variable, parents)
    totals = counts.sum(axis=-1, keepdims=True) + prior.smoothing * counts.shape[-1]
    table = np.full(counts.shape, 1.0 / counts.shape[-1])
    added = _pseudo_counts(data, variable, parents, prior)
    np.divide(counts + added.part, totals, out=table, where=totals > 0)
    return Cpt(variable, parents, table, _concentration(data, parents, counts, prior))


def _concentration(
    data: Dataset, parents: tuple[int, ...], counts: NDArray[np.float64], prior: Prior
) -> NDArray[np.float64] | None:
    """Return the concentrations of a table with these counts; rows of unequal weights count by their effective size."""
    if not prior.smoothing:
        return None
    totals, weights = counts.sum(axis=-1), data.weights
    if not (weights == 1).all():
        cells = cells_of(data.codes, parents, totals.shape)
        squares = np.bincount(cells, weights**2, totals.size).reshape(totals.shape)
        totals = np.divide(totals**2, squares, out=np.zeros(totals.shape), where=squares > 0)
    return totals + prior.smoothing * counts.shape[-1]


def _pseudo_counts(data: Dataset, variable: int, parents: tuple[int, ...], prior: Prior) -> PseudoCounts:
    """Return the pseudo-counts of a table: numbers, or arrays that broadcast to its shape."""
    # The prior's table has no parents, or only the class, which is the last parent of the family, too.
    fewer = prior_parents(prior, parents, data.n_states)
    if fewer is None:
        return uniform_counts(prior.smoothing, data.variables[variable].n_states)
    counts = _counts(data, variable, fewer)
    return shrunk_counts(counts, data.other_weights(counts), prior.smoothing, counts.shape[-1])


def cells_of(codes: NDArray[np.integer], variables: Sequence[int], sizes: Sequence[int]) -> NDArray[np.intp]:
    """Return the number of each row's cell in a table of some variables with these numbers of states, shape (M,)."""
    if not variables:
        return np.zeros(len(codes), dtype=np.intp)
    return np.asarray(np.ravel_multi_index(tuple(codes[:, list(variables)].T), tuple(sizes)))


def _counts(data: Dataset, variable: int, parents: tuple[int, ...]) -> NDArray[np.float64]:
    """Return n_{j|h} in the shape of the table."""
    axes = [*parents, variable]
    shape = require_table(data.variables, variable, parents)
    cells = cells_of(data.codes, axes, shape)
    return data.total_weights(cells, math.prod(shape)).reshape(shape)


def log_cpts(
    data: Dataset, structure: Structure, smoothing: float, smoothing_towards: str = UNIFORM
) -> list[Cpt]:
    """Return the logarithms of the tables of `fit_cpts`, in nats, accurate even if a probability is nearly 1.

    They are arguments of `class_log_joint` with ``logarithm=np.asarray``, for samples without unknown states. The
    smoothing is positive, and the caller has checked data and structure.
    """
    tables, prior = [], Prior(smoothing, smoothing_towards)
    for i, parents in enumerate(structure.parents):
        counts = _counts(data, i, parents)
        part, rest = _pseudo_counts(data, i, parents, prior)
        tables.append(Cpt(i, parents, log_share(counts + part, data.other_weights(counts) + rest)))
    return tables


def class_log_joint(
    codes: NDArray[np.int32],
    structure: Structure,
    cpts: Sequence[Cpt],
    n_classes: int,
    logarithm: Callable[[NDArray[np.float64]], NDArray[np.float64]] = np.log,
) -> NDArray[np.float64]:
    """Return log P(c, z_m) for every sample and class: the logarithm of (1) of Peharz and Pernkopf (2012).

    An unknown state of a feature drops the feature's own factor, and gives its children the uniform row, 1 / sp of the
    child. Missing values are refused; `milpbn.network.inference.log_joint_of_rows` sums over their states.

    Parameters
    ----------
    codes : int32 array, shape (M, V)
        State codes, `UNKNOWN` (-1) allowed. The last column, the class, is ignored; every class in turn takes its
        place.
    structure : Structure
        Of which the names are read.
    cpts : sequence of Cpt
        Tables of the structure, or some of them.
    n_classes : int
        Number of classes C.
    logarithm : callable
        Function that is applied to the tables. `milpbn.network.fixed_point` rounds to few bits; tables of
        `log_cpts` need no logarithm.

    Returns
    -------
    float64 array, shape (M, C)
        In nats; ``-inf`` where an unsmoothed table holds 0.

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
                f"{cpt.table.shape[-1] - 1}, and missing values ({MISSING}) have no probability of their own; encode "
                "the samples with the variables of the training data, and predict with a classifier."
            )

    factors = [padded_table(cpt, n_features, logarithm) for cpt in cpts]
    log_joint = np.empty((len(codes), n_classes))
    step = max(1, _CHUNK_ENTRIES // n_classes)
    for start in range(0, len(codes), step):
        columns = codes[start : start + step].T.astype(np.intp)
        total = np.zeros((columns.shape[1], n_classes))
        for features, table in factors:
            total += table[tuple(columns[j] for j in features)]
        log_joint[start : start + step] = total
    return log_joint


def padded_table(
    cpt: Cpt, class_index: int, logarithm: Callable[[NDArray[np.float64]], NDArray[np.float64]] = np.log
) -> tuple[list[int], NDArray[np.float64]]:
    """Return a table's features, and its logarithm with one axis per feature and the class axis last.

    Each feature axis is one longer than the number of states, so that code -1 selects its last position: 0 for
    the variable itself, log 1/sp for a parent. The class axis has length 1 if the class is not in the table.
    """
    axes = [*cpt.parents, cpt.variable]
    with np.errstate(divide="ignore"):
        table = logarithm(cpt.table)
    # np.pad takes twenty times as long.
    uniform = float(logarithm(np.array([1.0 / table.shape[-1]]))[0])
    padded = np.full([n + (j != class_index) for n, j in zip(table.shape, axes, strict=True)], uniform)
    padded[tuple(map(slice, table.shape))] = table
    table = padded
    if cpt.variable != class_index:
        table[..., -1] = 0.0
    if class_index not in axes:
        return axes, table[..., np.newaxis]
    table = np.moveaxis(table, axes.index(class_index), -1)
    return [j for j in axes if j != class_index], np.ascontiguousarray(table)
