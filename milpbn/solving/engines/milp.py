"""Adapter from MILP solver to engine: formulates the problem, solves it in rounds, turns points into structures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.events import Events
from milpbn.engine.reduction import restricted
from milpbn.engine.thresholds import fixing_threshold
from milpbn.errors import MilpbnError, SolverError
from milpbn.milp.formulation import Formulation, formulate
from milpbn.milp.repair import repaired
from milpbn.network.structure import Structure, topological_order
from milpbn.problem.problem import Problem
from milpbn.problem.rounding import EPS
from milpbn.solvers.base import Outcome, Settings, Solver
from milpbn.solvers.rounds import solve_formulation
from milpbn.solvers.support.audit import allowance
from milpbn.solving.engines.base import Engine, Start
from milpbn.util import stages

#: Relative error of an objective that a solver adds up.
ROUNDING = 16 * EPS


class MilpEngine(Engine):
    """A MILP solver behind the interface of an engine."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.name, self.capabilities = solver.name, solver.capabilities

    def version(self) -> str:
        """Return the solver's name and version; see `Solver.version`."""
        return self.solver.version()

    def check_options(self, options: Mapping[str, str]) -> None:
        """Refuse options that the solver does not take; see `Solver.check_options`."""
        self.solver.check_options(options)

    def run(self, problem: Problem, start: Start, settings: Settings, events: Events) -> Outcome:
        """Formulate the problem, and solve it with cluster and tangent rows, audited; see `Engine.run`."""
        begun = time.monotonic()
        stages.enter("model")
        shifted, shared = problem.shifted()
        known = start.structure
        if settings.reduce and known is not None:
            shifted = _reachable(shifted, known)
        formulation = formulate(shifted, settings.acyclicity, reduce=settings.reduce)
        events.formulated(shared, formulation.span)
        seconds = time.monotonic() - begun
        if events.budget.over():
            return Outcome(model_seconds=seconds)
        stages.enter(self.name)
        structure = start.structure
        if structure is not None and problem.choice(structure) is None:
            structure = None  # the user's own start may have a parent set that the root bound excludes
        points = Points(formulation, events, shared)
        outcome = solve_formulation(self.solver, formulation, structure, settings, points)
        if points.error is not None:
            raise points.error
        return replace(outcome, model_seconds=seconds)


def _reachable(shifted: Problem, known: Structure) -> Problem:
    """Return a problem of `Problem.shifted` without the parent sets that alone lose more than a structure does.

    If the score is a sum of local terms, of which none is positive then, no better structure has one of them. They may
    have coefficients so large that a solver's tolerances hide everything else.
    """
    choice = shifted.choice(known)
    if shifted.margins is not None or shifted.curve is not None or choice is None:
        return shifted
    allowed = shifted.linear >= fixing_threshold(float(shifted.linear[choice].sum()), shifted.score_error)
    return shifted if allowed.all() else restricted(shifted, allowed)


class Points:
    """The `MilpEvents` of a solver, passed on to the `Events` of a search: every point becomes a structure.

    `shared` is what the formulation's objective lacks to the score, as `Problem.shifted` returns it. An exception
    inside a solver's callback would be lost; so the first error about a point is kept as `error`, the solver is asked
    to stop, and the caller raises the error.
    """

    def __init__(self, formulation: Formulation, events: Events, shared: float = 0.0) -> None:
        self.formulation = formulation
        self._shared = shared
        self.error: MilpbnError | None = None
        self._events = events

    def point(self, x: NDArray[np.float64], source: str, objective: float | None = None) -> None:
        """Offer the structure of a point; a cyclic one (cluster rows still missing) is repaired first."""
        try:
            structure = self._structure(x, source)
            if structure is not None:
                self._events.offer(structure)
        except MilpbnError as error:
            self.error = self.error or error

    def _structure(self, x: NDArray[np.float64], source: str) -> Structure | None:
        formulation = self.formulation
        problem, candidates = formulation.problem, formulation.problem.candidates
        choice = formulation.choice(x)
        self._check_value(x, choice, source)
        if topological_order([candidates.flat[p] for p in choice]) is not None:
            return candidates.structure(choice)
        if formulation.acyclicity == "order":
            raise SolverError(f"{source} returned a cyclic graph although the order rows forbid it.")
        structure = repaired(candidates, choice)
        return structure if structure is not None and problem.obeys(structure) else None

    def _check_value(self, x: NDArray[np.float64], choice: NDArray[np.int64], source: str) -> None:
        """Refuse a point, cyclic or not, whose objective exceeds the score of its parent sets."""
        formulation = self.formulation
        problem, claimed = formulation.problem, formulation.milp.objective(x)
        value = problem.value(problem.indicator(choice))
        # Tangents overestimate the score; later rounds add more of them where they do.
        if not formulation.tangents and not claimed <= value + allowance(formulation.milp, value):
            raise SolverError(
                f"{source} returned a point with the objective {claimed!r} whose parent sets score {value!r}; its "
                "answers cannot be trusted. Install another version of it, or choose another --backend."
            )

    def bound(self, value: float) -> None:
        """Pass a bound on, with what the objective lacks.

        A solver adds in another order than the scores do; a score must not lift its bound by that difference.
        """
        self._events.bound(value + self._shared + ROUNDING * abs(value) + 4 * EPS * abs(self._shared))

    def nodes(self, count: int) -> None:
        """Pass the number of nodes on."""
        self._events.nodes(count)

    def stopping(self) -> bool:
        """Whether to stop: because the search has to, or after an error."""
        return self.error is not None or self._events.budget.over()
