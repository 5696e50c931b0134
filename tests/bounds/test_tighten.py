"""The entries that the steps in a part look at."""

from __future__ import annotations

import numpy as np
import pytest
from running import random_data

from milpbn.bounds.oracle import heaviest_structure
from milpbn.bounds.point import Node, empty_point
from milpbn.bounds.root import model_of
from milpbn.bounds.tighten import _promising
from milpbn.scores.problem import build_problem
from milpbn.scores.spec import Score


@pytest.mark.parametrize("max_parents", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_the_heaviest_structure_is_promising(seed, max_parents):
    # With more parent sets of the class than get a price of their own, the largest price is no structure's weight.
    data = random_data(seed, n_features=8, n_classes=2, max_states=2, n_samples=30)
    problem = build_problem(data, Score(max_parents=max_parents), for_milp=False)
    assert len(problem.candidates.sets[-1]) > 20
    model = model_of(problem)
    n = model.oracle.n
    every = np.ones(problem.candidates.n_sets, dtype=bool)
    node = Node(every, np.zeros((n, n), dtype=np.int64), 0, model.linear, 0.0)
    point = empty_point(model)
    rng = np.random.default_rng(seed)
    choice = np.empty(data.n_variables, dtype=np.int64)
    for _ in range(5):
        point.gradient[:] = rng.normal(size=len(model.linear)) * rng.uniform(0.5, 5)
        heaviest_structure(model.oracle, point.gradient, node.allowed, node.forced, 0, choice)
        point.vertices[0] = choice[0]
        point.counts[:] = 0
        few = _promising(model, node, point, 0.0).allowed
        assert few[choice].all()
        assert few.sum() < len(few)
