"""Cuts of random columns with ties, odd units, weights and gaps, against definitions in plain Python."""

from __future__ import annotations

import warnings
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import log2

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from campaign.share import Share
from milpbn.data.api import read_table
from milpbn.data.variables import encode_value
from milpbn.sklearn import MDLPDiscretizer

Rows = list[tuple[float, str, Fraction]]  # value, class, weight


def exact(value: float) -> Fraction:
    return Fraction(Decimal(str(value)))


def quantile(rows: Rows, bins: int) -> set[int]:
    """Return the numbers of distinct values below the cuts."""
    values = sorted({x for x, _, _ in rows})
    below = [sum(w for x, _, w in rows if x <= v) for v in values[:-1]]
    total, found = sum(w for _, _, w in rows), set()
    for j in range(1, bins):
        distance = [abs(b - total * Fraction(j, bins)) for b in below]
        found.add(max(i for i, d in enumerate(distance) if d == min(distance)) + 1)
    return found


def uniform(rows: Rows, bins: int) -> set[int]:
    values = sorted({x for x, _, _ in rows})
    low, high = exact(values[0]), exact(values[-1])
    edges = [low + (high - low) * Fraction(j, bins) for j in range(1, bins)]
    return {sum(exact(v) <= edge for v in values) for edge in edges}


def kmeans(rows: Rows, bins: int) -> set[int] | None:
    """Return what scikit-learn finds on ordinary numbers; None if a value is too near to an edge to tell."""
    values = np.array(sorted({x for x, _, _ in rows}))
    if len(values) <= bins:
        return set(range(1, len(values)))
    weights = [float(sum(w for x, _, w in rows if x == v)) for v in values]
    borders = np.linspace(values[0], values[-1], bins + 1)
    start = ((borders[1:] + borders[:-1]) / 2)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = KMeans(bins, init=start, n_init=1).fit(values[:, None], sample_weight=weights)
    centres = sorted(fitted.cluster_centers_[:, 0])
    edges = [(a + b) / 2 for a, b in pairwise(centres)]
    if any(abs(v - e) < 1e-7 * (values[-1] - values[0]) for v in values for e in edges):
        return None
    return {sum(v <= edge for v in values) for edge in edges}


def entropy(shares: Counter[str]) -> float:
    total = sum(shares.values())
    return -sum(float(n / total) * log2(n / total) for n in shares.values() if n)


def mdl(rows: Rows, unit: float) -> list[float] | None:
    """Return the values below the cuts; weights times `unit` count rows. None if a decision is too close to call."""
    values = sorted({x for x, _, _ in rows})
    count: Counter[str] = Counter()
    for _, c, w in rows:
        count[c] += w
    tried = []
    for v in values[:-1]:
        parts = Counter[str](), Counter[str]()
        for x, c, w in rows:
            parts[x > v][c] += w
        cost = sum(float(sum(p.values()) / sum(count.values())) * entropy(p) for p in parts)
        tried.append((cost, v, parts))
    if not tried:
        return []
    cost, v, parts = min(tried, key=lambda t: (round(t[0], 9), t[1]))
    if any(1e-13 < abs(t[0] - cost) < 1e-8 for t in tried):
        return None
    n = float(sum(count.values())) * unit
    if n < 2 or len(count) < 2:
        return []
    k, k1, k2 = (len([c for c in p if p[c]]) for p in (count, *parts))
    delta = log2(3**k - 2) - (k * entropy(count) - k1 * entropy(parts[0]) - k2 * entropy(parts[1]))
    excess = entropy(count) - cost - (log2(n - 1) + delta) / n
    if abs(excess) < 1e-9:
        return None
    if excess < 0:
        return []
    found = [v]
    for side in ([r for r in rows if r[0] <= v], [r for r in rows if r[0] > v]):
        deeper = mdl(side, unit)
        if deeper is None:
            return None
        found += deeper
    return sorted(found)


def drawn(rng: np.random.Generator) -> list[float]:
    """Return values that tie: decimals, neighbours in float64, spikes at either end, units of any size."""
    n = int(rng.integers(2, 60))
    kind = rng.integers(6)
    if kind == 0:
        numbers = rng.integers(-9, 10, n) / 10
    elif kind == 1:
        numbers = np.round(rng.normal(size=n), int(rng.integers(0, 4)))
    elif kind == 2:
        numbers = 1 + rng.integers(0, 12, n) * 2.0**-52
    elif kind == 3:
        numbers = 2.0**53 + 2 * rng.integers(0, 15, n)
    elif kind == 4:
        numbers = rng.integers(-8, 9, n) * rng.choice([5e-324, 1e-310, 1e-12, 1e-9, 1e100, 2.0**1020])
    else:
        numbers = rng.gamma(0.4, 100.0, n).round(2)
    share = rng.choice([0.0, 0.0, 0.4, 0.7, 0.95])
    ends = [numbers.min(), numbers.max(), np.sort(numbers)[n // 2], 0.0]
    return np.where(rng.random(n) < share, ends[rng.integers(4)], numbers).tolist()


def test_discretisation(share: Share) -> None:
    for seed in share.seeds():
        rng = np.random.default_rng(seed)
        values = drawn(rng)
        n = len(values)
        middle = sorted(values)[n // 2]
        classes = ["b" if (x > middle) ^ (rng.random() < 0.15) else "a" for x in values]
        if rng.random() < 0.3:
            classes = [str(c) for c in rng.choice(list("abc"), n)]
        if len(set(classes)) < 2:
            continue
        copies = rng.integers(1, 4, n) if rng.random() < 0.5 else np.ones(n, dtype=int)
        scale = rng.choice(["1", "0.1", "3"])
        factors = {c: float(rng.choice([1, 1, 2, 10, 50])) for c in sorted(set(classes))}
        weighted = bool(rng.random() < 0.5)
        share.tally.tried["tables"] += 1
        origin = f"seed {seed}"

        frame = pd.DataFrame(
            {"x": values, "y": classes, "w": [float(Decimal(scale) * int(k)) for k in copies]}
        )
        holes = rng.random(n) < 0.1 if rng.random() < 0.3 else np.zeros(n, dtype=bool)
        frame.loc[holes, "x"] = np.nan
        factor = [Fraction(factors[c]) if weighted else Fraction(1) for c in classes]
        weight = [Fraction(Decimal(scale)) * int(k) for k in copies]
        present = [i for i in range(n) if not holes[i]]
        rows = [(values[i] + 0.0, classes[i], weight[i] * factor[i]) for i in present]
        if not rows:
            continue
        distinct = sorted({x for x, _, _ in rows})
        # Kish's effective number of rows over the sum of the weights, of all rows of the table.
        squares = sum(w * f * f for w, f in zip(weight, factor, strict=True))
        unit = float(sum(w * f for w, f in zip(weight, factor, strict=True)) / squares)

        bins = int(rng.integers(2, 9))
        expected: dict[str, set[int] | None] = {
            f"quantile:{bins}": quantile(rows, bins) if len(distinct) > 1 else set(),
            f"uniform:{bins}": uniform(rows, bins),
            f"kmeans:{bins}": kmeans(rows, bins) if 1e-3 < distinct[-1] / 2 - distinct[0] / 2 < 1e6 else None,
        }
        accepted = mdl(rows, unit)
        expected["mdl"] = None if accepted is None else {distinct.index(v) + 1 for v in accepted}
        checked = str(rng.choice(list(expected)))
        for method, right in expected.items():
            if right is None:
                share.tally.outcomes["too close to call"] += 1
                continue
            share.tally.tried[method.split(":")[0]] += 1
            right = right - {0, len(distinct)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                table = read_table(
                    frame,
                    target="y",
                    weights="w",
                    continuous=["x"],
                    missing="state",
                    class_weights=factors if weighted else None,
                    discretise=method,
                )
                data = table.dataset()
            variable = data.variables[0]
            cuts = list(variable.cuts or ())
            below = {sum(v <= cut for v in distinct) for cut in cuts}
            if below != right or len(below) != len(cuts):
                share.note("other cuts", origin, f"{method}: below {sorted(below)}, right {sorted(right)}")
                continue
            codes = [sum(cut < x for cut in cuts) for x, _, _ in rows]
            if [int(data.X[i, 0]) for i in present] != codes:
                share.note("codes of rows", origin, f"{method}: {data.X[:, 0].tolist()} for {codes}")
            for i, cut in enumerate(cuts):  # a value at a cut is below it
                found = [encode_value([variable], x, "x")[0] for x in (cut, np.nextafter(cut, np.inf))]
                if found != [i, i + 1]:
                    share.note("a value at a cut", origin, f"{method}: {cut!r}")
            if method == checked:
                check_paths(share, origin, method, frame.loc[present], weighted, factors)
    share.finish()


def check_paths(
    share: Share,
    origin: str,
    method: str,
    frame: pd.DataFrame,
    weighted: bool,
    factors: dict[str, float],
) -> None:
    """Cut copies instead of weights, rows of a larger table, and by the estimator."""
    whole = (frame.w / frame.w.min()).round().astype(int)
    if frame.y.nunique() < 2:
        return
    factors = {c: factor for c, factor in factors.items() if c in set(frame.y)}
    options = {"continuous": ["x"], "discretise": method, "class_weights": factors if weighted else None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        large = pd.concat([frame, frame.assign(x=frame.x.max())], ignore_index=True)
        part = read_table(large, target="y", weights="w", **options).dataset(np.arange(len(frame)))
        alone = read_table(frame.reset_index(drop=True), target="y", weights="w", **options).dataset()
        repeated = frame.loc[frame.index.repeat(whole)].drop(columns="w").reset_index(drop=True)
        copied = read_table(repeated, target="y", **options).dataset()
        counted = read_table(frame.assign(w=whole), target="y", weights="w", **options).dataset()
    if part.variables[0].cuts != alone.variables[0].cuts:
        share.note("cuts of a fold", origin, f"{method}: {part.variables[0].cuts}, {alone.variables[0].cuts}")
    if copied.variables[0].cuts != counted.variables[0].cuts:
        share.note(
            "weights are copies", origin, f"{method}: {copied.variables[0].cuts}, {counted.variables[0].cuts}"
        )
    if method == "mdl" and not weighted:
        fitted = MDLPDiscretizer().fit(frame[["x"]], frame.y, sample_weight=frame.w)
        if tuple(fitted.cuts_[0]) != alone.variables[0].cuts:
            share.note("the estimator", origin, f"{fitted.cuts_[0]}, {alone.variables[0].cuts}")
