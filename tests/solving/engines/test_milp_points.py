"""Points of MILP solvers become structures, and errors in them end the run."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from running import random_data

from milpbn.errors import SolverError
from milpbn.milp.formulation import Formulation, formulate
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score
from milpbn.solving.engines.milp import Points
from milpbn.solving.state import Session


@pytest.fixture
def problem() -> Problem:
    return build_problem(random_data(101, n_samples=30), Score(p=0.9))


def listening(problem: Problem, acyclicity: str = "order") -> tuple[Session, Points]:
    session = Session(problem)
    return session, Points(formulate(problem, acyclicity), session.events("a solver"))


def cyclic_point(formulation: Formulation) -> np.ndarray:
    candidates = formulation.problem.candidates
    x = np.zeros(formulation.milp.n_columns)
    for i, s in enumerate([(1, 3), (0, 3), (3,), ()]):
        x[candidates.position(i, s)] = 1.0
    return x


def test_errors_in_points_are_kept_and_stop_the_solver(problem: Problem) -> None:
    _, points = listening(problem)
    assert not points.stopping()
    points.point(np.zeros(points.formulation.milp.n_columns), "a solver")
    assert isinstance(points.error, SolverError)
    assert points.stopping()
    first = points.error
    points.point(np.zeros(points.formulation.milp.n_columns), "a solver")
    assert points.error is first


@pytest.mark.parametrize("acyclicity", ["order", "cluster"])
def test_points_become_structures(problem: Problem, acyclicity: str) -> None:
    found = oracle.acyclic_structures(tuple(problem.candidates.sets))
    structure = Structure(problem.candidates.names, found[len(found) // 2])
    session, points = listening(problem, acyclicity)
    points.point(points.formulation.vector(structure), "a solver")
    assert points.error is None
    assert session.structure == structure


def test_cyclic_points_are_repaired_under_cluster_rows(problem: Problem) -> None:
    session, points = listening(problem, "cluster")
    points.point(cyclic_point(points.formulation), "a solver")
    assert points.error is None
    assert session.structure is not None
    assert session.structure.parents[2:] == ((3,), ())
    assert session.objective == rescore(problem.data, session.structure, problem.score)


def test_cyclic_points_under_order_rows_are_errors(problem: Problem) -> None:
    _, points = listening(problem)
    points.point(cyclic_point(points.formulation), "a solver")
    assert "cyclic" in str(points.error)


def test_repairs_that_break_a_limit_are_dropped() -> None:
    """The repair of a cycle may exceed a child limit; the structure is then ignored, without an error."""
    data = random_data(103)
    seen = set()
    for limit in (0, 1, 2):
        problem = build_problem(data, Score(), Constraints(max_children={"X1": limit, "X2": limit}))
        session, points = listening(problem, "cluster")
        points.point(cyclic_point(points.formulation), "a solver")
        assert points.error is None
        if session.structure is not None:
            assert problem.obeys(session.structure)
        seen.add(session.structure is None)
    assert False in seen
