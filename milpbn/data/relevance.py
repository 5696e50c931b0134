"""Which features of a wide table say most about the class, each by itself: Pearson's chi-squared test of their states.

Some dozens of rows cannot tell curves and pairs of thousands of columns, such as gene expressions, from chance.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, rankdata

from milpbn.data.table import Table

#: Features that are used, at most (more if each has four rows) and at least; between, if there are fewer rows than
#: features, those whose p-values are below the line of Benjamini and Hochberg for this share of false ones. Numbers of
#: intervals of a continuous feature.
MOST_FEATURES, LEAST_FEATURES, FALSE_SHARE, INTERVALS = 200, 20, 0.2, 4


def most_features(n_rows: int) -> int:
    """Return how many features are used of so many rows, at most."""
    return max(MOST_FEATURES, n_rows // 4)


def of_relevant(table: Table, rows: NDArray[np.int64], kept: Collection[str] = ()) -> Table:
    """Return a table of the features that say most about the class in these rows, and of those to be `kept`."""
    from sklearn.feature_selection import chi2 as statistics_of  # takes long to import
    from sklearn.preprocessing import OneHotEncoder

    n, most = len(table.features), most_features(len(rows))
    if n <= most:
        return table
    values, continuous = table.values(rows)
    ranks = rankdata(values, axis=0, nan_policy="omit")
    encoder = OneHotEncoder()  # a missing value is a state
    states = encoder.fit_transform(np.where(continuous, ranks * INTERVALS // (len(rows) + 1), values))
    sizes = np.array([len(own) for own in encoder.categories_])
    classes = table.columns[table.target].codes[rows]
    statistics = np.add.reduceat(statistics_of(states, classes)[0], np.cumsum(sizes) - sizes)
    p_values = chi2.sf(statistics, np.maximum(1, (sizes - 1) * (len(np.unique(classes)) - 1)))
    p_values[[name in kept for name in table.features]] = -1.0
    order = np.lexsort((-statistics, p_values))
    below = np.flatnonzero(p_values[order] <= FALSE_SHARE * np.arange(1, n + 1) / n)
    # Enough rows tell columns that say something only beside others from chance.
    number = most if n <= len(rows) else np.clip(below.max(initial=0) + 1, LEAST_FEATURES, most)
    number = max(number, np.count_nonzero(p_values < 0))
    names = [table.features[i] for i in np.sort(order[:number])]
    request = table.request
    if request is not None:  # features that are left out may not be declared
        lists = {k: [f for f in request.options.get(k, ()) if f in names] for k in ("continuous", "nominal")}
        options = {**request.options, **lists, "features": names, "drop": []}
        request = replace(request, options={k: v for k, v in options.items() if v != []})
    note = f"{number} of {n} features are used, which say most about the class, each by itself."
    few = tuple(name for name in table.few_integers if name in names)
    frame, notes = table.frame[[*names, table.target]], (*table.notes, note)
    return replace(table, frame=frame, notes=notes, request=request, few_integers=few)
