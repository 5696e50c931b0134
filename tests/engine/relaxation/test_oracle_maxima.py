"""The oracle: heaviest structures, and bounds on the structures with each parent set, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from running import all_choices, random_data

from milpbn.engine.relaxation.oracle import (
    BRANCHINGS,
    CLASS_SET_SCANS,
    ORDERS,
    RELAXED,
    heaviest_structure,
    oracle_of,
)
from milpbn.engine.relaxation.reduced_costs import bound_parent_sets, heaviest_with
from milpbn.errors import InputError
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score

SCORES = [
    Score(max_parents=1),
    Score(max_parents=2, class_parents=False),
    Score(max_parents=2),
    Score(max_parents=3, class_parents=False),
    Score(max_parents=3),
]
RULES = [
    Constraints(),
    Constraints(required=(("X1", "X2"),), forbidden=(("X3", "X1"),)),
    Constraints(required=(("C", "X1"),), fixed={"X3": ("X1",)}),
    Constraints(required=(("X2", "X1"), ("X1", "X3"))),  # class-free sets with a feature
    Constraints(fixed={"X3": ()}, tiers=(("X1",), ("X2", "C"))),
    Constraints(fixed={"C": ("X1", "X2")}),
]


def cases():
    """Candidate sets, their structures, and all kinds of oracle that apply to them."""
    data = random_data(0)
    for score, rules in itertools.product(SCORES, RULES):
        try:
            candidates = build_problem(data, score, rules).candidates
        except InputError:  # too few parents for the rules
            continue
        choices = all_choices(candidates)
        oracle = oracle_of(candidates)
        yield oracle, candidates, choices
        yield oracle._replace(kind=RELAXED), candidates, choices


CASES = list(cases())
#: Rounding may raise a bound here by this share of the largest weight.
SLACK = 1e-12


def draw(rng, oracle, candidates):
    """Weights, allowed parent sets, and for branchings forced edges."""
    weights = rng.normal(size=candidates.n_sets) * 10.0 ** rng.integers(-1, 4)
    if rng.random() < 0.3:
        weights = np.round(weights)  # ties
    allowed = rng.random(candidates.n_sets) < rng.choice([1.0, 0.8, 0.5])
    n = oracle.n
    forced = np.zeros((n, n), dtype=np.int64)
    edges = []
    if oracle.kind == BRANCHINGS:
        for a, b in itertools.combinations(range(1, n), 2):
            if rng.random() < 0.2:
                forced[a, b] = forced[b, a] = 1
                edges.append((a - 1, b - 1))
    return weights, allowed, forced, edges


def obeying(choices, candidates, allowed, edges):
    """Structures with only allowed parent sets and all forced edges."""
    inside = choices[allowed[choices].all(axis=1)]
    for a, b in edges:
        arc = np.array([b in s for s in candidates.flat]), np.array([a in s for s in candidates.flat])
        inside = inside[arc[0][inside[:, a]] | arc[1][inside[:, b]]]
    return inside


def test_the_cases_cover_every_kind_and_unsafe_branchings():
    assert {oracle.kind for oracle, _, _ in CASES} == {BRANCHINGS, ORDERS, RELAXED}
    assert {oracle.safe for oracle, _, _ in CASES if oracle.kind == BRANCHINGS} == {False, True}


@pytest.mark.parametrize("seed", range(3))
def test_heaviest_structures_equal_enumeration(seed):
    rng = np.random.default_rng(seed)
    empty = relaxed = 0
    for oracle, candidates, choices in CASES:
        choice = np.empty(candidates.n_variables, dtype=np.int64)
        for _ in range(12):
            weights, allowed, forced, edges = draw(rng, oracle, candidates)
            inside = obeying(choices, candidates, allowed, edges)
            value, bound, acyclic = heaviest_structure(oracle, weights, allowed, forced, len(edges), choice)
            if len(inside):
                assert bound >= weights[inside].sum(axis=1).max()
            if value == -np.inf:
                empty += 1
                assert not len(inside)
                assert not acyclic
                continue
            assert value == pytest.approx(weights[choice].sum())
            # The slack for rounding is proportional to the largest weight, not to the sum.
            assert bound == pytest.approx(value, abs=SLACK * np.abs(weights).max())
            assert bound >= value
            assert (candidates.variable[choice] == np.arange(candidates.n_variables)).all()
            assert allowed[choice].all()
            if acyclic:
                assert (inside == choice).all(axis=1).any()
                assert value == pytest.approx(weights[inside].sum(axis=1).max())
            else:
                relaxed += 1
                assert oracle.kind == RELAXED or not oracle.safe
                assert not (choices == choice).all(axis=1).any()
    assert empty > 0
    assert relaxed > 0


@pytest.mark.parametrize("seed", range(3))
def test_parent_sets_of_heavy_structures_have_large_bounds(seed):
    rng = np.random.default_rng(100 + seed)
    told_apart = exact = 0
    for oracle, candidates, choices in CASES:
        for _ in range(8):
            weights, allowed, forced, edges = draw(rng, oracle, candidates)
            inside = obeying(choices, candidates, allowed, edges)
            if not len(inside):
                continue
            values = weights[inside].sum(axis=1)
            best_with = np.full(candidates.n_sets, -np.inf)
            for row, value in zip(inside, values, strict=True):
                best_with[row] = np.maximum(best_with[row], value)
            for threshold in (-np.inf, float(np.quantile(values, 0.5)), float(values.max())):
                prices = bound_parent_sets(oracle, weights, allowed, forced, len(edges), threshold)
                heavy = best_with >= threshold
                assert (prices[heavy] >= best_with[heavy]).all()
                assert np.isneginf(prices[~allowed]).all()
                told_apart += (prices < threshold).sum()
                if oracle.kind == ORDERS and threshold == -np.inf:
                    assert prices == pytest.approx(best_with, abs=SLACK * np.abs(weights).max())
                if edges:
                    continue
                closer = heaviest_with(oracle, weights, allowed, threshold)
                assert (closer[heavy] >= best_with[heavy]).all()
                assert (closer <= prices).all()
                if oracle.kind == BRANCHINGS and oracle.safe:
                    exact += heavy.sum()
                    assert closer[heavy] == pytest.approx(best_with[heavy], abs=SLACK * np.abs(weights).max())
    assert told_apart > 0
    assert exact > 0


def many_class_sets() -> Candidates:
    """More class sets than the oracle tries. All contain the first feature, except the last and lightest."""
    n = 9
    names = (*(f"X{i + 1}" for i in range(n)), "C")
    others = [s for size in range(n) for s in itertools.combinations(range(1, n), size)]
    class_sets = (*((0, *s) for s in others), ())
    assert len(class_sets) > CLASS_SET_SCANS
    return Candidates(names, (((n,),), *(((), (n,)) for _ in range(n - 1)), class_sets))


def test_class_sets_beyond_the_scan_are_bounded_too():
    """If the heaviest class sets allow no structure, the search goes on to one that does."""
    candidates = many_class_sets()
    oracle = oracle_of(candidates)
    n = oracle.n
    forced = np.zeros((n, n), dtype=np.int64)
    allowed = np.ones(candidates.n_sets, dtype=bool)
    weights = np.zeros(candidates.n_sets)
    weights[candidates.offsets[-2] : -1] = 5.0
    choice = np.empty(n, dtype=np.int64)
    value, bound, acyclic = heaviest_structure(oracle, weights, allowed, forced, 0, choice)
    # X1 must have the class as a parent, so the class cannot have X1: only its empty set is left.
    assert (value, acyclic) == (0.0, True)
    assert choice[-1] == candidates.n_sets - 1
    assert bound >= 0.0

    free = Candidates(candidates.names, (((), (n - 1,)), *candidates.sets[1:]))
    oracle = oracle_of(free)
    rng = np.random.default_rng(0)
    for _ in range(20):
        weights = rng.normal(size=free.n_sets)
        weights[: free.offsets[-2]] *= 10.0 * rng.random()
        own = weights[: free.offsets[-2]].reshape(-1, 2)
        best = max(
            weights[p] + sum(w[0] if i in free.flat[p] else w.max() for i, w in enumerate(own))
            for p in range(free.offsets[-2], free.n_sets)
        )
        everything = np.ones(free.n_sets, dtype=bool)
        value, bound, acyclic = heaviest_structure(oracle, weights, everything, forced, 0, choice)
        assert acyclic
        assert value == pytest.approx(weights[choice].sum())
        assert value <= best + 1e-9
        assert bound >= best
        prices = bound_parent_sets(oracle, weights, everything, forced, 0, -np.inf)
        for p in range(free.offsets[-2], free.n_sets):
            alone = weights[p] + sum(w[0] if i in free.flat[p] else w.max() for i, w in enumerate(own))
            assert prices[p] >= alone
            for i in range(n - 1):
                if i not in free.flat[p]:
                    # The structure with this class set and the other parent set of one feature.
                    other = int(free.offsets[i]) + int(np.argmin(own[i]))
                    assert prices[other] >= alone - own[i].max() + own[i].min()
