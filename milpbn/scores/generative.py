"""Decomposable scores: log-likelihood, MDL = BIC, AIC, AICc and BDeu."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from milpbn.clock import check_deadline
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.scores.candidates import Candidates, ParentSet
from milpbn.scores.families import joint_states


def family_counts(data: Dataset, child: int, parents: ParentSet) -> NDArray[np.float64]:
    """Return the weighted counts n_{j|h}; float64 array, shape (parent states, child states).

    Of very many joint parent states only those that occur have a row: the others count nothing.
    """
    index, size = joint_states(data.codes, parents, data.n_states)
    r = int(data.n_states[child])
    cell = index * r + data.codes[:, child]
    return np.bincount(cell, weights=data.weights, minlength=size * r).astype(np.float64).reshape(size, r)


def log_likelihood(counts: NDArray[np.float64]) -> float:
    """Return sum_{j,h} n_{j|h} log(n_{j|h} / n_h) with 0 log 0 = 0, in nats: unsmoothed ML parameters."""
    return float(xlogy(counts, counts).sum() - xlogy(counts.sum(axis=1), counts.sum(axis=1)).sum())


def bdeu(counts: NDArray[np.float64], n_parent_states: int, equivalent_sample_size: float) -> float:
    """Return the family's log marginal likelihood under the BDeu prior (Heckerman et al. 1995).

    Parameters
    ----------
    counts : float64 array, shape (parent states that occur, child states)
        n_{j|h}; parent states without samples contribute nothing.
    n_parent_states : int
        q, the number of all joint parent states.
    equivalent_sample_size : float
        alpha; each cell's pseudo-count is alpha / (q r).
    """
    above = equivalent_sample_size / n_parent_states
    cell = above / counts.shape[1]
    per_parent = gammaln(above) - gammaln(above + counts.sum(axis=1))
    return float(per_parent.sum() + (gammaln(cell + counts) - gammaln(cell)).sum())


def n_parameters(data: Dataset, child: int, parents: ParentSet) -> int:
    """Return the family's number of free parameters, (sp(X_i) - 1) times the joint parent states."""
    sizes = data.n_states
    return int(sizes[child] - 1) * math.prod(int(sizes[j]) for j in parents)


@dataclass(frozen=True)
class LocalScores:
    """Per candidate set: log-likelihood (nats) and free parameters, each of shape (P,)."""

    log_likelihood: NDArray[np.float64]
    parameters: NDArray[np.float64]


def _families(candidates: Candidates, deadline: float | None) -> Iterator[tuple[int, int, ParentSet]]:
    """Yield (entry of eta, variable, parent set), with an eye on the clock."""
    pairs = zip(candidates.variable.tolist(), candidates.flat, strict=True)
    for p, (variable, parents) in enumerate(pairs):
        if p % 64 == 0:
            check_deadline(deadline, f"{candidates.n_sets} local scores were computed")
        yield p, variable, parents


def local_scores(data: Dataset, candidates: Candidates, deadline: float | None = None) -> LocalScores:
    """Return the log-likelihood and number of free parameters of every candidate family.

    Raises
    ------
    NoIncumbentError
        When `deadline`, a value of `time.monotonic`, has passed.
    """
    likelihood, parameters = np.empty(candidates.n_sets), np.empty(candidates.n_sets)
    for p, i, s in _families(candidates, deadline):
        likelihood[p] = log_likelihood(family_counts(data, i, s))
        parameters[p] = n_parameters(data, i, s)
    return LocalScores(likelihood, parameters)


def bdeu_scores(
    data: Dataset, candidates: Candidates, equivalent_sample_size: float, deadline: float | None = None
) -> NDArray[np.float64]:
    """Return the BDeu score of every candidate family, shape (P,); see `local_scores` for the deadline."""
    sizes = data.n_states
    scores = np.empty(candidates.n_sets)
    for p, i, s in _families(candidates, deadline):
        q = math.prod(int(sizes[j]) for j in s)
        scores[p] = bdeu(family_counts(data, i, s), q, equivalent_sample_size)
    return scores


@dataclass(frozen=True)
class AiccCurve:
    """AICc's correction k + k (k + 1) / (M - k - 1), convex in the total number of parameters k.

    Attributes
    ----------
    parameters : float64 array, shape (P,)
        Free parameters of each candidate family; k is their sum over the chosen ones.
    total_weight : float
        M, the sum of the sample weights.
    """

    parameters: NDArray[np.float64]
    total_weight: float

    def correction(self, k: float) -> float:
        """Return the correction in nats for k parameters; infinite for k >= M - 1, where AICc has no value."""
        rest = self.total_weight - k - 1
        return k + k * (k + 1) / rest if rest > 0 else math.inf

    def range(self, candidates: Candidates) -> tuple[int, int]:
        """Return the smallest and largest k that a choice of candidate sets can have and AICc is defined for.

        Raises
        ------
        InputError
            If even the smallest structure has k >= M - 1.
        """
        blocks = np.split(self.parameters, candidates.offsets[1:-1])
        low = int(sum(b.min() for b in blocks))
        high = min(int(sum(b.max() for b in blocks)), math.ceil(self.total_weight - 1) - 1)
        if low >= self.total_weight - 1:
            raise InputError(
                f"AICc is defined for fewer than M - 1 = {self.total_weight - 1:g} parameters, and every structure "
                f"here has at least {low}; use more data, or the score mdl."
            )
        return low, high
