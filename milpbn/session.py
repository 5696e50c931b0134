"""The state of a running search: incumbent, bound, trace, and the reasons to stop."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
from numpy.typing import NDArray

from milpbn import interrupts
from milpbn.errors import MilpbnError, SolverError
from milpbn.model.clusters import repaired
from milpbn.model.formulation import Formulation
from milpbn.network.structure import Structure, topological_order
from milpbn.result import Gap, TracePoint, is_optimal
from milpbn.scores.problem import Problem

#: Relative difference between a structure's score by the coefficients and from the data that is an error.
MISMATCH = 1e-7
#: A bound that is less than a structure's score by this share of it is wrong, by who says so: solvers' bounds hold up
#: to their tolerances.
CONTRADICTION = {"certified": 1e-7, "solver": 1e-4}
#: Relative difference between scores that is none.
ROUNDING = 1e-12


class Session:
    """Collects what heuristics and solvers report, from any thread; an `Events` for backends.

    The incumbent never falls and the bound never rises. Every structure is scored from the data before it
    becomes the incumbent.

    Parameters
    ----------
    problem : Problem
        What is solved.
    started : float
        `time.monotonic` value that counts as second 0.
    deadline : float or None
        `time.monotonic` value after which `stopping` says yes.
    gap_rel, gap_abs : float
        Stop at a gap of at most this, relative to the bound or absolute.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        started: float,
        deadline: float | None = None,
        gap_rel: float = 0.0,
        gap_abs: float = 0.0,
    ) -> None:
        self.problem = problem
        self.formulation: Formulation | None = None
        self.structure: Structure | None = None
        self.objective: float | None = None
        self.best_bound: float | None = None
        self.bound_source = "certified"
        self.trace: list[TracePoint] = []
        self.node_count: int | None = None
        self.source = ""
        self.error: MilpbnError | None = None
        #: Why the run was told to stop: "time", "gap" or "user", after its result "end"; None while it was not.
        self.stopped: str | None = None
        self._started = started
        self._deadline = deadline
        self._gap_rel = gap_rel
        self._gap_abs = gap_abs
        self._lock = threading.RLock()
        #: Set at every change, for whoever shows progress.
        self.changed = threading.Event()

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._started

    def offer(self, structure: Structure, source: str) -> bool:
        """Make a structure the incumbent if it is better than the present one.

        Parameters
        ----------
        structure : Structure
            Acyclic by construction.
        source : str
            Who found it, for the progress line.

        Returns
        -------
        bool
            Whether it became the incumbent.

        Raises
        ------
        SolverError
            If it breaks a user constraint, or its score by the model's coefficients is not its score from
            the data.
        """
        problem = self.problem
        choice = problem.choice(structure)
        if choice is None or not problem.obeys(structure):
            raise SolverError(f"A structure from {source} breaks the constraints; please report this.")
        value = problem.value(problem.indicator(choice))
        with self._lock:
            if self.objective is not None and value <= self.objective:
                return False
        objective = problem.rescore(structure)
        if abs(objective - value) > MISMATCH * max(1.0, abs(value)):
            raise SolverError(
                f"A structure from {source} scores {objective!r} from the data and {value!r} in the model; "
                "please report this."
            )
        with self._lock:
            # Equivalent structures differ by rounding, which would lift a bound that was proved already.
            if self.objective is not None and objective <= self.objective + ROUNDING * abs(self.objective):
                return False
            self.structure, self.objective, self.source = structure, objective, source
            bound = self.best_bound
            if bound is not None and bound < objective and not self._contradicts(bound, self.bound_source):
                # Solvers' bounds hold up to their tolerances; the incumbent is exact.
                self.best_bound = objective
            self._record()
            return True

    def point(self, x: NDArray[np.float64], source: str) -> None:
        """Take a point of the MILP; a cyclic one (cluster rows still missing) is repaired first."""
        assert self.formulation is not None
        try:
            choice = self.formulation.choice(x)
            candidates = self.formulation.problem.candidates
            if topological_order([candidates.flat[p] for p in choice]) is not None:
                structure: Structure | None = candidates.structure(choice)
            elif self.formulation.acyclicity == "order":
                raise SolverError(f"{source} returned a cyclic graph although the order rows forbid it.")
            else:
                structure = repaired(candidates, choice)
                if structure is not None and not self.problem.obeys(structure):
                    structure = None
            if structure is not None:
                self.offer(structure, source)
        except MilpbnError as error:
            # Raised inside a solver's callback it would be lost; `stopping` ends the run and the caller raises.
            self.error = self.error or error

    def bound(self, value: float, source: str = "solver") -> None:
        """Take an upper bound on the score of every structure."""
        if not math.isfinite(value):
            return
        if source == "solver":
            # Its sums are others than those of the scores, which must not lift it afterwards.
            value += ROUNDING * abs(value)
        with self._lock:
            if self.objective is not None:
                if self._contradicts(value, source):
                    return
                value = max(value, self.objective)
            if self.best_bound is None or value < self.best_bound:
                self.best_bound = value
                self.bound_source = source
                self.source = "bound"
                self._record()

    def _contradicts(self, bound: float, source: str) -> bool:
        """Return whether the incumbent disproves a bound; if so no bound is known, and the run ends with an error."""
        assert self.objective is not None
        if bound >= self.objective - CONTRADICTION[source] * max(1.0, abs(self.objective)):
            return False
        self.best_bound = None
        self.error = self.error or SolverError(
            f"A structure scores {self.objective!r}, above what was said to bound all scores, {bound!r} ({source}); "
            "one of them is wrong. Please report this."
        )
        self.changed.set()
        return True

    def nodes(self, count: int) -> None:
        """Take the number of branch-and-bound nodes so far."""
        self.node_count = max(count, self.node_count or 0)

    def stop(self, reason: str) -> None:
        """Tell the run to stop; the first reason counts."""
        self.stopped = self.stopped or reason
        self.changed.set()

    def stopping(self) -> bool:
        """Whether to stop now: told to, past the deadline, the gap small enough, or an error."""
        if self.stopped is None and interrupts.requested():
            self.stop("user")
        if self.stopped is None and self._deadline is not None and time.monotonic() >= self._deadline:
            self.stop("time")
        if self.stopped is None and self.closed():
            self.stop("gap")
        return self.stopped is not None or self.error is not None

    def closed(self) -> bool:
        """Whether the gap is as small as asked for, or a proof of optimality."""
        z, b = self.objective, self.best_bound
        if z is None or b is None:
            return False
        relative = Gap.between(z, b).relative_to_bound
        enough = b - z <= self._gap_abs or (relative is not None and relative <= self._gap_rel)
        return enough or is_optimal(z, b)

    def _record(self) -> None:
        self.trace.append((self.elapsed(), self.objective, self.best_bound))
        self.changed.set()

    def snapshot(self) -> tuple[Structure | None, float | None, float | None, list[TracePoint]]:
        """Return structure, objective, bound and trace that belong together."""
        with self._lock:
            return self.structure, self.objective, self.best_bound, list(self.trace)
