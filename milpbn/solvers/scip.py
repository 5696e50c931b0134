"""SCIP, through PySCIPOpt; the only solver that adds violated rows inside its tree."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import SolverError
from milpbn.milp.files.model_files import MPS_OBJECTIVE_SIGN, write_mps
from milpbn.milp.milp import LazyRows, Milp
from milpbn.solvers.base import Capabilities, MilpEvents, Outcome, Settings, option_errors
from milpbn.solvers.support.child import ChildSolver
from milpbn.solvers.support.guard import GuardedEvents, run_stoppable
from milpbn.solvers.support.process import open_log, temporary_files
from milpbn.solvers.support.repair import polish
from milpbn.util.extras import import_extra
from milpbn.util.scratch import scratch_folder

#: Nats in which two objectives are the same for SCIP, and the least tolerance for the comparison of numbers.
CUTOFF, LEAST_EPSILON = 1e-6, 1e-13
#: A row is added at a fractional point only if it is violated by more than this.
MINIMAL_VIOLATION = 1e-4


class ScipSolver(ChildSolver):
    """SCIP in a child process, with a full start, and bounds and incumbents from its events.

    One thread searches its tree, whatever number of threads is given.
    """

    name = "scip"
    capabilities = Capabilities(lazy_rows=True)

    def version(self) -> str:
        """Return SCIP's version."""
        model = _pyscipopt().Model()
        numbers = (model.getMajorVersion(), model.getMinorVersion(), model.getTechVersion())
        return "SCIP " + ".".join(str(n) for n in numbers)

    def solve_here(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: MilpEvents
    ) -> Outcome:
        """Maximise the MILP in this process; see `ChildSolver`."""
        model = _silent_model()
        with open_log(settings.log):
            pass  # SCIP opens the file itself, but does not report an error
        if settings.log is not None:
            model.setLogfile(str(settings.log))
        # SCIP compares numbers relative to their size. Nodes must not be cut off within `CUTOFF` of the incumbent.
        epsilon = min(1e-9, max(LEAST_EPSILON, CUTOFF / float(np.abs(milp.c).max(initial=1.0))))
        model.setParam("numerics/epsilon", epsilon)
        model.setParam("numerics/sumepsilon", 1e3 * epsilon)
        _set_options(model, settings)
        variables = _read(model, milp)
        guarded = GuardedEvents(events)
        run = _Run(model, milp, variables, guarded)
        if milp.lazy_rows is not None:
            _include_lazy_rows(run, milp.lazy_rows)
        if start is not None:
            solution = model.createSol()
            for variable, value in zip(variables, start.tolist(), strict=True):
                model.setSolVal(solution, variable, value)
            model.addSol(solution)
        _include_events(run)
        remaining = settings.remaining()
        if remaining is not None:
            model.setParam("limits/time", remaining)
        try:
            run_stoppable(model.optimizeNogil, guarded, lambda: _interrupt(model))
        except Exception as error:
            guarded.reraise()
            raise SolverError(f"SCIP failed: {error}.") from error
        try:
            return _outcome(run)
        finally:
            model.freeProb()


def _pyscipopt() -> Any:
    return import_extra("pyscipopt", "scip", "The backend scip")


def _read(model: Any, milp: Milp) -> list[Any]:
    """Load the MILP through an .mps file, which is a minimisation, and return its variables by column."""
    with scratch_folder() as folder:
        path = folder / "model.mps"
        with temporary_files("SCIP"):
            write_mps(milp, path)
        model.readProblem(str(path))
    by_name = {variable.name: variable for variable in model.getVars()}
    return [by_name[name] for name in milp.column_names]


def check_options(settings: Settings) -> None:
    """Try the options on an empty model; raise InputError if SCIP does not take one of them."""
    _set_options(_silent_model(), settings)


def _silent_model() -> Any:
    """Return a model that prints nothing, and whose errors go to Python's standard error, where they can be caught."""
    model = _pyscipopt().Model()
    model.redirectOutput()
    model.hideOutput()
    return model


def _set_options(model: Any, settings: Settings) -> None:
    model.setParam("timing/clocktype", 2)  # wall clock
    # With its own signal handler, SCIP would intercept Ctrl-C.
    model.setParam("misc/catchctrlc", False)
    model.setParam("randomization/randomseedshift", settings.seed)
    model.setParam("limits/gap", 0.0)
    model.setParam("limits/absgap", 0.0)
    for key, text in settings.options.items():
        with option_errors("SCIP", key, LookupError, ValueError, TypeError, OverflowError):
            kind = type(model.getParam(key))
            value: Any = text
            if kind is bool:
                value = {"true": True, "false": False, "1": True, "0": False}[text.lower()]
            elif kind in (int, float):
                value = kind(text)
            with contextlib.redirect_stderr(io.StringIO()):
                model.setParam(key, value)


class _Run:
    """One run of SCIP, with its values converted to the maximisation of the MILP."""

    def __init__(self, model: Any, milp: Milp, variables: Sequence[Any], events: GuardedEvents) -> None:
        self.model = model
        self.milp = milp
        self.variables = variables
        self.events = events

    def values(self, solution: Any) -> NDArray[np.float64]:
        """Return the column values of a solution, or for None of the current LP or pseudo solution."""
        value = self.model.getSolVal
        return np.array([value(solution, variable) for variable in self.variables])

    def report_point(self) -> None:
        """Report SCIP's incumbent."""
        solution = self.model.getBestSol()
        objective = MPS_OBJECTIVE_SIGN * self.model.getSolObjVal(solution) + self.milp.constant
        self.events.point(polish(self.milp, self.values(solution)), "scip", objective)

    def report_bound(self) -> None:
        """Report SCIP's bound and number of nodes."""
        bound = self.model.getDualbound()
        if abs(bound) < self.model.infinity():
            self.events.bound(MPS_OBJECTIVE_SIGN * bound + self.milp.constant)
        self.events.nodes(int(self.model.getNTotalNodes()))


def _include_events(run: _Run) -> None:
    pyscipopt = _pyscipopt()
    kinds = pyscipopt.SCIP_EVENTTYPE
    caught = (kinds.BESTSOLFOUND, kinds.DUALBOUNDIMPROVED, kinds.NODESOLVED, kinds.LPSOLVED)

    handler: Any = pyscipopt.Eventhdlr

    class Watch(handler):
        def eventinit(self) -> None:
            for kind in caught:
                self.model.catchEvent(kind, self)

        def eventexit(self) -> None:
            for kind in caught:
                self.model.dropEvent(kind, self)

        def eventexec(self, event: Any) -> dict[str, Any]:
            kind = event.getType()
            if kind == kinds.BESTSOLFOUND:
                run.events.call(run.report_point)
            # Right after an interrupt, SCIP has no open node for a moment, and states its incumbent as the bound.
            if kind == kinds.DUALBOUNDIMPROVED and self.model.getStatus() == "unknown":
                run.events.call(run.report_bound)
            if kind == kinds.NODESOLVED:
                run.events.nodes(int(self.model.getNTotalNodes()))
            if run.events.stopping():
                _interrupt(self.model)
            return {}

    run.model.includeEventhdlr(Watch(), "milpbn", "reports bounds and incumbents")


def _interrupt(model: Any) -> None:
    # Between two of its stages SCIP refuses an interrupt; the next attempt follows soon. An exception that leaves a
    # callback can make SCIP crash.
    with contextlib.suppress(Exception):
        model.interruptSolve()


def _outcome(run: _Run) -> Outcome:
    model = run.model
    detail = str(model.getStatus())
    if detail == "infeasible":
        return Outcome(finished=True, infeasible=True, detail=detail)
    if model.getNSols() > 0:
        run.report_point()
    if detail != "unknown":
        run.report_bound()
    run.events.reraise()
    if detail == "optimal":
        return Outcome(finished=True, detail=detail)
    limits = {
        "timelimit": "time",
        "memlimit": "memory",
        "gaplimit": "gap",
        "primallimit": "gap",
        "duallimit": "gap",
        "userinterrupt": "user",
    }
    limit = limits.get(detail, "node" if detail.endswith("limit") else None)
    if limit is None:
        raise SolverError(f"SCIP stopped with the status {detail!r}.")
    return Outcome(limit=limit, detail=detail)


def _include_lazy_rows(run: _Run, separate: LazyRows) -> None:
    """Add a constraint handler for the rows that `separate` finds.

    SCIP must not conclude anything from the absence of rows that are added later. So every variable is locked in both
    directions, and reductions that ignore such locks are switched off.
    """
    pyscipopt = _pyscipopt()
    result, model = pyscipopt.SCIP_RESULT, run.model
    for parameter, value in (
        ("misc/allowstrongdualreds", False),
        ("misc/allowweakdualreds", False),
        ("misc/usesymmetry", 0),
        ("constraints/components/maxprerounds", 0),
        ("constraints/components/propfreq", -1),
    ):
        model.setParam(parameter, value)
    integer = run.milp.integer

    def violated(solution: Any, integral: bool) -> list[Any]:
        x = run.values(solution)
        if integral:
            x = np.where(integer, np.round(x), x)
        rows = separate(x)
        return rows if integral else [r for r in rows if float(r[1] @ x[r[0]]) < r[2] - MINIMAL_VIOLATION]

    handler: Any = pyscipopt.Conshdlr

    class LazyRowsHandler(handler):
        def conslock(self, constraint: Any, locktype: Any, nlockspos: int, nlocksneg: int) -> None:
            for variable in run.variables:
                self.model.addVarLocks(variable, nlockspos + nlocksneg, nlockspos + nlocksneg)

        def conscheck(self, constraints: Any, solution: Any, *_: Any) -> dict[str, Any]:
            # After an exception, every point is refused.
            rows = run.events.call(lambda: violated(solution, True), failed=True)
            return {"result": result.INFEASIBLE if rows else result.FEASIBLE}

        def add(self, integral: bool, otherwise: Any) -> dict[str, Any]:
            rows = run.events.call(lambda: violated(None, integral), failed=None)
            if rows is None:
                _interrupt(self.model)
                return {"result": result.INFEASIBLE if integral else otherwise}
            assert isinstance(rows, list)
            for columns, values, lower in rows:
                terms = zip(columns.tolist(), values.tolist(), strict=True)
                expression = pyscipopt.quicksum(value * run.variables[j] for j, value in terms)
                self.model.addCons(expression >= lower)
            return {"result": result.CONSADDED if rows else otherwise}

        def consenfolp(self, *_: Any) -> dict[str, Any]:
            return self.add(True, result.FEASIBLE)

        consenfops = consenfolp

        def conssepalp(self, *_: Any) -> dict[str, Any]:
            return self.add(False, result.DIDNOTFIND)

    model.includeConshdlr(
        LazyRowsHandler(),
        "milpbn",
        "rows found as they are violated",
        sepapriority=0,
        enfopriority=-1,
        chckpriority=-1,
        sepafreq=1,
        propfreq=-1,
        needscons=False,
    )
