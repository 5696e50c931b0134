"""Two resolutions of continuous columns: coarse intervals for the structure, and fine ones for curves.

A continuous column whose coarse intervals can be cut further becomes two variables: the coarse one has the column's
name, and the fine one has all cuts of the coarse one among its own, so that each fine interval lies in one coarse
interval.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset, Variable
from milpbn.data.discretisation import equal_weights
from milpbn.data.table import Table
from milpbn.data.variables import coarser_codes, encode_column, interval_variable

#: Fine intervals of equal weight, before the coarse cuts are added.
FINE_BINS = 64


def with_fine(coarse: Dataset, table: Table, rows: NDArray[np.int64], bins: int = FINE_BINS) -> Dataset:
    """Return training data with a fine variable behind the features for every continuous column that it refines.

    `coarse` has the table's rows at these positions. The order is: coarse features, fine features, the class.
    """
    names = set(coarse.names)
    fine: list[Variable] = []
    for variable in coarse.variables[:-1]:
        if variable.cuts is None:
            continue
        column = table.columns[variable.raw_column]
        codes = column.codes[rows]
        present = codes >= 0
        values = column.numbers[codes[present]]
        cuts = np.union1d(variable.cuts, equal_weights(values, coarse.weights[present], bins))
        if len(cuts) > len(variable.cuts):
            name = f"{variable.name} (fine)"
            while name in names:
                name += "'"
            names.add(name)
            fine.append(
                interval_variable(
                    name, cuts.tolist(), missing_state=variable.missing_state, column=variable.raw_column
                )
            )
    encoded = [encode_column(v, table.columns[v.raw_column])[rows] for v in fine]
    return replace(
        coarse,
        variables=(*coarse.variables[:-1], *fine, coarse.variables[-1]),
        codes=np.column_stack([coarse.X, *encoded, coarse.y]),
        request=None,
    )


def coarse_features(data: Dataset) -> tuple[int, ...]:
    """Return the positions of the features that are not fine variables."""
    fine = nested(data)
    return tuple(i for i in range(data.n_features) if i not in fine)


def nested(data: Dataset) -> dict[int, tuple[int, NDArray[np.int64]]]:
    """Return each fine variable's coarse one, and the coarse state of each fine state, by the fine one's position.

    A variable is fine if an earlier one codes the same column and has no cut of its own.
    """
    first: dict[str, int] = {}
    found: dict[int, tuple[int, NDArray[np.int64]]] = {}
    for i, variable in enumerate(data.variables[:-1]):
        coarse = first.setdefault(variable.raw_column, i)
        if coarse != i and variable.cuts is not None:
            found[i] = coarse, coarser_codes(variable, data.variables[coarse])
    return found
