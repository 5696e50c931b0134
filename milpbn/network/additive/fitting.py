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

from milpbn.network.additive.kernels import (
    LANES,
    add_gradient,
    add_hessian_product,
    add_logit_gradient,
    add_logit_hessian_product,
    add_penalty,
    add_to_cells,
)

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


class Objective:
    """The penalised loss of some rows, as a function of the weights of the cells.

    Inside, the columns are in B blocks of `LANES`, the last of which may have empty columns at its end. The single
    column of two classes is a block of its own.
    """

    def __init__(self, rows: CellRows, n_cells: int, kappa: float) -> None:
        self.n_cells = n_cells
        self.columns = rows.columns
        #: Two classes have half the penalty.
        self.half = 0.5 if rows.columns == 1 else 1.0
        self._lanes = 1 if rows.columns == 1 else LANES
        offset = rows.offset[:, 1:] - rows.offset[:, :1] if rows.columns == 1 else rows.offset
        # No row is in the class of an empty column.
        self._offset = self._blocks(kappa * offset, empty=-np.inf)
        self._rows = rows
        self.size = float(rows.weights.sum())

    def _blocks(
        self, columns: NDArray[np.float64], *, extra: int = 0, empty: float = 0.0
    ) -> NDArray[np.float64]:
        """Return an array of shape (n, C') in blocks, shape (B, n + `extra`, lanes), with zeros in the extra rows."""
        n_blocks = -(-self.columns // self._lanes)
        found = np.zeros((n_blocks, len(columns) + extra, self._lanes))
        for c in range(self.columns):
            found[c // self._lanes, : len(columns), c % self._lanes] = columns[:, c]
        found[-1, :, self.columns - (n_blocks - 1) * self._lanes :] = empty
        return found

    def _columns(self, blocks: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the columns of blocks, without those that are empty: shape (n, C')."""
        return blocks.swapaxes(0, 1).reshape(blocks.shape[1], -1)[:, : self.columns]

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
        """Return the same, and P(class) of each row in blocks, shape (B, M, lanes); of two classes the second's."""
        # The last cell is that of values without a state.
        blocks = self._blocks(weights, extra=1)
        gradient, posterior = np.zeros_like(blocks), np.empty_like(self._offset)
        rows = self._rows
        if self.columns == 1:
            loss = add_logit_gradient(
                rows.cells,
                blocks.ravel(),
                rows.classes,
                rows.weights,
                self._offset.ravel(),
                posterior.ravel(),
                gradient.ravel(),
            )
        else:
            loss = add_gradient(
                rows.cells, blocks, rows.classes, rows.weights, self._offset, posterior, gradient
            )
        # Much faster than a product by scipy for the small matrices of small tables.
        loss += add_penalty(penalty.indptr, penalty.indices, penalty.data, blocks, self.half, gradient)
        return float(loss), self._columns(gradient[:, :-1]), posterior

    def hessian_product(
        self, weights: NDArray[np.float64], posterior: NDArray[np.float64], penalty: sparse.csr_array
    ) -> NDArray[np.float64]:
        """Return the Hessian, at the weights where rows have this P(class), times `weights`, shape (d, C')."""
        blocks, rows = self._blocks(weights, extra=1), self._rows
        product = np.zeros_like(blocks)
        if self.columns == 1:
            add_logit_hessian_product(
                rows.cells, blocks.ravel(), rows.weights, posterior.ravel(), product.ravel()
            )
        else:
            add_hessian_product(rows.cells, blocks, rows.weights, posterior, product)
        add_penalty(penalty.indptr, penalty.indices, penalty.data, blocks, self.half, product)
        return self._columns(product[:, :-1])

    def curvature(self, penalty: sparse.csr_array) -> NDArray[np.float64]:
        """Return bounds on the second derivatives, shape (d, 1): a quarter of a cell's weight, and the penalty."""
        counts = self._of_cells(self._rows.weights)
        found: NDArray[np.float64] = 0.25 * counts + self.half * penalty.diagonal() + SMALLEST_CURVATURE
        return found[:, np.newaxis]

    def mean_hessian_diagonal(self, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the diagonal of the Hessian without the penalty, in the mean over the classes, shape (d,)."""
        if self.columns == 1:
            curvatures = (posterior * (1.0 - posterior)).ravel()
        else:  # the sum of p (1 - p), as the p of a row add up to 1
            curvatures = (1.0 - np.einsum("bmk,bmk->m", posterior, posterior)) / self.columns
        return self._of_cells(self._rows.weights * curvatures)
