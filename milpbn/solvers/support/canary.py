"""Tiny models with known optima, which a solver has to solve correctly before its answers are used.

Each is a model of this project, reduced as far as some release of a solver still called a wrong point optimal: HiGHS
1.14.0 because of its presolve; HiGHS 1.16.0 with a start, where presolve moved a constant out of the objective; and
CP-SAT 9.15 because of its presolve, unless one step is switched off. Solving them takes some hundredths of a second.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from milpbn.errors import SolverError
from milpbn.milp.milp import Milp
from milpbn.solvers.base import IgnoredEvents, MilpEvents, Outcome, Settings, Solver

#: Allowed error of points and bounds, relative to max(1, |optimum|).
TOLERANCE = 1e-6
#: Maximum violation of a row by a point.
FEASIBILITY = 1e-6
#: Seconds for all models. A solver that needs longer is not refused, but is examined again in its next run.
SECONDS = 10.0

Solve = Callable[[Milp, NDArray[np.float64] | None, Settings, MilpEvents], Outcome]

#: Names of solvers that have passed in this process.
PASSED: set[str] = set()


class Canary(NamedTuple):
    """A model, and its optimum, found by enumeration."""

    milp: Milp
    optimum: float
    #: A feasible point, shape (n,), that is not optimal. If given, the model is solved a second time from it.
    start: NDArray[np.float64] | None = None


def _soft_margin(
    objective: list[float], cap: float, rows: list[list[float]], groups: list[list[int]]
) -> Milp:
    """Return a small soft-margin model: binary columns, then continuous columns tau, at most one of them in each row.

    The n coefficients of the objective are positive integers for the columns tau, which have the upper bound `cap` and
    no lower one. The rows, of length n, are ``a @ x <= 0``. In each group exactly one column is 1.
    """
    n = len(objective)
    c = np.array(objective, dtype=np.float64)
    integer = c <= 0
    one_of = np.zeros((len(groups), n))
    for row, members in enumerate(groups):
        one_of[row, members] = 1.0
    return Milp(
        c=c,
        constant=0.0,
        A=sp.csr_array(np.vstack([np.array(rows), one_of])),
        row_lower=np.array([-math.inf] * len(rows) + [1.0] * len(groups)),
        row_upper=np.array([0.0] * len(rows) + [1.0] * len(groups)),
        lower=np.where(integer, 0.0, -math.inf),
        upper=np.where(integer, 1.0, cap),
        integer=integer,
        column_names=[f"x{j}" for j in range(n)],
        row_names=[f"r{i}" for i in range(len(rows) + len(groups))],
    )


def canaries() -> list[Canary]:
    """Return the models."""
    stuffing = _soft_margin(
        [-1.84, -4.23, -12, -2.26, -3.69, -6.57, -6.34, -1.84, 1, 5],
        3.51,
        [
            [0, 0, -0.41, 0, 0.41, 0, -0.85, -1.95, 1, 0],
            [0, -0.61, -0.63, 0, -0.69, -1.2, -0.61, -1.95, 0, 1],
        ],
        [[0, 1, 2], [3, 4], [5, 6]],
    )
    offset = _soft_margin(
        [-1, -2, -1, -2, -2, 1, 2], 0.1, [[0, -0.8, 0.5, -1.1, -0.4, 0, 1]], [[0, 1], [2, 3, 4]]
    )
    one_of = _soft_margin(
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 1, 1, 3],
        0.1,
        [
            [-0.45, -0.44, -1.87, -1.7, -1.94, 0.44, -1.04, -0.27, 0.75, 1, 0, 0, 0],
            [0.85, 0.04, -0.21, -0.83, -0.32, -0.14, 0.42, 0.63, 0.84, 0, 0, 1, 0],
            [-1.16, -0.04, -0.95, 0.13, -0.58, -0.26, -0.13, -0.63, 0.42, 0, 0, 0, 1],
        ],
        [[2, 3, 4], [8]],
    )
    return [
        Canary(offset, -2.7, np.array([0.0, 1.0, 0.0, 0.0, 1.0, 0.1, 0.1])),
        Canary(one_of, 0.82),
        Canary(stuffing, 5.19),
    ]


def require_sound(solver: Solver, settings: Settings, events: MilpEvents) -> None:
    """Let a solver solve the models, once per process; one that runs in a child process is examined there."""
    if solver.examined_in_child or solver.name in PASSED:
        return
    if examine(solver, solver.solve, settings, events):
        PASSED.add(solver.name)


def examine(solver: Solver, solve: Solve, settings: Settings, events: MilpEvents) -> bool:
    """Solve all models; return True if every answer is right, and False if the time ran out before.

    `solve` is `Solver.solve`, or the function that does the same in a child process. The settings give the deadline;
    their options are not used for these models. Raises SolverError if an answer is wrong.
    """
    end = time.monotonic() + SECONDS
    deadline = end if settings.deadline is None else min(end, settings.deadline)
    canary_settings = Settings(deadline=deadline)
    for canary in canaries():
        for start in (None, canary.start) if canary.start is not None else (None,):
            record = _CanaryEvents(canary, events.stopping)
            outcome = solve(canary.milp, start, canary_settings, record)
            wrong = record.wrong(outcome)
            if wrong is not None:
                raise SolverError(
                    f"{solver.version()} solves a model of {canary.milp.n_columns} columns wrongly: {wrong}. "
                    "Install another version of it, or choose another --backend."
                )
            if not outcome.finished:
                return False
    return True


class _CanaryEvents(IgnoredEvents):
    """Events that record the points and bounds of one run."""

    def __init__(self, canary: Canary, stopping: Callable[[], bool]) -> None:
        self._canary = canary
        self._points: list[NDArray[np.float64]] = []
        self._bounds: list[float] = []
        self._stopping = stopping

    def point(self, x: NDArray[np.float64], source: str, objective: float | None = None) -> None:
        self._points.append(np.array(x))

    def bound(self, value: float) -> None:
        self._bounds.append(value)

    def stopping(self) -> bool:
        return self._stopping()

    def wrong(self, outcome: Outcome) -> str | None:
        """Return a clause that says what is wrong, or None."""
        milp, optimum = self._canary.milp, self._canary.optimum
        tolerance = TOLERANCE * max(1.0, abs(optimum))
        if outcome.infeasible:
            return "it says that there is no solution"
        if not all(milp.violation(x) <= FEASIBILITY for x in self._points):
            return "it returns a point that is not a solution"
        best = max(map(milp.objective, self._points), default=-math.inf)
        bound = min(self._bounds, default=math.inf)
        if not bound >= optimum - tolerance:
            return f"it says that no solution exceeds {bound:.10g}, but one reaches {optimum:.10g}"
        if outcome.finished and not best >= optimum - tolerance:
            return f"it calls {best:.10g} optimal, but the optimum is {optimum:.10g}"
        if outcome.finished and self._bounds and not bound <= optimum + tolerance:
            return f"it calls {best:.10g} optimal, but its bound is {bound:.10g}"
        return None
