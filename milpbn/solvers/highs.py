"""HiGHS, called directly through highspy."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError, SolverError
from milpbn.milp.milp import Milp
from milpbn.problem.rows import RowBlock
from milpbn.solvers.base import MilpEvents, Outcome, Settings, parse_number, unknown_option
from milpbn.solvers.support.child import ChildSolver
from milpbn.solvers.support.guard import GuardedEvents

#: Versions that return wrong optima: 1.14.0 for some models; 1.16.0 with a start where presolve made the model smaller,
#: because it forgets the objective's offset and calls any start optimal.
BROKEN = ("1.14.0", "1.16.0")
#: HiGHS has one task scheduler per process. It allows one run at a time, and is reset when the thread count changes.
scheduler_lock = threading.Lock()
#: Feasibility tolerance. With a larger one, slightly fractional parent sets could add up to a score above the optimum.
TOLERANCE = 1e-9
#: Tolerance of a second run: HiGHS sometimes proves an optimum, and then finds its own point infeasible by little more
#: than the first tolerance.
SECOND_TOLERANCE = 1e-7


class HighsSolver(ChildSolver):
    """HiGHS in a child process, with a full MIP start and bounds from its callbacks."""

    name = "highs"

    def version(self) -> str:
        """Return HiGHS's version; raise InputError if it is one of `BROKEN`."""
        import highspy

        version = highspy.Highs().version()
        refuse_broken(version)
        return f"HiGHS {version}"

    def solve_here(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: MilpEvents
    ) -> Outcome:
        """Maximise the MILP in this process; see `ChildSolver`."""
        import highspy

        with scheduler_lock:
            highspy.Highs.resetGlobalScheduler(True)
            return _run(highspy.Highs(), milp, start, settings, events)

    def cut_here(self, milp: Milp, rounds: int, settings: Settings, events: Any) -> Outcome:
        """Solve an LP in this process, add the rows that `events.violated` finds at its optimum, and solve again.

        It is solved at most `rounds` times, and none of its columns is integer. `events` receives the bound of every LP
        that was solved to optimality, and is asked whether to stop; its method `violated` takes the optimum and returns
        a `RowBlock`, or None.
        """
        import highspy

        with scheduler_lock:
            highspy.Highs.resetGlobalScheduler(True)
            h = highspy.Highs()
            h.setOptionValue("output_flag", False)
            h.setOptionValue("threads", settings.threads)
            pass_model(h, milp)

            _stop_lps(h, events)
            for _ in range(rounds):
                left = settings.remaining()
                if left == 0.0 or events.stopping():
                    break
                if left is not None:
                    h.setOptionValue("time_limit", h.getRunTime() + left)
                h.run()
                if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                    break
                # Within the dual feasibility tolerance, the LP value may be this much below the true one.
                value = h.getInfo().objective_function_value
                events.bound(value + 1e-7 * max(1.0, abs(value)))
                rows = events.violated(np.array(h.getSolution().col_value))
                if rows is None:
                    break
                _add_rows(h, rows)
        return Outcome()


def _stop_lps(h: Any, events: Any) -> None:
    """Let HiGHS ask during every LP whether to stop."""

    def stop(event: Any) -> None:
        event.data_in.user_interrupt = events.stopping()

    h.cbSimplexInterrupt += stop
    h.cbIpmInterrupt += stop


def refuse_broken(version: str) -> None:
    """Raise an InputError for a version of HiGHS in `BROKEN`."""
    if version in BROKEN:
        sound = ",".join(f"!={number}" for number in BROKEN)
        raise InputError(
            f"HiGHS {version} returns wrong optima; install another version: pip install 'highspy{sound}'."
        )


def _run(
    h: Any, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: MilpEvents
) -> Outcome:
    import highspy

    _set_options(h, settings)
    pass_model(h, milp)
    if start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = start
        h.setSolution(solution)
    guarded = GuardedEvents(events)
    _subscribe(h, guarded)
    status, model_status = _run_once(h, settings, guarded)
    tolerance_given = "mip_feasibility_tolerance" in settings.options
    failed = model_status == highspy.HighsModelStatus.kSolveError
    if failed and not tolerance_given and not events.stopping():
        h.clearSolver()
        h.setOptionValue("mip_feasibility_tolerance", SECOND_TOLERANCE)
        status, model_status = _run_once(h, settings, guarded)
    detail = h.modelStatusToString(model_status)
    if status == highspy.HighsStatus.kError:
        raise SolverError(f"HiGHS failed: {detail}.")
    return _outcome(h, milp, model_status, detail, events)


def _run_once(h: Any, settings: Settings, guarded: GuardedEvents) -> tuple[Any, Any]:
    """Run for the remaining time; return the status of the call and the status of the model."""
    remaining = settings.remaining()
    if remaining is not None:
        h.setOptionValue("time_limit", remaining)
    status = h.run()
    guarded.reraise()
    return status, h.getModelStatus()


def pass_model(h: Any, milp: Milp) -> None:
    """Pass a MILP to a Highs object as arrays."""
    import highspy

    integrality = np.where(
        milp.integer, int(highspy.HighsVarType.kInteger), int(highspy.HighsVarType.kContinuous)
    )
    A = milp.A
    status = h.passModel(
        milp.n_columns,
        milp.n_rows,
        A.nnz,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMaximize),
        milp.constant,
        milp.c,
        milp.lower,
        milp.upper,
        milp.row_lower,
        milp.row_upper,
        A.indptr.astype(np.int32, copy=False),
        A.indices.astype(np.int32, copy=False),
        A.data,
        integrality.astype(np.int32),
    )
    if status == highspy.HighsStatus.kError:
        raise SolverError("HiGHS refused the model.")


def _add_rows(h: Any, rows: RowBlock) -> None:
    """Add rows to a Highs object."""
    A = rows.matrix
    h.addRows(
        len(rows.names),
        rows.lower,
        rows.upper,
        A.nnz,
        A.indptr[:-1].astype(np.int32),
        A.indices.astype(np.int32),
        A.data,
    )


def set_option(h: Any, key: str, text: str, name: str) -> Any:
    """Set an option from text, and return its value in the type that HiGHS expects.

    Raises InputError, which begins with `name`, if HiGHS does not take it.
    """
    import highspy

    value = parse_number(text)
    _, kind = h.getOptionType(key)
    if kind == highspy.HighsOptionType.kString:
        value = text
    elif kind == highspy.HighsOptionType.kDouble and isinstance(value, int | float):
        value = float(value)
    if h.setOptionValue(key, value) != highspy.HighsStatus.kOk:
        raise unknown_option(name, key)
    return value


def _set_options(h: Any, settings: Settings) -> None:
    # Logging callbacks and log files need output_flag; so only the console output is switched off.
    h.setOptionValue("log_to_console", False)
    h.setOptionValue("log_file", str(settings.log) if settings.log else "")
    h.setOptionValue("threads", settings.threads)
    h.setOptionValue("parallel", "on" if settings.threads > 1 else "off")
    h.setOptionValue("random_seed", settings.seed)
    # The project's own gap test stops the run, since HiGHS's relative gap has another denominator.
    h.setOptionValue("mip_rel_gap", 0.0)
    h.setOptionValue("mip_abs_gap", 0.0)
    h.setOptionValue("mip_feasibility_tolerance", TOLERANCE)
    for key, text in settings.options.items():
        set_option(h, key, text, "HiGHS")


def _subscribe(h: Any, events: MilpEvents) -> None:
    def interrupt(event: Any) -> None:
        out = event.data_out
        bound = out.mip_dual_bound
        if math.isfinite(bound):
            events.bound(bound)
        if out.mip_node_count >= 0:
            events.nodes(int(out.mip_node_count))
        event.data_in.user_interrupt = events.stopping()

    def solution(event: Any) -> None:
        out = event.data_out
        events.point(np.array(out.mip_solution, dtype=np.float64), "highs", out.objective_function_value)

    h.cbMipInterrupt += interrupt
    h.cbMipImprovingSolution += solution
    _stop_lps(h, events)


def _outcome(h: Any, milp: Milp, model_status: Any, detail: str, events: MilpEvents) -> Outcome:
    import highspy

    status = highspy.HighsModelStatus
    info = h.getInfo()
    if model_status == status.kInfeasible:
        return Outcome(finished=True, infeasible=True, detail=detail)
    if info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible):
        x = np.array(h.getSolution().col_value, dtype=np.float64)
        events.point(x, "highs", info.objective_function_value)
    if milp.integer.any():
        if math.isfinite(info.mip_dual_bound):
            events.bound(info.mip_dual_bound)
        events.nodes(max(0, int(info.mip_node_count)))
    elif model_status == status.kOptimal:
        events.bound(info.objective_function_value)
    limits = {
        status.kTimeLimit: "time",
        status.kIterationLimit: "node",
        status.kSolutionLimit: "node",
        status.kMemoryLimit: "memory",
        status.kInterrupt: "user",
        status.kObjectiveTarget: "gap",
    }
    if model_status == status.kOptimal:
        return Outcome(finished=True, detail=detail)
    if model_status in limits:
        return Outcome(limit=limits[model_status], detail=detail)
    if model_status == status.kUnboundedOrInfeasible:
        return Outcome(finished=True, infeasible=True, detail=detail)
    raise SolverError(f"HiGHS stopped with the status {detail!r}.")
