r"""The convex problem of discriminative parameters: penalised conditional likelihood around an offset.

The log-joint of a classifier is a sum of logarithms of table entries, one per family; only families that contain the
class tell classes apart. In each of these families a sample has one joint state without the class, which selects one
entry per class. So the classifier is a multinomial logistic regression: its features are the indicators of these joint
states (`Design`), and its coefficients, one per class, are the logarithms of the entries. The problem is

.. math:: \min_d \; - \sum_m w_m \log P(c_m | x_m; o + d) + \tfrac{\lambda}{2} \lVert d \rVert^2,
          \qquad P(c | x; o + d) \propto \exp(o_c(x) + \sum_i d_i(x_i, x_{pa(i)}, c))

with the offset o = kappa times the generative log-joint, solved by scipy's L-BFGS-B. The logistic regressions of
scikit-learn have no offset; without one (kappa = 0) they solve the same problem, and a test compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from milpbn.data.dataset import Dataset
from milpbn.network.convex import Stopped, minimum
from milpbn.network.cpt import Cpt, cells_of
from milpbn.network.structure import Structure

#: Accuracy of a fit to all rows, whose figures are shown; see `fit_deviations`.
TOLERANCE = 1e-6
#: Largest number of iterations of the solver.
MAX_ITERATIONS = 5000


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Distinct rows of feature values, with the weight of every class in each."""

    #: For each row, 1 for the joint state of every family, else 0; shape (U, K).
    indicators: sparse.csr_array
    #: State codes, shape (U, V); those of the class have no meaning.
    codes: NDArray[np.int32]
    #: Total weight of the samples by class, shape (U, C).
    weights: NDArray[np.float64]

    @cached_property
    def transposed(self) -> sparse.csr_array:
        """The indicators' transpose, shape (K, U), in the form that multiplies fast."""
        return self.indicators.T.tocsr()

    @cached_property
    def totals(self) -> NDArray[np.float64]:
        """Total weight of every row, shape (U,)."""
        return self.weights.sum(axis=1)

    @property
    def weight(self) -> float:
        """Total weight of all rows."""
        return float(self.weights.sum())


class Design:
    """The numbering of the joint states that occur in training data: the columns of the indicators.

    Joint states that do not occur have no column; the penalty would keep their deviations at 0. Families that hold one
    of the variables `whole` have a column for every joint state. There are `n_columns` joint states, K, over all
    families with the class.
    """

    def __init__(self, data: Dataset, structure: Structure, whole: Collection[int] = ()) -> None:
        target = data.n_features
        sizes = data.n_states
        self._n_classes = data.n_classes
        #: Variables of every family that contains the class, without the class, in the order of the tables' axes.
        self._axes: dict[int, tuple[int, ...]] = {}
        #: Joint states that occur, ascending, by family, and the column of the first.
        self._seen: dict[int, NDArray[np.int64]] = {}
        self._first: dict[int, int] = {}
        self._sizes = sizes
        column = 0
        for i, parents in enumerate(structure.parents):
            if i != target and target not in parents:
                continue
            self._axes[i] = tuple(j for j in (*parents, i) if j != target)
            if {*whole} & {*self._axes[i]}:
                self._seen[i] = np.arange(math.prod(int(sizes[j]) for j in self._axes[i]))
            else:
                self._seen[i] = np.unique(self._states(data.codes, i))
            self._first[i] = column
            column += len(self._seen[i])
        self.n_columns = column

    def _states(self, codes: NDArray[np.int32], family: int) -> NDArray[np.int64]:
        axes = self._axes[family]
        return cells_of(codes, axes, self._sizes[list(axes)].tolist()).astype(np.int64)

    def rows(self, data: Dataset) -> DistinctRows:
        """Return the distinct rows of some of the training samples, with the weight of every class in each."""
        merged = data.merged
        # Merged rows are in lexicographic order, the class last, so that equal features are side by side.
        new = np.ones(merged.n_samples, dtype=bool)
        new[1:] = (merged.X[1:] != merged.X[:-1]).any(axis=1)
        number = np.cumsum(new) - 1
        codes = merged.codes[new]
        weights = np.zeros((len(codes), self._n_classes))
        weights[number, merged.y] = merged.weights
        columns = np.empty((len(codes), len(self._axes)), dtype=np.int32)
        for place, (family, seen) in enumerate(self._seen.items()):
            columns[:, place] = self._first[family] + np.searchsorted(seen, self._states(codes, family))
        starts = np.arange(0, columns.size + 1, max(1, columns.shape[1]))
        indicators = sparse.csr_array(
            (np.ones(columns.size), columns.ravel(), starts), shape=(len(codes), self.n_columns)
        )
        return DistinctRows(indicators, codes, weights)

    def first(self, family: int) -> int:
        """Return the column of the first joint state of a family that contains the class."""
        return self._first[family]

    def tables(self, logs: Sequence[Cpt], kappa: float, deviations: NDArray[np.float64] | None) -> list[Cpt]:
        r"""Return the tables of weights.

        .. math:: w_i = \kappa \log \theta_i + (1 - \kappa) \overline{\log \theta_i} + d_i

        The mean over the classes in the second term changes no posterior. It only says which of the many tables with
        the same posteriors are meant: those whose differences between joint states are the generative ones, apart from
        what the posterior fixes. The logarithms are those of the generative tables, kappa the share of their contrasts
        between classes, and d the deviations, shape (K, C); None for none.
        """
        target = len(logs) - 1
        out = []
        for cpt in logs:
            i = cpt.variable
            if i not in self._axes:
                out.append(cpt)
                continue
            # One axis per variable of the family without the class, and the class last.
            table = cpt.table if i == target else np.moveaxis(cpt.table, -2, -1)
            table = kappa * table + (1.0 - kappa) * table.mean(axis=-1, keepdims=True)
            if deviations is not None:
                flat = table.reshape(-1, self._n_classes)
                first = self._first[i]
                flat[self._seen[i]] += deviations[first : first + len(self._seen[i])]
                table = flat.reshape(table.shape)
            out.append(Cpt(i, cpt.parents, table if i == target else np.moveaxis(table, -1, -2)))
        return out


def log_loss(scores: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the sum of -w log P(c | x) in nats.

    Log-joint, up to a constant for each row, and weight have the shape (U, C).
    """
    away = scores - scores.max(axis=1, keepdims=True)
    away -= np.log(np.exp(away).sum(axis=1, keepdims=True))
    return float(-(weights * away).sum())


def objective(
    deviations: NDArray[np.float64], rows: DistinctRows, offset: NDArray[np.float64], strength: float
) -> tuple[float, NDArray[np.float64]]:
    """Return the penalised loss in nats at a point, shape (K, C), and its gradient, of the same shape.

    The offset, shape (U, C), has the scores of the rows without deviations; the strength is the factor lambda of the
    penalty.
    """
    scores = offset + rows.indicators @ deviations
    scores -= scores.max(axis=1, keepdims=True)
    posterior = np.exp(scores)
    sums = posterior.sum(axis=1, keepdims=True)
    loss = float(rows.totals @ np.log(sums[:, 0]) - (rows.weights * scores).sum())
    posterior *= rows.totals[:, np.newaxis] / sums
    posterior -= rows.weights
    gradient = rows.transposed @ posterior + strength * deviations
    return loss + 0.5 * strength * float((deviations * deviations).sum()), gradient


def curvature(rows: DistinctRows, strength: float) -> NDArray[np.float64]:
    """Return bounds on the second derivatives of `objective`, shape (K, 1): a quarter of the weight plus lambda."""
    found: NDArray[np.float64] = 0.25 * (rows.transposed @ rows.totals) + strength
    return found[:, np.newaxis]


def fit_deviations(
    rows: DistinctRows,
    offset: NDArray[np.float64],
    strength: float,
    start: NDArray[np.float64],
    *,
    tolerance: float,
    stopping: Callable[[], bool] = lambda: False,
) -> NDArray[np.float64]:
    """Return the deviations, shape (K, C), that minimise the penalised loss; see `objective`.

    The variables of the solver are scaled by the square root of `curvature`: without that, rare joint states take
    several times as many iterations.

    The strength is positive, so that the optimum is unique. The tolerance is for the largest component of the scaled
    gradient at the end, relative to the square root of the total weight. `Stopped` is raised if `stopping`, asked at
    every evaluation, returns True.
    """

    def loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        if stopping():
            raise Stopped
        return objective(point, rows, offset, strength)

    scale, size = 1.0 / np.sqrt(curvature(rows, strength)), rows.weight
    return minimum(
        loss, start, scale, tolerance=tolerance / np.sqrt(size), iterations=MAX_ITERATIONS, unit=size
    )
