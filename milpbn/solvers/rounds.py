"""The cutting-plane method: solve with few rows of a kind, add the violated rows, solve again.

Cluster rows, equation (7) of Peharz and Pernkopf (2012), make graphs acyclic. Tangent rows bound the conditional
log-likelihood from above.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.parent_sets.separation import Separation
from milpbn.errors import SolverError
from milpbn.milp.formulation import Formulation
from milpbn.milp.sample_rows import tangent_block
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Candidates
from milpbn.problem.rows import RowBlock, stack
from milpbn.problem.scores.base import Shape
from milpbn.solvers.base import MilpEvents, Outcome, Settings, Solver
from milpbn.solvers.highs import HighsSolver
from milpbn.solvers.support.audit import solve_audited
from milpbn.solvers.support.canary import require_sound

#: Maximum number of rounds of rows added to the LP relaxation before the first MILP.
ROOT_ROUNDS = 50
#: Share of the remaining time that the rounds on the LP relaxation may take.
ROOT_SHARE = 0.2
#: Tangents are added where the score is overestimated by more than this, relative to its size or, if that is less, to
#: what structures can differ by. The first value is for points of MILPs, where its sum with a solver's own
#: tolerances must be below the 1e-6 of `milpbn.claims.gap.solver_tolerance`; the second is for LP relaxations.
EXCESS, ROOT_EXCESS = 2e-7, 1e-4
#: Tangents of a start are also taken where its log-odds are multiplied by these factors, since the log-odds of other
#: structures lie near such points.
START_SCALES = (1.0, 0.5, 2.0, -1.0)
#: Rows with more slack than this at the optimum of the last LP are left out of the MILP.
ROOT_SLACK = 1e-6


class RowKind(Protocol):
    """A kind of rows of which a formulation holds only some."""

    def violated(self, x: NDArray[np.float64], *, integral: bool) -> dict[Hashable, RowBlock]:
        """Return blocks of rows that cut a point off, by key; empty if no row does."""
        ...


class ClusterRows:
    """Rows that make graphs acyclic: those of clusters and of blocks, each with itself as key."""

    def __init__(self, formulation: Formulation) -> None:
        self._formulation = formulation
        self._separate = Separation(formulation.problem.candidates)

    def violated(self, x: NDArray[np.float64], *, integral: bool) -> dict[Hashable, RowBlock]:
        """Return rows that a point violates; none of an integral point if its graph has no cycle."""
        eta = x[: self._formulation.n_sets]
        if integral:
            eta = self._formulation.problem.indicator(self._formulation.choice(x))
        return self._separate(eta)


class TangentRows:
    """Tangents of the conditional log-likelihood, with the point where they touch it as key."""

    def __init__(self, formulation: Formulation) -> None:
        self._formulation = formulation
        #: Number of points so far; the tangents that the formulation begins with belong to point 0.
        self._points = 0

    def violated(self, x: NDArray[np.float64], *, integral: bool) -> dict[Hashable, RowBlock]:
        """Return the tangents at a point, for the samples whose likelihood it overestimates."""
        problem = self._formulation.problem
        assert problem.margins is not None
        eta = x[: self._formulation.n_sets]
        if integral:
            eta = problem.indicator(self._formulation.choice(x))
        excess = x[self._formulation.tau] - problem.margins.parts(eta)
        weights = problem.margins.weights
        size = max(1.0, min(abs(problem.value(eta)), self._formulation.span))
        allowed = (EXCESS if integral else ROOT_EXCESS) * size
        if weights @ np.maximum(excess, 0.0) <= allowed:
            return {}
        # The excess of the samples left out adds up to at most a quarter of what is allowed.
        return self.at(eta, np.flatnonzero(excess > 0.25 * allowed / weights.sum()))

    def at(
        self, eta: NDArray[np.float64], samples: NDArray[np.integer] | None = None
    ) -> dict[Hashable, RowBlock]:
        """Return the tangents at a point for the given samples, by default for all."""
        margins = self._formulation.problem.margins
        assert margins is not None
        rows = np.arange(margins.n_samples) if samples is None else samples
        self._points += 1
        return {eta.tobytes(): tangent_block(margins, self._formulation.tau.start, eta, rows, self._points)}


def solve_formulation(
    solver: Solver, formulation: Formulation, start: Structure | None, settings: Settings, events: MilpEvents
) -> Outcome:
    """Solve a formulation, in rounds with more rows where it is a relaxation; the limits are for all rounds together.

    With ``acyclicity='order'`` it is solved once. With ``'cluster'``, solvers with `Capabilities.lazy_rows` add rows
    inside their tree, and for others rows are added in rounds. Tangents of the conditional log-likelihood are always
    added in rounds. Before the first round, and if the score is a sum over parent sets, the formulation gets the rows
    that its LP relaxation violates: cluster and block rows, and tangents. The bound of every round is valid, because
    the round solves a relaxation. `events` also receives cyclic points, and points whose score is overestimated, and
    must check them.

    Raises SolverError if the solver fails, solves a tiny model wrongly (`milpbn.solvers.support.canary`), or
    contradicts itself (`milpbn.solvers.support.audit`).
    """

    def vector(current: Formulation) -> NDArray[np.float64] | None:
        return None if start is None or not solver.capabilities.warm_start else current.vector(start)

    require_sound(solver, settings, events)
    by_clusters = formulation.acyclicity == "cluster"
    kinds: list[RowKind] = [ClusterRows(formulation)] if by_clusters else []
    added: set[Hashable] = set()
    if formulation.tangents:
        tangents = TangentRows(formulation)
        kinds.append(tangents)
        if start is not None:
            eta = formulation.vector(start)[: formulation.n_sets]
            rows = {key: block for s in START_SCALES for key, block in tangents.at(s * eta).items()}
            added |= rows.keys()
            formulation = formulation.with_rows(list(rows.values()))
    if kinds or formulation.problem.score.kind.shape is Shape.LINEAR:
        at_root = kinds if by_clusters else [ClusterRows(formulation), *kinds]
        formulation = strengthen_root(formulation, at_root, settings, events)
    if not kinds:
        return solve_audited(solver, formulation.milp, vector(formulation), settings, events)
    if solver.capabilities.lazy_rows and not formulation.tangents:
        lazily = replace(formulation.milp, lazy_rows=_LazyRows(formulation.problem.candidates))
        return solve_audited(solver, lazily, vector(formulation), settings, events)
    while True:
        watch = _Watch(kinds, added, events)
        outcome = solve_audited(solver, formulation.milp, vector(formulation), settings, watch)
        if outcome.infeasible or not outcome.finished or not watch.cut_off:
            return outcome
        remaining = settings.remaining()
        if events.stopping() or remaining == 0.0:
            return Outcome(limit="time", detail=outcome.detail)
        added |= watch.found.keys()
        formulation = formulation.with_rows(list(watch.found.values()))


class _Watch:
    """Passes events on, and collects the rows that cut off their points."""

    def __init__(self, kinds: Sequence[RowKind], added: set[Hashable], events: MilpEvents) -> None:
        self._kinds = kinds
        self._added = added
        self._events = events
        self.bound, self.nodes, self.stopping = events.bound, events.nodes, events.stopping
        self.found: dict[Hashable, RowBlock] = {}
        #: Whether new rows cut off the last point, which is the best of the run. Rows added before can be violated by
        #: rounding only.
        self.cut_off = False

    def point(self, x: NDArray[np.float64], source: str, objective: float | None = None) -> None:
        violated = {
            key: rows for kind in self._kinds for key, rows in kind.violated(x, integral=True).items()
        }
        new = violated.keys() - self._added
        self.cut_off = bool(new)
        self.found |= {key: violated[key] for key in violated if key in new}
        self._events.point(x, source, objective)


class _LazyRows:
    """The `LazyRows` of a formulation: the cluster and block rows that a point violates."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates, self._separate = candidates, Separation(candidates)

    def __call__(self, x: NDArray[np.float64]) -> list[tuple[NDArray[np.int64], NDArray[np.float64], float]]:
        eta = np.array(x[: self._candidates.n_sets], dtype=np.float64)
        chosen = self._candidates.heaviest(eta)
        if eta[chosen].min() > 1 - 1e-6:
            eta[:] = 0.0
            eta[chosen] = 1.0
        blocks = self._separate(eta).values()
        return [(b.matrix.indices.astype(np.int64), -b.matrix.data, -float(b.upper[0])) for b in blocks]


def strengthen_root(
    formulation: Formulation, kinds: Sequence[RowKind], settings: Settings, events: MilpEvents
) -> Formulation:
    """Return a relaxation with rows of some kinds that the optimum of the LP relaxation violates, found in rounds.

    They take at most `ROOT_SHARE` of the remaining time. `events` receives the bound of every LP that was solved to
    optimality. Only rows that bind at the end are kept.
    """
    remaining = settings.remaining()
    end = None if remaining is None else time.monotonic() + ROOT_SHARE * remaining
    root = _Root(kinds, formulation.milp.n_columns, events)
    relaxed = replace(formulation.milp, integer=np.zeros(formulation.milp.n_columns, dtype=bool))
    # The rows only help; a solver that fails here is judged by its answer to the MILP.
    with contextlib.suppress(SolverError):
        HighsSolver().in_child(
            "cut_here", (relaxed, ROOT_ROUNDS), Settings(deadline=end, threads=settings.threads), root
        )
    return formulation.with_rows(root.binding())


class _Root:
    """Events of the rounds on the LP relaxation: passes bounds on, and finds the rows that an optimum violates."""

    def __init__(self, kinds: Sequence[RowKind], n_columns: int, events: MilpEvents) -> None:
        self._kinds, self._events = kinds, events
        self._x = np.zeros(n_columns)
        self._found: dict[Hashable, RowBlock] = {}
        self.bound, self.stopping = events.bound, events.stopping

    def violated(self, x: NDArray[np.float64]) -> RowBlock | None:
        """Return new rows that a point violates, or None."""
        self._x = x
        new: list[RowBlock] = []
        for kind in self._kinds:
            blocks = kind.violated(x, integral=False)
            rows = {key: block for key, block in blocks.items() if key not in self._found}
            self._found |= rows
            new += rows.values()
        return stack(new, len(x)) if new else None

    def binding(self) -> list[RowBlock]:
        """Return the rows found that bind at the last point."""
        blocks = self._found.values()
        return [block.take(np.flatnonzero(block.slack(self._x) <= ROOT_SLACK)) for block in blocks]
