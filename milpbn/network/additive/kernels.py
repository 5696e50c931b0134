"""Compiled passes over the rows of an additive model.

Row m has one cell in each term: `cells` has shape (M, T), and the last cell, d, is that of values without a state. With
three or more classes the weights of `LANES` of them lie beside each other, shape (B, d + 1, LANES) for B blocks of
classes. So one vector instruction adds those of a block, which takes half the time of one class after the other.
"""

from __future__ import annotations

import numpy as np

from milpbn.util.compiled import kernel

#: Classes whose weights lie beside each other; the kernels write them out one by one.
LANES = 4


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
def add_penalty(starts, places, values, weights, half, gradient):  # type: ignore[no-untyped-def]
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
