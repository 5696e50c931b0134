"""CP-SAT of OR-Tools, on an integer program that is a relaxation of the MILP."""

from __future__ import annotations

import contextlib
import math
import threading
from importlib.metadata import version
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from milpbn.backends.base import (
    Capabilities,
    Events,
    Outcome,
    Settings,
    parse_number,
    unknown_option,
)
from milpbn.backends.child import ChildBackend
from milpbn.backends.guard import GuardedEvents
from milpbn.backends.integer_relaxation import IntegerRelaxation, relax_to_integers
from milpbn.backends.process import open_log
from milpbn.backends.repair import polish
from milpbn.errors import InputError, SolverError
from milpbn.model.milp import Milp

#: Seconds between two looks at `Events.stopping`.
POLL_SECONDS = 0.05
#: The project's relative tolerance for calling a structure optimal.
OPTIMAL = 1e-6


class CpSatBackend(ChildBackend):
    """CP-SAT with bounds that hold for the MILP, and points whose integer columns are CP-SAT's.

    It solves an `IntegerRelaxation`, whose optimum exceeds the MILP's by at most some 1e-7 of it. A reported
    point keeps CP-SAT's integers; its other columns are recomputed. What is optimal for the relaxation may
    miss the MILP's optimum by that rounding.
    """

    name = "cpsat"
    capabilities = Capabilities(float_coefficients=False)

    def version(self) -> str:
        """Return OR-Tools' version."""
        # Importing the library itself would keep this process from importing highspy.
        return f"CP-SAT of OR-Tools {version('ortools')}"

    def solve_here(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: Events
    ) -> Outcome:
        """Maximise the MILP in this process; see `ChildBackend`."""
        best = _Best(milp, events)
        with open_log(settings.log) as log_file:
            relaxation = relax_to_integers(milp, None if start is None else milp.objective(start))
            outcome = _solve_relaxation(milp, relaxation, start, settings, best, log_file)
            excess = best.bound_value - best.objective
            if outcome.finished and best.x is not None and excess > OPTIMAL * max(1.0, abs(best.objective)):
                # The optimum is nearer to 0 than was expected: its rounding shows. Go on with a finer scale.
                with contextlib.suppress(InputError):
                    relaxation = relax_to_integers(milp, best.objective)
                    outcome = _solve_relaxation(milp, relaxation, best.x, settings, best, log_file)
            best.reraise()
            return outcome


class _Best(GuardedEvents):
    """Passes events on, and remembers the best point and bound."""

    def __init__(self, milp: Milp, events: Events) -> None:
        super().__init__(events)
        self._milp = milp
        self.x: NDArray[np.float64] | None = None
        self.objective = -math.inf
        self.bound_value = math.inf

    def point(self, x: NDArray[np.float64], source: str) -> None:
        objective = self._milp.objective(x)
        if objective > self.objective:
            self.x, self.objective = x, objective
            super().point(x, source)

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
    _run(solver, model, _report_points(milp, relaxation, events), events)
    return _outcome(solver, milp, relaxation, settings, events)


def _build(relaxation: IntegerRelaxation) -> Any:
    """Return the CpModel of a relaxation, filled through its protocol buffer, row by row."""
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
    # CP-SAT minimises; the scaling factor tells it to report the values of the maximisation.
    proto.objective.vars.extend(used.tolist())
    proto.objective.coeffs.extend((-relaxation.objective[used]).tolist())
    proto.objective.scaling_factor = -1.0
    return model


def _exact_integers(values: NDArray[np.float64]) -> list[int]:
    """Return integers, the ends of the 64-bit range among them, which as doubles lie beyond it."""
    limit = 2**63 - 1
    return [max(-limit - 1, min(limit, int(v))) for v in values.tolist()]


def _set_options(parameters: Any, settings: Settings) -> None:
    parameters.num_workers = settings.threads
    # A single worker alone can creep along the huge domains of scaled columns for ever; a portfolio of
    # searches that take turns does not.
    parameters.interleave_search = settings.threads == 1
    # Bounds that creep in single units are lifted in leaps where a range of objective values is refuted at once.
    parameters.use_objective_shaving_search = True
    parameters.random_seed = settings.seed
    parameters.relative_gap_limit = 0.0
    parameters.absolute_gap_limit = 0.0
    # CP-SAT 9.15's presolve turns some one-of rows inside larger rows into wrong ones ("linear + amo: extracted
    # enforcement literal"), and then calls a worse point optimal (google/or-tools#5293); this switches that off.
    parameters.presolve_inclusion_work_limit = 0
    parameters.log_search_progress = settings.log is not None
    parameters.log_to_stdout = False
    for key, text in settings.options.items():
        try:
            _set_option(parameters, key, text)
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            raise unknown_option("CP-SAT", key) from error


def _set_option(parameters: Any, key: str, text: str) -> None:
    """Set a field of SatParameters from text: a number, true/false, an enumeration's name, or a list a,b,c."""
    if key.startswith("_"):
        raise AttributeError(key)
    current = getattr(parameters, key)
    if callable(current):
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


def _report_points(milp: Milp, relaxation: IntegerRelaxation, events: Events) -> Any:
    from ortools.sat.python import cp_model

    class Callback(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            events.nodes(int(self.num_branches))
            events.point(_point(milp, relaxation, self.response_proto.solution), "cpsat")

    return Callback()


def _point(milp: Milp, relaxation: IntegerRelaxation, solution: Any) -> NDArray[np.float64]:
    return polish(milp, relaxation.point(np.fromiter(solution, dtype=np.int64, count=milp.n_columns)))


def _run(solver: Any, model: Any, callback: Any, events: GuardedEvents) -> None:
    """Solve, while another thread watches for the word to stop."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(POLL_SECONDS):
            if events.stopping():
                solver.stop_search()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        solver.solve(model, callback)
    finally:
        done.set()
        watcher.join()
    events.reraise()


def _outcome(
    solver: Any, milp: Milp, relaxation: IntegerRelaxation, settings: Settings, events: Events
) -> Outcome:
    response = solver.response_proto
    detail = response.status.name
    if detail in ("OPTIMAL", "FEASIBLE"):
        events.point(_point(milp, relaxation, response.solution), "cpsat")
    if detail == "INFEASIBLE":
        return Outcome(finished=True, infeasible=True, detail=detail)
    if detail == "MODEL_INVALID":
        raise SolverError(f"CP-SAT refused the model: {response.solution_info or detail}.")
    events.nodes(int(solver.num_branches))
    if detail != "UNKNOWN":
        # Stopped in presolve CP-SAT gives 0.
        events.bound(relaxation.bound(solver.best_objective_bound))
    if detail == "OPTIMAL":
        return Outcome(finished=True, detail=detail)
    # CP-SAT may count its time as over a moment before the deadline.
    by_user = events.stopping() and settings.remaining() != 0.0
    return Outcome(limit="user" if by_user or settings.remaining() is None else "time", detail=detail)
