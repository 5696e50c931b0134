"""The main job: from data to a structure with a proven gap."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from milpbn.backends.base import Backend, Outcome, Settings
from milpbn.backends.registry import get_backend
from milpbn.backends.rounds import solve_formulation
from milpbn.data import Dataset, Table, read_table
from milpbn.errors import InputError, MilpbnError, SolverError
from milpbn.learners.first_incumbent import first_incumbent
from milpbn.model.formulation import ACYCLICITY, Formulation, formulate
from milpbn.network.classifier import Classifier
from milpbn.network.structure import Structure
from milpbn.progress import Progress, TraceFile, wants_progress
from milpbn.result import BackendInfo, DataSummary, Gap, Result, Seconds, is_optimal
from milpbn.scores.constraints import Constraints
from milpbn.scores.problem import Problem, build_problem
from milpbn.scores.spec import Score
from milpbn.scores.trivial_bound import trivial_bound
from milpbn.session import Session

#: A solver that has not stopped this long after it was told to is left behind.
GRACE = 1.0
#: Incumbent and bound reach the output file at least this often, in seconds.
SAVE_EVERY = 15.0
#: The first incumbents may take this share of the time limit, and never more than so many seconds.
HEURISTIC_SHARE, HEURISTIC_SECONDS = 0.1, 20.0


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to search: everything that does not change which structure is best.

    Attributes
    ----------
    backend : str
        ``auto``, ``highs``, ``cbc``, ``cpsat``, ``scip`` or ``pulp:NAME``.
    acyclicity : {"order", "cluster"}
        Formulation of acyclicity.
    time_limit : float or None
        Wall-clock seconds for everything, reading included.
    gap_rel, gap_abs : float
        Stop at a gap of at most this (relative to the bound; nats). 0 asks for a proof.
    threads : int or None
        Threads; by default all cores this process may use.
    random_state : int
        Seed.
    start : Structure or None
        A structure to begin with, for instance another learner's.
    warm_start : bool
        Hand the best structure of the heuristics to the solver.
    merge : bool
        Merge identical samples.
    solver_options : mapping of str to str
        Solver's own parameters.
    output : path or None
        ``result.json``, written when done and at least every 30 seconds.
    trace : path or None
        File for the any-time trace, JSON lines.
    log : path or None
        File for the solver's own log.
    verbose : bool or None
        Progress lines on stderr; None shows them in a terminal or a notebook.
    """

    backend: str = "auto"
    acyclicity: str = "order"
    time_limit: float | None = None
    gap_rel: float = 0.0
    gap_abs: float = 0.0
    threads: int | None = None
    random_state: int = 0
    start: Structure | None = None
    warm_start: bool = True
    merge: bool = True
    solver_options: Mapping[str, str] = field(default_factory=dict)
    output: str | os.PathLike[str] | None = None
    trace: str | os.PathLike[str] | None = None
    log: str | os.PathLike[str] | None = None
    verbose: bool | None = None

    def __post_init__(self) -> None:
        if self.time_limit is not None and not self.time_limit > 0:
            raise InputError(f"The time limit must be a positive number of seconds, got {self.time_limit}.")
        if self.threads is not None and self.threads < 1:
            raise InputError(f"The number of threads must be at least 1, got {self.threads}.")
        if not 0 <= self.random_state < 2**31:
            raise InputError(f"The seed must lie between 0 and 2147483647, got {self.random_state}.")
        for name in ("gap_rel", "gap_abs"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}.")
        if self.acyclicity not in ACYCLICITY:
            raise InputError(
                f"There is no acyclicity {self.acyclicity!r}; choose one of {', '.join(ACYCLICITY)}."
            )

    @property
    def n_threads(self) -> int:
        """Threads to use."""
        if self.threads is not None:
            return self.threads
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def training_data(source: Any) -> Dataset:
    """Return the training rows of anything that `solve` accepts as data."""
    if isinstance(source, Dataset):
        return source
    table = source if isinstance(source, Table) else read_table(source)
    return table.dataset("train")


def solve(
    data: Any,
    score: Score | str = "sm",
    *,
    constraints: Constraints | None = None,
    started: float | None = None,
    **options: Any,
) -> Result:
    """Find the structure that maximises a score, and a bound on every structure's score.

    Parameters
    ----------
    data : Dataset, Table, or anything `read_table` reads
        Training data; of a table with a split the training rows.
    score : Score or str
        What to maximise; a name means the score with its default options.
    constraints : Constraints, optional
        What the structure has to obey.
    started : float, optional
        `time.monotonic` value from which the time limit counts; by default now.
    **options
        The attributes of `Options`: backend, time_limit, gap_rel, threads, random_state, ...

    Returns
    -------
    Result
        With ``structure``, ``objective``, ``bound``, ``gap``, ``classifier`` and more.

    Raises
    ------
    InputError
        If data or options are unusable, the solver is missing, or memory would not suffice.
    SolverError
        If the solver fails.

    Examples
    --------
    >>> import milpbn
    >>> result = milpbn.solve("corral", milpbn.Score(p=0.9), time_limit=60)
    >>> result.reason
    'optimal'
    """
    began = time.monotonic() if started is None else started
    try:
        chosen = Options(**options)
    except TypeError as error:
        raise InputError(f"solve does not take that option ({error}).") from None
    backend = get_backend(chosen.backend)
    version = backend.version()
    dataset = training_data(data)
    spec = Score(name=score) if isinstance(score, str) else score
    problem = build_problem(dataset, spec, constraints, merge=chosen.merge)
    return solve_problem(problem, dataset, chosen, backend, version, constraints or Constraints(), began)


def solve_problem(
    problem: Problem,
    dataset: Dataset,
    options: Options,
    backend: Backend,
    version: str,
    constraints: Constraints,
    started: float,
) -> Result:
    """Search for the best structure of a problem whose coefficients are there; see `solve`."""
    run = _Run(problem, dataset, options, backend, version, constraints, started)
    return run.run()


class _Run:
    """One run: heuristics, model, solver in a thread of its own, progress, and the result."""

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
        self.dataset = dataset
        self.options = options
        self.backend = backend
        self.info = BackendInfo(options.backend, version, options.n_threads)
        self.constraints = constraints
        self.started = started
        self.deadline = None if options.time_limit is None else started + options.time_limit
        self.session = Session(
            problem,
            started=started,
            deadline=self.deadline,
            gap_rel=options.gap_rel,
            gap_abs=options.gap_abs,
        )
        self.summary = DataSummary.of(dataset)
        self.outcome = Outcome()
        self.times = {"coefficients": time.monotonic() - started, "model": 0.0}
        self._progress = Progress() if wants_progress(options.verbose) else None
        self._trace = None if options.trace is None else TraceFile(options.trace)
        self._saved = time.monotonic()

    def run(self) -> Result:
        session = self.session
        try:
            try:
                self._search()
            except KeyboardInterrupt:
                session.stop("user")
            except SolverError as error:
                session.error = session.error or error
            result = self._result(final=True)
        finally:
            if self._trace is not None:
                self._trace.update(self.session.snapshot()[3])
                self._trace.close()
        if self.options.output is not None:
            result.save(self.options.output)
        if session.error is not None:
            raise session.error
        return result

    def _search(self) -> None:
        session = self.session
        session.bound(trivial_bound(self.problem), "certified")
        self._first_incumbents()
        self._tick()
        if session.stopping():
            return
        begun = time.monotonic()
        formulation = formulate(self.problem, self.options.acyclicity)
        session.formulation = formulation
        self.times["model"] = time.monotonic() - begun
        if not session.stopping():
            self._run_backend(formulation)

    def _first_incumbents(self) -> None:
        session = self.session
        end = time.monotonic() + HEURISTIC_SECONDS
        if self.deadline is not None:
            end = min(end, time.monotonic() + HEURISTIC_SHARE * max(0.0, self.deadline - time.monotonic()))

        def found(structure: Structure) -> None:
            session.offer(structure, "local search")

        def stopping() -> bool:
            self._tick()
            return time.monotonic() > end or session.stopping()

        first_incumbent(
            self.problem,
            self.options.start,
            random_state=self.options.random_state,
            stopping=stopping,
            found=found,
        )

    def _run_backend(self, formulation: Formulation) -> None:
        """Run the solver in a thread, so that signals, progress and deadline do not wait for it."""
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
        failure: list[BaseException] = []

        def work() -> None:
            try:
                self.outcome = solve_formulation(self.backend, formulation, start, settings, session)
            except BaseException as error:  # handed to the thread that waits
                failure.append(error)
            finally:
                session.changed.set()

        thread = threading.Thread(target=work, name=f"milpbn-{self.backend.name}", daemon=True)
        thread.start()
        told = None
        while thread.is_alive():
            try:
                session.changed.wait(0.2)
                session.changed.clear()
                self._tick()
                # Coalesce: many changes at once give one line.
                thread.join(0.05)
            except KeyboardInterrupt:
                if session.stopped == "user":
                    break
                session.stop("user")
            if session.stopping():
                told = told or time.monotonic()
                if time.monotonic() - told > GRACE:
                    break
        if failure:
            error = failure[0]
            if isinstance(error, MilpbnError):
                raise error
            if isinstance(error, MemoryError):
                self.outcome = Outcome(limit="memory", detail="out of memory")
                return
            raise SolverError(f"{self.info.version} failed: {error}") from error
        self._tick()

    def _tick(self) -> None:
        """Show what changed, and save it from time to time."""
        session = self.session
        _, objective, bound, trace = session.snapshot()
        if self._progress is not None:
            gap = Gap.between(objective, bound).relative_to_bound
            self._progress.line(session.elapsed(), session.node_count, objective, bound, gap, session.source)
        if self._trace is not None:
            self._trace.update(trace)
        if self.options.output is not None and time.monotonic() - self._saved > SAVE_EVERY:
            self._result(final=False).save(self.options.output)
            self._saved = time.monotonic()

    def _result(self, *, final: bool) -> Result:
        session, outcome = self.session, self.outcome
        structure, objective, bound, trace = session.snapshot()
        limit = session.stopped if session.stopped not in (None, "gap") else outcome.limit
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
            nodes=session.node_count,
            detail=outcome.detail if session.error is None else str(session.error),
        )
        return replace(result, classifier=fit_classifier(self.dataset, result)) if final else result


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
