r"""One additive model: which terms, with which penalty, beside which offset.

The offset is a share kappa of naive Bayes on the coarse intervals: the centred logarithms of its tables. On the
training rows each row is left out of the counts of its own class, because a score that has seen its row would leave
nothing to the terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.resolutions import coarse_features, nested
from milpbn.network.additive.fitting import TOLERANCE, CellRows, Objective
from milpbn.network.additive.terms import AdditiveTerms, Strengths
from milpbn.network.monotone.changes import Term
from milpbn.network.monotone.constraints import StateOrder
from milpbn.network.monotone.inequalities import MonotoneRows, constrained_minimum
from milpbn.util.budget import Budget


@dataclass(frozen=True)
class Penalty:
    """How the terms are penalised, the share of naive Bayes beside them, and whether few integers have an order."""

    strengths: Strengths = field(default_factory=Strengths)
    kappa: float = 0.0
    ordered: bool = False


class Additive:
    """The terms of an additive model of some training data, and the rows of these data.

    The data have fine variables (`milpbn.data.resolutions.with_fine`) and no missing values; `interactions` are the
    positions of the coarse features of each interaction.
    """

    def __init__(self, data: Dataset, interactions: Sequence[tuple[int, ...]] = ()) -> None:
        self.data = data
        fine_of = {coarse: fine for fine, (coarse, _) in nested(data).items()}
        #: The coarse features: those that are not fine variables.
        self.features = coarse_features(data)
        #: The variable of each feature's main effect.
        self.mains = tuple(fine_of.get(i, i) for i in self.features)
        used = [i for i in self.mains if data.variables[i].n_states > 1]
        self.interactions = tuple(interactions)
        blocks = [*((i,) for i in used), *self.interactions]
        self.terms = AdditiveTerms(data.variables, blocks, data.few_integers)
        self.bayes = BayesOffset(data, self.features)
        self.rows = CellRows(
            self.terms.cells(data.codes),
            data.y.astype(np.int64),
            data.weights,
            self.bayes.left_out_scores(data),
        )

    def held_out(self, data: Dataset) -> CellRows:
        """Return other rows with the same variables."""
        cells = self.terms.cells(data.codes)
        return CellRows(cells, data.y.astype(np.int64), data.weights, self.bayes.scores(data))

    def fit(
        self,
        penalty: Penalty,
        start: NDArray[np.float64] | None = None,
        budget: Budget | None = None,
        tolerance: float = TOLERANCE,
    ) -> NDArray[np.float64]:
        """Return the weights of the cells, shape (d, C')."""
        objective = Objective(self.rows, self.terms.n_cells, penalty.kappa)
        matrix = self.terms.penalty(penalty.strengths, penalty.ordered)
        return objective.minimum(matrix, start, budget, tolerance)

    def fit_monotone(
        self,
        penalty: Penalty,
        weights: NDArray[np.float64],
        orders: Sequence[StateOrder],
        stopping: Callable[[], bool],
        tolerance: float = TOLERANCE,
    ) -> NDArray[np.float64]:
        """Return weights with monotone features, up to small violations, from those without."""
        objective = Objective(self.rows, self.terms.n_cells, penalty.kappa)
        matrix = self.terms.penalty(penalty.strengths, penalty.ordered)
        zeros = np.zeros((self.terms.n_cells, self.data.n_classes))
        blocks = enumerate(self.terms.blocks)
        terms = [Term(block, zeros[s], s.start) for k, block in blocks for s in [self.terms.slice(k)]]
        terms += [Term((i,), penalty.kappa * self.bayes.table(i), None) for i in self.features]
        return constrained_minimum(
            lambda point: objective.evaluate(point, matrix),
            weights,
            objective.curvature(matrix),
            MonotoneRows.of(orders, terms, self.data.variables, weights.shape),
            tolerance=tolerance * np.sqrt(objective.size),
            stopping=stopping,
        )


class BayesOffset:
    """The centred logarithms of naive Bayes' tables with Laplace's constant 1, for some features."""

    def __init__(self, data: Dataset, features: Sequence[int]) -> None:
        self._features = tuple(i for i in features if data.variables[i].n_states > 1)
        classes = data.n_classes
        self._totals = np.bincount(data.y, data.weights, minlength=classes)
        self._counts = {}
        for i in self._features:
            n = data.variables[i].n_states
            index = data.codes[:, i].astype(np.int64) * classes + data.y
            self._counts[i] = np.bincount(index, data.weights, minlength=n * classes).reshape(n, classes)

    def table(self, feature: int) -> NDArray[np.float64]:
        """Return the centred logarithms of a feature's table, shape (states, C); 0 for a feature with one state."""
        counts = self._counts.get(feature)
        if counts is None:
            return np.zeros((1, len(self._totals)))
        logs = np.log((counts + 1.0) / (self._totals + len(counts)))
        return np.asarray(logs - logs.mean(axis=1, keepdims=True))

    def scores(self, data: Dataset) -> NDArray[np.float64]:
        """Return the sum over the features of rows, shape (M, C); a value without a state counts 0."""
        total = np.zeros((data.n_samples, data.n_classes))
        for i in self._features:
            known = data.codes[:, i] >= 0
            total[known] += self.table(i)[data.codes[known, i]]
        return total

    def left_out_scores(self, data: Dataset) -> NDArray[np.float64]:
        """Return the same for the training rows, each left out of the counts."""
        total = np.zeros((data.n_samples, data.n_classes))
        rows = np.arange(data.n_samples)
        for i in self._features:
            counts = self._counts[i]
            own = counts[data.codes[:, i]]
            logs = np.log((own + 1.0) / (self._totals + len(counts)))
            left = np.maximum(own[rows, data.y] - data.weights, 0.0) + 1.0
            others = np.maximum(self._totals[data.y] - data.weights, 0.0) + len(counts)
            logs[rows, data.y] = np.log(left / others)
            total += logs - logs.mean(axis=1, keepdims=True)
        return total
