"""HiGHS, called directly through highspy."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.backends.base import (
    Backend,
    Capabilities,
    Events,
    Outcome,
    Settings,
    parse_number,
    unknown_option,
)
from milpbn.backends.guard import GuardedEvents
from milpbn.errors import InputError, SolverError
from milpbn.model.milp import Milp

#: Versions that return wrong optima: of some models, and with a start that presolve makes smaller, where 1.16.0
#: forgets the objective's offset and calls any start optimal.
BROKEN = ("1.14.0", "1.16.0")
#: HiGHS keeps one task scheduler per process: one run at a time, and a reset when the thread count changes.
_scheduler_lock = threading.Lock()
#: Loose integrality would let fractional parent sets add up to a bound above the optimum.
TOLERANCE = 1e-9
#: HiGHS sometimes proves an optimum and then finds its own point infeasible by little more than that.
SECOND_TOLERANCE = 1e-7


class HighsBackend(Backend):
    """HiGHS with a full MIP start and bounds from its callbacks."""

    name = "highs"
    capabilities = Capabilities()

    def version(self) -> str:
        """Return HiGHS's version.

        Raises
        ------
        InputError
            If it is one of `BROKEN`.
        """
        import highspy

        version = highspy.Highs().version()
        refuse_broken(version)
        return f"HiGHS {version}"

    def solve(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: Events
    ) -> Outcome:
        """Maximise the MILP; see `Backend.solve`."""
        import highspy

        with _scheduler_lock:
            highspy.Highs.resetGlobalScheduler(True)
            try:
                return _run(highspy.Highs(), milp, start, settings, events)
            finally:
                # Threads that wait in the scheduler would end the process with an error at its exit.
                highspy.Highs.resetGlobalScheduler(True)


def refuse_broken(version: str) -> None:
    """Raise an InputError for a version of HiGHS in `BROKEN`."""
    if version in BROKEN:
        sound = ",".join(f"!={number}" for number in BROKEN)
        raise InputError(
            f"HiGHS {version} returns wrong optima; install another version: pip install 'highspy{sound}'."
        )


def _run(
    h: Any, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: Events
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
    own = "mip_feasibility_tolerance" in settings.options
    if model_status == highspy.HighsModelStatus.kSolveError and not own and not events.stopping():
        h.clearSolver()
        h.setOptionValue("mip_feasibility_tolerance", SECOND_TOLERANCE)
        status, model_status = _run_once(h, settings, guarded)
    detail = h.modelStatusToString(model_status)
    if status == highspy.HighsStatus.kError:
        raise SolverError(f"HiGHS failed: {detail}.")
    return _outcome(h, milp, model_status, detail, events)


def _run_once(h: Any, settings: Settings, guarded: GuardedEvents) -> tuple[Any, Any]:
    """Run for the time that is left; return HiGHS's status and the model's."""
    remaining = settings.remaining()
    if remaining is not None:
        h.setOptionValue("time_limit", remaining)
    status = h.run()
    guarded.reraise()
    return status, h.getModelStatus()


def pass_model(h: Any, milp: Milp) -> None:
    """Hand a MILP to a Highs object as arrays."""
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


def _set_options(h: Any, settings: Settings) -> None:
    import highspy

    # Logging callbacks and log files need output_flag; only the console is kept quiet.
    h.setOptionValue("log_to_console", False)
    h.setOptionValue("log_file", str(settings.log) if settings.log else "")
    h.setOptionValue("threads", settings.threads)
    h.setOptionValue("parallel", "on" if settings.threads > 1 else "off")
    h.setOptionValue("random_seed", settings.seed)
    # The project's own gap test stops the run: HiGHS's relative gap has another denominator.
    h.setOptionValue("mip_rel_gap", 0.0)
    h.setOptionValue("mip_abs_gap", 0.0)
    h.setOptionValue("mip_feasibility_tolerance", TOLERANCE)
    for key, text in settings.options.items():
        value = parse_number(text)
        status, kind = h.getOptionType(key)
        if status == highspy.HighsStatus.kOk:
            value = {
                highspy.HighsOptionType.kString: str(text),
                highspy.HighsOptionType.kDouble: float(value) if isinstance(value, int | float) else value,
            }.get(kind, value)
        if h.setOptionValue(key, value) != highspy.HighsStatus.kOk:
            raise unknown_option("HiGHS", key)


def _subscribe(h: Any, events: Events) -> None:
    def interrupt(event: Any) -> None:
        out = event.data_out
        bound = out.mip_dual_bound
        if math.isfinite(bound):
            events.bound(bound)
        if out.mip_node_count >= 0:
            events.nodes(int(out.mip_node_count))
        event.data_in.user_interrupt = events.stopping()

    def stop(event: Any) -> None:
        event.data_in.user_interrupt = events.stopping()

    def solution(event: Any) -> None:
        events.point(np.array(event.data_out.mip_solution, dtype=np.float64), "highs")

    h.cbMipInterrupt += interrupt
    h.cbSimplexInterrupt += stop
    h.cbIpmInterrupt += stop
    h.cbMipImprovingSolution += solution


def _outcome(h: Any, milp: Milp, model_status: Any, detail: str, events: Events) -> Outcome:
    import highspy

    status = highspy.HighsModelStatus
    info = h.getInfo()
    if model_status == status.kInfeasible:
        return Outcome(finished=True, infeasible=True, detail=detail)
    if info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible):
        events.point(np.array(h.getSolution().col_value, dtype=np.float64), "highs")
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
    }
    if model_status == status.kOptimal:
        return Outcome(finished=True, detail=detail)
    if model_status in limits:
        return Outcome(limit=limits[model_status], detail=detail)
    if model_status == status.kUnboundedOrInfeasible:
        return Outcome(finished=True, infeasible=True, detail=detail)
    raise SolverError(f"HiGHS stopped with the status {detail!r}.")
