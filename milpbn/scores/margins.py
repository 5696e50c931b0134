"""The samples' part of a margin score: coefficients alpha(i, k, m, c), P12 (12), and abar(i, k, m), P12 (23)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from milpbn.data.dataset import Dataset
from milpbn.scores.candidates import Candidates
from milpbn.scores.changes import table_spreads
from milpbn.scores.families import FamilyTables, family_tables
from milpbn.scores.products import Softening, Tables, add_columns, coefficients, flat_tables, total_score
from milpbn.scores.spec import Score


@dataclass(frozen=True)
class MarginRows:
    """One row of coefficients per sample and competing class (SM, CLL), or per sample (SBM).

    The log-margin of sample m is the minimum over its rows of ``alpha[m] @ eta[columns]``.

    Attributes
    ----------
    tables : FamilyTables
        What the coefficients are looked up in.
    weights : float64 array, shape (M,)
        Sample weights.
    gamma : float or None
        Desired log-margin; None for the hard margin, where the smallest log-margin is the score, and for the
        conditional log-likelihood.
    likelihood : bool
        The score is the conditional log-likelihood, sum_m w_m log P(c_m | z_m).
    """

    tables: FamilyTables
    weights: NDArray[np.float64]
    gamma: float | None
    likelihood: bool = False

    @property
    def columns(self) -> NDArray[np.int64]:
        """Entry of eta of each column, int64 array, shape (K,); the coefficients of all other entries are 0."""
        return self.tables.columns

    @property
    def n_samples(self) -> int:
        """Number of (merged) samples M."""
        return self.tables.n_samples

    @property
    def n_rows(self) -> int:
        """Number of margin rows, M times R; R = C - 1 competing classes, or 1 under SBM."""
        return self.n_samples * (self.tables.values.shape[1] - 1)

    @cached_property
    def flat(self) -> Tables:
        """The tables as the kernels take them."""
        return flat_tables(self.tables, self.weights)

    @cached_property
    def spreads(self) -> NDArray[np.float64]:
        """By how much each column can lower a log-margin, at most, shape (K,)."""
        return np.asarray(table_spreads(self.flat))

    @property
    def softening(self) -> Softening:
        """What a sample adds, as the kernels take it."""
        if self.likelihood:
            return Softening(0.0, True)
        return Softening(np.inf if self.gamma is None else self.gamma, False)

    @property
    def smallest(self) -> bool:
        """Whether the score is the smallest log-margin."""
        return self.gamma is None and not self.likelihood

    @property
    def alpha(self) -> NDArray[np.float64]:
        """All coefficients in nats, float64 array, shape (M, R, K); made at the first use, and then kept.

        The competing classes come in ascending order, without the true one.
        """
        kept = self.tables.__dict__.get("alpha")
        if kept is None:
            kept = self.tables.__dict__["alpha"] = coefficients(self.flat)
        return kept

    def logits(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sum_k eta_k table_k[cell, c] for every sample and class, float64 array, shape (M, Q)."""
        used = np.flatnonzero(eta[self.columns])
        out = np.zeros((self.n_samples, self.tables.values.shape[1]))
        add_columns(self.flat, used, eta[self.columns[used]], out, False)
        return out

    def log_margins(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return min_r alpha[m, r] @ eta for every sample, shape (M,); P12 (13) and (22)."""
        logits = self.logits(eta)
        every = np.arange(len(logits))
        own = logits[every, self.tables.true]
        logits[every, self.tables.true] = -np.inf
        return np.asarray(own - logits.max(axis=1))

    def parts(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what each sample adds without its weight, shape (M,); its log-margin for the hard margin."""
        if self.likelihood:
            logits = self.logits(eta)
            return np.asarray(log_softmax(logits, axis=1)[np.arange(len(logits)), self.tables.true])
        return np.minimum(self.log_margins(eta), np.inf if self.gamma is None else self.gamma)

    def value(self, eta: NDArray[np.float64]) -> float:
        """Return the samples' part of the score, P12 (9); the smallest log-margin without gamma; or the CLL."""
        return float(total_score(self.flat, self.softening, self.logits(eta), self.smallest))


def margin_rows(
    data: Dataset,
    candidates: Candidates,
    score: Score,
    deadline: float | None = None,
    sample_weights: NDArray[np.float64] | None = None,
) -> MarginRows:
    """Build the tables of a margin score.

    Parameters
    ----------
    data : Dataset
        Training data, merged samples for speed and size.
    candidates : Candidates
        Parent sets.
    score : Score
        ``sm``, ``sbm``, ``hard-margin`` or ``cll``.
    deadline : float, optional
        `time.monotonic` value after which NoIncumbentError is raised.
    sample_weights : float64 array, shape (M,), optional
        What the samples' margins count instead of the weights; those with 0 get no rows. The parameters are
        those of all data.

    Returns
    -------
    MarginRows
    """
    tables = family_tables(data, candidates, score.smoothing, binary=score.name == "sbm", deadline=deadline)
    weights = data.weights
    if sample_weights is not None:
        counted = np.flatnonzero(sample_weights)
        tables, weights = tables.take(counted), sample_weights[counted]
    return MarginRows(tables, weights, score.gamma, likelihood=score.name == "cll")
