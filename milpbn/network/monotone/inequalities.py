r"""Convex fits under inequalities that make features monotone, by the method of multipliers.

Each step of a monotone column has to change the log-odds by at least 0 in every combination of other columns. These
inequalities are as many as the combinations. The elimination that finds the smallest change says the same with fewer:
every table that it makes becomes unknowns g, at most the sums of which it is the minimum,

.. math:: g(z) \le \sum_i \bigl( t_i(s + 1, x, z_i) - t_i(s, x, z_i) \bigr) \quad \text{for all } x,

and the last sum is at least 0. The loss with a penalty on violations and with multipliers is minimised by L-BFGS,
until the violations are small (Hestenes 1969, Powell 1969). What is left of them is for
`milpbn.network.monotone.changes.lifted`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from milpbn.data.dataset import Variable
from milpbn.network.convex import Loss, Stopped, minimum
from milpbn.network.inference.elimination import aligned
from milpbn.network.monotone.changes import Bucket, Term, differences, elimination
from milpbn.network.monotone.constraints import StateOrder

#: Rounds of multipliers, and iterations of the solver in each.
ROUNDS, ITERATIONS = 25, 400
#: The rounds end when no inequality is violated by more than this, in nats.
TOLERANCE = 1e-4
#: The first round is this many times less accurate than the last ones, each of the next by `FINER`.
COARSE, FINER = 1000.0, 0.3
#: The penalty grows by this factor if the largest violation does not fall by `ENOUGH`.
GROWTH, ENOUGH = 4.0, 0.3


#: Entries of a sparse array: rows, columns and their common factor.
Entries = list[tuple[NDArray[np.int64], NDArray[np.int64], float]]


@dataclass(frozen=True, eq=False)
class MonotoneRows:
    """The inequalities: the matrices times unknowns of cells and of minima, plus constants, are at least 0."""

    #: Factors of the differences between classes of the unknowns, shapes (R, K) and (R, G).
    cells: sparse.csr_array
    minima: sparse.csr_array
    #: What the known scores add, shape (R, C - 1).
    constants: NDArray[np.float64]
    #: From unknowns of classes to differences between classes, shape (C', C - 1). C' is 1 where an unknown is itself
    #: the second class's score minus the first's.
    contrast: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        orders: Sequence[StateOrder],
        terms: Sequence[Term],
        variables: Sequence[Variable],
        shape: tuple[int, int],
    ) -> MonotoneRows:
        """Return the rows of all columns for unknowns of a shape (K, C'). The orders have the same classes."""
        classes = orders[0].classes
        cells: Entries = []
        minima: Entries = []
        constants, n_minima = [np.zeros((0, len(classes) - 1))], 0
        for order in orders:
            own, scopes, ends, sizes, buckets = elimination(order, terms, variables)
            steps = len(order.codes) - 1
            if not own or steps < 1:
                continue
            made: dict[int, NDArray[np.int64]] = {}
            for bucket in buckets:
                wide = (steps, *(sizes[i] for i in bucket.scope))
                rows = sum(map(len, constants)) + np.arange(math.prod(wide)).reshape(wide)
                added = np.zeros((*wide, len(classes) - 1))
                if bucket is not buckets[-1]:
                    kept = (steps, *(sizes[i] for i in bucket.kept))
                    made[len(scopes)] = n_minima + np.arange(math.prod(kept)).reshape(kept)
                    n_minima += math.prod(kept)
                    minima.append((rows, _wide(made[len(scopes)], bucket.kept, bucket, wide), -1.0))
                for number in bucket.members:
                    if number in made:
                        minima.append((rows, _wide(made[number], scopes[number], bucket, wide), 1.0))
                        continue
                    odds = differences(own[number].scores, classes)
                    for end, sign in zip(ends[number], (1.0, -1.0), strict=True):
                        places, first = _wide(end, scopes[number], bucket, wide), own[number].first
                        added += sign * odds[places]
                        cells += [] if first is None else [(rows, first + places, sign)]
                scopes.append(bucket.kept)
                constants.append(added.reshape(-1, len(classes) - 1))
        identity = np.eye(len(classes)) if shape[1] > 1 else np.array([[-0.5, 0.5]])
        known, contrast = np.concatenate(constants), differences(identity, classes)
        return cls(
            _matrix(cells, len(known), shape[0]), _matrix(minima, len(known), n_minima), known, contrast
        )


def _wide(
    numbers: NDArray[np.int64], scope: tuple[int, ...], bucket: Bucket, shape: tuple[int, ...]
) -> NDArray[np.int64]:
    """Return numbers by step and scope for every row of a bucket."""
    own, axes = (-1, *scope), (-1, *bucket.scope)
    return np.broadcast_to(aligned(numbers, own, axes), shape)  # type: ignore[arg-type]


def _matrix(entries: Entries, n_rows: int, n_columns: int) -> sparse.csr_array:
    """Return entries as a sparse array."""
    if not entries:
        return sparse.csr_array((n_rows, n_columns))
    rows = np.concatenate([each.ravel() for each, _, _ in entries])
    columns = np.concatenate([each.ravel() for _, each, _ in entries])
    values = np.concatenate([np.full(each.size, factor) for each, _, factor in entries])
    return sparse.csr_array((values, (rows, columns)), shape=(n_rows, n_columns))


def constrained_minimum(
    loss: Loss,
    start: NDArray[np.float64],
    curvature: NDArray[np.float64],
    rows: MonotoneRows,
    *,
    tolerance: float,
    stopping: Callable[[], bool] = lambda: False,
) -> NDArray[np.float64]:
    """Return the unknowns, shape (K, C'), that minimise a convex loss under inequalities, up to small violations.

    They are the last ones if `stopping`, asked at every evaluation, returns True. The search begins at `start`, such as
    the minimum without inequalities; `curvature`, shape (K, 1), is an upper bound on the second derivatives of the
    loss, in nats, and `tolerance` is for the largest component of the scaled gradient at the end.
    """
    transposed = rows.cells.T.tocsr(), rows.minima.T.tocsr()
    multipliers = np.zeros_like(rows.constants)
    x, minima = start, np.zeros((rows.minima.shape[1], rows.constants.shape[1]))
    penalty, before = float(np.median(curvature)), np.inf

    def values(x: NDArray[np.float64], minima: NDArray[np.float64]) -> NDArray[np.float64]:
        return rows.cells @ (x @ rows.contrast) + rows.minima @ minima + rows.constants

    def joined(x: NDArray[np.float64], minima: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([x.ravel(), minima.ravel()])

    def split(point: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return point[: start.size].reshape(start.shape), point[start.size :].reshape(minima.shape)

    for number in range(ROUNDS):
        # Diagonals of the second derivatives, of the penalty with the inequalities that count here; all factors are 1.
        counting = penalty * (multipliers > penalty * values(x, minima))
        of_cells = curvature + abs(transposed[0]) @ counting @ abs(rows.contrast.T)
        scale = 1.0 / np.sqrt(joined(of_cells, abs(transposed[1]) @ counting + penalty))

        def lagrangian(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            if stopping():
                raise Stopped
            here, there = split(point)
            value, gradient = loss(here)
            pull = np.maximum(multipliers - penalty * values(here, there), 0.0)  # noqa: B023
            value += 0.5 / penalty * float((pull * pull).sum())  # noqa: B023
            gradient = gradient - (transposed[0] @ pull) @ rows.contrast.T
            return value, joined(gradient, -(transposed[1] @ pull))

        enough = tolerance * max(1.0, COARSE * FINER**number)
        try:
            found = minimum(lagrangian, joined(x, minima), scale, tolerance=enough, iterations=ITERATIONS)
        except Stopped:
            break
        x, minima = split(found)
        now = values(x, minima)
        multipliers = np.maximum(multipliers - penalty * now, 0.0)
        worst = max(0.0, -float(now.min(initial=0.0)))
        if worst <= TOLERANCE and enough == tolerance:
            break
        if worst > ENOUGH * before:
            penalty *= GROWTH
        before = worst
    return x
