"""The order-based heuristic OMI of Pernkopf, Wohlmayr & Mücke (2011, P11), section 3.3.

It orders the features by conditional mutual information with the class, and then chooses each feature's parents among
its predecessors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.heuristics.tuning import TUNING
from milpbn.learners.base import Control, setting
from milpbn.learners.discriminative.discriminative_scores import ChangingScore
from milpbn.learners.discriminative.learner import DiscriminativeLearner, FoundParents, MarginLearner
from milpbn.problem.candidates import ParentSet
from milpbn.util.budget import Budget
from milpbn.util.compiled import kernel

#: Entropies that differ by at most this number of nats count as equal.
EQUAL = 1e-10


def information_order(data: Dataset, stopping: Callable[[], bool] = lambda: False) -> list[int]:
    """Return the features in the order of P11, section 3.3, step 1.

    The next feature is always the one with the largest I(C; X | all previous features), estimated from the relative
    frequencies of the joint states. Of features that tie, the one with the largest I(C; X) is taken, and of those the
    first. Once the chosen features determine the class of every sample, all other features tie.

    When `stopping`, which is called often, returns True, the remaining features are ordered by I(C; X).
    """
    codes, y, weights = np.ascontiguousarray(data.X.T), np.ascontiguousarray(data.y), data.weights
    group = np.zeros(data.n_samples, dtype=np.int64)
    left = np.arange(data.n_features)
    states = data.n_states.tolist()

    def uncertainty() -> NDArray[np.float64]:
        """Return H(C | group, X) of the remaining features, in nats.

        `group` numbers the joint states of the chosen features. Samples in groups of a single class contribute 0 and
        have been dropped.
        """
        by_group = np.argsort(group, kind="stable")
        groups, classes, mass = group[by_group], y[by_group], weights[by_group]
        entropies = [
            _entropy(groups, codes[i][by_group], classes, mass, states[i], data.n_classes)
            for i in left.tolist()
        ]
        return np.array(entropies) / float(data.weights.sum())

    order: list[int] = []
    alone = rest = uncertainty()
    while len(left):
        ties = np.flatnonzero(rest <= rest.min() + EQUAL)
        best = int(left[ties[np.argmax(alone[left[ties]] <= alone[left[ties]].min() + EQUAL)]])
        order.append(best)
        left = left[left != best]
        group = np.unique(group * states[best] + codes[best], return_inverse=True)[1].ravel()
        # From here on, the samples of groups with a single class contribute no entropy.
        seen = np.zeros((int(group.max(initial=-1)) + 1, data.n_classes), dtype=bool)
        seen[group, y] = True
        mixed = seen.sum(axis=1)[group] > 1
        codes, y, weights, group = codes[:, mixed], y[mixed], weights[mixed], group[mixed]
        rest = np.zeros(len(left)) if stopping() else uncertainty()
    return order


@kernel
def _entropy(group, codes, y, weights, n_states, n_classes):  # type: ignore[no-untyped-def]
    """Return the sum over groups and states of n H(C | group, state); the samples are sorted by group."""
    counts = np.zeros((n_states, n_classes))
    total = 0.0
    first = 0
    for m in range(len(group)):
        counts[codes[m], y[m]] += weights[m]
        if m + 1 < len(group) and group[m + 1] == group[m]:
            continue
        for x in range(first, m + 1):
            # Every state of the group is summed when its first sample comes, and cleared.
            row = counts[codes[x]]
            mass = row.sum()
            for c in range(n_classes):
                if row[c] > 0.0 and row[c] < mass:
                    total -= row[c] * np.log(row[c] / mass)
            row[:] = 0.0
        first = m + 1
    return total


@dataclass(frozen=True, kw_only=True)
class OrderBased(DiscriminativeLearner):
    """Give each feature, in order, the parents among its predecessors that most improve the score, or none.

    The score is that of the classifier with all features, where features later in the order have no feature parents
    yet. With k = `max_feature_parents` all sets of at most k predecessors are scored, which are O(N^(k+1)) in all. Of
    equally good sets the first is taken: smaller sets come first, then sets in the order of the features.
    """

    max_feature_parents: int = setting(1, "k, the maximum number of feature parents of a feature")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_feature_parents < 1:
            raise InputError(f"max_feature_parents must be at least 1, got {self.max_feature_parents}.")

    def _search(self, score: ChangingScore, control: Control, budget: Budget) -> FoundParents:
        names, families = score.data.names, score.families
        parents: list[ParentSet] = [()] * score.data.n_features
        order = information_order(score.data, budget.over)
        for place, i in enumerate(order):
            if budget.over():
                break
            chosen = None
            for portion in families.portions([(i, s) for s in self._parent_sets(order[:place])]):
                changes = families.changes(portion)
                best = score.best(changes, stopping=budget.over)
                if best is not None and (chosen is None or best[1] > chosen[0] + TUNING.least_gain):
                    chosen = best[1], portion[best[0]][1], score.added(changes, [best[0]])
            if chosen is not None:
                value, parents[i], logits = chosen
                score.move(logits)
                joined = ", ".join(names[j] for j in parents[i])
                control.report(f"{joined} -> {names[i]}: {self.criterion} {value:.6g}")
        return FoundParents(parents, score.value, budget.over(), {"order": [names[i] for i in order]})

    def _parent_sets(self, predecessors: list[int]) -> list[ParentSet]:
        """Return all sets of 1 to k predecessors, each in ascending order."""
        sizes = range(1, min(self.max_feature_parents, len(predecessors)) + 1)
        return [s for size in sizes for s in combinations(sorted(predecessors), size)]


@dataclass(frozen=True, kw_only=True)
class OrderRate(OrderBased):
    """The order-based heuristic on the classification rate."""

    name: ClassVar[str] = "tan-omi-cr"
    summary: ClassVar[str] = "TAN by the order-based heuristic on the classification rate."
    reference: ClassVar[str] = "Pernkopf & Bilmes 2010; Pernkopf, Wohlmayr & Mücke 2011, section 3.3."
    criterion: ClassVar[str] = "cr"


@dataclass(frozen=True, kw_only=True)
class OrderLikelihood(OrderBased):
    """The order-based heuristic on the conditional log-likelihood."""

    name: ClassVar[str] = "tan-omi-cl"
    summary: ClassVar[str] = "TAN by the order-based heuristic on the conditional log-likelihood."
    reference: ClassVar[str] = "Pernkopf & Bilmes 2010, with the score of Grossman & Domingos 2004."
    criterion: ClassVar[str] = "cl"


@dataclass(frozen=True, kw_only=True)
class OrderMargin(MarginLearner, OrderBased):
    """The order-based heuristic on the margin."""

    name: ClassVar[str] = "tan-omi-mm"
    summary: ClassVar[str] = "TAN by the order-based heuristic on the margin."
    reference: ClassVar[str] = "Pernkopf, Wohlmayr & Mücke 2011, section 3.3."
