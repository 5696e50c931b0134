"""The Lagrangian bound of a soft-margin score, minimised by Frank-Wolfe steps on the softened score.

The score f(eta) = linear @ eta + sum_m w_m min(gamma, min_r alpha_{m,r} @ eta) is concave. For any weights lambda_m in
the simplex over {gamma, rows},

    b(lambda) = gamma sum_m w_m lambda_{m,0} + max over structures of (linear + sum w_m lambda_{m,r} alpha_{m,r}) @ eta

is at least the score of every structure. The weights of the softened score at a point eta of the hull of all
structures are such a lambda; the maximising structures are the vertices that the point is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from milpbn.bounds.oracle import StructureOracle
from milpbn.bounds.softened import best_step, soft_weights
from milpbn.network.structure import Structure
from milpbn.scores.problem import Problem

#: The run ends when bound and score at the point differ by this share of the bound.
ENOUGH = 1e-6
#: They also end when less than this share of the distance to the best structure could still be gained.
WORTHWHILE = 0.02
#: So many steps have to bring at least that share.
PATIENCE = 100
#: Temperatures relative to gamma: the first, and the lowest.
FIRST_TEMPERATURE, LOWEST_TEMPERATURE = 0.2, 1e-5
#: The point is recomputed from its vertices every so many steps, so that rounding does not add up.
REFRESH = 50


@njit(cache=True, parallel=True)
def _combine(alpha, columns, factors, out):  # type: ignore[no-untyped-def]  # numba infers the types
    """Write sum_k factors[k] * alpha[:, :, columns[k]] to `out`."""
    M, R, _ = alpha.shape
    for m in prange(M):
        for r in range(R):
            total = 0.0
            for k in range(len(columns)):
                total += factors[k] * alpha[m, r, columns[k]]
            out[m, r] = total


@dataclass(frozen=True)
class RootBound:
    """What the steps came to.

    Attributes
    ----------
    bound : float
        Smallest b(lambda) met, rounded up: no structure scores more.
    relaxed : float
        Largest score at a point of the hull: the bound cannot fall below it.
    iterations : int
        Number of products with the coefficients.
    """

    bound: float
    relaxed: float
    iterations: int


class FrankWolfe:
    """Pairwise Frank-Wolfe on the softened score of a problem with margins and a finite gamma.

    Parameters
    ----------
    problem : Problem
        Under ``sm`` or ``sbm``.
    start : Structure
        First vertex.
    """

    def __init__(self, problem: Problem, start: Structure) -> None:
        margins = problem.margins
        choice = problem.choice(start)
        if margins is None or margins.gamma is None or choice is None:
            raise ValueError("the bound needs margins, a gamma, and a structure among the candidates")
        self.problem = problem
        self.margins = margins
        self.gamma = margins.gamma
        self.oracle = StructureOracle(problem.candidates)
        self.column = np.full(problem.candidates.n_sets, -1, dtype=np.int64)
        self.column[margins.columns] = np.arange(len(margins.columns))
        # The point is a convex combination of vertices, one choice of entries of eta each.
        self.vertices = choice[None, :].copy()
        self.shares = np.ones(1)
        self.temperature = FIRST_TEMPERATURE * self.gamma
        shape = margins.alpha.shape[:2]
        self.rows = np.empty(shape)
        self.direction = np.empty(shape)
        self.duals = np.empty(shape)
        #: The smallest bound is best_constant + max of best_gradient @ eta, once `run` has begun.
        self.best_gradient = problem.linear
        self.best_constant = np.inf
        self.refresh()

    def eta(self) -> NDArray[np.float64]:
        """Return the point, shape (P,)."""
        eta = np.zeros(self.problem.candidates.n_sets)
        np.add.at(eta, self.vertices, self.shares[:, None])
        return eta

    def refresh(self) -> None:
        """Recompute alpha @ eta from the vertices."""
        eta = self.eta()
        self._combine(np.flatnonzero(eta), eta[eta != 0], self.rows)

    def _combine(
        self, entries: NDArray[np.int64], factors: NDArray[np.float64], out: NDArray[np.float64]
    ) -> None:
        active = self.column[entries] >= 0
        _combine(self.margins.alpha, self.column[entries[active]], factors[active], out)

    def score(self, choice: NDArray[np.int64]) -> float:
        """Return the score of one choice of entries, by the coefficients."""
        self._combine(choice, np.ones(len(choice)), self.direction)
        margins = np.minimum(self.direction.min(axis=1), self.gamma)
        return float(self.margins.weights @ margins + self.problem.linear[choice].sum())

    def rounding(self) -> float:
        """Return what rounding can take from b(lambda): sums over M R products, and over M weights of gamma."""
        M, R, K = self.margins.alpha.shape
        eps = np.finfo(np.float64).eps
        total = float(self.margins.weights.sum())
        largest = (
            max(abs(float(self.margins.alpha.max())), abs(float(self.margins.alpha.min()))) if K else 0.0
        )
        per_column = M * R * eps * total * largest
        return self.problem.candidates.n_variables * per_column + (M + R + 8) * eps * total * self.gamma

    def run(
        self,
        *,
        stopping: Callable[[], bool],
        bounded: Callable[[float], None] = lambda value: None,
        found: Callable[[Structure], None] = lambda structure: None,
        max_iterations: int = 100_000,
    ) -> RootBound:
        """Step until bound and point meet, as closely as the distance to the best structure calls for.

        Parameters
        ----------
        stopping : callable
            Asked after every step.
        bounded : callable
            Told of every smaller bound.
        found : callable
            Told of every vertex that is a structure and better than the start and all before.
        max_iterations : int
            Most products with the coefficients.
        """
        problem, margins = self.problem, self.margins
        alpha = margins.alpha.reshape(-1, margins.alpha.shape[2])
        slack = self.rounding()
        bound, relaxed, last_bound = np.inf, -np.inf, np.inf
        known = self.score(self.vertices[0])
        linear_here = float(problem.linear @ self.eta())
        iteration = 0
        while iteration < max_iterations:
            iteration += 1
            exact, capped = soft_weights(self.rows, margins.weights, self.gamma, self.temperature, self.duals)
            gradient = problem.linear.copy()
            gradient[margins.columns] += self.duals.ravel() @ alpha
            answer = self.oracle(gradient)
            here = exact + linear_here
            relaxed = max(relaxed, here)
            value = float(self.gamma * capped + answer.bound + slack)
            if value < bound:
                bound = value
                self.best_gradient, self.best_constant = gradient, float(self.gamma * capped + slack)
                bounded(bound)
            if answer.acyclic and not (self.vertices == answer.choice).all(axis=1).any():
                score = self.score(answer.choice)
                if score > known:
                    known = score
                    found(problem.candidates.structure(answer.choice))
            left = bound - relaxed
            if stopping() or left <= max(ENOUGH * max(1.0, abs(bound)), WORTHWHILE * (bound - known)):
                break
            vertex_scores = gradient[self.vertices].sum(axis=1)
            eta_score = float(self.shares @ vertex_scores)
            to_gain = answer.value - eta_score
            waste = self.gamma * capped + eta_score - here
            self._adapt(to_gain, waste)
            linear_here += self._step(answer.choice, int(np.argmin(vertex_scores)))
            if iteration % PATIENCE == 0:
                if last_bound - bound < WORTHWHILE * (bound - max(relaxed, known)):
                    break  # zigzagging: a branch of the tree buys more
                last_bound = bound
            if iteration % REFRESH == 0:
                self.refresh()
                linear_here = float(problem.linear @ self.eta())
        return RootBound(bound, relaxed, iteration)

    def _adapt(self, to_gain: float, waste: float) -> None:
        """Keep what the softening gives away in balance with what further steps can gain."""
        lowest, highest = LOWEST_TEMPERATURE * self.gamma, FIRST_TEMPERATURE * self.gamma
        if waste > to_gain:
            self.temperature = max(lowest, 0.85 * self.temperature)
        elif waste < 0.3 * to_gain:
            self.temperature = min(highest, 1.1 * self.temperature)

    def _step(self, target: NDArray[np.int64], worst: int) -> float:
        """Move share from a vertex of the point to another choice; return the change of the linear part."""
        away = self.vertices[worst]
        moved = target != away
        plus, minus = target[moved], away[moved]
        if not len(plus):
            return 0.0
        self._combine(
            np.concatenate([plus, minus]), np.repeat([1.0, -1.0], [len(plus), len(minus)]), self.direction
        )
        linear = self.problem.linear
        slope = float(linear[plus].sum() - linear[minus].sum())
        longest = float(self.shares[worst])
        step = best_step(
            self.rows, self.direction, longest, slope, self.margins.weights, self.gamma, self.temperature
        )
        self.rows += step * self.direction
        same = np.flatnonzero((self.vertices == target).all(axis=1))
        if len(same):
            self.shares[same[0]] += step
        else:
            self.vertices = np.vstack([self.vertices, target])
            self.shares = np.append(self.shares, step)
        if step == longest:
            self.vertices = np.delete(self.vertices, worst, axis=0)
            self.shares = np.delete(self.shares, worst)
        else:
            self.shares[worst] -= step
        return step * slope
