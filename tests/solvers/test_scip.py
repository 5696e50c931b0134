"""SCIP's lazy rows, in this process."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from backend_cases import (
    Recorder,
    installed,
    naive_bayes,
    optimum,
    small_formulation,
    stop_after,
    without_rows,
)
from numpy.typing import NDArray

from milpbn.engine.parent_sets.separation import Separation
from milpbn.milp.formulation import Formulation
from milpbn.milp.milp import LazyRows
from milpbn.solvers.base import Settings
from milpbn.solvers.scip import ScipSolver


def separator(formulation: Formulation, seen: list[bool]) -> LazyRows:
    """Return rows against the cycles of a rounded point that it violates."""
    candidates = formulation.problem.candidates
    rows_of = Separation(candidates)

    def separate(x: NDArray[np.float64]) -> list[tuple[NDArray[np.int64], NDArray[np.float64], float]]:
        eta = np.zeros(formulation.n_sets)
        eta[candidates.heaviest(x[: formulation.n_sets])] = 1.0
        rows = rows_of(eta).values()
        seen.append(bool(rows))
        return [(row.matrix.indices.astype(np.int64), -row.matrix.data, -row.upper[0]) for row in rows]

    return separate


CASES = [("sm", seed, {"max_parents": 2}) for seed in range(3)]
CASES += [("mdl", seed, {"max_parents": 2, "parent_sets": "all"}) for seed in range(4)]
CASES += [("ll", seed, {"max_parents": 1, "parent_sets": "all"}) for seed in range(4)]


@pytest.mark.parametrize(("score", "seed", "options"), CASES)
def test_lazy_rows_reach_the_acyclic_optimum(score: str, seed: int, options: dict[str, object]) -> None:
    backend = installed("scip")
    assert isinstance(backend, ScipSolver)
    expected = optimum(small_formulation(score, seed, **options).milp)
    formulation = small_formulation(score, seed, "cluster", **options)
    milp = without_rows(formulation.milp, "c_")
    for start in (None, naive_bayes(formulation)):
        recorder = Recorder(milp)
        seen: list[bool] = []
        lazily = replace(milp, lazy_rows=separator(formulation, seen))
        outcome = backend.solve_here(lazily, start, Settings(), recorder)
        assert outcome.finished
        assert seen
        recorder.check(expected)
        assert all(formulation.structure(x) is not None for x in recorder.points)
        assert recorder.objective == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_rows_are_found_where_cycles_pay() -> None:
    backend = installed("scip")
    assert isinstance(backend, ScipSolver)
    formulation = small_formulation("ll", 1, "cluster", max_parents=1, parent_sets="all")
    milp = without_rows(formulation.milp, "c_")
    assert optimum(milp) > optimum(small_formulation("ll", 1, max_parents=1, parent_sets="all").milp) + 1e-3
    seen: list[bool] = []
    lazily = replace(milp, lazy_rows=separator(formulation, seen))
    backend.solve_here(lazily, None, Settings(), Recorder(milp))
    assert any(seen)


def test_an_error_of_the_separator_is_raised() -> None:
    backend = installed("scip")
    assert isinstance(backend, ScipSolver)
    formulation = small_formulation("mdl", 1, "cluster")

    def fail(x: NDArray[np.float64]) -> list[tuple[NDArray[np.int64], NDArray[np.float64], float]]:
        raise ZeroDivisionError("separator")

    recorder = Recorder(formulation.milp)
    with pytest.raises(ZeroDivisionError, match="separator"):
        backend.solve_here(replace(formulation.milp, lazy_rows=fail), None, Settings(), recorder)
    assert recorder.points == []


def test_the_lazy_solve_stops_when_asked_to() -> None:
    backend = installed("scip")
    assert isinstance(backend, ScipSolver)
    formulation = small_formulation("mdl", 1, "cluster")
    recorder = Recorder(formulation.milp, stop_after(0.0))
    lazily = replace(formulation.milp, lazy_rows=separator(formulation, []))
    outcome = backend.solve_here(lazily, None, Settings(), recorder)
    assert outcome.finished or outcome.limit == "user"


def test_an_interrupt_before_the_tree_does_not_crash() -> None:
    """SCIP refuses interrupts between presolving and the tree; the error must not leave its callback."""
    backend = installed("scip")
    assert isinstance(backend, ScipSolver)
    formulation = small_formulation("sm", 0, max_parents=2)
    for calls in (0, 2, 5):  # the gaps come within the first tenths of a second
        left = iter(range(calls))
        recorder = Recorder(formulation.milp, lambda left=left: next(left, None) is None)
        outcome = backend.solve(formulation.milp, naive_bayes(formulation), Settings(), recorder)
        assert outcome.finished or outcome.limit == "user"
