"""The bound of an imported solution: the other solver's bound if it proved one, else the trivial bound."""

from __future__ import annotations

import math
import time

from milpbn.claims.reasons import BoundSource
from milpbn.errors import InputError
from milpbn.heuristics.starts import first_incumbent
from milpbn.milp.files.sidecar import Sidecar
from milpbn.milp.files.solution import Solution
from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem
from milpbn.solving.warm_up import warm_up

#: Seconds that the search for a structure above a solver's bound may take.
CHECK_SECONDS = 2.0
#: Allowed relative difference between the objective in a file and the structure's score; some solvers print few digits.
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
    if abs(stated - objective) > OBJECTIVE_TOLERANCE * max(1.0, abs(objective)):
        raise InputError(
            f"{where} states the objective {stated:.10g}, but its structure scores {objective:.10g} on the data; "
            "it belongs to other data or options."
        )


def imported_bound(
    parsed: Solution, sidecar: Sidecar, given: float | None, objective: float, trivial: float, where: str
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
    objective, trivial : float
        The structure's score and the trivial bound, in nats.
    where : str
        Name of the file in messages.

    Raises
    ------
    InputError
        If the bound is not finite, or below the structure's score.
    """
    stated = parsed.proved_bound if given is None else given
    status = f"{where} says {parsed.status!r}" if parsed.status else f"{where} has no status"
    if stated is None:
        reason = " (possibly only within a gap)" if parsed.says_optimal else ""
        missing = (
            f"{status}{reason} and holds no bound: the result has the trivial bound, {max(trivial, objective):.6f}. "
            f"Give the bound that {parsed.solver} printed with --bound (in Python: bound)."
        )
        return max(trivial, objective), BoundSource.CERTIFIED, missing
    if not math.isfinite(stated):
        raise InputError(f"The bound must be a finite number, got {stated}.")
    bound = sidecar.sign * stated + sidecar.constant
    if bound < objective - OBJECTIVE_TOLERANCE * max(1.0, abs(objective)):
        printed = " (negative, because the model is a minimisation)" if sidecar.sign < 0 else ""
        raise InputError(
            f"The bound {stated:.10g} would mean that no structure scores more than {bound:.10g}, which lies below the "
            f"score {objective:.10g} of {where[0].lower()}{where[1:]}; give the solver's best bound as it prints "
            f"it{printed}."
        )
    caveat = None
    if given is None and parsed.bound is None:
        caveat = (
            f"{status} and holds no bound: its objective is taken for the bound, on {parsed.solver}'s word."
        )
    source = BoundSource.SOLVER if bound < trivial else BoundSource.CERTIFIED
    return max(min(bound, trivial), objective), source, caveat


def refuse_better(problem: Problem, structure: Structure, bound: float, where: str) -> None:
    """Search briefly for a structure that disproves a solver's bound.

    Raises
    ------
    InputError
        If one is found.
    """
    warm_up(problem, bounds=False)
    end = time.monotonic() + CHECK_SECONDS
    better = first_incumbent(problem, structure, stopping=lambda: time.monotonic() > end)
    assert better is not None  # the structure itself is one
    value = problem.rescore(better)
    if bound < value - OBJECTIVE_TOLERANCE * max(1.0, abs(value)):
        raise InputError(
            f"By the bound of {where[0].lower()}{where[1:]} no structure scores more than {bound:.10g}, but a brief "
            f"search finds one with the score {value:.10g}; the solver or the bound is wrong. Solve again with another "
            "version of the solver, or with milpbn solve."
        )
