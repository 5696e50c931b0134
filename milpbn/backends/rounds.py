"""The cutting-plane method: solve with few cluster rows, add the violated ones, solve again."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from milpbn.backends.base import Backend, Events, LazyBackend, Outcome, Settings
from milpbn.model.clusters import MINIMAL_VIOLATION, cluster_slack, cyclic_clusters, fractional_clusters
from milpbn.model.formulation import Formulation, cluster_entries
from milpbn.network.structure import Structure, topological_order

#: Most rounds of rows added to the LP relaxation before the first MILP.
ROOT_ROUNDS = 50
#: Share of the remaining time that the rounds on the LP relaxation may take.
ROOT_SHARE = 0.2


def solve_formulation(
    backend: Backend, formulation: Formulation, start: Structure | None, settings: Settings, events: Events
) -> Outcome:
    """Solve a formulation to the end, with rounds of cluster rows where it is a relaxation.

    Parameters
    ----------
    backend : Backend
        Any solver.
    formulation : Formulation
        With ``acyclicity='order'`` it is solved once; with ``'cluster'`` rows are added inside the tree of a
        `LazyBackend`, else in rounds. Every round's bound is valid: it solves a relaxation.
    start : Structure or None
        Warm start, given to backends that take one.
    settings : Settings
        Limits for all rounds together.
    events : Events
        Gets cyclic points too; whoever receives them checks.

    Returns
    -------
    Outcome
    """

    def vector(current: Formulation) -> NDArray[np.float64] | None:
        return None if start is None or not backend.capabilities.warm_start else current.vector(start)

    if formulation.acyclicity == "order":
        return backend.solve(formulation.milp, vector(formulation), settings, events)
    formulation = strengthen_root(formulation, settings, events)
    if isinstance(backend, LazyBackend):
        return _solve_lazily(backend, formulation, vector(formulation), settings, events)
    while True:
        watch = _CycleWatch(formulation, events)
        outcome = backend.solve(formulation.milp, vector(formulation), settings, watch)
        if outcome.infeasible or not outcome.finished or not watch.cyclic:
            return outcome
        remaining = settings.remaining()
        if events.stopping() or remaining == 0.0:
            return Outcome(limit="time", detail=outcome.detail)
        formulation = formulation.with_clusters(sorted(watch.clusters, key=lambda s: (len(s), sorted(s))))


class _CycleWatch:
    """Passes events on, and keeps the clusters of the cyclic points among them."""

    def __init__(self, formulation: Formulation, events: Events) -> None:
        self._formulation = formulation
        self._events = events
        self.clusters: set[frozenset[int]] = set()
        #: The last point, the best of the run, has a cycle.
        self.cyclic = False

    def point(self, x: NDArray[np.float64], source: str) -> None:
        flat = self._formulation.problem.candidates.flat
        violated = cyclic_clusters([flat[p] for p in self._formulation.choice(x)])
        self.clusters.update(violated)
        self.cyclic = bool(violated)
        self._events.point(x, source)

    def bound(self, value: float) -> None:
        self._events.bound(value)

    def nodes(self, count: int) -> None:
        self._events.nodes(count)

    def stopping(self) -> bool:
        return self._events.stopping()


def _solve_lazily(
    backend: LazyBackend,
    formulation: Formulation,
    start: NDArray[np.float64] | None,
    settings: Settings,
    events: Events,
) -> Outcome:
    candidates = formulation.problem.candidates
    P = formulation.n_sets

    def separate(x: NDArray[np.float64]) -> list[tuple[NDArray[np.int64], NDArray[np.float64], float]]:
        eta = np.asarray(x[:P], dtype=np.float64)
        chosen = candidates.heaviest(eta)
        if eta[chosen].min() > 1 - 1e-6:
            parents = [candidates.flat[p] for p in chosen]
            clusters = [] if topological_order(parents) is not None else cyclic_clusters(parents)
        else:
            clusters = fractional_clusters(candidates, eta)
        rows = [cluster_entries(candidates, s) for s in clusters]
        return [(entries, np.ones(len(entries)), 1.0) for entries in rows]

    return backend.solve_lazily(formulation.milp, separate, start, settings, events)


def strengthen_root(formulation: Formulation, settings: Settings, events: Events) -> Formulation:
    """Add the cluster rows that the LP relaxation violates, re-solving it after each round.

    Parameters
    ----------
    formulation : Formulation
        With ``acyclicity='cluster'``.
    settings : Settings
        At most `ROOT_SHARE` of the time left is used.
    events : Events
        Gets the bound of every LP that was solved to the end.

    Returns
    -------
    Formulation
        With the rows found; their number is small, as they are only those once violated.
    """
    import highspy

    from milpbn.backends.highs import _scheduler_lock, pass_model

    remaining = settings.remaining()
    end = math.inf if remaining is None else time.monotonic() + ROOT_SHARE * remaining
    milp = formulation.milp
    candidates = formulation.problem.candidates
    added: list[frozenset[int]] = []
    with _scheduler_lock:
        highspy.Highs.resetGlobalScheduler(True)
        h = highspy.Highs()
        h.setOptionValue("output_flag", False)
        h.setOptionValue("threads", settings.threads)
        pass_model(h, replace(milp, integer=np.zeros(milp.n_columns, dtype=bool)))

        def stop(event: object) -> None:
            event.data_in.user_interrupt = events.stopping()  # type: ignore[attr-defined]

        h.cbSimplexInterrupt += stop
        h.cbIpmInterrupt += stop
        for _ in range(ROOT_ROUNDS):
            left = end - time.monotonic()
            if left <= 0 or events.stopping():
                break
            if math.isfinite(left):
                h.setOptionValue("time_limit", h.getRunTime() + left)
            h.run()
            if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                break
            eta = np.array(h.getSolution().col_value[: formulation.n_sets])
            # The dual feasibility tolerance allows the LP value to be this much below the true one.
            value = h.getInfo().objective_function_value
            events.bound(value + 1e-7 * max(1.0, abs(value)))
            new = [s for s in fractional_clusters(candidates, eta) if s not in added]
            new = [s for s in new if cluster_slack(candidates, eta, s) < -MINIMAL_VIOLATION]
            if not new:
                break
            added += new
            for cluster in new:
                entries = cluster_entries(candidates, cluster).astype(np.int32)
                h.addRow(1.0, highspy.kHighsInf, len(entries), entries, np.ones(len(entries)))
    return formulation.with_clusters(added)
