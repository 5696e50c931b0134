"""All candidate tables of all variables in one flat array, and where each sample looks its values up.

A family is a variable with one candidate parent set. Its table holds log-probabilities and is laid out so that the
values of all classes of one cell, (x_i, x_parents), lie side by side: one look-up per sample and family brings all that
the loss asks for. Families without the class have one value per cell, which counts for every class; the class
variable's own families have the states of the class as the values of a cell. A feature's own states are the slowest
axis, so that sums over them run along long rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.cpt import Cpt, fit_cpts, require_table
from milpbn.network.structure import Structure

#: Candidate parent sets of every variable, the class last; the index of the class is the number of features.
Choices: TypeAlias = Sequence[Sequence[tuple[int, ...]]]


class Layout(NamedTuple):
    """Families as flat arrays, as the kernels take them.

    The family f of variable v has ``first[v] <= f < first[v + 1]``. A sample with codes x finds its values at
    ``start[f] + sum_t strides[f, t] * x[members[f, t]]`` and the following ``entries[f] - 1`` places, t < length[f].

    Attributes
    ----------
    first : int64 array, shape (V + 1,)
        First family of each variable.
    start : int64 array, shape (F + 1,)
        Where each table begins, and the size of all.
    members, strides : int64 arrays, shape (F, width)
        Variables that number the cells, never the class.
    length : int64 array, shape (F,)
        How many of them there are.
    entries : int64 array, shape (F,)
        Values of a cell: C, or 1 for a feature's family without the class.
    states, lanes : int64 arrays, shape (F,)
        A table is an array of shape (blocks, states, lanes) whose exponentials sum to 1 over the middle axis:
        (1, sp(X_i), parents' joint states), the class last among the parents; for the class variable, whose states
        are the values of a cell, (parents' joint states, C, 1).
    """

    first: NDArray[np.int64]
    start: NDArray[np.int64]
    members: NDArray[np.int64]
    strides: NDArray[np.int64]
    length: NDArray[np.int64]
    entries: NDArray[np.int64]
    states: NDArray[np.int64]
    lanes: NDArray[np.int64]

    @property
    def n_families(self) -> int:
        """Number of families F."""
        return len(self.states)

    @property
    def size(self) -> int:
        """Number of log-probabilities."""
        return int(self.start[-1])

    def table(self, values: NDArray[np.floating], family: int) -> NDArray[np.floating]:
        """Return a view of one table, shape (blocks, states, lanes)."""
        part = values[self.start[family] : self.start[family + 1]]
        return part.reshape(-1, int(self.states[family]), int(self.lanes[family]))


def build_layout(data: Dataset, choices: Choices) -> Layout:
    """Return the layout of candidate parent sets over a dataset's variables.

    Parameters
    ----------
    data : Dataset
        Its variables' numbers of states are read.
    choices : sequence of sequences of ascending tuples of int, length V
        Candidate parent sets, at least one per variable.

    Raises
    ------
    InputError
        If a table would exceed `MAX_TABLE_ENTRIES`.
    """
    C, label = data.n_classes, data.n_features
    n_states = data.n_states.tolist()
    rows, places, entries, states, lanes, sizes = [], [], [], [], [], []
    for v, sets in enumerate(choices):
        for parents in sets:
            require_table(data.variables, v, parents)
            row = [j for j in (v, *parents) if j != label]
            shape = [n_states[j] for j in row]
            values = C if label in (v, *parents) else 1
            rows.append(row)
            places.append([values * prod(shape[t + 1 :]) for t in range(len(shape))])
            entries.append(values)
            sizes.append(prod(shape) * values)
            states.append(C if v == label else n_states[v])
            lanes.append(1 if v == label else sizes[-1] // n_states[v])
    width = max(1, max(map(len, rows)))
    return Layout(
        first=_integers([0, *np.cumsum([len(sets) for sets in choices])]),
        start=_integers([0, *np.cumsum(sizes)]),
        members=_integers([[*row, *[0] * (width - len(row))] for row in rows]),
        strides=_integers([[*place, *[0] * (width - len(place))] for place in places]),
        length=_integers([len(row) for row in rows]),
        entries=_integers(entries),
        states=_integers(states),
        lanes=_integers(lanes),
    )


def _integers(values: Sequence[object]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def uniform_tables(layout: Layout, rng: np.random.Generator, reach: float = 0.1) -> NDArray[np.float64]:
    """Return tables drawn from U([-reach, reach]) as R20, section 4.2, and normalised; float64 array, shape (size,)."""
    values = rng.uniform(-reach, reach, layout.size)
    for f in range(layout.n_families):
        table = layout.table(values, f)
        table[:] = log_softmax(table, axis=1)
    return values


def likelihood_tables(
    layout: Layout, data: Dataset, choices: Choices, smoothing: float
) -> NDArray[np.float64]:
    """Return the Laplace-smoothed maximum-likelihood tables of all families (`fit_cpts`), float64, shape (size,).

    Raises
    ------
    InputError
        As `fit_cpts`; and if `smoothing` is 0, where log-probabilities need not be finite.
    """
    if not smoothing > 0:
        raise InputError(f"smoothing must be positive for tables of log-probabilities, got {smoothing}.")
    values = np.empty(layout.size)
    label = data.n_features
    for v, sets in enumerate(choices):
        for n, parents in enumerate(sets):
            members = [*parents, v]
            variables = tuple(data.variables[j] for j in members)
            family_data = replace(data, variables=variables, codes=data.codes[:, members])
            family = ((),) * len(parents) + (tuple(range(len(parents))),)
            table = np.log(fit_cpts(family_data, Structure(family_data.names, family), smoothing)[-1].table)
            if v != label:
                table = np.moveaxis(table, -1, 0)
            f = int(layout.first[v]) + n
            layout.table(values, f)[:] = table.reshape(-1, int(layout.states[f]), int(layout.lanes[f]))
    return values


def tables_to_cpts(
    data: Dataset, layout: Layout, choices: Choices, values: NDArray[np.floating], chosen: Sequence[int]
) -> tuple[Cpt, ...]:
    """Return the probability tables of one family per variable, normalised again in double precision.

    Parameters
    ----------
    data : Dataset
        Its variables' numbers of states are read.
    layout, choices
        The families.
    values : float array, shape (size,)
        Log-probabilities.
    chosen : sequence of int, length V
        Number of each variable's parent set among its choices.
    """
    cpts = []
    for v, n in enumerate(chosen):
        parents = choices[v][n]
        f = int(layout.first[v]) + n
        table = np.exp(log_softmax(layout.table(values, f).astype(np.float64), axis=1))
        outer = [int(data.n_states[j]) for j in parents]
        table = (
            table.reshape(*outer, -1)
            if v == data.n_features
            else np.moveaxis(table.reshape(-1, *outer), 0, -1)
        )
        # A probability that double precision rounds to 0 would make the log-joint infinite.
        cpts.append(Cpt(v, parents, np.maximum(np.ascontiguousarray(table), np.finfo(np.float64).tiny)))
    return tuple(cpts)
