"""How a run ended, what stopped it, and whose arithmetic its bound rests on. Each is one word in ``result.json``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


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


class Limit(StrEnum):
    """What stopped a run before its end; only with the reasons in `LIMITED`."""

    TIME = "time"
    """The time limit, which includes the time for data and coefficients."""

    NODE = "node"
    """The solver's own limit on nodes or iterations, or the end of the root bound where only that was asked for."""

    MEMORY = "memory"
    """The memory limit, the machine's memory, or the maximum size of a certificate; the result's detail says which."""

    GAP = "gap"
    """The gap that was asked for (``--gap-rel``, ``--gap-abs``) is reached, but it does not prove an optimum."""

    USER = "user"
    """Ctrl-C, SIGTERM, or the caller's function `interrupted`."""

    @property
    def words(self) -> str:
        """What happened to the search, as the rest of a sentence that begins with "The search"."""
        return {
            Limit.TIME: "came to its time limit",
            Limit.NODE: "came to its limit on nodes",
            Limit.MEMORY: "ran out of memory",
            Limit.GAP: "came to the gap that was asked for",
            Limit.USER: "was interrupted",
        }[self]


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
