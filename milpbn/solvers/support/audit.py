"""Audit of a solver's run: its reports are compared with each other, with the start, and with the model's numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import SolverError
from milpbn.milp.milp import Milp
from milpbn.solvers.base import MilpEvents, Outcome, Settings, Solver
from milpbn.solvers.support.guard import GuardedEvents

#: Allowed difference as a share of a model's size (`allowance`); the tolerances of solvers are 1e-6 and less.
TOLERANCE = 1e-5


def allowance(milp: Milp, value: float) -> float:
    """Return by how much an objective value may be off because of a solver's tolerances.

    The tolerances hold row by row. Under a margin score each sample has its own row and its own column tau; so the
    allowance is proportional to the sum of the weights of all continuous columns.
    """
    return TOLERANCE * max(1.0, abs(value), float(np.abs(milp.c[~milp.integer]).sum()))


def solve_audited(
    solver: Solver, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: MilpEvents
) -> Outcome:
    """Let a solver maximise a MILP, and refuse an answer that contradicts itself; see `Solver.solve`.

    The start has to be feasible. Raises SolverError if the solver returns a point that is not a vector of finite
    numbers; states an objective above that of the point; states a bound that is not a number, or is below one of its
    points or the start; calls the model infeasible although it has a feasible point; or calls a point optimal that is
    worse than the start, or below the solver's own bound.
    """
    audit = Audit(milp, start, events, solver.name)
    outcome = solver.solve(milp, start, settings, audit)
    audit.reraise()
    # The user's options may make a solver stop early, or cut solutions off, and call the best of the rest optimal.
    audit.judge(outcome, must_prove=not settings.options)
    return outcome


class Audit(GuardedEvents):
    """Passes events on, and keeps what is needed to judge the outcome; an error stops the solver.

    The solver starts from the feasible point `start`, shape (n,), or from none.
    """

    def __init__(self, milp: Milp, start: NDArray[np.float64] | None, events: MilpEvents, name: str) -> None:
        super().__init__(events)
        self._milp, self._start, self._name = milp, start, name
        self._start_value = -math.inf if start is None else milp.objective(start)
        self._best = -math.inf
        self._bound = math.inf

    def point(self, x: NDArray[np.float64], source: str, objective: float | None = None) -> None:
        """Report a feasible point; see `MilpEvents.point`."""
        self.call(lambda: self._check_point(x, objective))
        super().point(x, source, objective)

    def bound(self, value: float) -> None:
        """Report a valid upper bound; see `MilpEvents.bound`."""
        self.call(lambda: self._check_bound(value))
        super().bound(value)

    def _check_point(self, x: NDArray[np.float64], objective: float | None) -> None:
        if x.shape != (self._milp.n_columns,) or not np.isfinite(x).all():
            raise self._error_of("it returns a point that is not a vector of finite numbers")
        value = self._milp.objective(x)
        self._best = max(self._best, value)
        if objective is not None and not objective <= value + allowance(self._milp, value):
            raise self._error_of(
                f"it says that a point has the objective {objective:.10g}, but the objective is {value:.10g}"
            )

    def _check_bound(self, value: float) -> None:
        if math.isnan(value):
            raise self._error_of("its bound is not a number")
        self._bound = min(self._bound, value)

    def judge(self, outcome: Outcome, *, must_prove: bool) -> None:
        """Refuse an outcome that contradicts the reports before it; see `solve_audited`.

        `must_prove` says whether a finished run must have proved its best point optimal.
        """
        known = max(self._start_value, self._best)
        room = allowance(self._milp, known) if math.isfinite(known) else 0.0
        if outcome.infeasible:
            if math.isfinite(known):
                raise self._error_of(
                    f"it says that there is no solution ({outcome.detail}), although one scores {known:.10g}"
                )
            return
        if self._bound < known - room:
            raise self._error_of(
                f"it says that no solution exceeds {self._bound:.10g}, although one scores {known:.10g}"
            )
        if not outcome.finished or not must_prove or self._best == -math.inf:
            return
        if self._best < self._start_value - room:
            raise self._error_of(
                f"it calls the objective {self._best:.10g} optimal, although its start has {self._start_value:.10g}"
            )
        if math.isfinite(self._bound) and self._bound > self._best + room:
            raise self._error_of(
                f"it calls the objective {self._best:.10g} optimal, although its own bound is {self._bound:.10g}"
            )

    def _error_of(self, what: str) -> SolverError:
        return SolverError(
            f"The solver of the backend {self._name} contradicts itself: {what}. Its answers cannot be trusted; "
            "install another version of it, or choose another --backend."
        )
