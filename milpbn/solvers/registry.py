"""Finds a MILP solver by its name."""

from __future__ import annotations

from collections.abc import Callable

from milpbn.solvers.base import Solver
from milpbn.solvers.cbc import CbcSolver
from milpbn.solvers.cpsat import CpSatSolver
from milpbn.solvers.highs import HighsSolver
from milpbn.solvers.pulp_solvers import PulpSolver, pulp_names
from milpbn.solvers.scip import ScipSolver

#: The solvers with a module of their own; others run through PuLP.
SOLVERS: dict[str, Callable[[], Solver]] = {
    "highs": HighsSolver,
    "cbc": CbcSolver,
    "cpsat": CpSatSolver,
    "scip": ScipSolver,
}
#: The solver where none is named.
DEFAULT_SOLVER = "highs"
PULP = "pulp:"


def solver_names() -> list[str]:
    """Return the names that `find_solver` knows, whether the solvers are installed or not."""
    return [*SOLVERS, *(PULP + name for name in pulp_names())]


def find_solver(name: str) -> Solver | None:
    """Return a MILP solver by its name (``highs``, ``cbc``, ``cpsat``, ``scip``, ``pulp:NAME``), or None.

    Raise InputError if PuLP has no solver of the name after ``pulp:``.
    """
    if name.lower().startswith(PULP):
        return PulpSolver(name[len(PULP) :])
    make = SOLVERS.get(name.lower())
    return None if make is None else make()
