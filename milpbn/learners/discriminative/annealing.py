"""Simulated annealing on the margin, over the structures with at most one feature parent per feature.

Franz Pernkopf and Michael Wohlmayr. Stochastic margin-based structure learning of Bayesian network classifiers.
Pattern Recognition 46(2), 2013. The schedule of temperatures is this module's own.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.heuristics.spanning import tan_structure
from milpbn.heuristics.tuning import TUNING
from milpbn.learners.base import Control, setting
from milpbn.learners.discriminative.discriminative_scores import ChangingScore
from milpbn.learners.discriminative.learner import FoundParents, MarginLearner
from milpbn.problem.candidates import ParentSet
from milpbn.util.budget import Budget
from milpbn.util.options import check_choice

#: Number of random changes of the start whose mean effect is the first temperature.
PROBES = 50
#: The last temperature divided by the first.
COOLING = 1e-3
#: Number of steps after which the log-joint is recomputed, so that rounding errors do not accumulate.
REFRESH_STEPS = 1000


@dataclass(frozen=True, kw_only=True)
class Annealing(MarginLearner):
    """Give random features random new feature parents, or none, and accept losses with a decreasing probability.

    A change that lowers the score by L nats is accepted with probability exp(-L / T). The temperature T decreases
    geometrically over the steps, or over the time limit if it ends first, from the mean effect of some random changes
    of the start to a thousandth of it. The result is the best structure met, which is never worse than the start.
    """

    name: ClassVar[str] = "annealing-mm"
    summary: ClassVar[str] = "TAN by simulated annealing on the margin."
    reference: ClassVar[str] = "Pernkopf & Wohlmayr 2013."

    start: str = setting("naive-bayes", "The first structure.", choices=("naive-bayes", "tan"))
    steps: int = setting(10_000, "Number of random changes that are tried.")
    temperature: float | None = setting(
        None, "First temperature in nats; by default the mean effect of a random change of the start."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("start", self.start, ("naive-bayes", "tan"))
        if self.steps < 1:
            raise InputError(f"steps must be at least 1, got {self.steps}.")
        if self.temperature is not None and not (self.temperature > 0 and math.isfinite(self.temperature)):
            raise InputError(f"temperature must be a positive finite number of nats, got {self.temperature}.")

    def _search(self, score: ChangingScore, control: Control, budget: Budget) -> FoundParents:
        begun = time.monotonic()
        rng = np.random.default_rng(control.random_state)
        forest = _Forest(score)
        if self.start == "tan":
            tree = tan_structure(score.data).parents[:-1]
            forest.set_parents(np.array([s[0] if len(s) > 1 else -1 for s in tree], dtype=np.int64))
        begin = best = score.value
        best_parent = forest.parent.copy()
        first = self.temperature or _mean_effect(forest, rng, budget)
        accepted = 0
        for step in range(self.steps):
            if budget.over():
                break
            if step % REFRESH_STEPS == REFRESH_STEPS - 1:
                forest.set_parents(forest.parent)
            change = forest.random_change(rng)
            if change is None:
                continue
            logits = forest.changed(*change)
            loss = score.value - score.at(logits)
            progress = step / self.steps
            if (
                budget.deadline is not None
            ):  # the temperature must be low before the time limit ends the search
                progress = max(progress, (time.monotonic() - begun) / (budget.deadline - begun))
            temperature = first * COOLING ** min(1.0, progress)
            if loss > 0 and rng.random() >= math.exp(-loss / temperature):
                continue
            accepted += 1
            forest.parent[change[0]] = change[1]
            score.move(logits)
            if score.value > best + TUNING.least_gain:
                best, best_parent = score.value, forest.parent.copy()
                control.report(f"step {step + 1}: {self.criterion} {best:.6g}")
        forest.set_parents(best_parent)
        parents: list[ParentSet] = [() if j < 0 else (int(j),) for j in best_parent]
        details = {"start_score": begin, "first_temperature": first, "accepted": accepted}
        return FoundParents(parents, score.value, budget.over(), details)


class _Forest:
    """The feature parent of every feature, -1 for none, and the score of this structure."""

    def __init__(self, score: ChangingScore) -> None:
        N = score.data.n_features
        self.score = score
        self.parent = np.full(N, -1, dtype=np.int64)
        arcs = [(i, (j,)) for i in range(N) for j in range(N) if i != j]
        self._column = {(i, j): k for k, (i, (j,)) in enumerate(arcs)}
        self._changes = score.families.changes(arcs)
        self._naive_bayes = score.logits

    def set_parents(self, parent: NDArray[np.int64]) -> None:
        """Set the parents of all features, and recompute the log-joint without accumulated rounding errors."""
        self.parent = parent.copy()
        columns = [self._column[i, j] for i, j in enumerate(parent.tolist()) if j >= 0]
        self.score.move(self._naive_bayes)
        self.score.move(self.score.added(self._changes, columns, [1.0] * len(columns)))

    def random_change(self, rng: np.random.Generator) -> tuple[int, int] | None:
        """Draw a feature and a new parent, or -1, for it; None if nothing changes or the change closes a cycle."""
        child, parent = int(rng.integers(len(self.parent))), int(rng.integers(-1, len(self.parent)))
        above = parent
        while above >= 0 and above != child:
            above = int(self.parent[above])
        return None if above == child or parent == self.parent[child] else (child, parent)

    def changed(self, child: int, parent: int) -> NDArray[np.float64]:
        """Return the log-joint if the feature `child` gets another parent, or none (-1)."""
        terms = [(j, sign) for j, sign in ((int(self.parent[child]), -1.0), (parent, 1.0)) if j >= 0]
        columns = [self._column[child, j] for j, _ in terms]
        return self.score.added(self._changes, columns, [sign for _, sign in terms])


def _mean_effect(forest: _Forest, rng: np.random.Generator, budget: Budget) -> float:
    """Return the mean absolute effect of random changes on the score in nats, or 1 if none has an effect."""
    effects = []
    for _ in range(PROBES):
        change = None if budget.over() else forest.random_change(rng)
        if change is not None:
            effects.append(abs(forest.score.at(forest.changed(*change)) - forest.score.value))
    return float(np.mean(effects)) if any(effects) else 1.0
