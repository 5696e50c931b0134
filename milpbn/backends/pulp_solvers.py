"""Every solver that PuLP drives, as ``pulp:NAME``: CPLEX, Gurobi, Xpress, COPT, MOSEK, GLPK and others."""

from __future__ import annotations

import contextlib
import importlib.metadata
import inspect
import math
import time
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from milpbn.backends import cbc, scip
from milpbn.backends.base import Capabilities, Events, Outcome, Settings, parse_number, unknown_option
from milpbn.backends.child import ChildBackend
from milpbn.backends.highs import refuse_broken
from milpbn.backends.repair import polish
from milpbn.errors import InputError, SolverError
from milpbn.model.milp import Milp

#: What a point may violate the rows by to be reported.
FEASIBILITY = 1e-6

#: PuLP's names of one solver's variants, in the order of preference.
FAMILIES: Final[dict[str, tuple[str, ...]]] = {
    "cbc": ("PULP_CBC_CMD", "COIN_CMD"),
    "copt": ("COPT", "COPT_DLL", "COPT_CMD"),
    "cplex": ("CPLEX_PY", "CPLEX_CMD"),
    "glpk": ("GLPK_CMD", "PYGLPK"),
    "gurobi": ("GUROBI", "GUROBI_CMD"),
    "highs": ("HiGHS", "HiGHS_CMD"),
    "scip": ("SCIP_PY", "SCIP_CMD", "FSCIP_CMD"),
    "xpress": ("XPRESS_PY", "XPRESS"),
}

#: Packages of the variants that run in Python; the others need a program.
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

#: Names of the random seed.
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

#: How PuLP's list `options` holds a key and a value; ``KEY=VALUE`` if not listed.
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

#: Where a solver's own object tells its bound, in the sense of the problem that PuLP hands over.
_BOUNDS: Final[dict[str, Callable[[Any], float]]] = {
    "COPT": lambda model: model.BestBnd,
    "CPLEX_PY": lambda model: model.solution.MIP.get_best_objective(),
    "GUROBI": lambda model: model.ObjBound,
    "HiGHS": lambda model: model.getInfo().mip_dual_bound,
    "SCIP_PY": lambda model: model.getDualbound(),
    "XPRESS_PY": lambda model: model.attributes.bestbound,
}

#: Solvers that read their time limit as an integer.
_WHOLE_SECONDS: Final = ("CHOCO_CMD", "GLPK_CMD", "MIPCL_CMD", "XPRESS")


class PulpBackend(ChildBackend):
    """A solver behind PuLP's interface, in a child process, so that limits hold whatever the solver does.

    Point and bound come at the end. The bound is the solver's own where its object tells one, else the
    objective of a point that it calls optimal after a gap of 0 was asked for, else there is none.

    Parameters
    ----------
    solver : str
        One of PuLP's names or a short form (`FAMILIES`), whatever the case; ``gurobi`` is ``GUROBI`` or else
        ``GUROBI_CMD``.

    Raises
    ------
    InputError
        If PuLP knows no such solver.
    """

    capabilities = Capabilities(bound_stream=False, solution_stream=False)
    prints_log = True

    def __init__(self, solver: str) -> None:
        names = solver_names()
        matching = FAMILIES.get(solver.lower(), tuple(n for n in names if n.lower() == solver.lower()))
        self._variants = tuple(name for name in matching if name in names)
        if not self._variants:
            raise InputError(
                f"PuLP knows no solver {solver!r}; choose one of {', '.join((*FAMILIES, *names))}."
            )
        self.name = f"pulp:{solver}"  # type: ignore[misc]

    def version(self) -> str:
        """Return the name of the variant that is used and PuLP's version.

        Raises
        ------
        InputError
            If there is none on this machine, or its version is known to be broken.
        """
        import pulp

        variant = self._available()
        if _PACKAGES.get(variant) == "highspy":
            refuse_broken(importlib.metadata.version("highspy"))
        return f"{variant} through PuLP {pulp.__version__}"

    def solve_here(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: Events
    ) -> Outcome:
        """Maximise the MILP in this process; see `ChildBackend`."""
        name = self._available()
        problem, variables = _problem(milp)
        arguments = _arguments(name, settings, start is not None)
        if start is not None:
            for variable, value in zip(variables, start.tolist(), strict=True):
                variable.setInitialValue(value, check=False)
        solver = _make(name, **arguments)
        begin = time.monotonic()
        try:
            problem.solve(solver)
        except Exception as error:
            raise SolverError(f"{name}, called through PuLP, failed: {error}.") from error
        seconds = arguments.get("timeLimit", math.inf)
        in_time = time.monotonic() - begin < 0.98 * seconds
        # Another gap or cutoff may hide among the user's options.
        exact = in_time and "gapRel" in arguments and not settings.options
        # Solvers end some time before a short limit; without options and a word to stop, nothing else ends them.
        timed = "timeLimit" in arguments and not settings.options and not events.stopping()
        limit = "time" if timed or not in_time else "user"
        return _outcome(name, problem, variables, milp, in_time, exact, limit, events)

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
            f"The backend {self.name} needs {' or '.join(needs)}, and a licence if the solver is a commercial one; "
            "install it or choose another --backend."
        )


def solver_names() -> list[str]:
    """Return PuLP's names of the solvers it can drive, installed or not."""
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

    Not a maximisation: PuLP negates those for some solvers, whose bounds are then of the other sign. And
    without the constant, which its HiGHS drops.
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
    # Every column is in the objective, if only with 0: PuLP forgets the ones that occur nowhere.
    problem.setObjective(pulp.LpAffineExpression(list(zip(variables, (-milp.c).tolist(), strict=True))))
    A = milp.A
    rows = zip(
        A.indptr.tolist(), A.indptr[1:].tolist(), milp.row_lower, milp.row_upper, milp.row_names, strict=False
    )
    for first, last, low, high, name in rows:
        terms = [
            (variables[j], a)
            for j, a in zip(A.indices[first:last].tolist(), A.data[first:last].tolist(), strict=True)
        ]
        sides = (
            [("", pulp.LpConstraintEQ, low)]
            if low == high
            else [(".lo", pulp.LpConstraintGE, low), (".up", pulp.LpConstraintLE, high)]
        )
        for suffix, sense, side in sides:
            if math.isfinite(side):
                expression = pulp.LpAffineExpression(terms)
                problem.addConstraint(pulp.LpConstraint(expression, sense, name + suffix, float(side)))
    return problem, variables


def _arguments(name: str, settings: Settings, warm: bool) -> dict[str, Any]:
    """Return the keyword arguments of the solver's class, which differ from class to class."""
    import pulp

    _check_options(name, settings)
    options = dict(settings.options)
    if name in _SEEDS:
        options.setdefault(_SEEDS[name], str(settings.seed))
    accepted = inspect.signature(type(_make(name, msg=False)).__init__).parameters
    arguments: dict[str, Any] = {"msg": settings.log is not None}
    seconds = settings.remaining()
    wanted = {
        "timeLimit": None
        if seconds is None
        else max(1, int(seconds))
        if name in _WHOLE_SECONDS
        else max(0.05, seconds),
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
    """Refuse unknown options where the solver can be asked; PuLP would drop them without a word."""
    if name in ("PULP_CBC_CMD", "COIN_CMD"):
        cbc.check_options(cbc.executable(), settings)
    elif name == "SCIP_PY":
        scip.check_options(settings)


def _typed(name: str, key: str, text: str) -> Any:
    """Return an option's value in the type that the solver wants."""
    value = parse_number(text)
    if name != "HiGHS":
        return value
    import highspy

    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    status, kind = model.getOptionType(key)
    if kind == highspy.HighsOptionType.kString:
        value = text
    elif kind == highspy.HighsOptionType.kDouble and isinstance(value, int | float):
        value = float(value)
    if status != highspy.HighsStatus.kOk or model.setOptionValue(key, value) != highspy.HighsStatus.kOk:
        raise unknown_option(name, key)
    return value


def _outcome(
    name: str,
    problem: Any,
    variables: list[Any],
    milp: Milp,
    in_time: bool,
    exact: bool,
    limit: str,
    events: Events,
) -> Outcome:
    """Report point and bound, and tell how the run ended; PuLP's status alone does not say that."""
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
    # A stop at the time limit can read 'Optimal', and one within a gap of 1e-4 does.
    proved = optimal and exact and objective is not None
    told = False
    if name in _BOUNDS:
        with contextlib.suppress(Exception):
            bound = -float(_BOUNDS[name](problem.solverModel))
            if math.isfinite(bound) and abs(bound) < 1e20:
                events.bound(bound + milp.constant)
                told = True
    if proved and objective is not None and not told:
        events.bound(objective)
    if problem.status == pulp.LpStatusInfeasible and in_time:
        return Outcome(finished=True, infeasible=True, detail=detail)
    if proved:
        return Outcome(finished=True, detail=detail)
    if optimal and in_time:
        return Outcome(limit="gap", detail=detail)
    return Outcome(limit=limit, detail=detail)
