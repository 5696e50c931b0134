"""The order-based heuristic OMI (P11, section 3.3): order the features, then choose parents among the predecessors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from milpbn.compiled import kernel
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.learners.base import Control, setting
from milpbn.learners.discriminative import DiscriminativeLearner, Found, MarginLearner
from milpbn.learners.discriminative_scores import MINIMAL_GAIN, ChangingScore
from milpbn.scores.candidates import ParentSet

#: Informations, in nats, that are nearer than this are equal.
EQUAL = 1e-10


def information_order(data: Dataset, stopping: Callable[[], bool] = lambda: False) -> list[int]:
    """Return the features in the order of P11, section 3.3, step 1.

    Each next feature has the largest I(C; X | all features before it), estimated by plugging in the relative
    frequencies of the joint states. Ties go to the larger I(C; X), then to the first feature. Once the features
    so far determine the class of every sample, all the others tie.

    Parameters
    ----------
    data : Dataset
        Training data; its weights are counted.
    stopping : callable
        Asked often; True puts the features that are left in the order of I(C; X).

    Returns
    -------
    list of int
        All features.
    """
    codes, y, weights = np.ascontiguousarray(data.X.T), np.ascontiguousarray(data.y), data.weights
    group = np.zeros(data.n_samples, dtype=np.int64)
    left = np.arange(data.n_features)
    states = data.n_states.tolist()

    def uncertainty() -> NDArray[np.float64]:
        """Return H(C | groups, X) of the features that are left, in nats, up to what is the same for all."""
        by_group = np.argsort(group, kind="stable")
        own, classes, mass = group[by_group], y[by_group], weights[by_group]
        entropies = [
            _entropy(own, codes[i][by_group], classes, mass, states[i], data.n_classes) for i in left.tolist()
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
        # Samples of groups with one class have no uncertainty from here on.
        seen = np.zeros((int(group.max(initial=-1)) + 1, data.n_classes), dtype=bool)
        seen[group, y] = True
        mixed = seen.sum(axis=1)[group] > 1
        codes, y, weights, group = codes[:, mixed], y[mixed], weights[mixed], group[mixed]
        rest = np.zeros(len(left)) if stopping() else uncertainty()
    return order


@kernel
def _entropy(group, codes, y, weights, n_states, n_classes):  # type: ignore[no-untyped-def]
    """Return sum over groups and states of n H(C | group, state); the samples come group by group."""
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
    """For each feature in order, add the parents among its predecessors that most improve the score, or none.

    The score is that of the classifier over all features, of which those to come have no feature parents yet. With
    k = `max_feature_parents` all sets of at most k predecessors are scored, O(N^(k+1)) in all; of equally good ones
    the first is taken, small sets first, then in the order of the features.
    """

    max_feature_parents: int = setting(1, "most feature parents of a feature, k")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_feature_parents < 1:
            raise InputError(f"max_feature_parents must be at least 1, got {self.max_feature_parents}.")

    def _search(self, score: ChangingScore, control: Control, stopping: Callable[[], bool]) -> Found:
        names, families = score.data.names, score.families
        parents: list[ParentSet] = [()] * score.data.n_features
        order = information_order(score.data, stopping)
        for place, i in enumerate(order):
            if stopping():
                break
            chosen = None
            for portion in families.portions([(i, s) for s in self._parent_sets(order[:place])]):
                changes = families.changes(portion)
                best = score.best(changes, stopping=stopping)
                if best is not None and (chosen is None or best[1] > chosen[0] + MINIMAL_GAIN):
                    chosen = best[1], portion[best[0]][1], score.added(changes, [best[0]])
            if chosen is not None:
                value, parents[i], logits = chosen
                score.move(logits)
                joined = ", ".join(names[j] for j in parents[i])
                control.report(f"{joined} -> {names[i]}: {self.criterion} {value:.6g}")
        return Found(parents, score.value, stopping(), {"order": [names[i] for i in order]})

    def _parent_sets(self, predecessors: list[int]) -> list[ParentSet]:
        """Return all sets of 1 to k of some features, each ascending."""
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
