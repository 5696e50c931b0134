"""One run: first incumbents, the model, the solver in a thread of its own, and what comes of them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from milpbn import interrupts
from milpbn.backends.base import Backend, Outcome, Settings
from milpbn.backends.highs import HighsBackend
from milpbn.backends.native import NativeBackend
from milpbn.backends.rounds import solve_formulation
from milpbn.bounds.proof import Proof
from milpbn.bounds.root import Root, root_bound
from milpbn.data import Dataset
from milpbn.errors import MilpbnError, NotSavedError, SolverError
from milpbn.learners.first_incumbent import plain_starts
from milpbn.learners.local_search import RESTARTS, search
from milpbn.model.formulation import formulate
from milpbn.network.classifier import Classifier
from milpbn.network.structure import Structure
from milpbn.options import Options
from milpbn.progress import Progress, wants_progress
from milpbn.result import BackendInfo, DataSummary, Gap, Result, Seconds, is_optimal
from milpbn.run_files import RunFiles
from milpbn.scores.constraints import Constraints
from milpbn.scores.problem import Problem
from milpbn.scores.rescore import rescore
from milpbn.scores.trivial_bound import trivial_bound
from milpbn.session import Session
from milpbn.threads import threads_used
from milpbn.warm_up import warm_up
from milpbn.watched import run_watched

OUT_OF_MEMORY = Outcome(limit="memory", detail="out of memory")
#: What runs before the solver may take this share of the time left, and never more than so many seconds each.
BRIEF_SHARE, BRIEF_SECONDS = 0.1, 20.0


class Run:
    """One search for the best structure of a problem whose coefficients are there.

    Parameters
    ----------
    problem : Problem
        What to maximise.
    dataset : Dataset
        The training data it was made from, for the classifier's parameters.
    options : Options
        How to search.
    backend : Backend
        The solver, and its version in words.
    version : str
        As `Backend.version` says.
    constraints : Constraints
        What the user asked for, for the report.
    started : float
        `time.monotonic` value from which the time limit counts.
    """

    def __init__(
        self,
        problem: Problem,
        dataset: Dataset,
        options: Options,
        backend: Backend,
        version: str,
        constraints: Constraints,
        started: float,
    ) -> None:
        self.problem = problem
        #: The problem over the candidate sets that bounds have left; what the solver gets.
        self.reduced = problem
        #: Where the native backend goes on, and what it has proved so far.
        self.root: Root | None = None
        self.proof = None if options.certificate is None else Proof(sample_weights=problem.subset_weights)
        self.dataset = dataset
        self.options = options
        self.backend = backend
        self.info = BackendInfo(backend.name, version, options.n_threads)
        self.constraints = constraints
        self.started = started
        self.deadline = options.deadline(started)
        self.session = Session(
            problem,
            started=started,
            deadline=self.deadline,
            gap_rel=options.gap_rel,
            gap_abs=options.gap_abs,
        )
        self.summary = DataSummary.of(dataset)
        self._name = uuid.uuid4().hex
        self.outcome = Outcome()
        self.times = {"coefficients": time.monotonic() - started, "model": 0.0}
        self._progress = Progress() if wants_progress(options.verbose) else None
        self._files = RunFiles(options)

    def result(self) -> Result:
        """Search until proof, limit or interrupt, and return what is known then.

        Raises
        ------
        SolverError
            If the solver failed; the output file still gets incumbent and bound.
        NotSavedError
            If a file could not be written.
        """
        session = self.session
        try:
            try:
                blas = 1 if isinstance(self.backend, NativeBackend) else self.options.n_threads
                with threadpool_limits(blas), threads_used(self.options.n_threads), interrupts.deferred():
                    self._search()
            except KeyboardInterrupt:
                session.stop("user")
            except SolverError as error:
                session.error = session.error or error
            except MemoryError:
                self.outcome = OUT_OF_MEMORY
            result, arrays = self._known(final=True)
        finally:
            session.stop("end")  # a thread may still be at work
        failures = self._files.finish(session.snapshot()[3], result, arrays)
        if session.error is not None:
            raise session.error
        if failures:
            raise NotSavedError(failures[0], result)
        return result

    def _search(self) -> None:
        session = self.session
        session.bound(trivial_bound(self.problem), "certified")
        native = isinstance(self.backend, NativeBackend)
        bounds = self.options.root_bound or native
        # Before kernels are compiled, which on a new machine can take longer than the time limit.
        starts = plain_starts(self.problem, self.options.start)
        for structure in starts:
            session.offer(structure, "start")
        self._in_thread(lambda: warm_up(self.problem, bounds=bounds), ends=True)
        if session.stopping():
            return
        self._climb(starts, 0 if native else RESTARTS)  # the engine perturbs by itself
        if bounds and not session.stopping():
            self._root_bound(None if native else self._brief())
        self._tick()
        if session.stopping():
            return
        if self.options.root_only:
            self.outcome = Outcome(limit="node")
            return
        self._run_backend()
        if self.root is not None and session.structure is not None and self.options.reduce:
            self.root.delete(session.structure)  # by the last incumbent

    def _climb(self, starts: list[Structure], restarts: int) -> None:
        """Offer what a brief local search finds."""
        search(
            self.problem,
            starts,
            random_state=self.options.random_state,
            restarts=restarts,
            stopping=self._brief(),
            found=self._offer_from("local search"),
        )

    def _root_bound(self, stopping: Callable[[], bool] | None) -> None:
        """Bound the problem until that brings little; no longer than briefly before a solver of its own."""
        session, before = self.session, self.session.objective
        offer = self._offer_from("frank-wolfe")

        def found(structure: Structure) -> Structure | None:
            offer(structure)
            return session.structure

        self.reduced, self.root = root_bound(
            self.problem,
            session.structure,
            stopping=stopping or self._watch,
            bounded=lambda value: session.bound(value, "certified"),
            found=found,
            reduce=self.options.reduce,
            threads=self.options.n_threads,
            proof=self.proof,
        )
        if session.structure is not None and session.objective != before:
            self._climb([session.structure], 0)

    def _brief(self) -> Callable[[], bool]:
        """Return a question that says yes when a share of the time left is over, and shows progress.

        The engine without a time limit is deterministic: its climbs end by themselves.
        """
        if self.deadline is None and isinstance(self.backend, NativeBackend) and not self.options.root_only:
            return self._watch
        end = time.monotonic() + BRIEF_SECONDS
        if self.deadline is not None:
            end = min(end, time.monotonic() + BRIEF_SHARE * max(0.0, self.deadline - time.monotonic()))

        return lambda: self._watch() or time.monotonic() > end

    def _watch(self) -> bool:
        """Show progress, and return whether to stop."""
        self._tick()
        return self.session.stopping()

    def _offer_from(self, source: str) -> Callable[[Structure], None]:
        def found(structure: Structure) -> None:
            self.session.offer(structure, source)

        return found

    def _run_backend(self) -> None:
        """Formulate and solve."""
        options, session = self.options, self.session
        settings = Settings(
            deadline=self.deadline,
            threads=options.n_threads,
            seed=options.random_state,
            gap_rel=options.gap_rel,
            gap_abs=options.gap_abs,
            options=options.solver_options,
            log=None if options.log is None else Path(options.log),
        )
        start = session.structure if options.warm_start else options.start
        if start is not None and self.reduced.choice(start) is None:
            start = None  # a user's own start may lie in what was deleted

        native = self.backend if isinstance(self.backend, NativeBackend) else None
        branches = native is not None and self.root is not None

        def work() -> None:
            if native is not None and self.root is not None:
                self.outcome = self._branch(native, self.root, settings)
                return
            begun = time.monotonic()
            session.formulation = formulate(self.reduced, options.acyclicity, reduce=options.reduce)
            self.times["model"] = time.monotonic() - begun
            if not session.stopping():
                solver = self.backend if native is None else HighsBackend()
                self.outcome = solve_formulation(solver, session.formulation, start, settings, session)

        self._in_thread(work, ends=branches)

    def _in_thread(self, work: Callable[[], None], *, ends: bool) -> None:
        """Do something in a thread; see `milpbn.watched`. What it raises becomes an error of the solver."""
        error = run_watched(work, self.session, self._tick, name=f"milpbn-{self.backend.name}", ends=ends)
        if isinstance(error, MemoryError):
            self.outcome = OUT_OF_MEMORY
        elif isinstance(error, MilpbnError):
            raise error
        elif error is not None:
            raise SolverError(f"{self.info.version} failed: {error}") from error
        else:
            self._tick()

    def _branch(self, backend: NativeBackend, root: Root, settings: Settings) -> Outcome:
        session = self.session
        offer = self._offer_from("branch and bound")

        def found(structure: Structure) -> Structure | None:
            offer(structure)
            return session.structure

        assert session.structure is not None
        return backend.search(
            root,
            session.structure,
            settings,
            found=found,
            bounded=lambda value: session.bound(value, "certified"),
            counted=session.nodes,
            stopping=session.stopping,
            reduce=self.options.reduce,
            proof=self.proof,
        )

    def _tick(self) -> None:
        """Show what changed, and save it from time to time."""
        session = self.session
        _, objective, bound, trace = session.snapshot()
        if self._progress is not None:
            gap = Gap.between(objective, bound).relative_to_bound
            self._progress.line(session.elapsed(), session.node_count, objective, bound, gap, session.source)
        self._files.update(trace, lambda: self._known(final=False))

    def _known(self, *, final: bool) -> tuple[Result, dict[str, Any] | None]:
        """Return what is known, and the proof's arrays.

        A search may be going on: so the bound and the arcs come before their proof, and the proof, whose deletions
        hold for the incumbents so far, before the incumbent.
        """
        bound = self.session.best_bound
        arcs = None if self.root is None else self.root.proved_arcs()
        arrays = None if self.proof is None else self.proof.arrays()
        return self._result(bound, arcs, final=final), arrays

    def _result(self, bound: float | None, arcs: dict[str, list[list[str]]] | None, *, final: bool) -> Result:
        session, outcome = self.session, self.outcome
        structure, objective, _, trace = session.snapshot()
        if bound is not None and objective is not None:
            bound = max(bound, objective)
        limit = session.stopped if session.stopped not in (None, "gap") else outcome.limit
        if limit == "user" and session.stopped != "user":
            limit = "time"  # nobody else interrupts a solver
        if session.error is not None:
            reason, limit = "error", None
        elif structure is None and outcome.infeasible:
            reason, limit = "infeasible", None
        elif structure is None or objective is None:
            reason, limit = "no_solution", limit or "time"
        elif bound is not None and is_optimal(objective, bound):
            reason, limit = "optimal", None
        else:
            reason = "feasible"
            if session.stopped == "gap":
                limit = "gap"
            if not final:
                limit = "time"
        total = session.elapsed()
        result = Result(
            data=self.summary,
            score=self.problem.score,
            constraints=self.constraints,
            reason=reason,
            limit=limit,
            structure=structure,
            objective=objective,
            bound=bound,
            bound_source=session.bound_source,
            backend=self.info,
            seconds=Seconds(total=total, solve=total - sum(self.times.values()), **self.times),
            trace=tuple(trace),
            seed=self.options.random_state,
            run=self._name,
            nodes=session.node_count,
            proved=arcs,
            detail=self._detail(),
        )
        result = of_all_data(self.problem, result)
        return replace(result, classifier=fit_classifier(self.dataset, result)) if final else result

    def _detail(self) -> str:
        """Return the solver's own status where it ended by itself, or what went wrong."""
        if self.session.error is not None:
            return str(self.session.error)
        return self.outcome.detail if self.session.stopped is None else ""


def of_all_data(problem: Problem, result: Result) -> Result:
    """Return a subset's result with the score over all data, and the subset's numbers apart; others as they are."""
    counted = problem.subset_weights
    if counted is None:
        return result
    subset = {
        "samples": int(np.count_nonzero(counted)),
        "objective": result.objective,
        "bound": result.bound,
        "gap": vars(result.gap),
        "optimal": result.optimal,
    }
    objective = None
    if result.structure is not None:
        objective = rescore(problem.data, result.structure, problem.score, problem.rules)
    reason = "feasible" if result.optimal else result.reason
    return replace(result, reason=reason, objective=objective, bound=None, proved=None, subset=subset)


def fit_classifier(dataset: Dataset, result: Result) -> Classifier | None:
    """Fit the parameters of a result's structure, with the result's numbers as provenance."""
    from milpbn import __version__

    if result.structure is None:
        return None
    provenance = {
        "milpbn": __version__,
        "data": vars(result.data),
        "score": result.score.to_dict(),
        "objective": result.objective,
        "bound": result.bound,
        "status": result.reason,
        "backend": vars(result.backend),
    }
    return Classifier.fit(dataset, result.structure, result.score.smoothing, provenance)
