"""What features and arcs are worth to a score; features against all structures of tiny problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pytest
from running import random_data

import milpbn
from milpbn.data import Dataset, Variable
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import maximise
from milpbn.solving.gains import arc_losses, feature_gains
from milpbn.solving.options import Options
from milpbn.solving.question import Question

OPTIONS = Options(threads=1, verbose=False)
PARENTS = ((3,), (0, 3), (0, 3), ())


@pytest.fixture(scope="module")
def data():
    return random_data(7, n_features=3, n_samples=30)


def without(parents, i):
    return tuple(() if k == i else tuple(j for j in p if j != i) for k, p in enumerate(parents))


def test_gains_are_differences_of_scores(data):
    score = milpbn.Score(p=0.9)
    own = oracle.score_structure(data, PARENTS, "sm", gamma=score.gamma)
    found = feature_gains(Question(data, score), Structure(data.names, PARENTS), OPTIONS)
    assert [gain.gain for gain in found] == sorted((gain.gain for gain in found), reverse=True)
    for gain in found:
        left = without(PARENTS, data.names.index(gain.variable))
        assert gain.gain == pytest.approx(
            own - oracle.score_structure(data, left, "sm", gamma=score.gamma), abs=1e-9
        )
        assert (gain.least, gain.most) == (None, None)
    assert len(found) == 3


def test_searches_bound_what_other_arcs_cannot_make_up_for(data):
    score = milpbn.Score(p=0.9)
    own = oracle.score_structure(data, PARENTS, "sm", gamma=score.gamma)
    structures = oracle.acyclic_structures(tuple(map(tuple, oracle.candidate_sets(4, 2))))
    for gain in feature_gains(Question(data, score), Structure(data.names, PARENTS), OPTIONS, seconds=60):
        i = data.names.index(gain.variable)
        best = max(
            oracle.score_structure(data, s, "sm", gamma=score.gamma) for s in structures if without(s, i) == s
        )
        assert gain.least <= own - best + 1e-9
        assert gain.most >= own - best - 1e-9
        assert gain.most - gain.least <= 1e-5 * abs(own)
        assert gain.most <= gain.gain + 1e-9


def test_a_bound_on_all_structures_holds_without_a_feature_too(data, monkeypatch):
    score = milpbn.Score(p=0.9)
    structure = Structure(data.names, PARENTS)
    own = oracle.score_structure(data, PARENTS, "sm", gamma=score.gamma)
    best = milpbn.solve(data, score, threads=1, verbose=False)

    def stopped_early(*args, **options):
        found = maximise(*args, **options)
        return replace(found, bound=found.bound + 100.0)

    monkeypatch.setattr("milpbn.solving.gains.maximise", stopped_early)
    for bound in (None, best.bound):
        found = feature_gains(Question(data, score), structure, OPTIONS, seconds=60, bound=bound)
        loosest = own - best.bound - 1e-9
        assert all(gain.least <= gain.most for gain in found)
        assert all(gain.least >= loosest for gain in found) == (bound is not None)


def test_a_feature_without_arcs_is_left_out_and_a_required_one_has_no_search(data):
    structure = Structure(data.names, ((3,), (0, 3), (), ()))
    constraints = Constraints(required=(("X1", "X2"),))
    question = Question(data, milpbn.Score(p=0.9), constraints)
    found = {g.variable: g for g in feature_gains(question, structure, OPTIONS, seconds=60)}
    assert set(found) == {"X1", "X2"}
    assert found["X1"].least is found["X2"].least is None


def toy() -> Dataset:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, size=(50, 4)).astype(np.int32)
    return Dataset(
        "toy",
        tuple(Variable(name, ("0", "1")) for name in ("a", "b", "c", "class")),
        codes,
        np.ones(len(codes)),
    )


@pytest.mark.parametrize("name", ["sm", "cll", "ll", "bdeu"])
def test_a_loss_is_the_difference_of_two_scores(name):
    data, score = toy(), Score(name=name)
    structure = Structure(data.names, ((3,), (0, 3), (1, 3), ()))
    losses = arc_losses(data, structure, score)
    assert set(losses) == set(structure.arcs)
    own = rescore(data, structure, score)
    without = Structure(data.names, ((3,), (3,), (1, 3), ()))
    assert losses[0, 1] == pytest.approx(own - rescore(data, without, score), abs=1e-9)
    alone = Structure(data.names, ((3,), (() if name in ("sm", "cll") else (0,)), (1, 3), ()))
    assert losses[3, 1] == pytest.approx(own - rescore(data, alone, score), abs=1e-9)


def test_other_variables_are_refused():
    with pytest.raises(InputError, match="other variables"):
        arc_losses(toy(), Structure(("x", "class"), ((1,), ())), Score())
