"""Greedy hill climbing from naive Bayes, one arc between features at a time (Pernkopf et al. 2011, section 3.2).

Keogh & Pazzani (1999) maximise the classification rate in this way, Grossman & Domingos (2004) the conditional
log-likelihood, and Pernkopf, Wohlmayr & Mücke (2011) the margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from milpbn.learners.base import Control
from milpbn.learners.discriminative.discriminative_scores import ChangingScore
from milpbn.learners.discriminative.learner import DiscriminativeLearner, FoundParents, MarginLearner
from milpbn.problem.candidates import ParentSet
from milpbn.util.budget import Budget


@dataclass(frozen=True, kw_only=True)
class GreedySearch(DiscriminativeLearner):
    """Repeatedly add the arc that most improves the score, until no arc improves it.

    Every feature gets at most one feature parent, and the graph stays acyclic. Of equally good arcs, the one with the
    first child is added, and of those the one with the first parent.
    """

    def _search(self, score: ChangingScore, control: Control, budget: Budget) -> FoundParents:
        N, names = score.data.n_features, score.data.names
        arcs = [(i, (j,)) for i in range(N) for j in range(N) if i != j]
        changes = score.families.changes(arcs)
        child = np.array([i for i, _ in arcs], dtype=np.int64)
        parent = np.array([j for _, (j,) in arcs], dtype=np.int64)
        parents: list[ParentSet] = [()] * N
        root = np.arange(N)  # the root of the tree that each feature belongs to
        while not budget.over():
            # The child of a new arc has no parent yet, so it is a root. The arc closes a cycle if its parent is in the
            # tree of this root.
            allowed = (root[child] == child) & (root[parent] != child)
            best = score.best(changes, allowed, budget.over)
            if best is None:
                break
            column, value = best
            i, j = int(child[column]), int(parent[column])
            score.move(score.added(changes, [column]))
            parents[i] = (j,)
            root[root == i] = root[j]
            control.report(f"{names[j]} -> {names[i]}: {self.criterion} {value:.6g}")
        return FoundParents(parents, score.value, budget.over(), {})


@dataclass(frozen=True, kw_only=True)
class GreedyRate(GreedySearch):
    """Greedy hill climbing on the classification rate."""

    name: ClassVar[str] = "tan-cr"
    summary: ClassVar[str] = "TAN by greedy hill climbing on the classification rate."
    reference: ClassVar[str] = "Keogh & Pazzani 1999; Pernkopf, Wohlmayr & Mücke 2011, section 3.2."
    criterion: ClassVar[str] = "cr"


@dataclass(frozen=True, kw_only=True)
class GreedyLikelihood(GreedySearch):
    """Greedy hill climbing on the conditional log-likelihood."""

    name: ClassVar[str] = "tan-cl"
    summary: ClassVar[str] = "TAN by greedy hill climbing on the conditional log-likelihood."
    reference: ClassVar[str] = "Grossman & Domingos 2004."
    criterion: ClassVar[str] = "cl"


@dataclass(frozen=True, kw_only=True)
class GreedyMargin(MarginLearner, GreedySearch):
    """Greedy hill climbing on the margin."""

    name: ClassVar[str] = "tan-mm"
    summary: ClassVar[str] = "TAN by greedy hill climbing on the margin."
    reference: ClassVar[str] = "Pernkopf, Wohlmayr & Mücke 2011, section 3.2."
