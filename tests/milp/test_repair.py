"""Cluster rows (7) are valid for every acyclic graph, and cut off all others; repaired graphs are acyclic."""

from __future__ import annotations

from itertools import combinations, islice, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import random_data, run

from milpbn.engine.parent_sets.separation import Separation
from milpbn.milp.repair import repaired
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
def test_rows_hold_for_acyclic_graphs_and_cut_off_all_others(
    kind: str, request: pytest.FixtureRequest
) -> None:
    candidates = CANDIDATES[kind]
    step = 1 if request.config.getoption("--slow") else 3  # 3 divides no number of sets
    rows, separate, cyclic = [indicator_row(candidates, s) for s in clusters(4)], Separation(candidates), 0
    for parents in islice(product(*candidates.sets), 0, None, step):
        eta = indicator(candidates, parents)
        found = separate(eta).values()
        assert all(row.slack(eta)[0] < 0 for row in found)
        is_cyclic = topological_order(parents) is None
        assert any(row @ eta < 1 for row in rows) == is_cyclic
        assert bool(found) == is_cyclic
        cyclic += is_cyclic
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
    assert indicator_row(CANDIDATES["margin"], cluster) @ indicator(CANDIDATES["margin"], parents) >= 1


@pytest.mark.parametrize("n", [3, 5, 8, 12])
def test_rows_are_found_for_every_cycle(n: int) -> None:
    """Also for cycles that only all variables together are on."""
    candidates = build_candidates(
        [f"v{i}" for i in range(n)], Score(name="ll", parent_sets="all", max_parents=1)
    )
    separate, ring = Separation(candidates), [(i - 1) % n for i in range(n)]
    for cut in range(n + 1):
        parents = [() if i == cut else (j,) for i, j in enumerate(ring)]
        eta = indicator(candidates, parents)
        rows = separate(eta).values()
        assert bool(rows) == (topological_order(parents) is None)
        assert all(row.slack(eta)[0] < 0 for row in rows)


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
