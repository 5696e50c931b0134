r"""One additive model: which terms, with which penalty, beside which offset.

The offset is a share kappa of a generative network on the coarse intervals, naive Bayes or a tree: the centred
logarithms of its tables. On the training rows each row is left out of the counts of its own class, because a score that
has seen its row would leave nothing to the terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.resolutions import coarse_features, nested
from milpbn.network.additive.fitting import CellRows, Objective
from milpbn.network.additive.newton import minimum, rough_minimum
from milpbn.network.additive.terms import AdditiveTerms, Strengths
from milpbn.network.monotone.changes import Term
from milpbn.network.monotone.constraints import StateOrder
from milpbn.network.monotone.inequalities import MonotoneRows, constrained_minimum
from milpbn.util.budget import Budget

#: Fits with penalties by groups after the first fit.
ROUNDS = 2
#: Predicted decrease of the loss at which a fit stops; see `minimum`.
TOLERANCE = 1e-2
#: Largest product of the numbers of rows, terms and weights per cell for which fits in folds take Newton steps.
LARGE = 4_000_000
#: Largest component of the scaled gradient where a monotone fit ends, relative to the root of the total weight.
MONOTONE_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Penalty:
    """How the terms are penalised, and the share of a generative network beside them.

    `ordered` says whether few integers have an order, `curvature` whether curves are penalised by theirs instead of by
    their steps, and `grouped` whether terms are penalised by groups (`AdditiveTerms.by_groups`).
    """

    strengths: Strengths = field(default_factory=Strengths)
    kappa: float = 0.0
    ordered: bool = False
    curvature: bool = False
    grouped: bool = False


class Additive:
    """The terms of an additive model of some training data, and the rows of these data.

    The data have fine variables (`milpbn.data.resolutions.with_fine`) and no missing values; `interactions` are the
    positions of the coarse features of each interaction. `parents` are those of coarse features in the network of the
    offset, besides the class; None for naive Bayes.
    """

    def __init__(
        self,
        data: Dataset,
        interactions: Sequence[tuple[int, ...]] = (),
        parents: Mapping[int, tuple[int, ...]] | None = None,
    ) -> None:
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
        self.bayes = BayesOffset(data, dict.fromkeys(self.features, ()) if parents is None else parents)
        self.rows = CellRows(
            self.terms.cells(data.codes),
            data.y.astype(np.int64),
            data.weights,
            self.bayes.left_out_scores(data),
        )

    @property
    def large(self) -> bool:
        """Whether fits in folds are rough, because Newton steps would take too long."""
        return self.rows.cells.size * self.rows.columns > LARGE

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
        matrix = self.terms.penalty(penalty.strengths, penalty.ordered, penalty.curvature)
        stopping = (lambda: False) if budget is None else budget.over
        if tolerance == TOLERANCE and self.large:
            fitted = partial(rough_minimum, stopping=stopping)
        else:
            fitted = partial(minimum, tolerance=tolerance, stopping=stopping)
        weights = fitted(objective, matrix, start)
        for _ in range(ROUNDS if penalty.grouped else 0):
            weights = fitted(objective, self.terms.by_groups(matrix, weights), weights)
        return weights

    def fit_monotone(
        self,
        penalty: Penalty,
        weights: NDArray[np.float64],
        orders: Sequence[StateOrder],
        stopping: Callable[[], bool],
    ) -> NDArray[np.float64]:
        """Return weights with monotone features, up to small violations, from those without."""
        objective = Objective(self.rows, self.terms.n_cells, penalty.kappa)
        matrix = self.terms.penalty(penalty.strengths, penalty.ordered, penalty.curvature)
        if penalty.grouped:
            matrix = self.terms.by_groups(matrix, weights)
        zeros = np.zeros((self.terms.n_cells, self.data.n_classes))
        blocks = enumerate(self.terms.blocks)
        terms = [Term(block, zeros[s], s.start) for k, block in blocks for s in [self.terms.slice(k)]]
        for scope, table in self.bayes.tables():
            terms.append(Term(scope, penalty.kappa * table.reshape(-1, self.data.n_classes), None))
        return constrained_minimum(
            lambda point: objective.evaluate(point, matrix),
            weights,
            objective.curvature(matrix),
            MonotoneRows.of(orders, terms, self.data.variables, weights.shape),
            tolerance=MONOTONE_TOLERANCE * np.sqrt(objective.size),
            stopping=stopping,
        )


class BayesOffset:
    """The centred logarithms of the tables of a generative network with Laplace's constant 1.

    `parents` are those of each feature besides the class: none for naive Bayes. Features with one state are left out.
    """

    def __init__(self, data: Dataset, parents: Mapping[int, tuple[int, ...]]) -> None:
        self._counts: dict[tuple[int, ...], NDArray[np.float64]] = {}
        for i, own in parents.items():
            if data.variables[i].n_states > 1:
                scope = (*own, i)
                shape = (*(data.variables[j].n_states for j in scope), data.n_classes)
                cells = np.ravel_multi_index((*data.codes[:, scope].T, data.y), shape)
                counts = np.bincount(cells, data.weights, minlength=math.prod(shape))
                self._counts[scope] = counts.astype(np.float64).reshape(shape)

    def tables(self) -> Iterator[tuple[tuple[int, ...], NDArray[np.float64]]]:
        """Yield the parents and the feature of each family, and its table, shape (states of each..., C)."""
        for scope, counts in self._counts.items():
            logs = np.log((counts + 1.0) / (counts.sum(axis=-2, keepdims=True) + counts.shape[-2]))
            yield scope, logs - logs.mean(axis=-1, keepdims=True)

    def scores(self, data: Dataset) -> NDArray[np.float64]:
        """Return the sum over the families of rows, shape (M, C); a family with a value without a state counts 0."""
        total = np.zeros((data.n_samples, data.n_classes))
        for scope, table in self.tables():
            codes = data.codes[:, scope]
            known = (codes >= 0).all(axis=1)
            total[known] += table[tuple(codes[known].T)]
        return total

    def left_out_scores(self, data: Dataset) -> NDArray[np.float64]:
        """Return the same for the training rows, each left out of the counts."""
        total = np.zeros((data.n_samples, data.n_classes))
        rows = np.arange(data.n_samples)
        for scope, counts in self._counts.items():
            codes, n = data.codes[:, scope].T, counts.shape[-2]
            own = counts[tuple(codes)]
            whole = np.broadcast_to(counts.sum(axis=-2)[tuple(codes[:-1])], own.shape)
            logs = np.log((own + 1.0) / (whole + n))
            left = np.maximum(own[rows, data.y] - data.weights, 0.0) + 1.0
            logs[rows, data.y] = np.log(left / (np.maximum(whole[rows, data.y] - data.weights, 0.0) + n))
            total += logs - logs.mean(axis=1, keepdims=True)
        return total
