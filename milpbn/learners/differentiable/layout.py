"""The tables of all candidate families in one flat array, and the positions of each sample's values in it.

A family is a variable with one candidate parent set. Its table contains log-probabilities. The values of all classes
for one cell (x_i, x_parents) are adjacent, so that one look-up per sample and family gives all values that the loss
needs. A feature's family without the class has one value per cell, which is used for every class. In the families of
the class variable the values of a cell are the states of the class. The states of a feature are the slowest axis of its
tables, so that sums over the states add long rows.
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
    """Families as flat arrays, in the form that the kernels use.

    The families of variable v are ``first[v] <= f < first[v + 1]``. The values of a sample with codes x begin at
    ``start[f] + sum_t strides[f, t] * x[members[f, t]]``, where t < length[f]; there are ``entries[f]`` of them.
    """

    #: First family of each variable. Shape (V + 1,).
    first: NDArray[np.int64]
    #: Position of each table, and at the end the number of all values. Shape (F + 1,).
    start: NDArray[np.int64]
    #: The variables whose states number the cells (never the class), and their factors. Shape (F, width).
    members: NDArray[np.int64]
    strides: NDArray[np.int64]
    #: Number of these variables. Shape (F,).
    length: NDArray[np.int64]
    #: Number of values of a cell: C, or 1 for a feature's family without the class. Shape (F,).
    entries: NDArray[np.int64]
    #: A table is an array of shape (blocks, states, lanes) whose exponentials sum to 1 over the middle axis. For a
    #: feature the shape is (1, sp(X_i), joint states of the parents), where the class is the last parent. For the class
    #: variable it is (joint states of the parents, C, 1). Shape (F,).
    states: NDArray[np.int64]
    lanes: NDArray[np.int64]

    @property
    def n_families(self) -> int:
        """F."""
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
    """Return the layout of candidate parent sets, at least one per variable, each in ascending order.

    Raises
    ------
    InputError
        If a table has more than `milpbn.network.cpt.MAX_TABLE_ENTRIES` values.
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
    """Return normalised tables of values drawn from U([-reach, reach]), float64 array, shape (size,).

    These are the initial tables of Roth & Pernkopf (2020), section 4.2.
    """
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
        If `smoothing` is 0, because log-probabilities could be infinite; for other reasons see `fit_cpts`.
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
    """Return the probability tables of one family per variable, normalised in double precision.

    Log-probabilities are `values`, shape (size,). `chosen` has the V positions of the parent sets among their choices.
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
        # A probability that is rounded to 0 would make the log-joint infinite.
        cpts.append(Cpt(v, parents, np.maximum(np.ascontiguousarray(table), np.finfo(np.float64).tiny)))
    return tuple(cpts)
