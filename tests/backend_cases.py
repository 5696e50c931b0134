"""Shared by the tests of backends: small MILPs of the project's form, and a recorder of events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from oracle import random_dataset
from scipy.optimize import Bounds, LinearConstraint
from scipy.optimize import milp as scipy_milp

from milpbn.errors import InputError
from milpbn.milp.formulation import Formulation, formulate
from milpbn.milp.milp import Milp
from milpbn.network.structure import Structure
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score
from milpbn.solvers.base import Solver
from milpbn.solvers.registry import find_solver

BACKENDS = ("highs", "cbc", "cpsat", "scip", "pulp:highs", "pulp:cbc")
DIRECT = BACKENDS[:4]
SCORES = ("sm", "sbm", "mdl", "aicc", "hard-margin")


def installed(name: str) -> Solver:
    """Return a solver, or skip the test if it is missing."""
    solver = find_solver(name)
    assert solver is not None
    try:
        solver.version()
    except InputError as error:
        pytest.skip(str(error))
    return solver


class Recorder:
    """A listener that records all points and bounds."""

    def __init__(self, milp: Milp, stopping: Callable[[], bool] = lambda: False) -> None:
        self.milp = milp
        self.points: list[NDArray[np.float64]] = []
        self.bounds: list[float] = []
        self.node_counts: list[int] = []
        self.stopping = stopping
        self._lock = threading.Lock()

    def point(self, x: NDArray[np.float64], source: str, objective: float | None = None) -> None:
        with self._lock:
            assert x.shape == (self.milp.n_columns,)
            self.points.append(np.array(x))

    def bound(self, value: float) -> None:
        with self._lock:
            self.bounds.append(float(value))

    def nodes(self, count: int) -> None:
        with self._lock:
            self.node_counts.append(count)

    @property
    def objective(self) -> float:
        return max(self.milp.objective(x) for x in self.points)

    def check(self, optimum: float) -> None:
        """Check every event against the true optimum, as far as solvers' tolerances allow."""
        tolerance = 1e-6 * max(1.0, abs(optimum))
        for x in self.points:
            assert self.milp.violation(x) <= 1e-6
            assert self.milp.objective(x) <= optimum + tolerance
        assert all(bound >= optimum - tolerance for bound in self.bounds)


def stop_after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def small_formulation(score: str, seed: int, acyclicity: str = "order", **options: object) -> Formulation:
    """Return the MILP of a random problem with two to four features."""
    rng = np.random.default_rng([seed, len(score)])
    data = random_dataset(
        rng,
        int(rng.integers(2, 5)),
        int(rng.integers(2, 4)),
        3,
        int(rng.integers(20, 60)),
        weights=score in ("sm", "sbm"),
    )
    arguments = {"max_parents": int(rng.integers(1, 4)), "class_parents": bool(rng.integers(2))} | options
    if score in ("sm", "sbm"):
        arguments.setdefault("gamma", float(rng.choice([0.4, 2.0, 4.6])))
    return formulate(build_problem(data, Score(name=score, **arguments)), acyclicity)  # type: ignore[arg-type]


#: Score of a structure of `hard_formulation`; every valid bound is above it.
HARD_OBJECTIVE = 525.6117


def hard_formulation() -> Formulation:
    """Return a MILP that no solver finishes within seconds."""
    data = random_dataset(np.random.default_rng(7), 14, 3, 3, 120)
    return formulate(build_problem(data, Score(name="sm", gamma=4.6, max_parents=2)))


def without_rows(milp: Milp, prefix: str) -> Milp:
    """Return the MILP without the rows whose names begin so: with ``a_`` or ``c_``, those that exclude cycles."""
    kept = [r for r, name in enumerate(milp.row_names) if not name.startswith(prefix)]
    return replace(
        milp,
        A=sp.csr_array(milp.A[kept]),
        row_lower=milp.row_lower[kept],
        row_upper=milp.row_upper[kept],
        row_names=[milp.row_names[r] for r in kept],
    )


def naive_bayes(formulation: Formulation) -> NDArray[np.float64]:
    """Return the point of the naive Bayes structure."""
    names = formulation.problem.data.names
    V = len(names)
    return formulation.vector(Structure(names, tuple((V - 1,) if i < V - 1 else () for i in range(V))))


def optimum(milp: Milp) -> float:
    """Return the optimum by SciPy's solver."""
    result = scipy_milp(
        -milp.c,
        constraints=LinearConstraint(milp.A, milp.row_lower, milp.row_upper),
        bounds=Bounds(milp.lower, milp.upper),
        integrality=milp.integer.astype(int),
        options={"mip_rel_gap": 0.0},
    )
    assert result.status == 0
    return float(-result.fun + milp.constant)
