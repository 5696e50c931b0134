"""The root bound, before any branching, and reduced-cost fixing of candidate sets by it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.format import Proof, restored_rows
from milpbn.certificate.records import DualWeights, Inequalities
from milpbn.claims.gap import is_optimal, target_gap, tolerance_of
from milpbn.engine.dual.frank_wolfe import INFEASIBLE, PAUSED, Goal, take_steps
from milpbn.engine.dual.inequalities import child_limits, subproblem_of
from milpbn.engine.dual.multipliers import best_multipliers
from milpbn.engine.dual.pairs import no_pairs
from milpbn.engine.dual.point import Model, Point, Subproblem, empty_point, evaluate, place, score_of
from milpbn.engine.events import Events
from milpbn.engine.optima import Optima
from milpbn.engine.pool import Pool
from milpbn.engine.reduction import restricted
from milpbn.engine.relaxation.oracle import RELAXED as RELAXED_ORACLE
from milpbn.engine.relaxation.oracle import oracle_of
from milpbn.engine.relaxation.reduced_costs import heaviest_with
from milpbn.engine.thresholds import fixing_threshold
from milpbn.engine.tuning import TUNING
from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem
from milpbn.problem.rounding import CAREFUL, bound_errors
from milpbn.util.budget import Budget
from milpbn.util.saved_arrays import SavedArrays, count, number


def model_of(problem: Problem) -> Model:
    """Return a problem with margins as the kernels take it; raise ValueError without margins, and for the hard margin.

    The bounds of the model are rounded up so far that the verifier can prove them (`milpbn.problem.rounding`).
    """
    margins = problem.margins
    if margins is None or margins.smallest:
        raise ValueError("the bound needs margins, and a gamma or a likelihood")
    offsets = problem.candidates.offsets
    errors = bound_errors(
        problem.data, problem.score.prior, margins.n_samples, problem.linear_error, offsets, CAREFUL
    )
    oracle = oracle_of(problem.candidates)
    return Model(
        margins.tables,
        margins.softening,
        oracle,
        problem.linear,
        errors,
        problem.score_error,
        0.0,
        problem.column,
        no_pairs(),
    )


class Root:
    """The bound on the whole problem: Frank-Wolfe steps and reduced-cost fixing, repeated.

    The problem has margins, not the hard margin's. The steps begin at the structure `start`; ValueError if one of its
    parent sets is not a candidate. The `proof` receives the dual weights that justify the fixings. The `pool` receives
    the best structures known, by default one: parent sets are fixed if no structure that contains them belongs in it.
    """

    def __init__(
        self,
        problem: Problem,
        start: Structure,
        *,
        threads: int = 1,
        proof: Proof | None = None,
        pool: Pool | None = None,
    ) -> None:
        choice = problem.choice(start)
        if choice is None:
            raise ValueError("the structure is outside the problem's candidates")
        self.problem, self.proof = problem, proof
        self.model = model_of(problem)
        #: The best structures known; the tree continues with it.
        self.pool = Pool(1) if pool is None else pool
        n = self.model.oracle.n
        self.allowed = np.ones(problem.candidates.n_sets, dtype=bool)
        if problem.rules.max_features is not None:
            self.allowed = problem.candidates.without_more_features(self.allowed, problem.rules.max_features)
        self.no_edges = np.zeros((n, n), dtype=np.int64)
        #: The arcs that all optima share, once a tree has been searched to its end.
        self.optima: Optima | None = None
        self.point: Point = empty_point(self.model)
        self.parallel = (
            threads > 1
            and self.point.logits.shape[0] * len(self.model.tables.sizes) > TUNING.root.parallel_from
        )
        self.bound = np.inf
        #: The dual weights that give the bound.
        self.weights: DualWeights | None = None
        self.steps = 0
        #: Inequalities that every structure satisfies, and their multipliers.
        self.rows: Inequalities = child_limits(problem.candidates, problem.rules)
        self.multipliers = np.zeros(len(self.rows.limit))
        #: The last solution of the linear program: vertices and shares.
        self._solution: tuple[NDArray[np.int64], NDArray[np.float64]] | None = None
        self.subproblem: Subproblem = self._current_subproblem()
        work = self.point.logits.shape[0] * len(self.model.tables.columns)
        self._per_slice = max(1, min(64, TUNING.root.slice_work // max(1, work)))
        self.point.gradient[:] = problem.linear
        self._place(
            choice[None, :], np.ones(1), TUNING.temperature.first * max(1.0, self.model.softening.cap)
        )

    def _place(self, vertices: NDArray[np.int64], shares: NDArray[np.float64], temperature: float) -> None:
        place(self.model, self.subproblem, self.point, vertices, shares, temperature, self.parallel)

    def _current_subproblem(self) -> Subproblem:
        """Return the problem over the parent sets that are not fixed, with the multipliers."""
        return subproblem_of(self.model, self.rows, self.multipliers, self.allowed, self.no_edges, 0)

    def value(self, structure: Structure) -> float:
        """Return the score of a structure, computed from the tables."""
        choice = self.problem.choice(structure)
        assert choice is not None
        return self._score_of(choice)

    def _score_of(self, choice: NDArray[np.int64]) -> float:
        return score_of(self.model, choice, self.point.direction, self.parallel)

    def list_structure(self, structure: Structure, value: float) -> None:
        """List a structure with its score."""
        choice = self.problem.choice(structure)
        assert choice is not None
        self.pool.offer(choice, value)

    def list_neighbours(self, most: int, budget: Budget, *, parallel: bool) -> bool:
        """List the best neighbours of at most so many listed structures; return whether any was still to explore."""
        logits = np.empty_like(self.point.direction)
        return self.pool.explore(
            self.problem,
            lambda found: score_of(self.model, found, logits, parallel),
            most,
            budget,
            parallel=parallel,
        )

    def run(
        self, best: Structure, events: Events, *, reduce: bool = True, max_steps: int = 1_000_000
    ) -> Structure:
        """Take steps, fix parent sets and find multipliers until none of these gains much; return the incumbent.

        With `reduce`, parent sets are fixed to 0 by their reduced costs. The budget is asked between slices of steps.
        """
        while True:
            last = self.bound
            best = self._steps(best, events, max_steps)
            if not np.isfinite(self.point.state.bound):
                return best
            before = int(self.allowed.sum())
            if reduce:
                self.fix(best)
            if events.budget.over() or self.steps >= max_steps or self._proved(self.value(best)):
                return best
            fewer = self.allowed.sum() <= (1 - TUNING.root.repeat) * before
            if not self._give_multipliers(best, events, last) and not fewer:
                return best
            self._place(*self._convex_combination(), self.point.state.temperature)

    def _convex_combination(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the vertices and shares from which steps go on: those of the linear program, or else of the point."""
        if self._solution is not None:
            vertices, shares = self._solution
            most = np.argsort(-shares, kind="stable")[: len(self.point.shares)]
            return vertices[most], shares[most]
        n = int(self.point.state.vertices)
        return self.point.vertices[:n].copy(), self.point.shares[:n].copy()

    def _steps(self, best: Structure, events: Events, max_steps: int) -> Structure:
        """Take steps until they gain little; return the incumbent."""
        state = self.point.state
        incumbent = self.value(best)
        last_bound, last_steps = np.inf, 0
        while not events.budget.over() and self.steps < max_steps:
            before = int(state.steps)
            goal = Goal(incumbent, TUNING.root.worthwhile, -np.inf)
            status = take_steps(
                self.model, self.subproblem, self.point, goal, self._per_slice, True, self.parallel
            )
            self.steps += int(state.steps) - before
            if status == INFEASIBLE:
                raise ValueError("the candidate sets hold no structure")
            self._note(events)
            if state.found and self._score_of(self.point.found) > incumbent:
                structure = self.problem.candidates.structure(self.point.found)
                if self.problem.obeys(structure):
                    best = events.offer(structure)
                    incumbent = self.value(best)
            if status != PAUSED or self._proved(incumbent):
                break
            if state.steps - last_steps >= TUNING.root.patience:
                gap = self.bound - max(incumbent, float(state.relaxed))
                if last_bound - self.bound < TUNING.root.worthwhile * max(gap, 0.0):
                    break
                last_bound, last_steps = self.bound, int(state.steps)
        return best

    def _proved(self, incumbent: float) -> bool:
        """Whether the bound proves that the incumbent is optimal."""
        target = target_gap(incumbent, tolerance_of(self.model.score_error))
        return is_optimal(incumbent, self.bound, tolerance=target)

    def fix(self, best: Structure) -> None:
        """Fix to 0 the candidate sets that no structure better than the last of the best ones known contains."""
        choice = self.problem.choice(best)
        point = self.point
        if choice is None or not np.isfinite(point.state.bound):
            return
        self.pool.offer(choice, self.value(best))
        threshold = fixing_threshold(self.pool.cutoff, self.model.score_error) - float(point.state.constant)
        bounds = heaviest_with(self.model.oracle, point.gradient, self.allowed, threshold)
        gone = self.allowed & (bounds < threshold)
        gone[choice] = False
        if not gone.any():
            return
        if self.proof is not None:  # before `allowed` changes, so that every fixing seen there is proved
            self.proof.fix(0, self._current_weights(), np.flatnonzero(gone))
        self.allowed = self.allowed & ~gone
        self.subproblem = self._current_subproblem()

    def _give_multipliers(self, best: Structure, events: Events, last: float) -> bool:
        """Find multipliers for the gradient of the best bound.

        Return whether the bound has fallen by a worthwhile amount since the `last` multipliers, inf if there are none.
        """
        oracle, point = self.model.oracle, self.point
        if oracle.kind != RELAXED_ORACLE and not len(self.rows.limit):
            return False
        choice = self.problem.choice(best)
        if choice is None:
            return False
        weights = point.gradient - (self.subproblem.linear - self.model.linear)
        old, point_bound = self.multipliers, float(point.state.bound)
        before = last if last < np.inf else self.bound
        solved = best_multipliers(
            oracle, self.problem.candidates, self.rows, weights, self.allowed, choice, events.budget
        )
        self.rows = solved.rows
        if self.proof is not None:
            self.proof.rows = self.rows
        self._use(solved.values)
        if point.state.bound > point_bound:
            # The linear program was stopped before its optimum, and the old multipliers are better.
            self._use(np.pad(old, (0, len(solved.values) - len(old))))
        if oracle.kind == RELAXED_ORACLE and len(solved.shares):
            self._solution = solved.vertices, solved.shares
        self._note(events)
        return before - self.bound > TUNING.root.worthwhile * (before - self.value(best))

    def _use(self, multipliers: NDArray[np.float64]) -> None:
        """Set the multipliers, and recompute the bound at the point of the best bound."""
        self.multipliers = multipliers
        self.subproblem = self._current_subproblem()
        evaluate(self.model, self.subproblem, self.point, self.parallel)

    def _note(self, events: Events) -> None:
        """Record the point's bound if it is the smallest so far."""
        if self.point.state.bound < self.bound:
            self.bound = float(self.point.state.bound)
            self.weights = self._current_weights()
            if self.proof is not None:
                self.proof.leaf(0, self.weights)
            events.bound(self.bound)

    def proved_arcs(self) -> dict[str, list[list[str]]]:
        """Return the arcs [parent, child] that every optimum has (``in``) or lacks (``out``).

        They follow from the fixings or, once a tree has been searched to its end, from the pruned nodes that may
        contain an optimum. Both keep every structure that is better than the incumbent of their time. Arcs that no
        candidate set contains are left out.
        """
        if self.optima is not None:
            return self.optima.arcs()
        optima = Optima(self.problem.candidates, self.model.score_error)
        optima.add(self.allowed, np.inf, -np.inf)
        return optima.arcs()

    def _current_weights(self) -> DualWeights:
        """Return the dual weights at the point of the best bound."""
        point = self.point
        n = int(point.state.best_vertices)
        temperature = float(point.state.best_temperature)
        return DualWeights.of(point.best_vertices[:n], point.best_shares[:n], temperature, self.multipliers)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what `restore` takes, without the pool. A tree search does not change these arrays."""
        point, state = self.point, self.point.state
        n = int(state.best_vertices)
        return {
            "allowed": self.allowed,
            "bound": number(self.bound),
            "steps": count(self.steps),
            "row_members": self.rows.members,
            "row_limit": self.rows.limit,
            "multipliers": self.multipliers,
            "point_bound": number(state.bound),
            "constant": number(state.constant),
            "temperature": number(state.best_temperature),
            "gradient": point.gradient,
            "vertices": point.best_vertices[:n],
            "shares": point.best_shares[:n],
        }

    def restore(self, saved: SavedArrays) -> None:
        """Take what `state` returned: bound, fixed parent sets, multipliers and the best point.

        Raise UnfitError if the arrays have other shapes than those of a root of this problem, or indices that it does
        not have.
        """
        candidates, point = self.problem.candidates, self.point
        offsets, state = candidates.offsets, point.state
        rows = restored_rows(saved)
        vertices = saved.array(
            "vertices", np.int64, None, candidates.n_variables, least=offsets[:-1], below=offsets[1:]
        )
        n = len(vertices)
        self.bound, self.steps = saved.number("bound"), saved.count("steps")
        self.allowed = saved.array("allowed", np.bool_, candidates.n_sets).copy()
        self.multipliers = saved.array("multipliers", np.float64, len(rows.limit)).copy()
        self.rows = Inequalities(rows.members.copy(), rows.limit.copy())
        point.best_vertices[:n] = vertices
        point.best_shares[:n] = saved.array("shares", np.float64, n)
        point.gradient[:] = saved.array("gradient", np.float64, candidates.n_sets)
        state.best_vertices = n
        state.bound, state.constant = saved.number("point_bound"), saved.number("constant")
        state.best_temperature = saved.number("temperature")
        self.subproblem = self._current_subproblem()
        self.weights = self._current_weights()


def root_bound(
    problem: Problem,
    best: Structure | None,
    events: Events,
    *,
    reduce: bool = True,
    threads: int = 1,
    proof: Proof | None = None,
    pool: Pool | None = None,
) -> tuple[Problem, Root | None]:
    """Bound the score of every structure by the dual of the margin rows.

    For the soft margins and the conditional log-likelihood, Frank-Wolfe steps give the bound, and candidate sets that
    no structure better than the incumbent contains are fixed to 0. Other scores get no bound here.

    Parameters
    ----------
    best : Structure or None
        The incumbent, from which the steps start.
    reduce : bool
        Fix parent sets.
    threads, proof, pool
        As for `Root`.

    Returns
    -------
    problem : Problem
        The problem over the candidate sets that are not fixed. Its optimum is that of the whole problem, or `best` is.
    root : Root or None
        The state from which a tree search can continue; None if no steps were taken.
    """
    if problem.margins is None or problem.margins.smallest or best is None:
        return problem, None

    root = Root(problem, best, threads=threads, proof=proof, pool=pool)
    if root.pool.size > 1:
        root.list_structure(best, root.value(best))
        root.list_neighbours(TUNING.root.explored, events.budget, parallel=root.parallel)
        best = events.offer(problem.candidates.structure(root.pool.best()[0][0]))
    root.run(best, events, reduce=reduce)
    return (problem if root.allowed.all() else restricted(problem, root.allowed)), root
