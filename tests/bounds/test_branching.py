"""Maximum arborescences: against brute force and networkx, forced arcs included."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from milpbn.bounds.branching import forced_arborescences, maximum_arborescence, rounding_slack


def weight(weights, parent) -> float:
    return float(sum(weights[parent[i], i] for i in range(1, len(weights))))


def arborescences(n):
    """All parent tuples of nodes 1.. without cycles."""
    for parents in itertools.product(range(n), repeat=n - 1):
        parent = (-1, *parents)
        if any(parent[i] == i for i in range(1, n)):
            continue
        if all(_reaches_root(parent, i) for i in range(1, n)):
            yield parent


def _reaches_root(parent, i) -> bool:
    seen = set()
    while i != 0 and i not in seen:
        seen.add(i)
        i = parent[i]
    return i == 0


def random_weights(rng, n):
    if rng.random() < 0.5:
        return rng.normal(size=(n, n)) * 10.0 ** rng.integers(-2, 4)
    return rng.integers(-2, 3, size=(n, n)).astype(np.float64)  # many ties


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_equals_enumeration(n):
    rng = np.random.default_rng(n)
    every = list(arborescences(n))
    for _ in range(60):
        w = random_weights(rng, n)
        parent = maximum_arborescence(w)
        assert _reaches_root(parent, n - 1)
        assert tuple(parent) in every
        assert weight(w, parent) == pytest.approx(max(weight(w, p) for p in every))


def test_forbidden_arcs_are_not_used():
    rng = np.random.default_rng(0)
    every = list(arborescences(5))
    for _ in range(60):
        w = random_weights(rng, 5)
        w[1:, 1:][rng.random((4, 4)) < 0.5] = -np.inf
        parent = maximum_arborescence(w)
        assert weight(w, parent) == pytest.approx(max(weight(w, p) for p in every))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_forced_arcs_equal_enumeration(n):
    rng = np.random.default_rng(n)
    every = list(arborescences(n))
    for _ in range(20):
        w = random_weights(rng, n)
        forced = forced_arborescences(w)
        for i in range(1, n):
            for j in range(n):
                if j != i:
                    best = max(weight(w, p) for p in every if p[i] == j) - w[j, i]
                    assert forced[j, i] == pytest.approx(best)
        assert np.isneginf(forced[:, 0]).all()
        assert np.isneginf(forced.diagonal()).all()


@pytest.mark.parametrize("n", [12, 40])
def test_equals_networkx(n):
    networkx = pytest.importorskip("networkx")
    rng = np.random.default_rng(n)
    w = rng.normal(size=(n, n))
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from((j, i, w[j, i]) for j in range(n) for i in range(1, n) if i != j)
    best = networkx.maximum_spanning_arborescence(graph)
    assert weight(w, maximum_arborescence(w)) == pytest.approx(best.size(weight="weight"))


def test_rounding_slack_ignores_forbidden_arcs_and_grows_with_the_weights():
    w = np.array([[0.0, 1.0], [-np.inf, 0.0]])
    assert 0 < rounding_slack(w) < 1e-13
    assert rounding_slack(1000 * w[:1].repeat(2, axis=0)) > rounding_slack(w)
