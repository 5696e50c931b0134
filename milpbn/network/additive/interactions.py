r"""Which pairs of features interact: the gain of a table over a pair on the residuals of main effects.

With the residuals :math:`r = y - p` of fitted main effects and their second derivatives :math:`h = p (1 - p)`, one
Newton step with a ridge on the table over a pair gains, per cell and class, with G and H the sums of r and h there,

.. math:: \tfrac{1}{2} \, \frac{G^2 - \phi H}{H + \lambda}, \qquad \phi = \frac{\sum r^2}{\sum h}

The second term is the expected gain of a cell without an interaction. The residuals of training rows are smaller than
those of other rows, and the dispersion phi says by how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from milpbn.network.additive.model import Additive, Penalty
from milpbn.network.margins import log_posterior
from milpbn.network.structure import Structure

#: Ridge of the Newton step.
RIDGE = 4.0


def residual_gains(model: Additive, weights: NDArray[np.float64], penalty: Penalty) -> NDArray[np.float64]:
    """Return the gains of all pairs of the model's features, shape (N, N), symmetric, in nats."""
    data, rows = model.data, model.rows
    posterior = np.exp(log_posterior(rows.scores(weights, penalty.kappa)))
    truth = np.zeros_like(posterior)
    truth[np.arange(len(truth)), rows.classes] = 1.0
    # Of two classes the second says all.
    columns = slice(1, None) if posterior.shape[1] == 2 else slice(None)
    residuals = (truth - posterior)[:, columns]
    slopes = rows.weights[:, None] * residuals
    curvatures = (rows.weights[:, None] * posterior * (1.0 - posterior))[:, columns]
    gains = np.zeros((len(model.features), len(model.features)))
    sizes = data.n_states
    dispersion = float((slopes * residuals).sum() / max(curvatures.sum(), np.finfo(np.float64).tiny))
    for a, b in combinations(range(len(model.features)), 2):
        i, j = model.features[a], model.features[b]
        if sizes[i] < 2 or sizes[j] < 2:
            continue
        cells = data.codes[:, i].astype(np.int64) * sizes[j] + data.codes[:, j]
        total = 0.0
        for slope, curvature in zip(slopes.T, curvatures.T, strict=True):
            g, h = np.bincount(cells, slope), np.bincount(cells, curvature)
            total += 0.5 * float(((g * g - dispersion * h) / (h + RIDGE)).sum())
        gains[a, b] = gains[b, a] = total
    return gains


def residual_forest(model: Additive, penalty: Penalty) -> list[tuple[int, int]]:
    """Return the pairs of features of the forest with the largest sum of positive gains, beside fitted main effects.

    `model` has main effects only.
    """
    gains = residual_gains(model, model.fit(penalty), penalty)
    tree = minimum_spanning_tree(csr_array(np.triu(np.where(gains > 0.0, -gains, 0.0)))).tocoo()
    pairs = [(model.features[a], model.features[b]) for a, b in zip(tree.row, tree.col, strict=True)]
    return sorted((min(pair), max(pair)) for pair in pairs)


def forest_structure(names: Sequence[str], pairs: Sequence[tuple[int, int]]) -> Structure:
    """Return the structure of a forest of pairs of features: the first feature of each tree is its root.

    `names` has the class last; the class is a parent of every feature.
    """
    target = len(names) - 1
    one, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = csr_array((np.ones(len(pairs)), (one, other)), shape=(target, target))
    parents: list[tuple[int, ...]] = [(target,)] * target + [()]
    seen: set[int] = set()
    for root in range(target):
        if root in seen:
            continue
        order, before = breadth_first_order(graph, root, directed=False)
        seen.update(order.tolist())
        for i in order[1:]:
            parents[i] = (int(before[i]), target)
    return Structure(tuple(names), tuple(parents))
