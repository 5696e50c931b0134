"""CP-SAT of OR-Tools, which solves an integer program that is a relaxation of the MILP."""

from __future__ import annotations

import contextlib
import math
from importlib.metadata import version
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError, SolverError
from milpbn.milp.milp import Milp
from milpbn.solvers.base import MilpEvents, Outcome, Settings, option_errors, parse_number
from milpbn.solvers.support.child import ChildSolver
from milpbn.solvers.support.guard import GuardedEvents, run_stoppable
from milpbn.solvers.support.integer_relaxation import IntegerRelaxation, relax_to_integers
from milpbn.solvers.support.process import open_log
from milpbn.solvers.support.repair import polish

#: The project's relative tolerance for calling a structure optimal.
OPTIMAL = 1e-6


class CpSatSolver(ChildSolver):
    """CP-SAT, with bounds that hold for the MILP.

    It solves an `IntegerRelaxation`, whose optimum is above the MILP's optimum by a relative 1e-7 or so at most. A
    reported point has the integer columns of CP-SAT; its other columns are computed from them. An optimal point of the
    relaxation may be below the MILP's optimum by the same rounding.
    """

    name = "cpsat"

    def version(self) -> str:
        """Return OR-Tools' version."""
        # After importing ortools, this process could not import highspy.
        return f"CP-SAT of OR-Tools {version('ortools')}"

    def solve_here(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: MilpEvents
    ) -> Outcome:
        """Maximise the MILP in this process; see `ChildSolver`."""
        best = _Best(milp, events)
        with open_log(settings.log) as log_file:
            relaxation = relax_to_integers(milp, None if start is None else milp.objective(start))
            outcome = _solve_relaxation(milp, relaxation, start, settings, best, log_file)
            excess = best.bound_value - best.objective
            if outcome.finished and best.x is not None and excess > OPTIMAL * max(1.0, abs(best.objective)):
                # The optimum is closer to 0 than expected, so the rounding is too coarse. Continue with a finer scale.
                with contextlib.suppress(InputError):
                    relaxation = relax_to_integers(milp, best.objective)
                    outcome = _solve_relaxation(milp, relaxation, best.x, settings, best, log_file)
            best.reraise()
            return outcome


class _Best(GuardedEvents):
    """Passes events on, and keeps the best point and bound."""

    def __init__(self, milp: Milp, events: MilpEvents) -> None:
        super().__init__(events)
        self._milp = milp
        self.x: NDArray[np.float64] | None = None
        self.objective = -math.inf
        self.bound_value = math.inf

    def point(self, x: NDArray[np.float64], source: str, objective: float | None = None) -> None:
        value = self._milp.objective(x)
        if value > self.objective:
            self.x, self.objective = x, value
            super().point(x, source, objective)

    def bound(self, value: float) -> None:
        self.bound_value = min(self.bound_value, value)
        super().bound(value)


def _solve_relaxation(
    milp: Milp,
    relaxation: IntegerRelaxation,
    start: NDArray[np.float64] | None,
    settings: Settings,
    events: _Best,
    log_file: TextIO | None,
) -> Outcome:
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    _set_options(solver.parameters, settings)
    model = _build(relaxation)
    if start is not None:
        model.proto.solution_hint.vars.extend(range(milp.n_columns))
        model.proto.solution_hint.values.extend(relaxation.integers(start).tolist())
    if log_file is not None:
        solver.log_callback = lambda text: events.call(lambda: log_file.write(text + "\n"))
    solver.best_bound_callback = lambda value: events.bound(relaxation.bound(value))
    remaining = settings.remaining()
    if remaining is not None:
        solver.parameters.max_time_in_seconds = max(remaining, 1e-3)
    callback = _report_points(milp, relaxation, events)
    run_stoppable(lambda: solver.solve(model, callback), events, solver.stop_search)
    return _outcome(solver, milp, relaxation, settings, events)


def _build(relaxation: IntegerRelaxation) -> Any:
    """Return the CpModel of a relaxation, written row by row into its protocol buffer."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    proto = model.proto
    for upper in relaxation.upper.tolist():
        proto.variables.add().domain.extend([0, upper])
    A = relaxation.A
    lower = np.where(np.isinf(relaxation.row_lower), float(cp_model.INT_MIN), relaxation.row_lower)
    upper = np.where(np.isinf(relaxation.row_upper), float(cp_model.INT_MAX), relaxation.row_upper)
    bounds = zip(_exact_integers(lower), _exact_integers(upper), strict=True)
    for first, last, domain in zip(A.indptr[:-1].tolist(), A.indptr[1:].tolist(), bounds, strict=True):
        linear = proto.constraints.add().linear
        linear.vars.extend(A.indices[first:last].tolist())
        linear.coeffs.extend(A.data[first:last].tolist())
        linear.domain.extend(domain)
    used = np.flatnonzero(relaxation.objective)
    # CP-SAT minimises; with this scaling factor it reports the values of the maximisation.
    proto.objective.vars.extend(used.tolist())
    proto.objective.coeffs.extend((-relaxation.objective[used]).tolist())
    proto.objective.scaling_factor = -1.0
    return model


def _exact_integers(values: NDArray[np.float64]) -> list[int]:
    """Return the values as integers, clipped to the 64-bit range, whose upper end is not a double."""
    limit = 2**63 - 1
    return [max(-limit - 1, min(limit, int(v))) for v in values.tolist()]


def _set_options(parameters: Any, settings: Settings) -> None:
    parameters.num_workers = settings.threads
    # A single search can take tiny steps through the huge domains of scaled columns without end; a portfolio of
    # searches that take turns does not.
    parameters.interleave_search = settings.threads == 1
    # Refuting a range of objective values at once improves the bound faster than by single units.
    parameters.use_objective_shaving_search = True
    parameters.random_seed = settings.seed
    parameters.relative_gap_limit = 0.0
    parameters.absolute_gap_limit = 0.0
    # The presolve of CP-SAT 9.15 turns some one-of rows inside larger rows into wrong rows ("linear + amo: extracted
    # enforcement literal"), and then calls a worse point optimal (google/or-tools#5293). This switches that step off.
    parameters.presolve_inclusion_work_limit = 0
    parameters.log_search_progress = settings.log is not None
    parameters.log_to_stdout = False
    for key, text in settings.options.items():
        with option_errors("CP-SAT", key, AttributeError, TypeError, ValueError, OverflowError):
            _set_option(parameters, key, text)


def _set_option(parameters: Any, key: str, text: str) -> None:
    """Set a field of SatParameters from text: a number, true or false, the name of an enum member, or a list a,b,c."""
    current = getattr(parameters, key)
    if key.startswith("_") or callable(current):
        raise AttributeError(key)
    if isinstance(current, bool):
        value = parse_number(text)
        if not isinstance(value, bool):
            raise ValueError(text)
        setattr(parameters, key, value)
    elif isinstance(current, int | float | str):
        setattr(parameters, key, type(current)(text))
    elif hasattr(current, "extend"):
        current.clear()
        current.extend(text.split(","))
    else:
        setattr(parameters, key, getattr(type(current), text.upper()))


def _report_points(milp: Milp, relaxation: IntegerRelaxation, events: MilpEvents) -> Any:
    from ortools.sat.python import cp_model

    class Callback(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            events.nodes(int(self.num_branches))
            x = _point(milp, relaxation, self.response_proto.solution)
            events.point(x, "cpsat", relaxation.bound(self.objective_value))

    return Callback()


def _point(milp: Milp, relaxation: IntegerRelaxation, solution: Any) -> NDArray[np.float64]:
    return polish(milp, relaxation.point(np.fromiter(solution, dtype=np.int64, count=milp.n_columns)))


def _outcome(
    solver: Any, milp: Milp, relaxation: IntegerRelaxation, settings: Settings, events: MilpEvents
) -> Outcome:
    response = solver.response_proto
    detail = response.status.name
    if detail in ("OPTIMAL", "FEASIBLE"):
        x = _point(milp, relaxation, response.solution)
        events.point(x, "cpsat", relaxation.bound(solver.objective_value))
    if detail == "INFEASIBLE":
        return Outcome(finished=True, infeasible=True, detail=detail)
    if detail == "MODEL_INVALID":
        raise SolverError(f"CP-SAT refused the model: {response.solution_info or detail}.")
    events.nodes(int(solver.num_branches))
    if detail != "UNKNOWN":
        # If CP-SAT is stopped in presolve (UNKNOWN), it states the bound 0.
        events.bound(relaxation.bound(solver.best_objective_bound))
    if detail == "OPTIMAL":
        return Outcome(finished=True, detail=detail)
    # CP-SAT may end a moment before the deadline when its own time limit is over.
    by_user = events.stopping() or settings.remaining() is None
    return Outcome(limit="user" if by_user else "time", detail=detail)
