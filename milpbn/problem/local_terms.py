"""Local terms: the coefficients that are linear in eta, one per candidate family."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.problem.candidates import Candidates
from milpbn.problem.counts import n_parameters
from milpbn.problem.scores.base import ScoreKind
from milpbn.util.budget import Budget


def local_terms(
    data: Dataset, candidates: Candidates, kind: ScoreKind, budget: Budget | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the local term of every candidate family, and its size for the error bound (`ScoreKind.family`).

    Parameters
    ----------
    data : Dataset
        Training data.
    candidates : Candidates
        Parent sets.
    kind : ScoreKind
        The score with its options.
    budget : Budget, optional
        The time and memory that this may take; by default there is no limit of time.

    Returns
    -------
    terms, sizes : float64 arrays, shape (P,)
        Nats; zeros if the score has no local terms.

    Raises
    ------
    NoIncumbentError
        If the budget is used up.
    """
    budget = budget or Budget()
    terms, sizes = np.zeros((2, candidates.n_sets))
    if not kind.has_local_terms:
        return terms, sizes
    for p, (variable, parents) in enumerate(zip(candidates.variable.tolist(), candidates.flat, strict=True)):
        if p % 64 == 0:
            budget.check(
                f"{candidates.n_sets} local scores were computed",
                f"local scores {p} of {candidates.n_sets}",
            )
        terms[p], sizes[p] = kind.family(data, variable, parents)
    return terms, sizes


def parameter_counts(data: Dataset, candidates: Candidates) -> NDArray[np.float64]:
    """Return the number of free parameters of every candidate family, float64 array, shape (P,)."""
    families = zip(candidates.variable.tolist(), candidates.flat, strict=True)
    return np.array([n_parameters(data, i, s) for i, s in families], dtype=np.float64)
