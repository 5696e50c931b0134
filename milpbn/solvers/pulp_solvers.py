"""All solvers that PuLP drives, as ``pulp:NAME``: CPLEX, Gurobi, Xpress, COPT, MOSEK, GLPK and others."""

from __future__ import annotations

import contextlib
import importlib.metadata
import inspect
import math
import time
import warnings
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError, SolverError
from milpbn.milp.milp import Milp
from milpbn.solvers import cbc, scip
from milpbn.solvers.base import Capabilities, MilpEvents, Outcome, Settings, parse_number, unknown_option
from milpbn.solvers.highs import refuse_broken, set_option
from milpbn.solvers.support.child import ChildSolver
from milpbn.solvers.support.repair import polish

#: Maximum violation of a row by a point that is reported.
FEASIBILITY = 1e-6

#: PuLP's names for the variants of CBC.
CBC: Final = ("PULP_CBC_CMD", "COIN_CMD")
#: PuLP's names for the variants of each solver, in order of preference.
FAMILIES: Final[dict[str, tuple[str, ...]]] = {
    "cbc": CBC,
    "copt": ("COPT", "COPT_DLL", "COPT_CMD"),
    "cplex": ("CPLEX_PY", "CPLEX_CMD"),
    "glpk": ("GLPK_CMD", "PYGLPK"),
    "gurobi": ("GUROBI", "GUROBI_CMD"),
    "highs": ("HiGHS", "HiGHS_CMD"),
    "scip": ("SCIP_PY", "SCIP_CMD", "FSCIP_CMD"),
    "xpress": ("XPRESS_PY", "XPRESS"),
}

#: Python packages of the variants that run in Python; the others run a program.
_PACKAGES: Final = {
    "COPT": "coptpy",
    "CPLEX_PY": "cplex",
    "CUOPT": "cuopt",
    "CyLP": "cylp",
    "GUROBI": "gurobipy",
    "HiGHS": "highspy",
    "MOSEK": "mosek",
    "PYGLPK": "glpk",
    "SCIP_PY": "pyscipopt",
    "XPRESS_PY": "xpress",
}

#: The solvers' own names of the random seed.
_SEEDS: Final = {
    "COIN_CMD": "randomSeed",
    "CPLEX_CMD": "randomseed",
    "GUROBI": "Seed",
    "GUROBI_CMD": "Seed",
    "HiGHS": "random_seed",
    "HiGHS_CMD": "random_seed",
    "PULP_CBC_CMD": "randomSeed",
    "SCIP_CMD": "randomization/randomseedshift",
    "SCIP_PY": "randomization/randomseedshift",
}

#: Form of a key and a value in PuLP's list `options`; ``KEY=VALUE`` for variants not listed.
_OPTION_FORMS: Final[dict[str, Callable[[str, str], list[Any]]]] = {
    "CHOCO_CMD": lambda key, text: [(key, text)],
    "COIN_CMD": lambda key, text: [f"{key} {text}".strip()],
    "CPLEX_CMD": lambda key, text: [f"set {key} {text}"],
    "GLPK_CMD": lambda key, text: [f"--{key}", text] if text else [f"--{key}"],
    "GUROBI_CMD": lambda key, text: [(key, text)],
    "MIPCL_CMD": lambda key, text: [f"-{key}", text],
    "PULP_CBC_CMD": lambda key, text: [f"{key} {text}".strip()],
    "XPRESS_PY": lambda key, text: [(key, parse_number(text))],
}

#: How to read the bound from a solver's own object, in the sign of the problem that PuLP passes to it.
_BOUNDS: Final[dict[str, Callable[[Any], float]]] = {
    "COPT": lambda model: model.BestBnd,
    "CPLEX_PY": lambda model: model.solution.MIP.get_best_objective(),
    "GUROBI": lambda model: model.ObjBound,
    "HiGHS": lambda model: model.getInfo().mip_dual_bound,
    "SCIP_PY": lambda model: model.getDualbound(),
    "XPRESS_PY": lambda model: model.attributes.bestbound,
}

#: Variants whose time limit must be an integer.
_WHOLE_SECONDS: Final = ("CHOCO_CMD", "GLPK_CMD", "MIPCL_CMD", "XPRESS")


class PulpSolver(ChildSolver):
    """A solver behind PuLP's interface, in a child process, so that limits hold even if the solver ignores them.

    Point and bound are reported at the end. The bound is read from the solver's own object if possible. Else it is the
    objective of a point that the solver calls optimal with a gap of 0. Else there is no bound.

    Its name is one of PuLP's names or a short form (`FAMILIES`), in upper or lower case; InputError is raised for
    another one. A short form stands for the first variant that is installed: ``gurobi`` for ``GUROBI``, else
    ``GUROBI_CMD``.
    """

    capabilities = Capabilities(bound_stream=False)
    prints_log = True

    def __init__(self, solver: str) -> None:
        names = pulp_names()
        matching = FAMILIES.get(solver.lower(), tuple(n for n in names if n.lower() == solver.lower()))
        self._variants = tuple(name for name in matching if name in names)
        if not self._variants:
            raise InputError(
                f"PuLP knows no solver {solver!r}; choose one of {', '.join((*FAMILIES, *names))}."
            )
        self.name = f"pulp:{solver}"  # type: ignore[misc]

    def version(self) -> str:
        """Return the name of the variant that is used, and PuLP's version; see `Solver.version`."""
        import pulp

        variant = self._available()
        if _PACKAGES.get(variant) == "highspy":
            refuse_broken(importlib.metadata.version("highspy"))
        return f"{variant} through PuLP {pulp.__version__}"

    def solve_here(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: MilpEvents
    ) -> Outcome:
        """Maximise the MILP in this process; see `ChildSolver`."""
        name = self._available()
        outcome = _solve(name, milp, start, settings, events)
        # The point that it calls optimal is not feasible.
        lost = outcome.limit is None and not outcome.finished
        if lost and name in CBC and not cbc.chooses_preprocessing(settings) and not events.stopping():
            outcome = _solve(name, milp, start, settings, events, cbc.WITHOUT_PREPROCESSING)
        return outcome

    def _available(self) -> str:
        """Return the first variant that is installed and licensed."""
        for name in self._variants:
            with warnings.catch_warnings(), contextlib.suppress(Exception):
                warnings.simplefilter("ignore")
                if _make(name, msg=False).available():
                    return name
        needs = [
            f"the Python package {_PACKAGES[name]}" if name in _PACKAGES else f"the program of {name}"
            for name in self._variants
        ]
        raise InputError(
            f"The backend {self.name} needs {' or '.join(needs)}, and a licence if the solver is commercial; "
            "install it or choose another --backend."
        )


def _solve(
    name: str,
    milp: Milp,
    start: NDArray[np.float64] | None,
    settings: Settings,
    events: MilpEvents,
    more: Mapping[str, str] | None = None,
) -> Outcome:
    """Solve the MILP once, with more options than the user's."""
    import pulp

    problem, variables = _problem(milp)
    arguments = _arguments(name, settings, start is not None, more or {})
    if start is not None:
        for variable, value in zip(variables, start.tolist(), strict=True):
            variable.setInitialValue(value, check=False)
    solver = _make(name, **arguments)
    if _PACKAGES.get(name) == "highspy":
        import highspy

        # The scheduler of an earlier model in this process refuses another number of threads.
        highspy.Highs.resetGlobalScheduler(True)
    begin = time.monotonic()
    try:
        problem.solve(solver)
    except Exception as error:
        raise SolverError(f"{name}, called through PuLP, failed: {error}.") from error
    seconds = arguments.get("timeLimit", math.inf)
    in_time = time.monotonic() - begin < 0.98 * seconds
    # The user's options may set another gap or a cutoff.
    exact = in_time and "gapRel" in arguments and not settings.options
    # Solvers may end before a short limit. Without options and a request to stop, only the limit can end them.
    timed = "timeLimit" in arguments and not settings.options and not events.stopping()
    limit = "time" if timed or not in_time else "user"
    if problem.status == pulp.LpStatusNotSolved and math.isinf(seconds) and not events.stopping():
        raise SolverError(
            f"{name}, called through PuLP, ended without an answer; --log FILE has what it prints."
        )
    return _outcome(name, problem, variables, milp, in_time, exact, limit, events)


def pulp_names() -> list[str]:
    """Return PuLP's names of all solvers that it can drive, installed or not."""
    import pulp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(set(pulp.listSolvers()), key=str.lower)


def _make(name: str, **arguments: Any) -> Any:
    import pulp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return pulp.getSolver(name, **arguments)


def _problem(milp: Milp) -> tuple[Any, list[Any]]:
    """Return the LpProblem that minimises ``-c @ x``, and its variables by column.

    It is not a maximisation, because PuLP negates these for some solvers, and then their bounds have the other sign. It
    has no constant, because PuLP's HiGHS ignores it.
    """
    import pulp

    def bound(value: float) -> float | None:
        return value if math.isfinite(value) else None

    kinds = {True: pulp.LpInteger, False: pulp.LpContinuous}
    columns = zip(
        milp.column_names, milp.lower.tolist(), milp.upper.tolist(), milp.integer.tolist(), strict=True
    )
    variables = [
        pulp.LpVariable(name, bound(lower), bound(upper), kinds[integer])
        for name, lower, upper, integer in columns
    ]
    problem = pulp.LpProblem(milp.name, pulp.LpMinimize)
    # Every column is in the objective, even with coefficient 0, because PuLP drops columns that occur nowhere.
    problem.setObjective(pulp.LpAffineExpression(list(zip(variables, (-milp.c).tolist(), strict=True))))
    A, ends = milp.A, milp.A.indptr.tolist()
    rows = zip(pairwise(ends), milp.row_lower, milp.row_upper, milp.row_names, strict=True)
    for (first, last), low, high, name in rows:
        entries = zip(A.indices[first:last].tolist(), A.data[first:last].tolist(), strict=True)
        terms = [(variables[j], a) for j, a in entries]
        sides = [(".lo", pulp.LpConstraintGE, low), (".up", pulp.LpConstraintLE, high)]
        if low == high:
            sides = [("", pulp.LpConstraintEQ, low)]
        for suffix, sense, side in sides:
            if math.isfinite(side):
                expression = pulp.LpAffineExpression(terms)
                problem.addConstraint(pulp.LpConstraint(expression, sense, name + suffix, float(side)))
    return problem, variables


def _arguments(name: str, settings: Settings, warm: bool, more: Mapping[str, str]) -> dict[str, Any]:
    """Return the keyword arguments for the solver's class; each class has others."""
    import pulp

    _check_options(name, settings)
    options = {**settings.options, **more}
    if name in _SEEDS:
        options.setdefault(_SEEDS[name], str(settings.seed))
    accepted = inspect.signature(type(_make(name, msg=False)).__init__).parameters
    arguments: dict[str, Any] = {"msg": settings.log is not None}
    seconds = settings.remaining()
    if seconds is not None:
        seconds = max(1, int(seconds)) if name in _WHOLE_SECONDS else max(0.05, seconds)
    wanted = {
        "timeLimit": seconds,
        "threads": settings.threads,
        "gapRel": 0.0,
        "gapAbs": 0.0,
        "warmStart": warm or None,
    }
    arguments |= {key: value for key, value in wanted.items() if key in accepted and value is not None}
    by_name = any(p.kind is p.VAR_KEYWORD for p in accepted.values())
    if name == "MOSEK":
        arguments["options"] = {key: parse_number(text) for key, text in options.items()}
    elif by_name:
        arguments |= {key: _typed(name, key, text) for key, text in options.items()}
    elif "options" in accepted:
        form = _OPTION_FORMS.get(name, lambda key, text: [f"{key}={text}"])
        arguments["options"] = [part for key, text in options.items() for part in form(key, text)]
    elif options:
        raise unknown_option(name, next(iter(options)), f"PuLP {pulp.__version__} passes none on")
    return arguments


def _check_options(name: str, settings: Settings) -> None:
    """Refuse unknown options of CBC and SCIP; PuLP would ignore them silently."""
    if name in CBC:
        cbc.check_options(cbc.executable(), settings)
    elif name == "SCIP_PY":
        scip.check_options(settings)


def _typed(name: str, key: str, text: str) -> Any:
    """Return the value of an option in the type that the solver expects."""
    if name != "HiGHS":
        return parse_number(text)
    import highspy

    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    return set_option(model, key, text, name)


def _outcome(
    name: str,
    problem: Any,
    variables: list[Any],
    milp: Milp,
    in_time: bool,
    exact: bool,
    limit: str,
    events: MilpEvents,
) -> Outcome:
    """Report point and bound, and return how the run ended; PuLP's status alone does not show it."""
    import pulp

    detail = f"{pulp.LpStatus[problem.status]}, {pulp.LpSolution[problem.sol_status]}"
    values = [variable.varValue for variable in variables]
    objective = None
    if any(value is not None for value in values):
        x = polish(milp, np.array([0.0 if value is None else value for value in values]))
        if milp.violation(x) <= FEASIBILITY:
            objective = milp.objective(x)
            events.point(x, name)
    optimal = problem.status == pulp.LpStatusOptimal and problem.sol_status == pulp.LpSolutionOptimal
    # PuLP's status can be 'Optimal' after a stop at the time limit, and is after a stop within a gap of 1e-4.
    proved = optimal and exact and objective is not None
    has_bound = False
    if name in _BOUNDS:
        with contextlib.suppress(Exception):
            bound = -float(_BOUNDS[name](problem.solverModel))
            if math.isfinite(bound) and abs(bound) < 1e20:
                events.bound(bound + milp.constant)
                has_bound = True
    if proved and objective is not None and not has_bound:
        events.bound(objective)
    if problem.status == pulp.LpStatusInfeasible and in_time:
        return Outcome(finished=True, infeasible=True, detail=detail)
    if proved:
        return Outcome(finished=True, detail=detail)
    if optimal and in_time:
        # Its best point breaks a row by too much, or its gap is not 0.
        return Outcome(limit=None if objective is None else "gap", detail=detail)
    return Outcome(limit=limit, detail=detail)
