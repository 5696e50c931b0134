"""Maximum arborescences with ranks, their reduced costs, and forced arcs: against enumeration and networkx."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from milpbn.engine.relaxation.branching import (
    IMPOSSIBLE,
    Arcs,
    forced_arborescences,
    maximum_arborescence,
    rounding_slack,
)

#: Rank that marks a missing arc.
FORBIDDEN = -(1 << 20)


def arcs_of(w, ranks):
    """Return the arcs of a weight and a rank matrix, and their places in the matrices."""
    n = len(w)
    places = [(j, i) for i in range(1, n) for j in range(n) if j != i and ranks[j, i] != FORBIDDEN]
    first = np.searchsorted([i for _, i in places], np.arange(n + 1))
    tails, heads = np.array(places, dtype=np.int64).reshape(-1, 2).T
    return Arcs(first, tails.copy(), w[tails, heads], ranks[tails, heads]), (tails, heads)


def arborescence(w, ranks, reduced=None):
    """Return parents, rank and bound of the maximum; `reduced` receives the reduced costs, inf without an arc."""
    arcs, places = arcs_of(w, ranks)
    chosen = np.empty(len(w), dtype=np.int64)
    costs = np.empty(0 if reduced is None else len(arcs.tail))
    rank, bound = maximum_arborescence(arcs, chosen, costs)
    if rank == IMPOSSIBLE:
        assert bound == -np.inf
        return None, rank, bound
    if reduced is not None:
        reduced[:] = np.inf
        reduced[places] = costs
    assert chosen[0] == -1
    return np.concatenate([[-1], arcs.tail[chosen[1:]]]), rank, bound


def total(matrix, parent):
    return sum(matrix[parent[i], i] for i in range(1, len(matrix)))


def arborescences(n):
    """Yield all acyclic parent tuples of the nodes 1, 2, ..."""
    for parents in itertools.product(range(n), repeat=n - 1):
        parent = (-1, *parents)
        if all(_reaches_root(parent, i) for i in range(1, n)):
            yield parent


def _reaches_root(parent, i) -> bool:
    seen = set()
    while i != 0 and i not in seen:
        seen.add(i)
        i = parent[i]
    return i == 0


EVERY = {n: list(arborescences(n)) for n in (2, 3, 4, 5)}


def random_weights(rng, n):
    if rng.random() < 0.5:
        return rng.normal(size=(n, n)) * 10.0 ** rng.integers(-2, 4)
    return rng.integers(-2, 3, size=(n, n)).astype(np.float64)  # many ties


def random_ranks(rng, n):
    """Draw forced edges, some with one direction forbidden, and other forbidden arcs."""
    ranks = np.zeros((n, n), dtype=np.int64)
    for i, j in itertools.combinations(range(1, n), 2):
        if rng.random() < 0.25:
            ranks[i, j] = ranks[j, i] = 1
    ranks[rng.random((n, n)) < rng.choice([0.0, 0.2, 0.6])] = FORBIDDEN
    return ranks


def cases(seed, n, count):
    rng = np.random.default_rng([seed, n])
    for _ in range(count):
        yield random_weights(rng, n), random_ranks(rng, n)


def best_of(w, ranks, choices):
    """Return the highest rank, and the largest weight of that rank."""
    return max((total(ranks, p), total(w, p)) for p in choices)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_branchings_equal_enumeration_by_rank_and_then_by_weight(n):
    feasible = 0
    for w, ranks in cases(0, n, 80):
        most, heaviest = best_of(w, ranks, EVERY[n])
        parent, rank, bound = arborescence(w, ranks)
        assert (rank < 0) == (most < 0)  # every arborescence needs a forbidden arc
        if most < 0:
            continue
        feasible += 1
        assert tuple(parent) in EVERY[n]
        assert rank == most == total(ranks, parent)
        assert total(w, parent) == pytest.approx(heaviest)
        assert bound == pytest.approx(heaviest)
    assert feasible > 10


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_reduced_costs_bound_every_arborescence_with_an_arc(n):
    pruned = 0
    for w, ranks in cases(1, n, 60):
        reduced = np.full((n, n), np.nan)
        parent, rank, bound = arborescence(w, ranks, reduced)
        tiny = rounding_slack(n, np.abs(w).max())
        if rank < 0:
            continue
        for p in EVERY[n]:
            for i in range(1, n):
                if np.isinf(reduced[p[i], i]):
                    assert total(ranks, p) < rank
                elif total(ranks, p) == rank:
                    assert total(w, p) <= bound - reduced[p[i], i] + tiny
        for i in range(1, n):
            assert abs(reduced[parent[i], i]) <= tiny  # the arborescence itself loses nothing
            own = np.delete(reduced[:, i], i)
            assert (own >= -tiny).all()
            pruned += (own > tiny).sum()
    assert (pruned > 0) == (n > 2)  # two nodes have one arc


@pytest.mark.parametrize("n", [2, 3, 5])
def test_forced_arcs_equal_enumeration(n):
    found = 0
    for w, ranks in cases(2, n, 25):
        most, _ = best_of(w, ranks, EVERY[n])
        if most < 0:
            continue
        arcs, places = arcs_of(w, ranks)
        forced = np.full((n, n), -np.inf)
        forced[places] = forced_arborescences(arcs)
        for i, j in itertools.product(range(1, n), range(n)):
            if j == i:
                continue
            if ranks[j, i] == FORBIDDEN:
                continue
            rank, heaviest = best_of(w, ranks, [p for p in EVERY[n] if p[i] == j])
            found += rank >= most
            expected = heaviest - w[j, i] if rank >= most else -np.inf
            assert forced[j, i] == pytest.approx(expected)
    assert found > 0


@pytest.mark.parametrize("n", [3, 5])
def test_of_parallel_arcs_the_heaviest_counts(n):
    for w, ranks in cases(3, n, 40):
        arcs, (tails, heads) = arcs_of(w, ranks)
        rank, bound = maximum_arborescence(arcs, np.empty(n, dtype=np.int64), np.empty(0))
        if rank == IMPOSSIBLE:
            continue
        # Each arc has a lighter parallel one.
        lighter = arcs.weights - 1.0
        order = np.argsort(np.concatenate([heads, heads]), kind="stable")
        double = Arcs(
            2 * arcs.first,
            np.concatenate([tails, tails])[order],
            np.concatenate([lighter, arcs.weights])[order],
            np.concatenate([arcs.ranks, arcs.ranks])[order],
        )
        chosen, reduced = np.empty(n, dtype=np.int64), np.empty(len(order))
        assert maximum_arborescence(double, chosen, reduced) == pytest.approx((rank, bound))
        assert double.weights[chosen[1:]].sum() == pytest.approx(bound)
        own = reduced[np.argsort(order)].reshape(2, -1)
        finite = np.isfinite(own[1])
        assert own[0, finite] == pytest.approx(own[1, finite] + 1.0)
        assert (np.isfinite(own[0]) == finite).all()


@pytest.mark.parametrize("n", [12, 40])
def test_branchings_equal_those_of_networkx(n):
    networkx = pytest.importorskip("networkx")
    rng = np.random.default_rng(n)
    w = rng.integers(-1000, 1000, (n, n)).astype(np.float64)
    ranks = np.zeros((n, n), dtype=np.int64)
    for i in range(2, n // 2, 2):
        ranks[i, i + 1] = ranks[i + 1, i] = 1
    graph = networkx.DiGraph()
    # Integers this small lose no digits when a large constant is added.
    graph.add_weighted_edges_from(
        (j, i, w[j, i] + 1e9 * ranks[j, i]) for j in range(n) for i in range(1, n) if i != j
    )
    best = networkx.maximum_spanning_arborescence(graph)
    parent, rank, bound = arborescence(w, ranks)
    assert rank == (n // 2 - 1) // 2
    assert bound + 1e9 * rank == best.size(weight="weight") == total(w, parent) + 1e9 * rank


def test_the_bound_and_its_slack_hold_in_exact_arithmetic():
    rng = np.random.default_rng(3)
    n = 5
    for _ in range(40):
        # With numbers of very different sizes, contractions have rounding errors.
        w = rng.normal(size=(n, n)) * 10.0 ** rng.integers(-9, 9, (n, n))
        exact = max(sum(Fraction(w[p[i], i]) for i in range(1, n)) for p in EVERY[n])
        _, _, bound = arborescence(w, np.zeros((n, n), dtype=np.int64))
        slack = rounding_slack(n, np.abs(w).max())
        assert exact <= Fraction(bound) + Fraction(slack)
        assert slack <= 1e-12 * np.abs(w).max()
