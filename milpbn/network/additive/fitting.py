r"""The penalised conditional likelihood of an additive model, its gradient, and products with its Hessian.

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

from milpbn.util.compiled import kernel

#: Added to second derivatives, since those of a cell without rows and penalty are 0.
SMALLEST_CURVATURE = 1e-6


@dataclass(frozen=True, eq=False)
class CellRows:
    """Training or held-out rows."""

    #: The cell of each row in each term, shape (M, T). Kernels test signed indices for negative ones, in every loop.
    cells: NDArray[np.uint32]
    #: Class codes, shape (M,).
    classes: NDArray[np.int64]
    #: Weights of the rows, shape (M,).
    weights: NDArray[np.float64]
    #: Scores to which those of the terms are added, shape (M, C).
    offset: NDArray[np.float64]

    @property
    def columns(self) -> int:
        """Number of weights of a cell, C': one for two classes, otherwise one per class."""
        n_classes = self.offset.shape[1]
        return 1 if n_classes == 2 else n_classes

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
def add_gradient(cells, weights, classes, row_weights, offset, posterior, gradient):  # type: ignore[no-untyped-def]
    """Return the loss without the penalty, and add its gradient to `gradient`, shape (C', d + 1).

    `posterior`, shape (C', M), becomes P(class) of each row; that of the second class if C' is 1. The loop over the
    classes is the outermost one, because the weights of one class fit into the processor's first cache.
    """
    n_rows, n_terms = cells.shape
    columns = len(weights)
    for c in range(columns):
        own = weights[c]
        for m in range(n_rows):
            score = offset[c, m]
            for t in range(n_terms):
                score += own[cells[m, t]]
            posterior[c, m] = score
    loss = 0.0
    for m in range(n_rows):
        if columns == 1:
            score = posterior[0, m]
            small = np.exp(-abs(score))
            away = score if classes[m] == 1 else -score
            loss += row_weights[m] * (np.log1p(small) + max(-away, 0.0))
            posterior[0, m] = 1.0 / (1.0 + small) if score > 0.0 else small / (1.0 + small)
            continue
        top = posterior[0, m]
        for c in range(1, columns):
            top = max(top, posterior[c, m])
        own_score = posterior[classes[m], m]
        total = 0.0
        for c in range(columns):
            posterior[c, m] = np.exp(posterior[c, m] - top)
            total += posterior[c, m]
        loss += row_weights[m] * (np.log(total) + top - own_score)
        for c in range(columns):
            posterior[c, m] /= total
    for c in range(columns):
        own, label = gradient[c], 1 if columns == 1 else c
        for m in range(n_rows):
            slope = row_weights[m] * (posterior[c, m] - (1.0 if classes[m] == label else 0.0))
            for t in range(n_terms):
                own[cells[m, t]] += slope
    return loss


@kernel(error_model="numpy")
def add_hessian_product(cells, weights, row_weights, posterior, product):  # type: ignore[no-untyped-def]
    """Add the product of the Hessian of the loss and `weights` to `product`, both of shape (C', d + 1).

    The penalty is left out.
    """
    n_rows, n_terms = cells.shape
    columns = len(weights)
    scores, mean = np.empty((columns, n_rows)), np.zeros(n_rows)
    for c in range(columns):
        own = weights[c]
        for m in range(n_rows):
            score = 0.0
            for t in range(n_terms):
                score += own[cells[m, t]]
            scores[c, m] = score
            mean[m] += posterior[c, m] * score
    for c in range(columns):
        own = product[c]
        for m in range(n_rows):
            slope = row_weights[m] * posterior[c, m] * (scores[c, m] - mean[m])
            for t in range(n_terms):
                own[cells[m, t]] += slope


@kernel(error_model="numpy")
def add_to_cells(cells, of_rows, total):  # type: ignore[no-untyped-def]
    """Add numbers of rows, shape (M,), to `total`, shape (d + 1,), in all cells of each row."""
    for m in range(len(cells)):
        for t in range(cells.shape[1]):
            total[cells[m, t]] += of_rows[m]


@kernel(error_model="numpy")
def add_pull(starts, places, values, weights, half, gradient):  # type: ignore[no-untyped-def]
    """Return half w' P w times `half`, and add its gradient; the first three are the arrays of P as a csr_array."""
    total = 0.0
    for c in range(len(weights)):
        own, added = weights[c], gradient[c]
        for i in range(len(starts) - 1):
            pull = 0.0
            for k in range(starts[i], starts[i + 1]):
                pull += values[k] * own[places[k]]
            added[i] += half * pull
            total += half * pull * own[i]
    return 0.5 * total


class Objective:
    """The penalised loss of some rows, as a function of the weights of the cells."""

    def __init__(self, rows: CellRows, n_cells: int, kappa: float) -> None:
        self.n_cells = n_cells
        self.columns = rows.columns
        #: Two classes have half the penalty.
        self.half = 0.5 if rows.columns == 1 else 1.0
        offset = rows.offset[:, 1:] - rows.offset[:, :1] if rows.columns == 1 else rows.offset
        self._offset = np.ascontiguousarray(kappa * offset.T)
        self._rows = rows
        self.size = float(rows.weights.sum())

    def _of_cells(self, of_rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over the rows in each cell, shape (d,)."""
        total = np.zeros(self.n_cells + 1)
        add_to_cells(self._rows.cells, of_rows, total)
        return total[:-1]

    def evaluate(
        self, weights: NDArray[np.float64], penalty: sparse.csr_array
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the penalised loss in nats at weights of shape (d, C'), and its gradient, of the same shape."""
        loss, gradient, _ = self.with_posterior(weights, penalty)
        return loss, gradient

    def with_posterior(
        self, weights: NDArray[np.float64], penalty: sparse.csr_array
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Return the same, and P(class) of each row, shape (C', M); that of the second class if C' is 1."""
        padded = self._padded(weights)
        gradient = np.zeros_like(padded)
        posterior = np.empty((self.columns, len(self._rows.cells)))
        rows = self._rows
        loss = add_gradient(
            self._rows.cells, padded, rows.classes, rows.weights, self._offset, posterior, gradient
        )
        # Much faster than a product by scipy for the small matrices of small tables.
        loss += add_pull(penalty.indptr, penalty.indices, penalty.data, padded, self.half, gradient)
        return float(loss), gradient[:, :-1].T, posterior

    def hessian_product(
        self, weights: NDArray[np.float64], posterior: NDArray[np.float64], penalty: sparse.csr_array
    ) -> NDArray[np.float64]:
        """Return the Hessian, at the weights where rows have this P(class), times `weights`, shape (d, C')."""
        padded = self._padded(weights)
        product = np.zeros_like(padded)
        add_hessian_product(self._rows.cells, padded, self._rows.weights, posterior, product)
        add_pull(penalty.indptr, penalty.indices, penalty.data, padded, self.half, product)
        return product[:, :-1].T

    def _padded(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights of each class, shape (C', d + 1); the last one is that of values without a state."""
        padded = np.zeros((self.columns, self.n_cells + 1))
        padded[:, :-1] = weights.T
        return padded

    def curvature(self, penalty: sparse.csr_array) -> NDArray[np.float64]:
        """Return bounds on the second derivatives, shape (d, 1): a quarter of a cell's weight, and the penalty."""
        counts = self._of_cells(self._rows.weights)
        found: NDArray[np.float64] = 0.25 * counts + self.half * penalty.diagonal() + SMALLEST_CURVATURE
        return found[:, np.newaxis]

    def mean_hessian_diagonal(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the diagonal of the Hessian without the penalty, in the mean over the classes, shape (d,)."""
        return self._of_cells(self._rows.weights * (posterior * (1.0 - posterior)).mean(axis=0))
