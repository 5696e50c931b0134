"""The bound before any branching, and the candidate sets that it leaves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.frank_wolfe import FIRST_TEMPERATURE, INFEASIBLE, PAUSED, take_steps
from milpbn.bounds.inequalities import Inequalities, child_limits, node_of
from milpbn.bounds.multipliers import best_multipliers
from milpbn.bounds.optima import Optima
from milpbn.bounds.oracle import RELAXED as RELAXED_ORACLE
from milpbn.bounds.oracle import heaviest_structure, oracle_of
from milpbn.bounds.point import (
    BEST_TEMPERATURE,
    BEST_VERTICES,
    BOUND,
    CONSTANT,
    FOUND,
    RELAXED,
    STEPS,
    TEMPERATURE,
    VERTICES,
    Model,
    Node,
    Point,
    empty_point,
    evaluate,
    place,
    score_of,
)
from milpbn.bounds.prices import heaviest_with
from milpbn.bounds.proof import Proof
from milpbn.bounds.reduction import deletion_threshold, restricted
from milpbn.bounds.space import Weights
from milpbn.network.structure import Structure
from milpbn.result import is_optimal
from milpbn.scores.problem import Problem

#: The steps end when less than this share of the distance to the best structure could still be gained.
WORTHWHILE = 0.02
#: So many steps have to bring at least that share.
PATIENCE = 60
#: The steps begin anew on the smaller problem if at least this share of the candidate sets was deleted.
WORTH_REPEATING = 0.1
#: Products of dual weights and columns between two looks at the clock: some 50 ms.
SLICE = 50_000_000
#: Threads pay from so many products of samples and domains on.
LARGE = 2_000_000


def model_of(problem: Problem) -> Model:
    """Return a problem with margins as the kernels take it.

    The slack covers the rounding of the sums in b(lambda): over the samples' constant parts, and of the linear terms;
    and, in proportion to the dual weights, of the products over all samples and classes for each of a structure's
    entries, and of the sums of weights behind every coefficient.

    Raises
    ------
    ValueError
        Without margins, or under the hard margin.
    """
    margins = problem.margins
    if margins is None or margins.smallest:
        raise ValueError("the bound needs margins, and a gamma or a likelihood")
    tables = margins.flat
    M, Q = margins.n_samples, tables.values.shape[1]
    eps = np.finfo(np.float64).eps
    total = float(margins.weights.sum())
    largest = 2 * float(np.abs(tables.values).max(initial=0.0))
    per_entry = (M * Q + 64) * eps * largest
    constant = (M + 64) * eps * total * max(margins.softening.cap, np.log(Q) + 1.0)
    per_table = (4 * M + 64) * eps
    per_weight = problem.candidates.n_variables * (per_entry + per_table)
    linear = np.maximum.reduceat(np.abs(problem.linear), problem.candidates.offsets[:-1])
    slack = constant + (M + 64) * eps * float(linear.sum())
    oracle = oracle_of(problem.candidates)
    return Model(tables, margins.softening, oracle, problem.linear, slack, per_weight, 0.0, problem.column)


class Root:
    """The whole problem's bound: Frank-Wolfe steps, deletion of candidate sets, and again.

    Parameters
    ----------
    problem : Problem
        With margins, and not the hard margin.
    known : Structure
        Where the steps start.
    threads : int
        More than one lets large products use threads.
    proof : Proof or None
        Gets what justifies the deletions.
    """

    def __init__(
        self, problem: Problem, known: Structure, *, threads: int = 1, proof: Proof | None = None
    ) -> None:
        choice = problem.choice(known)
        if choice is None:
            raise ValueError("the structure is outside the problem's candidates")
        self.problem = problem
        self.proof = proof
        self.model = model_of(problem)
        n = self.model.oracle.n
        self.allowed = np.ones(problem.candidates.n_sets, dtype=bool)
        self.no_edges = np.zeros((n, n), dtype=np.int64)
        #: The parts of a tree that is brought to its end.
        self.optima: Optima | None = None
        self.point: Point = empty_point(self.model)
        self.parallel = threads > 1 and self.point.logits.shape[0] * len(self.model.tables.sizes) > LARGE
        self.bound = np.inf
        #: What gives the bound.
        self.weights: Weights | None = None
        self.steps = 0
        #: Inequalities that bound the structures, and their multipliers.
        self.rows: Inequalities = child_limits(problem.candidates, problem.rules)
        self.multipliers = np.zeros(len(self.rows.limit))
        self.node: Node = self._node()
        work = self.point.logits.shape[0] * len(self.model.tables.columns)
        self._per_slice = max(1, min(64, SLICE // max(1, work)))
        self.point.gradient[:] = problem.linear
        temperature = FIRST_TEMPERATURE * max(1.0, self.model.softening.cap)
        place(self.model, self.node, self.point, choice[None, :], np.ones(1), temperature, self.parallel)

    def _node(self) -> Node:
        """Return what the deletions have left, bounded with the multipliers."""
        return node_of(self.model, self.rows, self.multipliers, self.allowed, self.no_edges, 0)

    def value(self, structure: Structure) -> float:
        """Return a structure's score by the tables."""
        choice = self.problem.choice(structure)
        assert choice is not None
        return score_of(self.model, choice, self.point.direction, self.parallel)

    def run(
        self,
        best: Structure,
        *,
        stopping: Callable[[], bool],
        bounded: Callable[[float], None],
        found: Callable[[Structure], Structure | None],
        reduce: bool = True,
        max_steps: int = 1_000_000,
    ) -> Structure:
        """Step, delete and price inequalities until neither brings much; return the best structure known then.

        Parameters
        ----------
        best : Structure
            The incumbent.
        stopping : callable
            Asked between slices of some steps.
        bounded : callable
            Told of every smaller bound.
        found : callable
            Told of structures better than the incumbent; returns the best one that is known then.
        reduce : bool
            Delete candidate sets.
        max_steps : int
            Most products with the coefficients.
        """
        while True:
            best = self._steps(best, stopping, bounded, found, max_steps)
            if not np.isfinite(self.point.numbers[BOUND]):
                return best
            before = int(self.allowed.sum())
            if reduce:
                self.delete(best)
            if stopping() or self.steps >= max_steps or is_optimal(self.value(best), self.bound):
                return best
            fewer = self.allowed.sum() <= (1 - WORTH_REPEATING) * before
            if not self._price(best, bounded, stopping) and not fewer:
                return best
            point = self.point
            n = int(point.counts[VERTICES])
            place(
                self.model,
                self.node,
                point,
                point.vertices[:n].copy(),
                point.shares[:n].copy(),
                point.numbers[TEMPERATURE],
                self.parallel,
            )

    def _steps(
        self,
        best: Structure,
        stopping: Callable[[], bool],
        bounded: Callable[[float], None],
        found: Callable[[Structure], Structure | None],
        max_steps: int,
    ) -> Structure:
        numbers, counts = self.point.numbers, self.point.counts
        incumbent = self.value(best)
        last_bound, last_steps = np.inf, 0
        while not stopping() and self.steps < max_steps:
            before = int(counts[STEPS])
            status = take_steps(
                self.model,
                self.node,
                self.point,
                incumbent,
                WORTHWHILE,
                -np.inf,
                self._per_slice,
                True,
                self.parallel,
            )
            self.steps += int(counts[STEPS]) - before
            if status == INFEASIBLE:
                raise ValueError("the candidate sets hold no structure")
            self._note(bounded)
            if (
                counts[FOUND]
                and score_of(self.model, self.point.found, self.point.direction, self.parallel) > incumbent
            ):
                structure = self.problem.candidates.structure(self.point.found)
                if self.problem.obeys(structure):
                    best = found(structure) or best
                    incumbent = self.value(best)
            if status != PAUSED or is_optimal(incumbent, self.bound):
                break
            if counts[STEPS] - last_steps >= PATIENCE:
                gap = self.bound - max(incumbent, float(numbers[RELAXED]))
                if last_bound - self.bound < WORTHWHILE * max(gap, 0.0):
                    break
                last_bound, last_steps = self.bound, int(counts[STEPS])
        return best

    def delete(self, best: Structure) -> None:
        """Delete the candidate sets that no better structure than the best known one can have."""
        choice = self.problem.choice(best)
        point = self.point
        if choice is None or not np.isfinite(point.numbers[BOUND]):
            return
        threshold = deletion_threshold(self.value(best)) - float(point.numbers[CONSTANT])
        bounds = heaviest_with(self.model.oracle, point.gradient, self.allowed, threshold)
        gone = self.allowed & (bounds < threshold)
        gone[choice] = False
        if not gone.any():
            return
        if self.proof is not None:  # first: whoever reads what is allowed finds its proof
            self.proof.delete(0, self._weights(), np.flatnonzero(gone))
        self.allowed = self.allowed & ~gone
        self.node = self._node()

    def _price(self, best: Structure, bounded: Callable[[float], None], stopping: Callable[[], bool]) -> bool:
        """Price the inequalities that the best bound's point violates; return whether that was worth it."""
        oracle, point = self.model.oracle, self.point
        if oracle.kind != RELAXED_ORACLE and not len(self.rows.limit):
            return False
        known = self.problem.choice(best)
        if known is None:
            return False
        weights = point.gradient - (self.node.linear - self.model.linear)
        old, before, own = self.multipliers, self.bound, float(point.numbers[BOUND])
        self.rows, multipliers = best_multipliers(
            oracle, self.problem.candidates, self.rows, weights, self.allowed, known, stopping
        )
        if self.proof is not None:
            self.proof.rows = self.rows
        self._use(multipliers)
        if point.numbers[BOUND] > own:
            # The linear program was not brought to an end.
            self._use(np.pad(old, (0, len(multipliers) - len(old))))
        self._note(bounded)
        return before - self.bound > WORTHWHILE * (before - self.value(best))

    def _use(self, multipliers: NDArray[np.float64]) -> None:
        """Bound the problem anew with some multipliers, at the point that gave the best bound."""
        self.multipliers = multipliers
        self.node = self._node()
        evaluate(self.model, self.node, self.point, self.parallel)

    def _note(self, bounded: Callable[[float], None]) -> None:
        """Keep the point's bound if it is the least."""
        if self.point.numbers[BOUND] < self.bound:
            self.bound = float(self.point.numbers[BOUND])
            self.weights = self._weights()
            if self.proof is not None:
                self.proof.leaf(0, self.weights)
            bounded(self.bound)

    def proved_arcs(self) -> dict[str, list[list[str]]]:
        """Return the arcs [parent, child] that every optimum has (``in``) or lacks (``out``).

        They follow from the deletions, and once a tree has closed all parts from those that may hold an optimum. An
        optimum scores at least as much as the incumbent that either was made by. Arcs that no candidate set has are
        left out.
        """
        if self.optima is not None:
            return self.optima.arcs()
        whole = Optima(self.problem.candidates)
        whole.add(self.allowed, np.inf, -np.inf)
        return whole.arcs()

    def _weights(self) -> Weights:
        point = self.point
        n = int(point.counts[BEST_VERTICES])
        return Weights.of(
            point.best_vertices[:n],
            point.best_shares[:n],
            float(point.numbers[BEST_TEMPERATURE]),
            self.multipliers,
        )


def root_bound(
    problem: Problem,
    known: Structure | None,
    *,
    stopping: Callable[[], bool],
    bounded: Callable[[float], None],
    found: Callable[[Structure], Structure | None],
    reduce: bool = True,
    threads: int = 1,
    proof: Proof | None = None,
) -> tuple[Problem, Root | None]:
    """Bound the score of every structure, by the dual of the margin rows or by one branching.

    A decomposable score is linear: one question to the oracle bounds it, and answers it where acyclicity was not
    relaxed. The soft margins and the conditional log-likelihood take Frank-Wolfe steps, and the candidate sets
    that no better structure than the best known one can have are deleted. The hard margin and AICc have no
    bound here.

    Parameters
    ----------
    problem : Problem
        What is maximised.
    known : Structure or None
        The best structure so far, where the steps start.
    stopping, bounded, found, reduce
        See `Root.run`.
    threads : int
        Threads that large products may use.
    proof : Proof or None
        Gets what justifies the deletions.

    Returns
    -------
    problem : Problem
        Over the candidate sets that are left: its best structure is that of the whole problem, or `known`.
    root : Root or None
        Where a search can go on, if there were steps.
    """
    if problem.margins is None and problem.curve is None:
        _bound_linear(problem, bounded, found)
    if problem.margins is None or problem.margins.smallest or known is None:
        return problem, None

    def obeying(structure: Structure) -> Structure | None:
        return found(structure) if problem.obeys(structure) else None

    root = Root(problem, known, threads=threads, proof=proof)
    root.run(known, stopping=stopping, bounded=bounded, found=obeying, reduce=reduce)
    return (problem if root.allowed.all() else restricted(problem, root.allowed)), root


def _bound_linear(
    problem: Problem, bounded: Callable[[float], None], found: Callable[[Structure], Structure | None]
) -> None:
    candidates = problem.candidates
    oracle = oracle_of(candidates)
    choice = np.empty(candidates.n_variables, dtype=np.int64)
    everything = np.ones(candidates.n_sets, dtype=bool)
    no_edges = np.zeros((oracle.n, oracle.n), dtype=np.int64)
    _, bound, acyclic = heaviest_structure(oracle, problem.linear, everything, no_edges, 0, choice)
    bounded(float(bound))
    if acyclic:
        structure = candidates.structure(choice)
        if problem.obeys(structure):
            found(structure)
