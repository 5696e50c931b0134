"""Candidate parent sets against their definition."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import candidate_sets

from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.candidates import build_candidates, count_candidates, require_candidates
from milpbn.problem.constraints import Rules
from milpbn.problem.scores.spec import Score

LIMITS = [
    Score(name=name, max_parents=k, class_parents=c, parent_sets=sets, hybrid=hybrid)
    for k, c, (name, sets, hybrid) in product(
        (1, 2, 3, 4),
        (False, True),
        (
            *(("sm", sets, 0.0) for sets in ("auto", "paper", "all")),
            *(("cll", sets, 0.1) for sets in ("auto", "paper")),
            *(("ll", sets, 0.0) for sets in ("auto", "all")),
        ),
    )
]


def names(n_features: int) -> tuple[str, ...]:
    return (*(f"X{i + 1}" for i in range(n_features)), "C")


@pytest.mark.parametrize(
    "score", LIMITS, ids=lambda s: f"{s.name}-{s.max_parents}-{s.class_parents}-{s.parent_sets}-{s.hybrid}"
)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_sets_are_those_of_the_definition(n: int, score: Score) -> None:
    candidates = build_candidates(names(n), score)
    expected = candidate_sets(names(n), score)
    assert [sorted(sets) for sets in candidates.sets] == [sorted(sets) for sets in expected]
    assert candidates.n_sets == count_candidates(n, score) == sum(map(len, expected))
    assert all(s == tuple(sorted(s)) for s in candidates.flat)
    assert all(len(set(sets)) == len(sets) for sets in candidates.sets)


def test_counts_by_formula() -> None:
    # Peharz & Pernkopf (2012) with max_parents 2: a feature has {}, {C} and {j, C}, the class {}, {j} and {j, k}
    n = 16
    assert count_candidates(n, Score()) == n * (2 + n - 1) + 1 + n + comb(n, 2)
    assert count_candidates(n, Score(class_parents=False)) == n * (n + 1) + 1
    assert count_candidates(n, Score(max_parents=1)) == 2 * n + 1 + n
    everything = Score(name="ll", parent_sets="all", max_parents=3)
    sizes = sum(comb(n, k) for k in range(4))
    assert count_candidates(n, everything) == (n + 1) * sizes


@given(st.integers(1, 6), st.sampled_from(LIMITS))
def test_indices_in_eta(n: int, score: Score) -> None:
    candidates = build_candidates(names(n), score)
    place = 0
    for i, sets in enumerate(candidates.sets):
        assert candidates.offsets[i] == place
        for s in sets:
            assert candidates.position(i, s) == place
            assert candidates.flat[place] == s
            assert candidates.variable[place] == i
            place += 1
    assert candidates.offsets[-1] == candidates.n_sets == place
    assert candidates.position(0, (0,)) is None
    parent, child, entry = candidates.arcs
    arcs = {(j, int(candidates.variable[p]), p) for p, s in enumerate(candidates.flat) for j in s}
    assert set(zip(parent.tolist(), child.tolist(), entry.tolist(), strict=True)) == arcs
    assert len(parent) == len(arcs)


def test_choice_and_structure_are_inverse() -> None:
    candidates = build_candidates(names(3), Score())
    structure = Structure(names(3), ((3,), (0, 3), (), (2,)))
    choice = candidates.choice(structure)
    assert candidates.structure(choice) == structure
    assert candidates.choice(Structure(names(3), ((1, 2, 3), (), (), ()))) is None


def test_class_free_sets_have_a_stand_in() -> None:
    candidates = build_candidates(names(3), Score())
    assert candidates.choice(Structure(names(3), ((1,), (), (3,), ()))) is None
    assert candidates.stand_in(0, (1,)) == ()
    assert candidates.stand_in(0, (1, 2)) == ()
    assert candidates.stand_in(0, (1, 3)) == (1, 3)
    assert candidates.stand_in(0, (1, 2, 3)) is None
    assert candidates.stand_in(3, (0, 1, 2)) is None


def test_required_class_free_set_is_the_stand_in() -> None:
    rules = Rules(required=frozenset({(1, 0)}))
    candidates = build_candidates(names(3), Score(max_parents=3), rules)
    assert candidates.sets[0] == ((1,), (1, 3), (1, 2, 3))
    assert candidates.stand_in(0, (1, 2)) == (1,)
    assert candidates.stand_in(0, (2,)) is None


def test_structure_with_a_cycle_is_refused() -> None:
    candidates = build_candidates(names(2), Score())
    choice = [candidates.position(0, (1, 2)), candidates.position(1, (0, 2)), candidates.position(2, ())]
    with pytest.raises(InputError, match="cycle"):
        candidates.structure(np.array(choice))


def test_an_empty_list_is_an_error() -> None:
    rules = Rules(required=frozenset({(0, 3), (1, 3)}))
    candidates = build_candidates(names(3), Score(max_parents=1), rules)
    with pytest.raises(InputError, match=r"'C' no parent set with max_parents = 1"):
        require_candidates(candidates, Score(max_parents=1))
    require_candidates(build_candidates(names(3), Score()), Score())


@pytest.mark.parametrize("seed", range(60))
def test_candidates_under_rules_are_counted_without_a_list(seed):
    """The forecast equals the number of listed sets, also if rules leave a variable no parent set."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    names = [*(f"X{i}" for i in range(n)), "C"]
    arcs = [(a, b) for a in range(n + 1) for b in range(n + 1) if a != b]

    def some(most):
        return frozenset(arcs[k] for k in rng.integers(0, len(arcs), rng.integers(most + 1)))

    rules = Rules(required=some(3), forbidden=some(5))
    parents = {"max_parents": int(rng.integers(1, 8)), "class_parents": bool(rng.integers(2))}
    for score in (
        Score(**parents),
        Score(hybrid=1.0, **parents),
        Score(name="mdl", parent_sets="all", **parents),
    ):
        assert count_candidates(n, score, rules) == build_candidates(names, score, rules).n_sets
