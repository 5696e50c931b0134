"""The state of a run: what becomes incumbent and bound, and when to stop."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import oracle
import pytest
from running import optimum, random_data

from milpbn.claims.gap import Target
from milpbn.errors import SolverError
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import build_problem
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score
from milpbn.solving.state import Session
from milpbn.util.budget import Budget, Limit


@pytest.fixture
def problem():
    return build_problem(random_data(101, n_samples=30), Score(p=0.9))


@pytest.fixture
def session(problem) -> Session:
    return Session(problem)


def structures(problem, n: int) -> list[Structure]:
    """Some structures by rising score."""
    found = oracle.acyclic_structures(tuple(problem.candidates.sets))
    rng = np.random.default_rng(0)
    chosen = [Structure(problem.candidates.names, found[k]) for k in rng.choice(len(found), n, replace=False)]
    return sorted(chosen, key=lambda s: rescore(problem.data, s, problem.score))


def test_incumbents_are_scored_from_the_data_and_never_fall(session: Session, problem) -> None:
    low, middle, high = structures(problem, 3)
    assert session.offer(middle, "a") == middle
    assert session.objective == rescore(problem.data, middle, problem.score)
    assert session.offer(low, "b") == session.offer(middle, "b") == middle
    assert (session.structure, session.source) == (middle, "a")
    assert session.offer(high, "c") == high
    assert session.structure == high
    assert [z for _, z, _ in session.trace] == [
        rescore(problem.data, s, problem.score) for s in (middle, high)
    ]


def test_bounds_never_rise_nor_fall_below_the_incumbent(session: Session, problem) -> None:
    (structure,) = structures(problem, 1)
    for value in (50.0, 60.0, float("inf"), float("nan"), 45.0, 45.0):
        session.bound(value)
    assert session.best_bound == pytest.approx(45.0, rel=1e-11)
    assert session.best_bound >= 45.0
    session.offer(structure, "a")
    z = session.objective
    session.bound(z - 1e-4)
    assert session.best_bound == z
    assert session.closed()
    bounds = [b for _, _, b in session.trace]
    assert bounds == pytest.approx([50.0, 45.0, 45.0, z], rel=1e-11)
    assert all(t <= later for (t, *_), (later, *_) in pairwise(session.trace))


def test_better_incumbent_lifts_a_bound_within_tolerances(session: Session, problem) -> None:
    low, high = structures(problem, 2)
    session.offer(low, "a")
    session.bound(rescore(problem.data, high, problem.score) - 1e-7)
    session.offer(high, "b")
    assert session.best_bound == session.objective


def test_the_source_of_the_bound_is_that_of_the_smallest_bound(session: Session) -> None:
    assert session.bound_source == "certified"
    session.bound(100.0, "certified")
    session.bound(101.0)
    assert session.bound_source == "certified"
    session.bound(99.0)
    assert session.bound_source == "solver"


def test_a_score_that_the_data_do_not_confirm_is_an_error(problem) -> None:
    tables = problem.margins.tables
    margins = replace(problem.margins, tables=tables._replace(values=tables.values * 1.001))
    wrong = Session(replace(problem, margins=margins))
    with pytest.raises(SolverError, match=r"from the data and .* in the model"):
        wrong.offer(structures(problem, 1)[0], "a solver")
    assert wrong.structure is None
    assert wrong.trace == []


def test_a_structure_against_the_constraints_is_an_error() -> None:
    data = random_data(102)
    for constraints in (Constraints(forbidden=(("C", "X1"),)), Constraints(max_children={"C": 2})):
        session = Session(build_problem(data, Score(), constraints))
        with pytest.raises(SolverError, match="breaks the constraints"):
            session.offer(Structure.naive_bayes(data.names), "a solver")


def test_limits_and_interrupts_stop_the_search(problem) -> None:
    session = Session(problem)
    assert session.budget.stop() is None
    late = Session(problem, Budget(-1.0))
    assert late.budget.stop() == "time"
    late.stop(Limit.USER)
    assert late.budget.stopped == "time"
    session.stop(Limit.USER)
    assert session.budget.stop() == "user"


@pytest.mark.parametrize(
    ("options", "excess", "closed"),
    [
        ({}, 1e-9, True),
        ({}, 1e-3, False),
        ({"gap_abs": 1e-2}, 1e-3, True),
        ({"gap_abs": 1e-4}, 1e-3, False),
        ({"gap_rel": 0.01}, 1e-3, True),
        ({"gap_rel": 0.5}, 1e6, False),
        ({"gap_se": 0.01}, 1e-3, True),
        ({"gap_se": 0.01}, 1.0, False),
    ],
)
def test_a_reached_gap_ends_the_run(problem, options: dict, excess: float, closed: bool) -> None:
    session = Session(problem, target=Target(**options))
    best = optimum(problem.data, problem.score)
    session.offer(Structure(problem.candidates.names, best.structures[0]), "a")
    assert not session.closed()
    session.bound(session.objective + excess)
    assert session.closed() == closed
    assert session.budget.stop() == session.budget.stopped == ("gap" if closed else None)
    if closed and options:
        named = "gap-se" if "gap_se" in options else "gap"
        assert session.how_ended(session.objective, session.best_bound) == ("feasible", named)


def test_nodes_only_grow(session: Session) -> None:
    for count in (0, 5, 3):
        session.nodes(count)
    assert session.node_count == 5


def test_reports_from_many_threads_stay_consistent(problem) -> None:
    session = Session(problem)
    some = structures(problem, 40)
    order = np.random.default_rng(1).permutation(40)

    def offer(part: np.ndarray) -> None:
        for k in part:
            session.offer(some[k], "thread")
            session.bound(1000.0 - float(k))

    threads = [threading.Thread(target=offer, args=(order[n::4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.objective == rescore(problem.data, some[-1], problem.score)
    assert session.best_bound == pytest.approx(961.0, rel=1e-11)
    for (_, z, b), (_, higher, lower) in pairwise(session.trace):
        assert z is None or z <= higher
        assert b is None or lower <= b
    structure, objective, bound, trace = session.snapshot()
    assert trace[-1][1:] == (objective, bound)
    assert structure == session.structure


def test_real_scores_match_the_coefficients_to_many_digits() -> None:
    """`MISMATCH` leaves room for rounding only: all structures of a weighted problem pass."""
    data = random_data(104, n_samples=30, weights=True)
    problem = build_problem(data, Score(name="sbm", p=0.999, penalty="bic", hybrid=0.3))
    for structure in structures(problem, 60):
        assert Session(problem).offer(structure, "a")


@pytest.mark.parametrize("source", ["solver", "certified"])
@pytest.mark.parametrize("first", ["bound", "structure"])
def test_a_bound_that_a_structure_disproves_is_an_error(problem, source: str, first: str) -> None:
    session = Session(problem)
    (structure,) = structures(problem, 1)
    wrong = rescore(problem.data, structure, problem.score) - 0.1
    if first == "bound":
        session.bound(wrong, source)
    session.offer(structure, "a")
    if first == "structure":
        session.bound(wrong, source)
    assert isinstance(session.error, SolverError)
    assert session.best_bound is None
    assert session.structure == structure
    assert not session.closed()
    assert session.budget.over()
