"""The largest linear score of any structure, or an upper bound on it: what the dual bound asks for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.branching import forced_arborescences, maximum_arborescence, rounding_slack
from milpbn.network.structure import topological_order
from milpbn.scores.candidates import Candidates

#: Parent sets of the class that are tried with a branching of their own; all others share one bound.
CLASS_SET_SCANS = 200
#: Up to so many possible parent sets of the class the forced branchings are found for each of them.
CLASS_SET_FORCINGS = 20


@dataclass(frozen=True)
class Answer:
    """Of one question to the oracle.

    Attributes
    ----------
    choice : int64 array, shape (V,)
        One entry of eta per variable; possibly a cyclic graph where acyclicity was relaxed.
    value : float
        The weight of the choice.
    bound : float
        No acyclic choice weighs more; includes the rounding.
    acyclic : bool
        The choice is a structure.
    """

    choice: NDArray[np.int64]
    value: float
    bound: float
    acyclic: bool


class StructureOracle:
    """Maximises linear functions over the structures of some candidate sets.

    Features with at most one feature parent make the answer a maximum-weight branching; with class parents the
    parent sets of the class are scanned by falling weight. Of larger parent sets, and for child limits, the
    acyclicity is relaxed: the bound holds, and the choice may be no structure.

    Parameters
    ----------
    candidates : Candidates
        Parent sets that obey the rules, the class last.
    """

    def __init__(self, candidates: Candidates) -> None:
        self.candidates = candidates
        c = candidates.n_variables - 1
        self._class = c
        entries = np.arange(candidates.offsets[c])
        owner = candidates.variable[: candidates.offsets[c]]
        feature_parents = [tuple(j for j in candidates.flat[p] if j != c) for p in entries]
        self.branching = all(len(s) <= 1 for s in feature_parents)
        # Node 0 of the branching is the root, node i + 1 the feature i.
        parent = np.array([s[0] + 1 if len(s) == 1 else 0 for s in feature_parents], dtype=np.int64)
        self._arc = parent * (c + 1) + owner + 1
        self._needs_class = np.array([c in candidates.flat[p] for p in entries], dtype=bool)
        self._sets = [np.array(s, dtype=np.int64) for s in candidates.sets[c]]

    def __call__(self, weights: NDArray[np.float64]) -> Answer:
        """Maximise ``weights @ eta``; `weights` has shape (P,)."""
        if not self.branching:
            return self._relaxed(weights)
        first = int(self.candidates.offsets[self._class])
        gains = weights[first:]
        free, free_value, slack = self._branch(weights[:first])
        best_value, best_set, best_choice = -np.inf, 0, free
        open_bound = -np.inf
        for scan, k in enumerate(np.argsort(-gains, kind="stable")):
            if gains[k] + free_value <= best_value:
                break
            if scan == CLASS_SET_SCANS:
                # Weights fall: this set's relaxed value bounds all that were not tried.
                open_bound = float(gains[k] + free_value)
                break
            if len(self._sets[k]):
                choice, value, _ = self._branch(weights[:first], self._blocked(int(k)))
            else:
                choice, value = free, free_value
            if gains[k] + value > best_value:
                best_value, best_set, best_choice = float(gains[k] + value), int(k), choice
        choice = np.append(best_choice, first + best_set)
        bound = max(best_value, open_bound) + slack + _sum_slack(weights[choice])
        return self._answer(choice, weights, bound)

    def heaviest_with(self, weights: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
        """Return for every entry of eta an upper bound on the weight of the structures that have it.

        Parameters
        ----------
        weights : float64 array, shape (P,)
            As for a call.
        threshold : float
            Only bounds above this need to be right: structures that weigh less are left out of account.

        Returns
        -------
        float64 array, shape (P,)
            Every structure that weighs at least `threshold` weighs at most the bound of each of its entries.
        """
        offsets, P = self.candidates.offsets, self.candidates.n_sets
        if not self.branching:
            best = np.array([weights[a:b].max() for a, b in pairwise(offsets)])
            rest = best.sum() - best[self.candidates.variable]
            return weights + rest + _sum_slack(best) + _sum_slack(weights)
        first = int(offsets[self._class])
        gains = weights[first:]
        square, _ = self._matrix(weights[:first])
        slack = rounding_slack(square) + _sum_slack(weights)
        threshold -= slack
        result = np.full(P, -np.inf)
        result[first:] = gains + self._branch(weights[:first])[1]
        for k in np.flatnonzero(result[first:] >= threshold)[:CLASS_SET_SCANS].tolist():
            if len(self._sets[k]):
                result[first + k] = gains[k] + self._branch(weights[:first], self._blocked(k))[1]
        alive = np.flatnonzero(result[first:] >= threshold)
        # With many possible sets of the class, one branching that lets the features choose freely serves all.
        choices: list[tuple[float, NDArray[np.bool_] | None]]
        choices = [(float(gains[k]), self._blocked(int(k))) for k in alive]
        if len(alive) > CLASS_SET_FORCINGS:
            choices = [(float(gains[alive].max()), None)]
        for gain, blocked in choices:
            usable = weights[:first] if blocked is None else np.where(blocked, -np.inf, weights[:first])
            others = forced_arborescences(self._matrix(usable)[0]).ravel()[self._arc]
            np.maximum(result[:first], usable + others + gain, out=result[:first])
        return result + slack

    def _blocked(self, k: int) -> NDArray[np.bool_]:
        """Return which feature entries contain the class although the class's set number k has the feature."""
        owner = self.candidates.variable[: len(self._needs_class)]
        return self._needs_class & np.isin(owner, self._sets[k])

    def _matrix(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the heaviest entry of every arc, as weights and entries, each of shape (N + 1, N + 1)."""
        n = self._class + 1
        # Sorted by weight: of the entries of one arc the last one written stays.
        order = np.argsort(weights, kind="stable")
        matrix = np.full(n * n, -np.inf)
        entry = np.full(n * n, -1, dtype=np.int64)
        matrix[self._arc[order]] = weights[order]
        entry[self._arc[order]] = order
        return matrix.reshape(n, n), entry

    def _branch(
        self, weights: NDArray[np.float64], blocked: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], float, float]:
        """Return the best branching's entries, value and rounding slack, without the blocked entries."""
        n = self._class + 1
        square, entry = self._matrix(weights if blocked is None else np.where(blocked, -np.inf, weights))
        parent = maximum_arborescence(square)[1:]
        child = np.arange(1, n)
        return entry[parent * n + child], float(square[parent, child].sum()), rounding_slack(square)

    def _relaxed(self, weights: NDArray[np.float64]) -> Answer:
        """Let every variable choose for itself."""
        choice = self.candidates.heaviest(weights)
        total = float(weights[choice].sum())
        return self._answer(choice, weights, total + _sum_slack(weights[choice]))

    def _answer(self, choice: NDArray[np.int64], weights: NDArray[np.float64], bound: float) -> Answer:
        acyclic = topological_order([self.candidates.flat[p] for p in choice]) is not None
        return Answer(choice, float(weights[choice].sum()), bound, acyclic)


def _sum_slack(terms: NDArray[np.float64]) -> float:
    """Return a bound on the rounding of a sum."""
    return float(len(terms) * np.finfo(np.float64).eps * np.abs(terms).sum())
