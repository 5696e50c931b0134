"""Errors of HiGHS, and the remedies for them."""

from __future__ import annotations

import numpy as np
import pytest
from running import random_data

from milpbn import Constraints, InputError, Score, Structure, rescore, solve


@pytest.mark.parametrize("acyclicity", ["order", "cluster"])
def test_points_that_highs_calls_infeasible_after_its_proof_are_kept(acyclicity):
    # At a feasibility tolerance of 1e-9, HiGHS 1.15.1 ended this run with "Solve error".
    data = random_data([3, 2], n_features=4, max_states=3, n_samples=60)
    names = data.names
    arcs = [(names[-1], name) for name in names[:-1]]
    allowed = {("X2", "X3"), ("X3", "X2")}
    forbid = [(a, b) for a in names[:-1] for b in names[:-1] if a != b and (a, b) not in {*allowed}]
    rules = Constraints(required=tuple(arcs), forbidden=tuple(forbid))
    score = Score(name="aicc", max_parents=2, class_parents=False)
    start = Structure.from_mapping(names, {"X1": ["C"], "X2": ["C"], "X3": ["X2", "C"], "X4": ["C"], "C": []})
    result = solve(
        data, score, constraints=rules, backend="highs", acyclicity=acyclicity, start=start, reduce=False
    )
    others = [{"X2": ["C"], "X3": ["C"]}, {"X2": ["X3", "C"], "X3": ["C"]}, {"X2": ["C"], "X3": ["X2", "C"]}]
    values = [
        rescore(data, Structure.from_mapping(names, {"X1": ["C"], "X4": ["C"], "C": [], **other}), score)
        for other in others
    ]
    assert result.optimal
    assert result.objective == pytest.approx(np.max(values))


def test_options_of_highs_may_be_numbers_and_reaching_its_target_is_no_failure():
    """The model minimises, so that every structure is below a target of 1e9."""
    options = {"objective_target": -1e9, "mip_max_nodes": 10, "mip_detect_symmetry": False}
    how = {"backend": "highs", "threads": 1, "root_bound": False, "warm_start": False, "verbose": False}
    result = solve(random_data(3), Score("sm"), solver_options=options, **how)
    assert (result.reason, result.limit) == ("feasible", "gap")
    with pytest.raises(InputError, match="solver_options must be a mapping"):
        solve(random_data(3), Score("sm"), solver_options=["presolve=off"], **how)
