"""The bound of an imported solution: the other solver's bound if it proved one, else the project's own."""

from __future__ import annotations

import math
import time

from milpbn.claims.reasons import BoundSource
from milpbn.errors import InputError
from milpbn.heuristics.local_search import search
from milpbn.heuristics.starts import plain_starts
from milpbn.milp.files.sidecar import Sidecar
from milpbn.milp.files.solution import Solution
from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem
from milpbn.solving.warm_up import warm_up

#: Seconds that the search for a structure above a solver's bound may take.
CHECK_SECONDS = 2.0
#: Solvers that by default stop within a relative gap of 1e-4.
DEFAULT_GAPS = ("cplex", "gurobi", "highs")
#: Allowed difference between the objective in a file and the structure's score, relative to the objective in the file;
#: some solvers print few digits.
OBJECTIVE_TOLERANCE = 1e-4


def check_objective(parsed: Solution, sidecar: Sidecar, objective: float, where: str) -> None:
    """Compare the objective in a file, if it states one, with the score of its structure.

    Raises
    ------
    InputError
        If they differ by more than `OBJECTIVE_TOLERANCE`.
    """
    if parsed.objective is None:
        return
    stated = sidecar.sign * parsed.objective + sidecar.constant
    if abs(stated - objective) > _allowed(objective, sidecar.constant):
        raise InputError(
            f"{where} states the objective {stated:.10g}, but its structure scores {objective:.10g} on the data; "
            "it belongs to other data or options."
        )


def _allowed(objective: float, constant: float) -> float:
    """Return by how much a number of a file, which lacks the constant, may contradict a score; in nats."""
    return OBJECTIVE_TOLERANCE * max(1.0, abs(objective - constant))


def own_bound(sidecar: Sidecar, trivial: float, objective: float, where: str) -> float:
    """Return the project's own bound: the root bound of the export, or the trivial bound if that is smaller.

    Raises
    ------
    InputError
        If the root bound is below the score of the solution.
    """
    root = sidecar.root_bound
    if root is None:
        return max(trivial, objective)
    if root < objective - _allowed(objective, sidecar.constant):
        raise InputError(
            f"The sidecar of {sidecar.model!r} has the root bound {root:.10g}, which lies below the score "
            f"{objective:.10g} of {where[0].lower()}{where[1:]}; it was changed, so export the model again."
        )
    return max(min(root, trivial), objective)


def imported_bound(
    parsed: Solution,
    sidecar: Sidecar,
    given: float | None,
    gap: float | None,
    objective: float,
    own: float,
    where: str,
) -> tuple[float, BoundSource, str | None]:
    """Return the bound of a solution, its source, and a note for the user or None.

    Parameters
    ----------
    parsed : Solution
        Contents of the solution file.
    sidecar : Sidecar
        The sidecar of its model, with the sign and the constant of the objective.
    given : float or None
        A bound from the user, in the sign of the file's objective.
    gap : float or None
        The relative gap at which the solver was told to stop, from the user.
    objective, own : float
        The structure's score and the project's own bound, in nats.
    where : str
        Name of the file in messages.

    Raises
    ------
    InputError
        If the bound is not finite, or below the structure's score, or if the gap is of no use.
    """
    caveat = None
    stated = parsed.proved_bound if given is None else given
    status = f"{where} says {parsed.status!r}" if parsed.status else f"{where} has no status"
    if gap is not None:
        stated = _bound_within(parsed, sidecar, given, gap, status)
        caveat = (
            f"{status} and holds no bound: the relative gap {gap:g} that you gave is added to its objective, on "
            f"{parsed.solver}'s word."
        )
    elif given is None and parsed.bound is None and stated is not None:
        caveat = (
            f"{status} and holds no bound: its objective is taken for the bound, on {parsed.solver}'s word."
        )
    if stated is None:
        return own, BoundSource.CERTIFIED, _missing(parsed, sidecar, status, own)
    if not math.isfinite(stated):
        raise InputError(f"The bound must be a finite number, got {stated}.")
    bound = sidecar.sign * stated + sidecar.constant
    if bound < objective - _allowed(objective, sidecar.constant):
        printed = " (negative, because the model is a minimisation)" if sidecar.sign < 0 else ""
        raise InputError(
            f"The bound {stated:.10g} would mean that no structure scores more than {bound:.10g}, which lies below the "
            f"score {objective:.10g} of {where[0].lower()}{where[1:]}; give the solver's best bound as it prints "
            f"it{printed}."
        )
    source = BoundSource.SOLVER if bound < own else BoundSource.CERTIFIED
    return max(min(bound, own), objective), source, caveat


def _bound_within(
    parsed: Solution, sidecar: Sidecar, given: float | None, gap: float, status: str
) -> float | None:
    """Return the bound that follows from the file's status and a relative gap, in the sign of the file."""
    if given is not None:
        raise InputError("The bound follows from --bound or from --gap-rel; give one of them.")
    if not 0 <= gap < 1:
        raise InputError(f"The relative gap must be at least 0 and below 1, got {gap:g}.")
    if parsed.bound is not None:
        raise InputError(f"{status} and holds a bound of its own; drop --gap-rel.")
    bound = parsed.bound_within(gap, sidecar.sign > 0)
    if bound is None:
        raise InputError(
            f"{status}, so that no bound follows from a gap; give the bound that {parsed.solver} printed with --bound: "
            f"{parsed.where_bound}."
        )
    return bound


def _missing(parsed: Solution, sidecar: Sidecar, status: str, own: float) -> str:
    """Return the sentences about a file without a bound: which one is used, and what to give."""
    within = " (possibly only within a gap)" if parsed.says_optimal else ""
    kind = "trivial bound" if sidecar.root_bound is None else "root bound of the export"
    sign = ", with the sign that it has there (the model is a minimisation)" if sidecar.sign < 0 else ""
    told = (
        f" If it ran until its gap was closed to X, --gap-rel X makes a bound of its status (1e-4 is {parsed.solver}'s "
        "own gap)."
        if parsed.says_optimal and parsed.format in DEFAULT_GAPS
        else ""
    )
    return (
        f"{status}{within} and holds no bound: the result has the {kind}, {own:.6f}. Give the bound that "
        f"{parsed.solver} printed with --bound (in Python: bound): {parsed.where_bound}{sign}.{told}"
    )


def refuse_better(problem: Problem, structure: Structure, bound: float, constant: float, where: str) -> float:
    """Search briefly for a structure that disproves a solver's bound, and return the bound.

    A structure above the bound by no more than the solver's tolerances lifts the bound.

    Raises
    ------
    InputError
        If one above it by more is found.
    """
    warm_up(problem, bounds=False)
    end = time.monotonic() + CHECK_SECONDS
    better = search(problem, plain_starts(problem, structure), stopping=lambda: time.monotonic() > end)
    assert better is not None  # the structure itself is one
    value = problem.rescore(better)
    if bound < value - _allowed(value, constant):
        raise InputError(
            f"By the bound of {where[0].lower()}{where[1:]} no structure scores more than {bound:.10g}, but a brief "
            f"search finds one with the score {value:.10g}; the solver or the bound is wrong. Solve again with another "
            "version of the solver, or with milpbn solve."
        )
    return max(bound, value)
