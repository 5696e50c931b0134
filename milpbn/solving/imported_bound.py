"""The bound of an imported solution: the other solver's bound if it proved one, else the project's own."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from milpbn.claims.reasons import BoundSource
from milpbn.errors import InputError
from milpbn.heuristics.local_search import search
from milpbn.heuristics.starts import plain_starts
from milpbn.milp.files.sidecar import Sidecar
from milpbn.milp.files.solution import Solution
from milpbn.network.structure import Structure
from milpbn.problem.bounds import trivial_bound
from milpbn.problem.problem import Problem
from milpbn.solving.warm_up import warm_up

#: Seconds that the search for a structure above a solver's bound may take.
CHECK_SECONDS = 2.0
#: Solvers that by default stop within a relative gap of 1e-4.
DEFAULT_GAPS = ("cplex", "gurobi", "highs")
#: Allowed difference between the objective in a file and the structure's score, relative to the objective in the file;
#: some solvers print few digits.
OBJECTIVE_TOLERANCE = 1e-4


@dataclass(frozen=True)
class ImportedSolution:
    """A solution file, the sidecar of its model, and its structure.

    `where` is the name of the file, which begins sentences; `objective` the structure's score from the data, in nats.
    """

    parsed: Solution
    sidecar: Sidecar
    where: str
    problem: Problem
    structure: Structure
    objective: float

    def bound(self, given: float | None, gap: float | None) -> tuple[float, BoundSource, str | None]:
        """Return the bound of the solution, its source, and a note for the user or None.

        From the user come the bound that is `given`, in the sign of the file's objective, and the relative `gap` at
        which the solver was told to stop. Raise InputError if the objective of the file is not the score of its
        structure, if the bound is not finite, or below the structure's score, if a brief search finds a structure above
        it, or if the gap is of no use.
        """
        self._check_objective()
        bound, source, note = self._stated(given, gap, self._own())
        return self._searched(bound) if source is BoundSource.SOLVER else bound, source, note

    def _check_objective(self) -> None:
        """Compare the objective in the file, if it states one, with the score of its structure."""
        if self.parsed.objective is None:
            return
        stated = self.sidecar.sign * self.parsed.objective + self.sidecar.constant
        if abs(stated - self.objective) > self._allowed(self.objective):
            raise InputError(
                f"{self.where} states the objective {stated:.10g}, but its structure scores {self.objective:.10g} on "
                "the data; it belongs to other data or options."
            )

    def _own(self) -> float:
        """Return the project's own bound: the root bound of the export, or the trivial bound if that is smaller."""
        trivial, root = trivial_bound(self.problem), self.sidecar.root_bound
        if root is None:
            return max(trivial, self.objective)
        if root < self.objective - self._allowed(self.objective):
            raise InputError(
                f"The sidecar of {self.sidecar.model!r} has the root bound {root:.10g}, which lies below the score "
                f"{self.objective:.10g} of {self._within}; it was changed, so export the model again."
            )
        return max(min(root, trivial), self.objective)

    def _stated(
        self, given: float | None, gap: float | None, own: float
    ) -> tuple[float, BoundSource, str | None]:
        """Return what `bound` returns, before the search for a structure above it; `own` is the project's bound."""
        parsed, sidecar = self.parsed, self.sidecar
        caveat = None
        stated = parsed.proved_bound if given is None else given
        if gap is not None:
            stated = self._bound_within(given, gap)
            caveat = (
                f"{self._status} and holds no bound: the relative gap {gap:g} that you gave is added to its "
                f"objective, on {parsed.solver}'s word."
            )
        elif given is None and parsed.bound is None and stated is not None:
            taken = f"its objective is taken for the bound, on {parsed.solver}'s word."
            caveat = f"{self._status} and holds no bound: {taken}"
        if stated is None:
            return own, BoundSource.CERTIFIED, self._missing(own)
        if not math.isfinite(stated):
            raise InputError(f"The bound must be a finite number, got {stated}.")
        bound = sidecar.sign * stated + sidecar.constant
        if bound < self.objective - self._allowed(self.objective):
            printed = " (negative, because the model is a minimisation)" if sidecar.sign < 0 else ""
            raise InputError(
                f"The bound {stated:.10g} would mean that no structure scores more than {bound:.10g}, which lies below "
                f"the score {self.objective:.10g} of {self._within}; give the solver's best bound as it prints "
                f"it{printed}."
            )
        source = BoundSource.SOLVER if bound < own else BoundSource.CERTIFIED
        return max(min(bound, own), self.objective), source, caveat

    def _searched(self, bound: float) -> float:
        """Search briefly for a structure that disproves the solver's bound, and return the bound.

        A structure above the bound by no more than the solver's tolerances lifts the bound. Raise InputError if one
        above it by more is found.
        """
        warm_up(self.problem, bounds=False)
        end = time.monotonic() + CHECK_SECONDS
        starts = plain_starts(self.problem, self.structure)
        better = search(self.problem, starts, stopping=lambda: time.monotonic() > end)
        assert better is not None  # the structure itself is one
        value = self.problem.rescore(better)
        if bound < value - self._allowed(value):
            raise InputError(
                f"By the bound of {self._within} no structure scores more than {bound:.10g}, but a brief search finds "
                f"one with the score {value:.10g}; the solver or the bound is wrong. Solve again with another version "
                "of the solver, or with milpbn solve."
            )
        return max(bound, value)

    @property
    def _within(self) -> str:
        """The name of the file within a sentence."""
        return f"{self.where[0].lower()}{self.where[1:]}"

    @property
    def _status(self) -> str:
        """What the file says of the status, as the beginning of a sentence."""
        status = self.parsed.status
        return f"{self.where} says {status!r}" if status else f"{self.where} has no status"

    def _allowed(self, objective: float) -> float:
        """Return by how much a number of the file, which lacks the constant, may contradict a score; in nats."""
        return OBJECTIVE_TOLERANCE * max(1.0, abs(objective - self.sidecar.constant))

    def _bound_within(self, given: float | None, gap: float) -> float:
        """Return the bound that follows from the file's status and a relative gap, in the sign of the file."""
        parsed = self.parsed
        if given is not None:
            raise InputError("The bound follows from --bound or from --gap-rel; give one of them.")
        if not 0 <= gap < 1:
            raise InputError(f"The relative gap must be at least 0 and below 1, got {gap:g}.")
        if parsed.bound is not None:
            raise InputError(f"{self._status} and holds a bound of its own; drop --gap-rel.")
        bound = parsed.bound_within(gap, self.sidecar.sign > 0)
        if bound is None:
            raise InputError(
                f"{self._status}, so that no bound follows from a gap; give the bound that {parsed.solver} printed "
                f"with --bound: {parsed.where_bound}."
            )
        return bound

    def _missing(self, own: float) -> str:
        """Return the sentences about a file without a bound: which one is used, and what to give."""
        parsed, sidecar = self.parsed, self.sidecar
        within = " (possibly only within a gap)" if parsed.says_optimal else ""
        kind = "trivial bound" if sidecar.root_bound is None else "root bound of the export"
        sign = ", with the sign that it has there (the model is a minimisation)" if sidecar.sign < 0 else ""
        told = (
            f" If it ran until its gap was closed to X, --gap-rel X makes a bound of its status (1e-4 is "
            f"{parsed.solver}'s own gap)."
            if parsed.says_optimal and parsed.format in DEFAULT_GAPS
            else ""
        )
        return (
            f"{self._status}{within} and holds no bound: the result has the {kind}, {own:.6f}. Give the bound that "
            f"{parsed.solver} printed with --bound (in Python: bound): {parsed.where_bound}{sign}.{told}"
        )
