"""Which columns of a wide table say most about the class, each by itself.

Curves and pairs of thousands of columns, such as gene expressions, cannot be told from chance by some dozens of rows,
and take too long. The p-value of a column is that of the F-test on ranks for numbers, and that of Pearson's chi-squared
test for states. Columns that matter only together with others are lost.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2 as chi_squared
from scipy.stats import rankdata
from sklearn.feature_selection import chi2, f_classif
from sklearn.preprocessing import OneHotEncoder

from milpbn.data.table import Table

#: Features that are used, at most (more if each has ten rows) and at least; between, those whose p-values are below
#: the line of Benjamini and Hochberg for this share of false ones.
MOST_FEATURES, LEAST_FEATURES, FALSE_SHARE = 200, 20, 0.2


def most_features(n_rows: int) -> int:
    """Return how many features are used of so many rows, at most."""
    return max(MOST_FEATURES, n_rows // 10)


def of_relevant(table: Table, rows: NDArray[np.int64], kept: Collection[str] = ()) -> Table:
    """Return a table of the features that say most about the class in these rows, and of those to be `kept`.

    It is the table itself if that has no more than `most_features`.
    """
    n = len(table.features)
    if n <= most_features(len(rows)):
        return table
    p_values, statistics = _tests(table, rows)
    p_values[[name in kept for name in table.features]] = -1.0
    order = np.lexsort((-statistics, p_values))
    below = np.flatnonzero(p_values[order] <= FALSE_SHARE * np.arange(1, n + 1) / n)
    number = int(np.clip(below.max(initial=0) + 1, LEAST_FEATURES, most_features(len(rows))))
    best = np.sort(order[: max(number, np.count_nonzero(p_values < 0))])
    names = [table.features[i] for i in best]
    note = f"{len(best)} of {n} features are used, which say most about the class, each by itself."
    request = table.request
    if request is not None:  # columns that are left out may not be declared
        lists = {k: [n for n in request.options.get(k, ()) if n in names] for k in ("continuous", "nominal")}
        options = {**request.options, **lists, "features": names, "drop": []}
        request = replace(request, options={k: v for k, v in options.items() if v != []})
    return replace(
        table,
        frame=table.frame[[*names, table.target]],
        notes=(*table.notes, note),
        request=request,
        few_integers=tuple(n for n in table.few_integers if n in names),
    )


def _tests(table: Table, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the p-values of the features, 1 for those without a test, and the statistics."""
    values, continuous = table.values(rows)
    classes = table.columns[table.target].codes[rows]
    p_values, statistics = np.ones(len(continuous)), np.zeros(len(continuous))
    ranks = rankdata(values, axis=0, nan_policy="omit")
    # A missing value has the rank in the middle.
    ranks = np.where(np.isnan(ranks), (np.count_nonzero(~np.isnan(ranks), axis=0) + 1) / 2, ranks)
    varied = np.ptp(ranks, axis=0) > 0
    numbers = np.flatnonzero(continuous & varied)
    with np.errstate(divide="ignore"):  # ranks that do not vary within the classes
        if len(numbers):
            statistics[numbers], p_values[numbers] = f_classif(ranks[:, numbers], classes)
    nominal = np.flatnonzero(~continuous)
    if len(nominal):
        encoder = OneHotEncoder()
        found = chi2(encoder.fit_transform(values[:, nominal]), classes)[0]
        sizes = np.array([len(own) for own in encoder.categories_])
        statistics[nominal] = np.add.reduceat(found, np.concatenate([[0], np.cumsum(sizes)[:-1]]))
        freedom = np.maximum(1, (sizes - 1) * (len(np.unique(classes)) - 1))
        p_values[nominal] = chi_squared.sf(statistics[nominal], freedom)
    return p_values, statistics
