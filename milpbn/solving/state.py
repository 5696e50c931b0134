"""The state of a running search: incumbent, bound, trace, the products of its stages, and the reasons to stop."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from milpbn.certificate.format import Proof
from milpbn.certificate.multiplier_proof import MultiplierProof
from milpbn.claims.gap import PROOF, Target, is_optimal, solver_tolerance, target_gap
from milpbn.claims.reading import TracePoint
from milpbn.claims.reasons import BoundSource, Limit, Reason
from milpbn.engine.events import SavedState
from milpbn.engine.pool import Pool
from milpbn.engine.root import Root
from milpbn.errors import MilpbnError, SolverError
from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem
from milpbn.problem.unused import without_unused
from milpbn.solvers.base import Outcome
from milpbn.solvers.support.audit import TOLERANCE
from milpbn.util.budget import Budget
from milpbn.util.clock import within

#: Each stage before the engine may take this share of the remaining time, and at most this many seconds.
BRIEF_SHARE, BRIEF_SECONDS = 0.1, 20.0
#: Nats by which a structure's score may exceed a certified bound, besides the rounding errors of scores. A larger
#: excess proves the bound wrong.
CONTRADICTION = 1e-7
#: Relative difference between a structure's score by the coefficients and its score from the data that is an error.
MISMATCH = 1e-7
#: Scores that differ by no more than this, relative to their size, and by no more than their error, count as equal.
ROUNDING = 1e-12
#: The outcome of an engine for which the memory did not suffice.
OUT_OF_MEMORY = Outcome(limit="memory", detail="out of memory")


@dataclass(frozen=True)
class Products:
    """Problems, root, proof and outcome.

    Before the full problem is built, `problem` is the same over small parent sets; `reduced` is `problem` without the
    parent sets that reduced-cost fixing has excluded. `search` returns the state of the engine's search, from which
    another run can go on. The seconds are those for data and coefficients, and those to build the MILP. `shared` and
    `span` are what a solver's tolerances are relative to (`milpbn.claims.gap.solver_tolerance`). If a certificate is
    wanted, the engine records in `proof`, or in `multiplier_proof` if it maximises decomposable scores. After a
    search over a subset of the samples, `bound_on_all` is one on the score over all of them, `proof_on_all` its proof.
    """

    problem: Problem
    reduced: Problem
    root: Root | None = None
    proof: Proof | None = None
    multiplier_proof: MultiplierProof | None = None
    bound_on_all: float | None = None
    proof_on_all: Proof | None = None
    search: Callable[[], SavedState | None] | None = None
    outcome: Outcome = Outcome()  # noqa: RUF009  # frozen
    coefficient_seconds: float = 0.0
    model_seconds: float = 0.0
    shared: float = 0.0
    span: float = 0.0


class Session:
    """The state of a run that threads share: incumbent, bound, products of the stages, and whether to stop.

    Stages and engines offer structures through their `events`, and get the best structure known in return. The
    incumbent never falls and the bound never rises. Every structure is scored from the data before it becomes the
    incumbent. Any thread may call any method.

    `earlier_seconds` are those of a run from which this one goes on; they count in `elapsed`. `timed` says whether
    stages before the engine end by the clock; if not, they end by themselves, and the run is deterministic. The run
    stops at one of the gaps of the `target`. The `pool` receives the best structures; with more than one, the gap is
    that of the last of them.
    """

    def __init__(
        self,
        problem: Problem,
        budget: Budget | None = None,
        *,
        earlier_seconds: float = 0.0,
        timed: bool = True,
        target: Target = PROOF,
        pool: Pool | None = None,
    ) -> None:
        self.products = Products(problem, problem)
        self.structure: Structure | None = None
        self.objective: float | None = None
        #: Largest possible rounding error of the objective (`milpbn.problem.rescore.rescored`).
        self.objective_error = 0.0
        self.best_bound: float | None = None
        self.bound_source = BoundSource.CERTIFIED
        self.trace: list[TracePoint] = []
        self.node_count: int | None = None
        self.source = ""
        self.error: MilpbnError | None = None
        self.budget = budget or Budget()
        self.budget.reached = self.closed
        #: `time.monotonic` value that counts as second 0.
        self.started = self.budget.began - earlier_seconds
        self._timed = timed
        #: Number of structures that were scored from the data, and the seconds that this took.
        self.n_scored, self.scoring_seconds = 0, 0.0
        self.target, self.pool = target, Pool(1) if pool is None else pool
        #: A structure, and the standard error of its score.
        self._spread: tuple[Structure, float | None] | None = None
        #: Scores, bound and its source at the last look, if the gap was open.
        self._still_open: tuple[tuple[float, float, float], BoundSource | None] | None = None
        self._lock = threading.RLock()
        #: Set at every change; the main thread waits for it to show progress.
        self.changed = threading.Event()

    @property
    def problem(self) -> Problem:
        """`Products.problem`."""
        return self.products.problem

    def produce(self, **parts: Any) -> None:
        """Replace attributes of `products` by what a stage has produced."""
        with self._lock:
            self.products = replace(self.products, **parts)

    def events(
        self,
        source: str,
        bound_source: BoundSource | None = BoundSource.CERTIFIED,
        budget: Budget | None = None,
    ) -> SessionEvents:
        """Return the `Events` of a stage or an engine, which report to this session under its name.

        Without a source of bounds, these are left out of the run. The budget is by default that of the run.
        """
        return SessionEvents(self, source, bound_source, budget or self.budget)

    def brief(self, most: float = BRIEF_SECONDS) -> Budget:
        """Return the budget of a stage before the engine: a share of the time left, and at most `most` seconds."""
        return self.budget.share(BRIEF_SHARE, most) if self._timed else self.budget

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.started

    def offer(self, structure: Structure, source: str) -> Structure:
        """Make an acyclic structure the incumbent if it is better; return the incumbent.

        Raise SolverError if the structure breaks a constraint of the user, or if its score by the coefficients is not
        its score from the data.
        """
        if self.pool.size == 1:  # else arcs that change nothing are forbidden, unless they were asked for
            structure = without_unused(self.problem, structure)
        value = self._by_coefficients(structure, source)
        with self._lock:
            if self.structure is not None and self.objective is not None and value <= self.objective:
                return self.structure
        objective, error = self._from_data(structure, value, source)
        with self._lock:
            # Equivalent structures differ by rounding only; replacing one could lift a bound that is already proved.
            best, known = self.objective, self.structure
            if (
                known is not None
                and best is not None
                and objective <= best + min(ROUNDING * abs(best), error)
            ):
                return known
            self._become(structure, objective, error, source)
            return structure

    def prefer(self, structure: Structure, objective: float, error: float) -> None:
        """Make a structure of the list the incumbent if its score from the data is better, by however little."""
        with self._lock:
            if self.objective is not None and objective > self.objective:
                self._become(structure, objective, error, "the list of the best")

    def _become(self, structure: Structure, objective: float, error: float, source: str) -> None:
        """Take a structure as the incumbent, with its score from the data; the lock is held."""
        self.structure, self.objective, self.source = structure, objective, source
        self.objective_error = error
        bound = self.best_bound
        if bound is not None and bound < objective and not self._contradicts(bound, self.bound_source):
            # Solvers' bounds hold up to their tolerances; the incumbent is exact.
            self.best_bound = objective
        self._record()

    def resume(
        self, structure: Structure, bound: float | None, trace: Sequence[TracePoint], nodes: int | None
    ) -> None:
        """Go on where an earlier run stopped: take its incumbent, which is scored from the data, and its trace.

        `bound` is None without any, and so is `nodes`, the number of branch-and-bound nodes, before the first.
        """
        objective, error = self.scored(structure, "the checkpoint")
        with self._lock:
            self.structure, self.objective, self.objective_error = structure, objective, error
            self.best_bound = None if bound is None else max(bound, objective)
            self.trace, self.node_count, self.source = list(trace), nodes, "checkpoint"
            if not trace or trace[-1][1:] != (objective, self.best_bound):
                self._record()
            self.changed.set()

    def scored(self, structure: Structure, source: str) -> tuple[float, float]:
        """Return the score of a structure from the data and its rounding error, checked as `offer` checks it."""
        return self._from_data(structure, self._by_coefficients(structure, source), source)

    def _by_coefficients(self, structure: Structure, source: str) -> float:
        """Return the score of a structure by the coefficients, which must be a candidate that obeys the constraints."""
        problem = self.problem
        objection, choice = problem.objection(structure), problem.choice(structure)
        if objection is None and (choice is None or not problem.obeys(structure)):
            objection = "it is outside the candidate parent sets"
        if objection is not None or choice is None:
            raise SolverError(
                f"A structure from {source} breaks the constraints: {objection}. Please report this."
            )
        return problem.value(problem.indicator(choice))

    def _from_data(self, structure: Structure, value: float, source: str) -> tuple[float, float]:
        """Return the score of a structure from the data and its rounding error; it must be that by the coefficients."""
        problem, began = self.problem, time.monotonic()
        objective, error = problem.rescored(structure)
        self.n_scored += 1
        self.scoring_seconds += time.monotonic() - began
        if abs(objective - value) > MISMATCH * max(1.0, abs(value)) + problem.score_error + error:
            raise SolverError(
                f"A structure from {source} scores {objective!r} from the data and {value!r} in the model; "
                "please report this."
            )
        return objective, error

    def bound(self, value: float, source: BoundSource = BoundSource.SOLVER) -> None:
        """Record an upper bound on the score of every structure."""
        if not math.isfinite(value):
            return
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

    def _contradicts(self, bound: float, source: BoundSource) -> bool:
        """Return whether the incumbent disproves a bound; if so, the run has no bound and ends with an error."""
        assert self.objective is not None
        allowed = CONTRADICTION + self.problem.score_error + self.objective_error
        if source is BoundSource.SOLVER:
            # A solver's bound holds up to its tolerances, and these add up over the rows of the samples.
            margins = self.problem.margins
            weight = 0.0 if margins is None else float(margins.weights.sum())
            allowed += TOLERANCE * max(1.0, abs(self.objective - self.products.shared), weight)
        if bound >= self.objective - allowed:
            return False
        self.best_bound = None
        self.fail(
            SolverError(
                f"A structure scores {self.objective!r}, but the bound on all scores is {bound!r} ({source}); one of "
                "them is wrong. Please report this."
            )
        )
        return True

    def nodes(self, count: int) -> None:
        """Record the number of branch-and-bound nodes so far."""
        self.node_count = max(count, self.node_count or 0)

    def fail(self, error: MilpbnError) -> None:
        """Record an error, which ends the run; the first one counts."""
        self.error = self.error or error
        self.budget.close()
        self.changed.set()

    def stop(self, limit: Limit) -> None:
        """Tell the run to stop; the first limit counts."""
        self.budget.end(limit)
        self.changed.set()

    def watch(
        self, work: Callable[[], None], tick: Callable[[], None], version: str, *, name: str, daemon: bool
    ) -> None:
        """Run work in a thread, and do not wait long for it once the run has to stop (`milpbn.util.clock.within`).

        Ctrl-C stops the run; a second Ctrl-C ends the waiting at once. `tick` is called a few times per second, and
        whenever something changed. `version` says in an error message what works there.

        What the work raises becomes the outcome, a stop or the error of the session, but for a MilpbnError that is no
        SolverError.
        """

        def guarded() -> None:
            try:
                work()
            except (MilpbnError, MemoryError):
                raise
            except Exception as error:
                raise SolverError(f"{version} failed: {error}") from error
            finally:
                self.changed.set()

        def wait() -> None:
            self.changed.wait(0.2)
            self.changed.clear()
            tick()

        def first() -> bool:
            before = self.budget.stopped
            self.stop(Limit.USER)
            return before is not Limit.USER

        try:
            within(guarded, self.budget.over, name=name, tick=wait, interrupt=first, daemon=daemon)
        except MemoryError:
            self.produce(outcome=OUT_OF_MEMORY)
        except KeyboardInterrupt:  # a second Ctrl-C, or the work has seen a signal
            self.stop(Limit.USER)
        except SolverError as error:
            self.fail(error)
        else:
            tick()

    def closed(self) -> bool:
        """Whether the gap is as small as the user asked for, or proves an optimum, or the list of the K best."""
        numbers = self._open()
        if numbers is None or (numbers, self.bound_source) == self._still_open:  # a climb asks at every step
            return False
        z, b, error = numbers
        if self._reached(z, b) is not None or is_optimal(z, b, error, target_gap(z, self.tolerance(z))):
            return True
        self._still_open = numbers, self.bound_source
        return False

    def _open(self) -> tuple[float, float, float] | None:
        """Return the score and the bound between which the gap is, and the error of the score; None without them."""
        z, b, error = self.objective, self.best_bound, self.objective_error
        if z is None or b is None:
            return None
        if self.pool.size > 1:
            if not self.pool.selective:
                return None
            z, b = self.pool.cutoff, min(b, self.pool.others(self.pool.rest))
            error = max(error, self.problem.score_error)
        return z, b, error

    def _reached(self, objective: float, bound: float) -> Limit | None:
        """Return which gap that was asked for is reached."""
        error = self.standard_error(self.structure) if self.target.gap_se else None
        return self.target.reached(objective, bound, error)

    def standard_error(self, structure: Structure | None) -> float | None:
        """Return the standard error of a structure's score in nats (`milpbn.problem.rescore.standard_error`)."""
        if structure is None:
            return None
        if self._spread is None or self._spread[0] is not structure:
            self._spread = structure, self.problem.standard_error(structure)
        return self._spread[1]

    def tolerance(self, objective: float) -> float:
        """Return the largest distance of the bound from a score that counts as proved, in nats."""
        problem, products = self.problem, self.products
        span = products.span if self.bound_source is BoundSource.SOLVER else 0.0
        return solver_tolerance(problem.score_error, objective, products.shared, span)

    def how_ended(self, objective: float | None, bound: float | None) -> tuple[Reason, Limit | None]:
        """Return the reason and the limit with which the run ends, given its last numbers."""
        outcome = self.products.outcome
        limit = None if outcome.limit is None else Limit(outcome.limit)
        if limit is Limit.USER:
            # An interrupt by the user is in the budget; so the deadline stopped the solver.
            limit = Limit.TIME
        stopped = self.budget.stopped
        if stopped not in (None, Limit.GAP):
            limit = stopped
        if self.error is not None:
            return Reason.ERROR, None
        if objective is None:
            if outcome.infeasible:
                return Reason.INFEASIBLE, None
            return Reason.NO_SOLUTION, limit or Limit.TIME
        if bound is not None and is_optimal(
            objective, bound, self.objective_error, self.tolerance(objective)
        ):
            return Reason.OPTIMAL, None
        if stopped is Limit.GAP and any(self.target):
            numbers = self._open()
            limit = Limit.GAP if numbers is None else self._reached(*numbers[:2]) or Limit.GAP
        return Reason.FEASIBLE, limit

    def _record(self) -> None:
        self.trace.append((self.elapsed(), self.objective, self.best_bound))
        self.changed.set()

    def snapshot(self) -> tuple[Structure | None, float | None, float | None, list[TracePoint]]:
        """Return structure, objective, bound and trace of one moment."""
        with self._lock:
            return self.structure, self.objective, self.best_bound, list(self.trace)


class SessionEvents:
    """The `Events` of one stage or engine: its reports go to the session under its name."""

    def __init__(
        self, session: Session, source: str, bound_source: BoundSource | None, budget: Budget
    ) -> None:
        self._session, self._source, self._bound_source = session, source, bound_source
        self.budget, self.nodes = budget, session.nodes

    def offer(self, structure: Structure) -> Structure:
        """Make a structure the incumbent if it is better; return the incumbent."""
        return self._session.offer(structure, self._source)

    def bound(self, value: float) -> None:
        """Report an upper bound on the score of every structure."""
        if self._bound_source is not None:
            self._session.bound(value, self._bound_source)

    def formulated(self, shared: float, span: float) -> None:
        """Report what the tolerances of the MILP solver are relative to."""
        self._session.produce(shared=shared, span=span)

    def resumable(self, state: Callable[[], SavedState | None]) -> None:
        """Give the run the function that returns the state of the search."""
        self._session.produce(search=state)
