r"""The fit of an additive model: penalised conditional likelihood, minimised by L-BFGS.

With the cells of a row m in all terms, the score of class c is :math:`z_{mc} = o_{mc} + \sum_t w_{t(m), c}`, and

.. math:: L(w) = -\sum_m v_m \log \frac{e^{z_{m y_m}}}{\sum_c e^{z_{mc}}} + \tfrac{1}{2} \sum_c w_c^T P w_c

with row weights v, an offset o, and the penalty P of `AdditiveTerms`. Two classes have one logit, the score of the
second minus that of the first, and half the penalty: the weights that it stands for are plus and minus half of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from milpbn.network.convex import minimum
from milpbn.util.budget import Budget
from milpbn.util.compiled import kernel

MAX_ITERATIONS = 300
MEMORY = 6
#: The largest component of the scaled gradient at the end, relative to the square root of the total weight.
TOLERANCE = 1e-3
#: Relative change of the loss below which the solver stops.
LEAST_CHANGE = 1e-7


@dataclass(frozen=True, eq=False)
class CellRows:
    """Training or held-out rows."""

    #: The cell of each row in each term, shape (M, T).
    cells: NDArray[np.int32]
    #: Class codes, shape (M,).
    classes: NDArray[np.int64]
    #: Weights of the rows, shape (M,).
    weights: NDArray[np.float64]
    #: Scores to which those of the terms are added, shape (M, C).
    offset: NDArray[np.float64]

    def scores(self, weights: NDArray[np.float64], kappa: float) -> NDArray[np.float64]:
        """Return the scores of all classes, shape (M, C), for weights of the cells, shape (d, C')."""
        padded = np.vstack([weights, np.zeros((1, weights.shape[1]))])
        own = np.zeros((len(self.cells), weights.shape[1]))
        for column in self.cells.T:
            own += padded[column]
        return kappa * self.offset + by_class(own)


def by_class(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return one column per class, shape (..., C), of scores or weights whose single column is the log-odds of two."""
    if logits.shape[-1] > 1:
        return logits
    return np.concatenate([-0.5 * logits, 0.5 * logits], axis=-1)


def row_losses(scores: NDArray[np.float64], classes: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return -log P(class) in nats of each row, shape (M,)."""
    away = scores - scores.max(axis=1, keepdims=True)
    log_sum: NDArray[np.float64] = np.log(np.exp(away).sum(axis=1))
    return log_sum - away[np.arange(len(away)), classes]


@kernel(error_model="numpy")
def add_gradient(cells, weights, classes, row_weights, offset, gradient):  # type: ignore[no-untyped-def]
    """Return the loss without the penalty, and add its gradient to `gradient`, shape (d + 1, C')."""
    n_rows, n_terms = cells.shape
    columns = weights.shape[1]
    scores = np.empty(columns)
    loss = 0.0
    for m in range(n_rows):
        for c in range(columns):
            scores[c] = offset[m, c]
        for t in range(n_terms):
            cell = cells[m, t]
            for c in range(columns):
                scores[c] += weights[cell, c]
        if columns == 1:
            sign = 1.0 if classes[m] == 1 else -1.0
            away = sign * scores[0]
            small = np.exp(-abs(away))
            loss += row_weights[m] * (np.log1p(small) + max(-away, 0.0))
            wrong = small / (1.0 + small) if away > 0.0 else 1.0 / (1.0 + small)
            scores[0] = -sign * row_weights[m] * wrong
        else:
            top = scores.max()
            own = scores[classes[m]]
            total = 0.0
            for c in range(columns):
                scores[c] = np.exp(scores[c] - top)
                total += scores[c]
            loss += row_weights[m] * (np.log(total) + top - own)
            for c in range(columns):
                scores[c] *= row_weights[m] / total
            scores[classes[m]] -= row_weights[m]
        for t in range(n_terms):
            cell = cells[m, t]
            for c in range(columns):
                gradient[cell, c] += scores[c]
    return loss


@kernel(error_model="numpy")
def add_pull(starts, places, values, weights, half, gradient):  # type: ignore[no-untyped-def]
    """Return half w' P w times `half`, and add its gradient; the first three are the arrays of P as a csr_array."""
    total = 0.0
    for i in range(len(starts) - 1):
        for c in range(weights.shape[1]):
            pull = 0.0
            for k in range(starts[i], starts[i + 1]):
                pull += values[k] * weights[places[k], c]
            gradient[i, c] += half * pull
            total += half * pull * weights[i, c]
    return 0.5 * total


class Objective:
    """The penalised loss of some rows, as a function of the weights of the cells."""

    def __init__(self, rows: CellRows, n_cells: int, kappa: float) -> None:
        self.n_cells = n_cells
        n_classes = rows.offset.shape[1]
        self.columns = 1 if n_classes == 2 else n_classes
        #: Two classes have half the penalty.
        self.half = 0.5 if n_classes == 2 else 1.0
        offset = rows.offset[:, 1:] - rows.offset[:, :1] if n_classes == 2 else rows.offset
        self._offset = np.ascontiguousarray(kappa * offset)
        self._rows = rows
        self.size = float(rows.weights.sum())
        repeated = np.repeat(rows.weights, rows.cells.shape[1])
        #: Weight of the rows in each cell, shape (d,).
        self.counts = np.bincount(rows.cells.ravel(), repeated, minlength=n_cells + 1)[:n_cells]

    def evaluate(
        self, weights: NDArray[np.float64], penalty: sparse.csr_array
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the penalised loss in nats at weights of shape (d, C'), and its gradient, of the same shape."""
        rows = self._rows
        padded = np.vstack([weights, np.zeros((1, self.columns))])
        gradient = np.zeros_like(padded)
        loss = add_gradient(rows.cells, padded, rows.classes, rows.weights, self._offset, gradient)
        # Much faster than a product by scipy for the small matrices of small tables.
        loss += add_pull(penalty.indptr, penalty.indices, penalty.data, padded, self.half, gradient)
        return float(loss), gradient[:-1]

    def curvature(self, penalty: sparse.csr_array) -> NDArray[np.float64]:
        """Return bounds on the second derivatives, shape (d, 1): a quarter of a cell's weight, and the penalty."""
        found: NDArray[np.float64] = 0.25 * self.counts + self.half * penalty.diagonal() + 1e-6
        return found[:, np.newaxis]

    def minimum(
        self,
        penalty: sparse.csr_array,
        start: NDArray[np.float64] | None = None,
        budget: Budget | None = None,
        tolerance: float = TOLERANCE,
    ) -> NDArray[np.float64]:
        """Return the best weights, shape (d, C'); the last ones if the budget ends before.

        The solver's variables are scaled by the root of `curvature`.
        """
        shape = (self.n_cells, self.columns)
        return minimum(
            lambda point: self.evaluate(point, penalty),
            np.zeros(shape) if start is None else start,
            1.0 / np.sqrt(self.curvature(penalty)),
            tolerance=tolerance * np.sqrt(self.size),
            iterations=MAX_ITERATIONS,
            maxcor=MEMORY,
            ftol=LEAST_CHANGE * tolerance / TOLERANCE,
            stopping=(lambda: False) if budget is None else budget.over,
        )
