"""Features with one state have no arcs in what a user sees, and the score is that of the structure with them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from running import BACKENDS, optimum, random_data

import milpbn
from milpbn.data.dataset import Dataset, Variable
from milpbn.network.prior import CLASS, MARGINAL, UNIFORM
from milpbn.network.structure import Structure, topological_order
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import build_problem
from milpbn.problem.scores import registry
from milpbn.problem.scores.spec import Score
from milpbn.problem.unused import forbid_unused, without_unused


def constant_feature(seed: int, place: int) -> Dataset:
    """Random data whose feature number `place` has one state."""
    data = random_data(seed, n_features=4, n_samples=30)
    variables, codes = list(data.variables), data.codes.copy()
    variables[place] = Variable(variables[place].name, ("only",))
    codes[:, place] = 0
    return replace(data, variables=tuple(variables), codes=codes)


@pytest.mark.parametrize(
    ("name", "towards"),
    [*((name, UNIFORM) for name in registry.SCORES), ("sm", CLASS), ("sbm", MARGINAL), ("cll", CLASS)],
)
def test_the_score_does_not_fall(name: str, towards: str) -> None:
    for seed in range(5):
        data = constant_feature(seed, seed % 4)
        problem = build_problem(data, Score(name=name, max_parents=3, smoothing_towards=towards))
        rng = np.random.default_rng(seed)
        for _ in range(8):
            structure = problem.candidates.structure(random_choice(problem, rng))
            shown = without_unused(problem, structure)
            assert shown.parents[seed % 4] == ()
            assert all(seed % 4 not in parents for parents in shown.parents)
            same = problem.rescore(structure)
            if registry.find_score(name).is_margin:
                assert problem.rescore(shown) == pytest.approx(same, rel=1e-12, abs=1e-9)
            else:
                assert problem.rescore(shown) >= same - 1e-9 * abs(same)


def random_choice(problem, rng: np.random.Generator) -> np.ndarray:
    offsets = problem.candidates.offsets
    while True:
        choice = np.array([rng.integers(a, b) for a, b in pairwise(offsets)])
        acyclic = topological_order([problem.candidates.flat[p] for p in choice]) is not None
        if acyclic and problem.obeys(problem.candidates.structure(choice)):
            return choice


@pytest.mark.parametrize("backend", ["native", *BACKENDS])
def test_structures_have_no_arcs_of_constant_features(backend: str) -> None:
    data = constant_feature(3, 1)
    score = Score(p=0.9)
    start = Structure(data.names, ((1, 4), (4,), (1, 4), (4,), ()))
    result = milpbn.solve(data, score, backend=backend, start=start, threads=1, verbose=False)
    assert result.optimal
    assert result.objective == pytest.approx(optimum(data, score).objective, rel=1e-6)
    assert result.structure.parents[1] == ()
    assert all(1 not in parents for parents in result.structure.parents)


def test_constraints_and_weights_keep_arcs() -> None:
    data = constant_feature(4, 1)
    required = Constraints(required=(("X2", "X1"),))
    result = milpbn.solve(data, Score(p=0.9), constraints=required, threads=1, verbose=False)
    assert 1 in result.structure.parents[0]
    weighted = Constraints(arc_weights={("X2", "X1"): 3.0})
    result = milpbn.solve(data, Score(p=0.9), constraints=weighted, threads=1, verbose=False)
    assert 1 in result.structure.parents[0]


def test_arcs_of_features_with_one_state_are_forbidden_unless_the_user_asks_for_them() -> None:
    data = constant_feature(0, 1)
    first, unused, *others = data.names
    plain = forbid_unused(data, None)
    assert plain is not None
    assert set(plain.forbidden) == {
        arc for name in (first, *others) for arc in ((name, unused), (unused, name))
    }
    for asked in (
        Constraints(required=((data.names[-1], unused),)),
        Constraints(arc_weights={(unused, first): 1.0}),
        Constraints(fixed={unused: ()}),
    ):
        assert forbid_unused(data, asked) == asked
    assert forbid_unused(random_data(0), None) is None


@pytest.mark.parametrize("place", [0, 4])
def test_without_a_class_the_last_variable_is_one_of_those_with_one_state(place: int) -> None:
    data = replace(constant_feature(2, place), has_class=False)
    found = milpbn.solve(data, Score("ll", max_parents=2), n_best=6, threads=1, verbose=False)
    assert found.alternatives is not None
    listed = [one.structure for one in found.alternatives.structures]
    assert len(listed) == 6
    assert not any(place in arc for structure in listed for arc in structure.arcs)


def test_the_best_structures_of_data_with_a_useless_feature_are_distinct() -> None:
    data = constant_feature(2, 0)
    found = milpbn.solve(data, Score(p=0.9), n_best=5, verbose=False).alternatives
    assert found is not None
    assert found.optimal
    without = replace(data, variables=data.variables[1:], codes=data.codes[:, 1:])
    expected = optimum(without, Score(p=0.9), most=5).ranked
    assert [one.objective for one in found.structures] == pytest.approx([value for value, _ in expected])
    assert all(one.structure.parents[0] == () for one in found.structures)
