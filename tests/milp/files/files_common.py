"""Random models, and the solvers that read and write the files of the tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import highspy
import numpy as np
import pulp
import pytest
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from milpbn.milp.milp import Milp

try:
    import pyscipopt
except ImportError:
    pyscipopt = None

CBC = pulp.PULP_CBC_CMD().path
needs_scip = pytest.mark.skipif(pyscipopt is None, reason="pyscipopt is not installed")
SOLVERS = ["highs", "cbc", pytest.param("scip", marks=needs_scip)]


def make_milp(c, rows, row_lower, row_upper, lower, upper, integer, constant=0.0, name="test") -> Milp:
    c = np.asarray(c, dtype=np.float64)
    A = sp.csr_array(np.asarray(rows, dtype=np.float64).reshape(-1, len(c)))
    A.sort_indices()
    arrays = (np.asarray(v, dtype=np.float64) for v in (row_lower, row_upper, lower, upper))
    columns = [f"x_{j}" for j in range(len(c))]
    row_names = [f"r_{i}" for i in range(A.shape[0])]
    return Milp(c, constant, A, *arrays, np.asarray(integer, dtype=bool), columns, row_names, name)


def random_milp(seed: int, n: int = 8, m: int = 6) -> Milp:
    """Return a feasible, bounded MILP with every kind of row and bound and coefficients of many magnitudes."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(m, n)) * 10.0 ** rng.integers(-3, 4, (m, n)) * (rng.random((m, n)) < 0.5)
    integer = rng.random(n) < 0.6
    lower = np.where(rng.random(n) < 0.3, -np.floor(rng.random(n) * 5), 0.0)
    upper = np.where(rng.random(n) < 0.8, lower + np.floor(rng.random(n) * 7), np.inf)
    binary = integer & (rng.random(n) < 0.5)
    lower[binary], upper[binary] = 0, 1
    lower[rng.random(n) < 0.2] = -np.inf
    upper[rng.random(n) < 0.2] = np.inf
    equal = rng.random(m) < 0.2
    # Equations with coefficients of many magnitudes would test the solvers' tolerances (SCIP fails), not the files.
    rows[equal] = np.round(rows[equal] / np.maximum(abs(rows[equal]), 1) * 3)
    activity = rows @ np.clip(np.round(rng.normal(size=n) * 2), lower, upper)
    row_lower = np.where(rng.random(m) < 0.5, activity - rng.random(m) * 3, -np.inf)
    row_upper = np.where(rng.random(m) < 0.6, activity + rng.random(m) * 3, np.inf)
    row_lower[equal] = row_upper[equal] = activity[equal]
    return make_milp(
        rng.normal(size=n) * (rng.random(n) < 0.8),
        np.vstack([rows, np.ones(n), np.eye(n)]),
        np.r_[row_lower, -40, np.full(n, -50.0)],
        np.r_[row_upper, 40, np.full(n, 50.0)],
        lower,
        upper,
        integer,
        constant=1.25,
    )


def optimum(model: Milp) -> tuple[float, np.ndarray]:
    """Return the optimal value, with the constant, and the solution that SciPy finds from the arrays."""
    result = milp(
        -model.c,
        constraints=LinearConstraint(model.A, model.row_lower, model.row_upper),
        bounds=Bounds(model.lower, model.upper),
        integrality=model.integer.astype(int),
        options={"mip_rel_gap": 0},
    )
    assert result.status == 0, result.message
    return model.objective(result.x), result.x


def read_with_highs(path: Path) -> highspy.Highs:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    return solver


def run_highs(path: Path, solution: Path | None = None, style: int = 0, time_limit: float = 60) -> float:
    solver = read_with_highs(path)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("time_limit", float(time_limit))
    solver.run()
    if solution is not None:
        solver.writeSolution(str(solution), style)
    return solver.getInfo().objective_function_value


def run_cbc(path: Path, solution: Path, *options: str) -> str:
    words = [CBC, str(path), "-ratioGap", "0", *options, "-solve", "-solution", str(solution)]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout


def run_scip(path: Path, solution: Path | None = None, time_limit: float = 60) -> float:
    solver = pyscipopt.Model()
    solver.hideOutput()
    solver.readProblem(str(path))
    solver.setParam("limits/time", time_limit)
    solver.optimize()
    if solution is not None:
        solver.writeBestSol(str(solution))
    return solver.getObjVal() if solver.getNSols() else np.nan


def knapsack(n: int = 60, m: int = 40) -> Milp:
    """Return a model that no solver finishes within a second and that has the feasible point 0."""
    rng = np.random.default_rng(3)
    rows = rng.integers(1, 99, (m, n))
    no_lower, half = np.full(m, -np.inf), rows.sum(axis=1) // 2
    return make_milp(rng.integers(50, 61, n), rows, no_lower, half, np.zeros(n), np.ones(n), np.ones(n))


def market_split(n: int = 40, m: int = 5) -> Milp:
    """Return Cornuejols and Dawande's equations, for which no solver finds a feasible point within a second."""
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 100, (m, n))
    half = rows.sum(axis=1) // 2
    return make_milp(np.ones(n), rows, half, half, np.zeros(n), np.ones(n), np.ones(n))
