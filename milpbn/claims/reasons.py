"""How a run ended, what stopped it, and whose arithmetic its bound rests on. Each is one word in ``result.json``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from milpbn.util.budget import Limit as Limit


class Reason(StrEnum):
    """What a result claims of its structure.

    Members are texts: ``result.reason == "optimal"`` holds as well as ``result.reason is Reason.OPTIMAL``.
    """

    OPTIMAL = "optimal"
    """The structure is proved best: the bound exceeds its score by no more than the tolerance (`milpbn.claims.gap`).
    Rounding errors count against the structure. It is computed from the numbers, never copied from a solver's status.
    """

    FEASIBLE = "feasible"
    """There is a structure that obeys the constraints, but it is not proved optimal: a gap is left, or no bound is
    known. `Limit` says what stopped the search. Without a limit, the solver ended by itself within its own tolerances.
    """

    NO_SOLUTION = "no_solution"
    """The search was stopped before it found a structure. One may exist."""

    INFEASIBLE = "infeasible"
    """A MILP solver proved that no structure obeys the constraints."""

    ERROR = "error"
    """The solver failed, or contradicted itself or the data. Incumbent and bound are those from before the error."""

    RUNNING = "running"
    """The search that writes the file still runs, or was killed. Incumbent and bound hold. Nothing is claimed about the
    end of the search, even if the two numbers would prove an optimum.
    """


class BoundSource(StrEnum):
    """The arithmetic that the bound rests on."""

    CERTIFIED = "certified"
    """The project's own arithmetic; the largest possible rounding error is added to the bound."""

    SOLVER = "solver"
    """A MILP solver, up to its feasibility tolerances."""


#: The reasons beside which a limit can stand.
LIMITED = (Reason.FEASIBLE, Reason.NO_SOLUTION)
#: The reasons that always come with a structure, and those that never do.
WITH_STRUCTURE = (Reason.OPTIMAL, Reason.FEASIBLE)
WITHOUT_STRUCTURE = (Reason.NO_SOLUTION, Reason.INFEASIBLE)


@dataclass(frozen=True)
class Status:
    """How a run ended, with the solver's own status: the value of ``status``."""

    reason: Reason
    limit: Limit | None
    detail: str = ""
    #: Attributes that files of earlier versions lack.
    LATER: ClassVar = ("detail",)
