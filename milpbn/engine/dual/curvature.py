"""The curvature of the softened score over some parent sets: the covariance of their slopes under the dual weights."""

from __future__ import annotations

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from milpbn.engine.tuning import TUNING
from milpbn.problem.duals import Duals
from milpbn.problem.family_tables import Tables
from milpbn.problem.products import apart, number_cells_of
from milpbn.util.compiled import also_kernel, kernel
from milpbn.util.threads import in_parts

#: Number of dual weights whose slopes are in memory at a time.
BLOCK = TUNING.steps.curvature_block


@also_kernel
def curvature(
    tables: Tables, duals: Duals, columns: NDArray[np.int64], temperature: float, parallel: bool
) -> NDArray[np.float64]:
    """Return minus the Hessian of the softened score over some columns, float64 array, shape (n, n).

    The score is softened at a temperature in nats, with the dual weights `duals`. Of the columns of the tables, shape
    (n,), -1 is one of a parent set whose coefficients are 0.
    """
    groups, places = duals.size[0], duals.size[1]
    root = np.empty(places, dtype=np.float32)
    share = np.empty(places, dtype=np.float32)
    _factors(tables.weights, duals, root, share)
    n = len(columns)
    H = np.zeros((n, n))
    block = np.empty((n, n), dtype=np.float32)
    a = 0
    while a < groups:
        b = _end_of_block(duals.first, a, groups)
        Z = np.zeros((n, duals.first[b] - duals.first[a]), dtype=np.float32)
        _add_slopes(tables, duals, columns, a, b, root, share, Z, parallel)
        np.dot(Z, Z.T, block)
        add_scaled(H, 1.0 / temperature, block)
        a = b
    return H


def _add_slopes(
    tables: Tables,
    duals: Duals,
    columns: NDArray[np.int64],
    a: int,
    b: int,
    root: NDArray[np.float32],
    share: NDArray[np.float32],
    Z: NDArray[np.float32],
    parallel: bool,
) -> None:
    in_parts(
        lambda begin, end: _slopes(tables, duals, columns, begin, end, a, b, root, share, Z),
        len(columns),
        parallel,
    )


@overload(_add_slopes)
def _add_slopes_compiled(  # type: ignore[no-untyped-def]
    tables, duals, columns, a, b, root, share, Z, parallel
):
    return lambda tables, duals, columns, a, b, root, share, Z, parallel: _slopes(
        tables, duals, columns, np.int64(0), len(columns), a, b, root, share, Z
    )


@kernel(linked=True)
def _end_of_block(first, a, groups):  # type: ignore[no-untyped-def]
    """Return the end of the groups from a on that fit into a block; at least one does."""
    b = a + 1
    while b < groups and first[b + 1] - first[a] <= BLOCK:
        b += 1
    return b


@kernel
def add_scaled(out, factor, matrix):  # type: ignore[no-untyped-def]
    """Add `factor` times a matrix to `out`."""
    for x in range(out.shape[0]):
        for y in range(out.shape[1]):
            out[x, y] += factor * matrix[x, y]


@kernel
def _factors(weights, duals, root, share):  # type: ignore[no-untyped-def]  # numba infers the types
    """Write the square roots of the dual weights and their shares of the sample's weight.

    The last place of a sample holds the root of its weight on gamma.
    """
    for g in range(duals.size[0]):
        last = duals.first[g + 1] - 1
        w = weights[duals.sample[last]]
        for t in range(duals.first[g], last):
            root[t] = np.sqrt(-duals.value[t])
            share[t] = -duals.value[t] / w
        root[last] = np.sqrt(max(0.0, w - duals.value[last]))


@kernel
def _slopes(tables, duals, columns, begin, end, a, b, root, share, Z):  # type: ignore[no-untyped-def]
    """Write the scaled slopes of some columns' log-margins, minus their weighted means, for the groups a to b."""
    # Flat arrays: numba counts the references to every slice of an array, which took longer than the sums.
    base = duals.first[a]
    Q = np.uint64(tables.values.shape[1])
    flat = tables.values.reshape(tables.values.size)
    sample = np.empty(b - a, dtype=np.uint32)
    for g in range(b - a):
        sample[g] = duals.sample[duals.first[a + g]]
    cells = np.empty(b - a, dtype=np.uint32)
    for n in range(begin, end):
        k = columns[n]
        if k < 0:
            continue
        out = Z[n]
        d = tables.domain[k]
        table = np.uint64(tables.start[k]) * Q
        far = np.uint64(apart(tables.two_tables, tables.sizes[d])) * Q
        number_cells_of(tables.codes, tables.rows, tables.strides, d, sample, cells)
        for g in range(a, b):
            first, last = duals.first[g], duals.first[g + 1] - 1
            row = table + np.uint64(cells[g - a]) * Q
            own = flat[row + far + np.uint64(duals.label[last])]
            mean = np.float32(0.0)
            for x in range(first, last):
                slope = np.float32(own - flat[row + np.uint64(duals.label[x])])
                out[x - base] = slope
                mean += share[x] * slope
            for x in range(first, last):
                out[x - base] = root[x] * (out[x - base] - mean)
            out[last - base] = root[last] * mean
