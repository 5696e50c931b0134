"""Data and helpers that the tests of several learners share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from milpbn.data.dataset import Dataset
from milpbn.learners.base import Learned
from milpbn.learners.cells import SplitRows
from milpbn.learners.comparison import compare_parts
from milpbn.learners.contestants import Contest
from milpbn.learners.rows import ComparisonRow


def duplicated(data: Dataset, seed: int = 0) -> tuple[Dataset, Dataset]:
    """The same samples twice: with integer weights, and as copies of rows in another order."""
    rng = np.random.default_rng(seed)
    copies = rng.integers(1, 4, data.n_samples)
    rows = rng.permutation(np.repeat(np.arange(data.n_samples), copies))
    weighted = replace(data, weights=copies.astype(np.float64))
    return weighted, replace(data, codes=data.codes[rows], weights=np.ones(len(rows)))


def log_joint(learned: Learned, data: Dataset) -> np.ndarray:
    """log P(c, x) of all samples and classes."""
    return learned.predictor.predict_log_joint(data)  # type: ignore[attr-defined]


def rooted_forests(n: int) -> list[tuple[tuple[int, ...], ...]]:
    """Every undirected forest on n nodes, each in one direction: parents with at most one member."""
    edges = list(combinations(range(n), 2))
    found = []
    for size in range(n):
        for chosen in combinations(edges, size):
            parents = _direct(n, chosen)
            if parents is not None:
                found.append(parents)
    return found


def _direct(n: int, edges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, ...], ...] | None:
    """Walk from the lowest node of every component; None if the walk meets a cycle."""
    near = {i: [b if a == i else a for a, b in edges if i in (a, b)] for i in range(n)}
    parents: dict[int, tuple[int, ...]] = {}
    for root in range(n):
        if root in parents:
            continue
        parents[root] = ()
        waiting = [root]
        while waiting:
            i = waiting.pop()
            for j in near[i]:
                if (j,) == parents[i]:
                    continue
                if j in parents:
                    return None
                parents[j] = (i,)
                waiting.append(j)
    return tuple(parents[i] for i in range(n))


def compare_each(train: Dataset, test: Dataset | None, contest: Contest) -> Iterator[ComparisonRow]:
    """Run learners on one split."""
    return (row for _, row in compare_parts(SplitRows(1, [(train, test)].__getitem__), contest))
