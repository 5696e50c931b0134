"""Which features of a wide table say most about the class, by Pearson's chi-squared test of each by itself."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray

from milpbn.data.dataset import LESS_RELEVANT
from milpbn.data.table import Table

#: A table with no more features than this, or with four rows for each feature, keeps all of them.
MOST_FEATURES = 200
#: With fewer rows than features, those are kept that the procedure of Benjamini and Hochberg selects for this false
#: discovery rate, but at least `LEAST_FEATURES`.
FALSE_SHARE, LEAST_FEATURES = 0.2, 20
#: Intervals of equal weight into which the test divides a continuous feature.
INTERVALS = 4


def most_features(n_rows: int) -> int:
    """Return how many features are used of so many rows, at most."""
    return max(MOST_FEATURES, n_rows // 4)


def of_relevant(table: Table, rows: NDArray[np.int64], kept: Collection[str] = ()) -> Table:
    """Return a table of the features that say most about the class in these rows, and of those to be `kept`."""
    n, most = len(table.features), most_features(len(rows))
    if n <= most:
        return table
    values, continuous = table.values(rows)
    ranks = scipy.stats.rankdata(values, axis=0, nan_policy="omit")
    codes = np.nan_to_num(ranks * INTERVALS // (len(rows) + 1), nan=INTERVALS).astype(np.int64)
    for i in np.flatnonzero(~continuous):  # a missing value is a state
        codes[:, i] = table.columns[table.features[i]].codes[rows] + 1
    labels = table.columns[table.target].codes[rows]
    classes, freq = np.unique(labels, return_inverse=True, return_counts=True)[1:]
    sizes = codes.max(axis=0) + 1
    begins = np.cumsum(sizes) - sizes
    cells = (codes + begins) * len(freq) + classes[:, None]
    counts = np.bincount(cells.ravel(), minlength=sizes.sum() * len(freq)).reshape(-1, len(freq))
    expected = np.maximum(counts.sum(axis=1, keepdims=True) * freq / len(rows), 1e-9)
    statistics = np.add.reduceat(((counts - expected) ** 2 / expected).sum(axis=1), begins)
    seen = np.add.reduceat(counts.any(axis=1).astype(np.int64), begins)
    p_values = scipy.stats.chi2.sf(statistics, np.maximum(1, (seen - 1) * (len(freq) - 1)))
    p_values[[name in kept for name in table.features]] = -1.0
    order = np.lexsort((-statistics, p_values))
    below = np.flatnonzero(p_values[order] <= FALSE_SHARE * np.arange(1, n + 1) / n)
    # Enough rows tell columns that say something only beside others from chance.
    number = most if n <= len(rows) else np.clip(below.max(initial=0) + 1, LEAST_FEATURES, most)
    number = max(number, np.count_nonzero(p_values < 0))
    names = [table.features[i] for i in np.sort(order[:number])]
    request, few = table.request, tuple(name for name in table.few_integers if name in names)
    if request is not None:  # features that are left out may not be declared
        lists = {k: [f for f in request.options.get(k, ()) if f in names] for k in ("continuous", "nominal")}
        options = {**request.options, **lists, "features": names, "drop": []}
        request = replace(request, options={k: v for k, v in options.items() if v != []})
    note = f"{LESS_RELEVANT} {n - number} of {n} features, which say less about the class, each by itself."
    frame, notes = table.frame[[*names, table.target]], (*table.notes, note)
    return replace(table, frame=frame, notes=notes, request=request, few_integers=few)
