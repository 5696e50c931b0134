"""A points scorecard of two classes on one page: integers to add by hand, and a table from their sum to a probability.

The log-odds of a row without missing values are a sum of tables, one per group of columns; points are log-odds in
rounded steps. For each total, the least and the greatest exact log-odds of all rows that can occur are found by
eliminating one column after the other, so that the largest error of the card is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import product
from math import ceil, inf, prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from milpbn.data.dataset import Variable, finest
from milpbn.data.variables import coarser_codes
from milpbn.drawing.html import note, words
from milpbn.errors import InputError
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import padded_table
from milpbn.network.formats.classifier_files import AnyClassifier

Scope: TypeAlias = tuple[int, ...]
#: Default of the largest difference between the probability by points and the exact one.
WORST_ERROR = 0.05
#: Points of the largest table that are tried; most lines of all tables, which fit on a page; most numbers in one sum.
SIZES = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100)
MOST_LINES, MOST_NUMBERS = 130, 10**7
_STYLE = """@page{size:A4;margin:12mm}body{font:9pt/1.25 sans-serif;max-width:186mm;margin:auto}h1{font-size:14pt;
margin:0}p{margin:1mm 0}table{display:inline-table;vertical-align:top;border-collapse:collapse;margin:1.5mm 3mm 1.5mm 0}
th{font-weight:normal;text-align:left}th:first-child{max-width:45mm}tr:first-child th:first-child{font-weight:bold}
td{text-align:right}td,th{padding:0 1.5mm;border:.2mm solid #999;overflow-wrap:anywhere}"""


def classifier_to_scorecard(classifier: AnyClassifier, worst_error: float = WORST_ERROR) -> str:
    """Return a scorecard of the second of two classes as an HTML page, with as few points as the error allows.

    For every row without missing values, with values that training never saw as well, the probability by points differs
    from the exact one by `worst_error` at most; the card states the largest difference. Raises `InputError` if no such
    card fits on a page, the classifier is not one network of two classes, or a probability is 0.
    """
    if not (isinstance(classifier, Classifier) and classifier.has_class and len(classifier.classes) == 2):
        raise InputError("A scorecard needs one network with two classes; write another format.")
    if not 0 < worst_error < 0.5:
        raise InputError(f"The worst error of a scorecard is between 0 and 0.5, got {worst_error}.")
    tables = _tables(classifier)
    if not all(np.isfinite(table).all() for table in tables.values()):
        raise InputError("A probability is 0, for which no points can stand; learn tables with smoothing.")
    constant = float(tables.pop((), np.zeros(())))
    largest = max((float(np.ptp(table)) for table in tables.values()), default=0.0) or 1.0
    for size in SIZES:
        steps = {scope: (table - table.min()) * (size / largest) for scope, table in tables.items()}
        points = {scope: np.rint(own).astype(np.int64) for scope, own in steps.items()}
        low, high = _extremes(tables, points) + constant
        totals = np.flatnonzero(low <= high)
        error = float(_nearest(low[totals], high[totals])[1].max())
        if error <= worst_error:
            break
    else:
        raise InputError(
            f"No scorecard is that exact: with {size} points in the largest table its worst error is {error:.3f}; "
            "allow a larger one (--worst-error), or learn a network with fewer arcs."
        )
    # A line of the last table serves as many totals as it can without a larger error.
    groups: list[tuple[int, int, float, float]] = []
    for total in totals.tolist():
        groups.append((total, total, low[total], high[total]))
        if len(groups) > 1:
            (first, _, a, b), (_, last, c, d) = groups[-2:]
            joined = (first, last, min(a, c), max(b, d))
            groups[-2:] = [joined] if _nearest(*joined[2:])[1] <= error else groups[-2:]
    name, label = classifier.variables[-1].name, f"P({classifier.classes[1]})"
    rows = [
        [f"{first} to {last}" if first < last else f"{first}", f"{100 * _nearest(a, b)[0]:.1f} %"]
        for first, last, a, b in groups
    ]
    cards = [
        _card([classifier.variables[i] for i in scope], own) for scope, own in points.items() if own.any()
    ]
    height = max(6, ceil(len(rows) / 5))  # five tables are as wide as the page
    cards += [_table([["Total", label], *rows[k : k + height]]) for k in range(0, len(rows), height)]
    if (lines := sum(card.count("<tr>") for card in cards)) > MOST_LINES:
        raise InputError(
            f"The scorecard would have {lines} lines, more than the {MOST_LINES} of a page; learn a network with fewer "
            "features, parents (--max-parents) or states, or allow a larger error (--worst-error)."
        )
    stated = any(
        classifier.variables[i].missing_state for scope, own in points.items() if own.any() for i in scope
    )
    missing = (
        "A missing value has the line ?; where a table has none, no value may be missing."
        if stated
        else "No value may be missing."
    )
    sentences = [
        f"Add the points of all tables; the last one tells the probability that {name} is {classifier.classes[1]}.",
        f"Whatever the row, it differs from that of the network by {ceil(1000 * error) / 10:.1f} percentage points at "
        f"most. {missing} Intervals contain their upper end.",
    ]
    if classifier.decision is not None:
        sentences.append(f"Predicted is {classifier.decision.described(classifier.classes)}.")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{words(name)}</title>\n'
        f"<style>{_STYLE}</style></head>\n<body><h1>{words(f'{label} of {name} by points')}</h1>\n"
        + "\n".join([*map(note, sentences), *cards])
        + "\n</body></html>\n"
    )


def _tables(classifier: Classifier) -> dict[Scope, NDArray[np.float64]]:
    """Return the log-odds of the second class, a sum over columns by finest variables; unseen values come last."""
    variables, last = classifier.variables, len(classifier.variables) - 1
    chosen = finest(variables[:last])
    found: dict[Scope, NDArray[np.float64]] = {}
    for cpt in classifier.cpts:
        features, logs = padded_table(cpt, last)
        if logs.shape[-1] == 1:
            continue
        with np.errstate(invalid="ignore"):
            table = logs[..., 1] - logs[..., 0]
        own = [chosen[variables[j].raw_column] for j in features]
        scope = tuple(sorted(set(own)))
        index = []
        for i, j in zip(own, features, strict=True):
            codes = coarser_codes(variables[i], variables[j])
            codes = codes if variables[i].cuts is not None else np.append(codes, -1)
            index.append(codes.reshape([-1 if k == i else 1 for k in scope]))
        found[scope] = found.get(scope, 0.0) + table[tuple(index)]
    return found


def _extremes(
    tables: Mapping[Scope, NDArray[np.float64]], points: Mapping[Scope, NDArray[np.int64]]
) -> NDArray[np.float64]:
    """Return the least and the greatest sum of tables for each total of points, shape (2, totals), or inf and -inf."""
    sizes = {i: n for scope, table in tables.items() for i, n in zip(scope, table.shape, strict=True)}
    # Each function has two more axes: the total of points; and the least log-odds with it, and the negated greatest.
    functions = []
    for scope, table in tables.items():
        own = np.full((*table.shape, points[scope].max() + 1, 2), inf)
        own[(*np.indices(table.shape), points[scope])] = np.stack([table, -table], axis=-1)
        functions.append((scope, own))
    while left := {i for scope, _ in functions for i in scope}:
        scopes = {i: {j for scope, _ in functions if i in scope for j in scope} for i in left}
        i = min(left, key=lambda i: (prod(sizes[j] for j in scopes[i]), i))
        scope = tuple(sorted(scopes[i]))
        used = [function for function in functions if i in function[0]]
        if prod(sizes[j] for j in scope) * sum(own.shape[-2] for _, own in used) > MOST_NUMBERS:
            raise InputError(
                "The exact error of a scorecard would need too many numbers; learn a network with fewer parents "
                "(--max-parents) or states."
            )
        parts = [
            own.reshape([*(sizes[j] if j in each else 1 for j in scope), *own.shape[-2:]])
            for each, own in used
        ]
        functions = [function for function in functions if i not in function[0]]
        rest = tuple(j for j in scope if j != i)
        functions.append((rest, reduce(_added, parts).min(axis=scope.index(i))))
    total = reduce(_added, (own for _, own in functions), np.zeros((1, 2)))
    return np.stack([total[:, 0], -total[:, 1]])


def _added(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least values of the sum of two functions, for each total."""
    long, short = (a, b) if a.shape[-2] >= b.shape[-2] else (b, a)
    n, m = long.shape[-2], short.shape[-2]
    found = np.full((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), n + m - 1, 2), inf)
    for t in range(m):
        part = found[..., t : t + n, :]
        np.minimum(part, long + short[..., t : t + 1, :], out=part)
    return found


def _nearest(
    low: NDArray[np.float64] | float, high: NDArray[np.float64] | float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability with three digits nearest to those between two log-odds, and the largest difference."""
    least, most = expit(low), expit(high)
    shown = np.round((least + most) / 2, 3)
    return shown, np.maximum(shown - least, most - shown)


def _card(variables: Sequence[Variable], points: NDArray[np.int64]) -> str:
    """Return the table of points of a few variables; the states of that with the fewest are beside each other."""
    groups = [_groups(variable, np.moveaxis(points, k, 0)) for k, variable in enumerate(variables)]
    order = sorted(range(len(groups)), key=lambda k: -len(groups[k]))
    points, groups = points.transpose(order)[..., np.newaxis], [groups[k] for k in order]
    names = [variables[k].raw_column for k, own in zip(order, groups, strict=True) if len(own) > 1]
    while len(groups[-1]) == 1:  # the points are the same for all states
        points, groups = points[..., 0, :], groups[:-1]
    if len(groups) > 1:
        points = points[..., 0]
    beside = groups.pop() if len(groups) > 1 else [("points", 0)]
    rows = [[" and ".join(names), *(label for label, _ in beside)]]
    for states in product(*groups):
        own = points[tuple(first for _, first in states)]
        rows.append(["; ".join(label for label, _ in states), *(f"{own[first]}" for _, first in beside)])
    return _table(rows)


def _groups(variable: Variable, points: NDArray[np.int64]) -> list[tuple[str, int]]:
    """Return neighbouring states that have the same points, as one label, with the first of them."""
    unseen = "any other" if "other" in map(str.lower, variable.states) else "other"
    states, found, start = [*variable.states, unseen], [], 0
    n_intervals = 0 if variable.cuts is None else len(variable.cuts) + 1
    for end in range(1, len(points) + 1):
        if end not in (n_intervals, len(points)) and (points[end] == points[start]).all():
            continue
        label = ", ".join(states[start:end])
        if end <= n_intervals:
            low, high = states[start][1:].split(", ")[0], states[end - 1][:-1].split(", ")[1]
            label = f"above {low}" if high == "inf" else f"{low} to {high}"
            label = "any" if (low, high) == ("-inf", "inf") else f"up to {high}" if low == "-inf" else label
        found.append((label, start))
        start = end
    return found


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first row and first column are headings."""
    found = []
    for i, row in enumerate(rows):
        tags = ["td" if i and k else "th" for k in range(len(row))]
        shown = [words(cell).replace("_", "_<wbr>") for cell in row]  # where long names may be divided
        cells = "".join(f"<{tag}>{text}</{tag}>" for tag, text in zip(tags, shown, strict=True))
        found.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(found)}</table>"
