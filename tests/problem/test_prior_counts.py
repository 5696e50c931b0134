"""Coefficients under priors whose mean is a table, where only the joint states that occur have a cell, and without."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from oracle import acyclic_structures, candidate_sets
from running import random_data

from milpbn.certificate.verify.duals import ClaimedDuals
from milpbn.network.prior import TOWARDS
from milpbn.network.structure import Structure
from milpbn.problem.conflicts import resolve
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import build_problem
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score

MANY_STATES = random_data(3, n_features=2, n_classes=3, max_states=120, n_samples=300)


@pytest.mark.parametrize(("towards", "leave_one_out"), list(product(TOWARDS, (False, True))))
@pytest.mark.parametrize("name", ["sm", "sbm"])
def test_many_joint_states(name: str, towards: str, leave_one_out: bool) -> None:
    """Search, scores from the data and verifier agree where a table has no room for all joint states."""
    data = MANY_STATES
    assert np.prod(data.n_states) > 4 * data.n_samples
    options = {"smoothing": 0.7, "hybrid": 0.1, "leave_one_out": leave_one_out}
    score = Score(name=name, max_parents=3, smoothing_towards=towards, **options)
    problem = build_problem(data, score)
    assert problem.margins is not None
    for parents in acyclic_structures(tuple(map(tuple, candidate_sets(3, 3))))[::3]:
        structure = Structure(data.names, parents)
        choice = problem.choice(structure)
        assert choice is not None
        value = problem.value(problem.indicator(choice))
        assert value == pytest.approx(rescore(data, structure, score), rel=1e-12)
    claimed = ClaimedDuals(
        data.merged, problem.candidates, score, resolve(Constraints(), data.names, score)[0]
    )
    np.testing.assert_allclose(claimed.linear, problem.linear, rtol=1e-12)
    alpha = problem.margins.alpha
    weights = np.random.default_rng(0).random(alpha.shape[:2])
    np.testing.assert_allclose(
        claimed._products(weights), np.einsum("mr,mrk->k", weights, alpha), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("name", ["sm", "sbm", "cll", "hard-margin"])
def test_parent_sets_without_the_class_add_nothing(name: str) -> None:
    data = random_data(4, n_features=3, n_samples=40)
    bare = Structure(data.names, ((), (), (0, 3), ()))
    more = Structure(data.names, ((), (0,), (0, 3), ()))
    for towards, leave_one_out in product(TOWARDS, (False, True)):
        score = Score(name=name, smoothing_towards=towards, leave_one_out=leave_one_out)
        assert rescore(data, more, score) == pytest.approx(rescore(data, bare, score), abs=1e-10)
