"""The samples' part of a margin score, as coefficients of eta.

The coefficients alpha(i, k, m, c) are equation (12) of Peharz & Pernkopf (2012, P12). Those of the binary margin,
abar(i, k, m), are equation (23).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from milpbn.data.dataset import Dataset
from milpbn.problem.candidates import Candidates
from milpbn.problem.changes import table_spreads
from milpbn.problem.family_tables import Tables, family_tables
from milpbn.problem.products import Softening, coefficients
from milpbn.problem.scores.base import ScoreKind, Shape
from milpbn.problem.scores.spec import Score
from milpbn.util.budget import Budget


@dataclass(frozen=True)
class MarginRows:
    """One row of coefficients per sample and competing class, or one per sample under a binary margin.

    The log-margin of sample m is the minimum over its rows of ``alpha[m] @ eta[columns]``.

    `kind` is the score with its options. Only this class turns them into the arguments of the kernels (`softening`,
    `smallest`).
    """

    tables: Tables
    kind: ScoreKind

    @property
    def weights(self) -> NDArray[np.float64]:
        """Sample weights, shape (M,)."""
        return self.tables.weights

    @property
    def columns(self) -> NDArray[np.int64]:
        """Index in eta of each column, int64 array, shape (K,); all other parent sets have coefficients 0."""
        return self.tables.columns

    @property
    def n_samples(self) -> int:
        """Number of (merged) samples M."""
        return self.tables.n_samples

    @property
    def n_rows(self) -> int:
        """Number of margin rows, M times R; R = C - 1 competing classes, or 1 under a binary margin."""
        return self.n_samples * (self.tables.values.shape[1] - 1)

    @cached_property
    def spreads(self) -> NDArray[np.float64]:
        """The most by which each column can lower a log-margin, in nats, shape (K,)."""
        return np.asarray(table_spreads(self.tables))

    @property
    def softening(self) -> Softening:
        """The cap of a sample's part and whether it is smooth, as the kernels take them."""
        return Softening(self.kind.cap, self.kind.shape is Shape.CONCAVE)

    @property
    def smallest(self) -> bool:
        """Whether the smallest of the samples' parts counts, instead of their weighted sum."""
        return not self.kind.sums_samples

    @property
    def alpha(self) -> NDArray[np.float64]:
        """All coefficients in nats, float64 array, shape (M, R, K); computed at the first use and then kept.

        The competing classes come in ascending order, without the true one.
        """
        kept = self.tables.__dict__.get("alpha")
        if kept is None:
            kept = self.tables.__dict__["alpha"] = coefficients(self.tables)
        return kept

    def logits(self, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sum_k eta_k table_k[cell, c] for every sample and class, float64 array, shape (M, Q).

        Under leave-one-out scores the entries of the true classes are those without the sample.
        """
        # NumPy instead of a kernel: the first structures of a run are scored while kernels are still being compiled.
        tables = self.tables
        out, every = np.zeros((self.n_samples, tables.values.shape[1])), np.arange(self.n_samples)
        for k in np.flatnonzero(eta[self.columns]).tolist():
            d = tables.domain[k]
            here = tables.rows[d] >= 0
            cells = np.full(self.n_samples, tables.start[k])
            for row, stride in zip(tables.rows[d, here], tables.strides[d, here], strict=True):
                cells += stride * tables.codes[row]
            values = tables.values[cells]
            if tables.two_tables:
                values[every, tables.true] = tables.values[cells + tables.apart(d), tables.true]
            out += eta[self.columns[k]] * values
        return out

    def log_margins(
        self, eta: NDArray[np.float64], logits: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return min_r alpha[m, r] @ eta for every sample, shape (M,); P12 (13) and (22).

        `logits` is the result of ``logits(eta)`` if that is known, here and in the next two methods.
        """
        logits = self.logits(eta) if logits is None else logits.copy()
        every = np.arange(len(logits))
        own = logits[every, self.tables.true]
        logits[every, self.tables.true] = -np.inf
        return np.asarray(own - logits.max(axis=1))

    def parts(
        self, eta: NDArray[np.float64], logits: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return each sample's part of the score for a unit of weight, shape (M,)."""
        cap, smooth = self.softening
        if smooth:
            logits = self.logits(eta) if logits is None else logits
            return np.asarray(log_softmax(logits, axis=1)[np.arange(len(logits)), self.tables.true])
        return np.minimum(self.log_margins(eta, logits), cap)

    def value(self, eta: NDArray[np.float64], logits: NDArray[np.float64] | None = None) -> float:
        """Return the samples' part of the score: the weighted sum of their parts, or the smallest part."""
        parts = self.parts(eta, logits)
        return float(parts.min()) if self.smallest else math.fsum(self.weights * parts)


def margin_rows(
    data: Dataset,
    candidates: Candidates,
    score: Score,
    budget: Budget | None = None,
    sample_weights: NDArray[np.float64] | None = None,
) -> MarginRows:
    """Build the tables of a margin score; merged samples save time and memory.

    `sample_weights`, shape (M,), are weights of the samples' margins, instead of those of the data; samples of weight 0
    get no rows. The parameters are estimated from all data.
    """
    tables = family_tables(data, candidates, score, budget)
    return MarginRows(tables if sample_weights is None else tables.weighted(sample_weights), score.kind)
