"""Cuts of continuous features where boosted trees over all features split them.

A feature that matters only together with another has no cut that tells the classes apart by itself, so a criterion
that looks at one feature at a time drops it. Trees of depth 2 find such a feature, and its thresholds. Here
every threshold counts by the gain of its splits in scikit-learn's gradient boosting (Friedman 2001).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milpbn.data.midpoints import midpoints

#: Rounds of boosting for two classes; with more, each round has a tree for every class.
ROUNDS, ROUNDS_OF_MORE, FEWEST_ROUNDS = 100, 60, 30
LEARNING_RATE = 0.15
#: Each tree sees half of the rows, at most `MOST_ROWS` of them, and at most `MOST_FEATURES` features at a split.
MOST_ROWS, MOST_FEATURES = 3000, 12
LEAST_ROWS = 5
#: Weight between two cuts at least, as a share of that of an interval of equal weight, and in rows.
APART, APART_ROWS = 1 / 3, 4.0
#: Gains of thresholds nearby count as well: the standard deviation of their distance, as such a share.
NEARBY = 1 / 6


def boosted_cuts(
    values: NDArray[np.float64],
    continuous: NDArray[np.bool_],
    classes: NDArray[np.integer],
    weights: NDArray[np.float64],
    bins: int,
) -> list[NDArray[np.float64]]:
    """Return at most ``bins - 1`` ascending cuts for each continuous feature, and none for the others.

    Where the trees have too few thresholds, places of equal weight are added. The values have the shape (M, N), NaN
    where one is missing; classes and weights have the shape (M,).
    """
    present = weights > 0
    values, classes, weights = values[present], classes[present], weights[present]
    # Trees do not depend on the scale. Ranks are exact in the trees' float32; a missing value is below all others.
    ranked = [np.unique(column, return_inverse=True) for column in values.T]
    sizes = [int(np.count_nonzero(~np.isnan(distinct))) for distinct, _ in ranked]
    few = [size <= bins for size in sizes]
    found = [np.empty(0)] * len(continuous)
    if not continuous.any():
        return found
    gains: list[NDArray[np.float64]] = [np.zeros(max(0, size - 1)) for size in sizes]
    if not all(few[i] for i in np.flatnonzero(continuous)) and len(np.unique(classes)) > 1:
        ranks = [np.where(which < size, which, -1) for (_, which), size in zip(ranked, sizes, strict=True)]
        _add_gains(gains, np.column_stack(ranks), classes, weights)
    for i in np.flatnonzero(continuous):
        distinct, which = ranked[i]
        mass = np.bincount(which, weights, minlength=len(distinct))[: sizes[i]].astype(np.float64)
        below = np.arange(len(gains[i])) if few[i] else _places(gains[i], mass, bins)
        found[i] = midpoints(distinct[below], distinct[below + 1])
    return found


def _add_gains(
    gains: list[NDArray[np.float64]],
    ranks: NDArray[np.integer],
    classes: NDArray[np.integer],
    weights: NDArray[np.float64],
) -> None:
    """Add the decrease of squared error by every split to the place of its threshold: the values below it."""
    from sklearn.ensemble import GradientBoostingClassifier  # takes long to import

    n_rows, n_features = ranks.shape
    n_classes = len(np.unique(classes))
    rounds = ROUNDS if n_classes == 2 else max(FEWEST_ROUNDS, 2 * ROUNDS_OF_MORE // n_classes)
    model = GradientBoostingClassifier(
        n_estimators=rounds,
        learning_rate=LEARNING_RATE,
        max_depth=2,
        min_samples_leaf=LEAST_ROWS,
        subsample=min(0.5, MOST_ROWS / n_rows),
        max_features=min(MOST_FEATURES, n_features),
        random_state=0,
    )
    model.fit(ranks.astype(np.float32), classes, sample_weight=weights / weights.mean())
    for fitted in model.estimators_.ravel():
        tree = fitted.tree_
        error = tree.weighted_n_node_samples * tree.impurity
        for node in np.flatnonzero(tree.children_left >= 0):
            feature, place = tree.feature[node], int(np.floor(tree.threshold[node]))
            if 0 <= place < len(gains[feature]):  # a threshold below all values tells missing ones apart
                parts = error[tree.children_left[node]] + error[tree.children_right[node]]
                gains[feature][place] += max(0.0, error[node] - parts)


def _places(gains: NDArray[np.float64], mass: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Return the places of the cuts, ascending: those of the largest gains first, not too near to each other.

    Place j is between the distinct values j and j + 1, shape (K - 1,); `mass` has the weights of the values, shape
    (K,).
    """
    # A value in most of the rows, such as 0, must not keep cuts out of the others.
    mass = np.minimum(mass, mass.sum() / bins)
    below = np.cumsum(mass)[:-1]
    total = below[-1] + mass[-1]
    apart = max(APART_ROWS, APART * total / bins)
    width = max(APART_ROWS / 2, NEARBY * total / bins)
    seen = np.flatnonzero(gains)
    near = np.exp(-0.5 * ((below[seen][:, None] - below[seen]) / width) ** 2) @ gains[seen]
    equal = np.abs(below[:, None] - total * np.arange(1, bins) / bins).argmin(axis=0)
    chosen: list[int] = []
    for place in (*seen[np.argsort(-near, kind="stable")], *equal):
        margin = min(below[place], total - below[place])
        free = all(abs(below[place] - below[other]) >= apart for other in chosen)
        if free and len(chosen) < bins - 1 and margin >= apart / 2:
            chosen.append(int(place))
    return np.sort(np.array(chosen, dtype=np.int64))
