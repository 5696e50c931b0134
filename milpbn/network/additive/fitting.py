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
#: Weights of a cell, each of one class, that lie beside each other.
LANES = 4


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
def add_logit_gradient(cells, weights, classes, row_weights, offset, posterior, gradient):  # type: ignore[no-untyped-def]
    """Return the loss of two classes without the penalty, and add its gradient to `gradient`, shape (d + 1,).

    `posterior`, shape (M,), becomes P(second class) of each row.
    """
    n_rows, n_terms = cells.shape
    loss = 0.0
    for m in range(n_rows):
        score = offset[m]
        for t in range(n_terms):
            score += weights[cells[m, t]]
        small = np.exp(-abs(score))
        away = score if classes[m] == 1 else -score
        loss += row_weights[m] * (np.log1p(small) + max(-away, 0.0))
        posterior[m] = 1.0 / (1.0 + small) if score > 0.0 else small / (1.0 + small)
    for m in range(n_rows):
        slope = row_weights[m] * (posterior[m] - (1.0 if classes[m] == 1 else 0.0))
        for t in range(n_terms):
            gradient[cells[m, t]] += slope
    return loss


@kernel(error_model="numpy")
def add_logit_hessian_product(cells, weights, row_weights, posterior, product):  # type: ignore[no-untyped-def]
    """Add the product of the Hessian of that loss and `weights` to `product`, both of shape (d + 1,)."""
    n_rows, n_terms = cells.shape
    for m in range(n_rows):
        score = 0.0
        for t in range(n_terms):
            score += weights[cells[m, t]]
        slope = row_weights[m] * posterior[m] * (1.0 - posterior[m]) * score
        for t in range(n_terms):
            product[cells[m, t]] += slope


@kernel(linked=True, error_model="numpy")
def sum_lanes(weights, cells, m):  # type: ignore[no-untyped-def]
    """Return the sums of `weights`, shape (d + 1, LANES), over the cells of row m."""
    a = b = c = d = 0.0
    for t in range(cells.shape[1]):
        cell = cells[m, t]
        a += weights[cell, 0]
        b += weights[cell, 1]
        c += weights[cell, 2]
        d += weights[cell, 3]
    return a, b, c, d


@kernel(linked=True, error_model="numpy")
def add_lanes(total, cells, m, a, b, c, d):  # type: ignore[no-untyped-def]
    """Add LANES numbers to `total`, shape (d + 1, LANES), in all cells of row m."""
    for t in range(cells.shape[1]):
        cell = cells[m, t]
        total[cell, 0] += a
        total[cell, 1] += b
        total[cell, 2] += c
        total[cell, 3] += d


@kernel(error_model="numpy", slp=True)
def add_gradient(cells, weights, classes, row_weights, offset, posterior, gradient):  # type: ignore[no-untyped-def]
    """Return the loss without the penalty, and add its gradient to `gradient`, shape (B, d + 1, LANES).

    `posterior`, shape (B, M, LANES), becomes P(class) of each row. The outermost loop is that over the blocks, because
    the weights of one block fit into the processor's first or second cache.
    """
    n_rows = len(cells)
    for b in range(len(weights)):
        own = weights[b]
        for m in range(n_rows):
            sums = sum_lanes(own, cells, m)
            posterior[b, m, 0] = offset[b, m, 0] + sums[0]
            posterior[b, m, 1] = offset[b, m, 1] + sums[1]
            posterior[b, m, 2] = offset[b, m, 2] + sums[2]
            posterior[b, m, 3] = offset[b, m, 3] + sums[3]
    loss = 0.0
    for m in range(n_rows):
        top = own_score = posterior[classes[m] // LANES, m, classes[m] % LANES]
        for b in range(len(weights)):
            for k in range(LANES):
                top = max(top, posterior[b, m, k])
        total = 0.0
        for b in range(len(weights)):
            for k in range(LANES):
                posterior[b, m, k] = np.exp(posterior[b, m, k] - top)
                total += posterior[b, m, k]
        loss += row_weights[m] * (np.log(total) + top - own_score)
        for b in range(len(weights)):
            for k in range(LANES):
                posterior[b, m, k] /= total
    for b in range(len(weights)):
        own = gradient[b]
        for m in range(n_rows):
            w, lane = row_weights[m], classes[m] - b * LANES
            add_lanes(
                own,
                cells,
                m,
                w * (posterior[b, m, 0] - (lane == 0)),
                w * (posterior[b, m, 1] - (lane == 1)),
                w * (posterior[b, m, 2] - (lane == 2)),
                w * (posterior[b, m, 3] - (lane == 3)),
            )
    return loss


@kernel(error_model="numpy", slp=True)
def add_hessian_product(cells, weights, row_weights, posterior, product):  # type: ignore[no-untyped-def]
    """Add the product of the Hessian of the loss and `weights` to `product`, both of shape (B, d + 1, LANES).

    The penalty is left out.
    """
    n_rows = len(cells)
    scores, mean = np.empty_like(posterior), np.zeros(n_rows)
    for b in range(len(weights)):
        own = weights[b]
        for m in range(n_rows):
            sums = sum_lanes(own, cells, m)
            scores[b, m, 0] = sums[0]
            scores[b, m, 1] = sums[1]
            scores[b, m, 2] = sums[2]
            scores[b, m, 3] = sums[3]
        for m in range(n_rows):
            for k in range(LANES):
                mean[m] += posterior[b, m, k] * scores[b, m, k]
    for b in range(len(weights)):
        own = product[b]
        for m in range(n_rows):
            w, mu = row_weights[m], mean[m]
            add_lanes(
                own,
                cells,
                m,
                w * posterior[b, m, 0] * (scores[b, m, 0] - mu),
                w * posterior[b, m, 1] * (scores[b, m, 1] - mu),
                w * posterior[b, m, 2] * (scores[b, m, 2] - mu),
                w * posterior[b, m, 3] * (scores[b, m, 3] - mu),
            )


@kernel(error_model="numpy")
def add_to_cells(cells, of_rows, total):  # type: ignore[no-untyped-def]
    """Add numbers of rows, shape (M,), to `total`, shape (d + 1,), in all cells of each row."""
    for m in range(len(cells)):
        for t in range(cells.shape[1]):
            total[cells[m, t]] += of_rows[m]


@kernel(error_model="numpy", slp=True)
def add_pull(starts, places, values, weights, half, gradient):  # type: ignore[no-untyped-def]
    """Return half w' P w times `half`, and add its gradient; the first three are the arrays of P as a csr_array.

    `weights` and `gradient` have shape (B, d + 1, lanes), with one or `LANES` lanes.
    """
    total = 0.0
    for n in range(len(weights)):
        own, added = weights[n], gradient[n]
        for i in range(len(starts) - 1):
            a = b = c = d = 0.0
            if own.shape[1] == 1:
                for k in range(starts[i], starts[i + 1]):
                    a += values[k] * own[places[k], 0]
                added[i, 0] += half * a
                total += half * a * own[i, 0]
                continue
            for k in range(starts[i], starts[i + 1]):
                value, j = values[k], places[k]
                a += value * own[j, 0]
                b += value * own[j, 1]
                c += value * own[j, 2]
                d += value * own[j, 3]
            added[i, 0] += half * a
            added[i, 1] += half * b
            added[i, 2] += half * c
            added[i, 3] += half * d
            total += half * (a * own[i, 0] + b * own[i, 1] + c * own[i, 2] + d * own[i, 3])
    return 0.5 * total


class Objective:
    """The penalised loss of some rows, as a function of the weights of the cells.

    Inside, the columns are in B blocks of `LANES`, the last of which may have empty columns at its end. So one vector
    instruction adds the weights of a block, which is two to three times as fast as one column after the other. The
    single column of two classes is a block of its own.
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
        loss += add_pull(penalty.indptr, penalty.indices, penalty.data, blocks, self.half, gradient)
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
        add_pull(penalty.indptr, penalty.indices, penalty.data, blocks, self.half, product)
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
