"""Cluster rows (7) are valid for every acyclic graph, and separation finds a row whenever one is violated."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import random_data, run

from milpbn.milp.clusters import (
    MINIMAL_VIOLATION,
    cluster_slack,
    cyclic_clusters,
    fractional_clusters,
    repaired,
)
from milpbn.network.structure import topological_order
from milpbn.problem.candidates import Candidates, build_candidates
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score

NAMES = ("X1", "X2", "X3", "C")
CANDIDATES = {
    "margin": build_candidates(NAMES, Score(max_parents=3)),
    "no class parents": build_candidates(NAMES, Score(class_parents=False)),
    "all sets": build_candidates(NAMES, Score(name="ll", parent_sets="all", max_parents=2)),
}


def indicator(candidates: Candidates, parents) -> np.ndarray:
    eta = np.zeros(candidates.n_sets)
    for i, s in enumerate(parents):
        eta[candidates.position(i, s)] = 1.0
    return eta


def clusters(n: int) -> list[frozenset[int]]:
    return [frozenset(s) for size in range(2, n + 1) for s in combinations(range(n), size)]


@pytest.mark.parametrize("kind", CANDIDATES)
def test_rows_hold_for_acyclic_graphs_and_cut_off_all_others(kind: str) -> None:
    candidates = CANDIDATES[kind]
    rows = {s: (indicator_row(candidates, s)) for s in clusters(4)}
    cyclic = 0
    for parents in product(*candidates.sets):
        eta = indicator(candidates, parents)
        violated = [s for s, row in rows.items() if row @ eta < 1]
        found = cyclic_clusters(list(parents))
        if topological_order(parents) is not None:
            assert not violated
            assert found == []
        else:
            cyclic += 1
            assert violated
            assert found
            assert set(found) <= set(violated)
    assert cyclic > 0


def indicator_row(candidates: Candidates, cluster: frozenset[int]) -> np.ndarray:
    """Return the coefficients of row (7) by its definition: 1 for each set of a member that contains no member."""
    return np.array(
        [
            float(i in cluster and not set(s) & cluster)
            for i, s in zip(candidates.variable, candidates.flat, strict=True)
        ]
    )


def test_arcs_inside_a_cluster_would_be_the_wrong_rows() -> None:
    """The simpler row "arcs inside S <= |S| - 1" cuts off acyclic graphs as soon as C is in S."""
    parents = ((3,), (0, 3), (0, 3), ())
    cluster = frozenset({0, 1, 3})
    assert topological_order(parents) is not None
    assert sum(len(cluster & set(parents[i])) for i in cluster) > len(cluster) - 1
    assert cluster_slack(CANDIDATES["margin"], indicator(CANDIDATES["margin"], parents), cluster) >= 0


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(CANDIDATES)), st.integers(0, 10**6))
def test_slack_is_that_of_the_row(kind: str, seed: int) -> None:
    candidates = CANDIDATES[kind]
    eta = np.random.default_rng(seed).random(candidates.n_sets)
    for s in clusters(4):
        assert cluster_slack(candidates, eta, s) == pytest.approx(indicator_row(candidates, s) @ eta - 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.integers(0, 10**6))
def test_cyclic_clusters_are_cycles(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    parents = [
        tuple(j for j in range(n) if j != i and rng.random() < rng.choice([0.05, 0.2])) for i in range(n)
    ]
    found = cyclic_clusters(parents)
    assert bool(found) == (topological_order(parents) is None)
    for s in found:
        # Every member has a parent among the other members.
        assert all(set(parents[i]) & s for i in s)
    assert found == sorted(set(found), key=lambda s: (len(s), sorted(s)))


def fractional_point(candidates: Candidates, rng: np.random.Generator) -> np.ndarray:
    """Return a random point of rows (5): a mixture of graphs, some with cycles."""
    eta = np.zeros(candidates.n_sets)
    for a, b in pairwise(candidates.offsets.tolist()):
        support = rng.choice(b - a, size=int(rng.integers(1, min(4, b - a) + 1)), replace=False)
        eta[a + support] = rng.dirichlet(np.ones(len(support)))
    return eta


@pytest.mark.parametrize("kind", CANDIDATES)
def test_fractional_separation_finds_a_row_whenever_there_is_one(kind: str) -> None:
    candidates = CANDIDATES[kind]
    rng = np.random.default_rng(71)
    exists = 0
    for n in range(100):
        if n % 3:
            eta = fractional_point(candidates, rng)
        else:  # a mixture of acyclic graphs violates nothing
            graphs = oracle.acyclic_structures(candidates.sets)
            shares = rng.dirichlet(np.ones(3))
            chosen = rng.choice(len(graphs), 3)
            eta = sum(w * indicator(candidates, graphs[g]) for w, g in zip(shares, chosen, strict=True))
        worst = min(cluster_slack(candidates, eta, s) for s in clusters(4))
        if abs(worst + MINIMAL_VIOLATION) < 1e-8:
            continue
        found = fractional_clusters(candidates, eta)
        exists += worst < -MINIMAL_VIOLATION
        assert bool(found) == (worst < -MINIMAL_VIOLATION)
        assert all(cluster_slack(candidates, eta, s) < -MINIMAL_VIOLATION for s in found)
        assert n % 3 or not found
    assert exists > 20


def test_points_without_cycles_need_no_milp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of the sets whose members come later in an order; with them there is nothing to separate."""
    candidates = CANDIDATES["all sets"]
    later = [[s for s in sets if all(j > i for j in s)] for i, sets in enumerate(candidates.sets)]
    rng = np.random.default_rng(73)
    monkeypatch.setattr("milpbn.milp.clusters.milp", None)
    for _ in range(20):
        eta = np.zeros(candidates.n_sets)
        for i, sets in enumerate(later):
            for s, share in zip(sets, rng.dirichlet(np.ones(len(sets))), strict=True):
                eta[candidates.position(i, s)] = share
        assert fractional_clusters(candidates, eta) == []
        assert min(cluster_slack(candidates, eta, s) for s in clusters(4)) >= -MINIMAL_VIOLATION


def test_separation_of_larger_points() -> None:
    names = (*(f"X{i}" for i in range(7)), "C")
    candidates = build_candidates(names, Score(max_parents=2))
    rng = np.random.default_rng(72)
    exists = 0
    for _ in range(15):
        eta = fractional_point(candidates, rng)
        worst = min(cluster_slack(candidates, eta, s) for s in clusters(8))
        found = fractional_clusters(candidates, eta)
        assert bool(found) == (worst < -MINIMAL_VIOLATION)
        exists += bool(found)
    assert exists > 3


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(CANDIDATES)), st.integers(0, 10**6))
def test_repaired_graphs_are_acyclic_and_keep_what_fits(kind: str, seed: int) -> None:
    candidates = CANDIDATES[kind]
    rng = np.random.default_rng(seed)
    choice = np.array([rng.integers(a, b) for a, b in pairwise(candidates.offsets.tolist())])
    wanted = [candidates.flat[p] for p in choice]
    structure = repaired(candidates, choice)
    assert structure is not None
    assert topological_order(structure.parents) is not None
    assert candidates.choice(structure) is not None
    if topological_order(wanted) is not None:
        assert list(structure.parents) == wanted


def test_repair_gives_up_where_nothing_fits() -> None:
    data = random_data(73)
    fixed = Constraints(required=(("X1", "X2"),))
    candidates = build_problem(data, Score(), fixed).candidates
    cycle = [candidates.position(i, s) for i, s in enumerate([(1, 3), (0, 3), (), ()])]
    assert repaired(candidates, np.array(cycle)).parents[1] == (0, 3)
    only = Candidates(("X1", "X2", "C"), (((1,),), ((0,),), ((),)))
    assert repaired(only, np.array([0, 1, 2])) is None


def test_rounds_end_at_an_acyclic_optimum() -> None:
    """If the solution of the first relaxation has a cycle, rows are added until it has none."""
    rounds = 0
    for seed in range(1):
        data = random_data([74, seed], n_features=5, n_samples=40)
        problem = build_problem(data, Score(name="ll", parent_sets="all", max_parents=2))
        order, _ = run(problem, "highs", "order")
        cluster, _ = run(problem, "highs", "cluster")
        assert cluster.objective == pytest.approx(order.objective, abs=1e-6)
        best = [a + int(np.argmax(problem.linear[a:b])) for a, b in pairwise(problem.candidates.offsets)]
        rounds += topological_order([problem.candidates.flat[p] for p in best]) is None
    assert rounds == 1
