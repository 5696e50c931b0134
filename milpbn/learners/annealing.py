"""Simulated annealing on the margin, over the structures with at most one feature parent per feature.

Franz Pernkopf and Michael Wohlmayr. Stochastic margin-based structure learning of Bayesian network classifiers.
Pattern Recognition 46(2), 2013. The schedule of temperatures is this module's own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.learners.base import Control, setting
from milpbn.learners.discriminative import Found, MarginLearner
from milpbn.learners.discriminative_scores import MINIMAL_GAIN, ChangingScore
from milpbn.learners.tan import tan_structure
from milpbn.scores.candidates import ParentSet

#: Changes of the start whose mean effect is the first temperature.
PROBES = 50
#: The last temperature as a part of the first.
COOLED = 1e-3
#: Steps after which the log-joint is summed anew, so that rounding does not add up.
REFRESH = 1000


@dataclass(frozen=True, kw_only=True)
class Annealing(MarginLearner):
    """Give a random feature a random other feature parent, or none, and accept losses with a falling probability.

    A change that makes the score fall by L nats is accepted with probability exp(-L / T). T falls geometrically over
    all steps, or over the time limit where that ends first, from the mean effect of some random changes of the start
    to a thousandth of that. The best structure met is the answer, so that it is never worse than the start.
    """

    name: ClassVar[str] = "annealing-mm"
    summary: ClassVar[str] = "TAN by simulated annealing on the margin."
    reference: ClassVar[str] = "Pernkopf & Wohlmayr 2013."

    start: str = setting("naive-bayes", "structure to start from", choices=("naive-bayes", "tan"))
    steps: int = setting(10_000, "number of random changes tried")
    temperature: float | None = setting(
        None, "first temperature in nats; without it, the mean effect of a random change of the start"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start not in ("naive-bayes", "tan"):
            raise InputError(f"start must be 'naive-bayes' or 'tan', got {self.start!r}.")
        if self.steps < 1:
            raise InputError(f"steps must be at least 1, got {self.steps}.")
        if self.temperature is not None and not (self.temperature > 0 and math.isfinite(self.temperature)):
            raise InputError(f"temperature must be a positive finite number of nats, got {self.temperature}.")

    def _search(self, score: ChangingScore, control: Control, stopping: Callable[[], bool]) -> Found:
        begun = time.monotonic()
        rng = np.random.default_rng(control.random_state)
        forest = _Forest(score)
        if self.start == "tan":
            tree = tan_structure(score.data).parents[:-1]
            forest.take(np.array([s[0] if len(s) > 1 else -1 for s in tree], dtype=np.int64))
        begin = best = score.value
        best_parent = forest.parent.copy()
        first = self.temperature or _mean_effect(forest, rng, stopping)
        accepted = 0
        for step in range(self.steps):
            if stopping():
                break
            if step % REFRESH == REFRESH - 1:
                forest.take(forest.parent)
            change = forest.random_change(rng)
            if change is None:
                continue
            logits = forest.changed(*change)
            loss = score.value - score.at(logits)
            cooled = step / self.steps
            if control.time_limit:  # a search that is stopped while it is hot would have found nothing
                cooled = max(cooled, (time.monotonic() - begun) / control.time_limit)
            temperature = first * COOLED ** min(1.0, cooled)
            if loss > 0 and rng.random() >= math.exp(-loss / temperature):
                continue
            accepted += 1
            forest.parent[change[0]] = change[1]
            score.move(logits)
            if score.value > best + MINIMAL_GAIN:
                best, best_parent = score.value, forest.parent.copy()
                control.report(f"step {step + 1}: {self.criterion} {best:.6g}")
        forest.take(best_parent)
        parents: list[ParentSet] = [() if j < 0 else (int(j),) for j in best_parent]
        details = {"start_score": begin, "first_temperature": first, "accepted": accepted}
        return Found(parents, score.value, stopping(), details)


class _Forest:
    """Every feature's feature parent, -1 for none, beside the score that follows its changes."""

    def __init__(self, score: ChangingScore) -> None:
        N = score.data.n_features
        self.score = score
        self.parent = np.full(N, -1, dtype=np.int64)
        arcs = [(i, (j,)) for i in range(N) for j in range(N) if i != j]
        self._column = {(i, j): k for k, (i, (j,)) in enumerate(arcs)}
        self._changes = score.families.changes(arcs)
        self._naive_bayes = score.logits

    def take(self, parent: NDArray[np.int64]) -> None:
        """Take every feature's parent at once, with a log-joint in which no rounding has added up."""
        self.parent = parent.copy()
        columns = [self._column[i, j] for i, j in enumerate(parent.tolist()) if j >= 0]
        self.score.move(self._naive_bayes)
        self.score.move(self.score.added(self._changes, columns, [1.0] * len(columns)))

    def random_change(self, rng: np.random.Generator) -> tuple[int, int] | None:
        """Draw a feature and a parent or -1 for it; None if that is no change, or closes a cycle."""
        child, parent = int(rng.integers(len(self.parent))), int(rng.integers(-1, len(self.parent)))
        above = parent
        while above >= 0 and above != child:
            above = int(self.parent[above])
        return None if above == child or parent == self.parent[child] else (child, parent)

    def changed(self, child: int, parent: int) -> NDArray[np.float64]:
        """Return the log-joint with another parent of one feature."""
        terms = [(j, sign) for j, sign in ((int(self.parent[child]), -1.0), (parent, 1.0)) if j >= 0]
        columns = [self._column[child, j] for j, _ in terms]
        return self.score.added(self._changes, columns, [sign for _, sign in terms])


def _mean_effect(forest: _Forest, rng: np.random.Generator, stopping: Callable[[], bool]) -> float:
    """Return by how many nats random changes of the structure move the score on average; 1 if by nothing."""
    effects = []
    for _ in range(PROBES):
        change = None if stopping() else forest.random_change(rng)
        if change is not None:
            effects.append(abs(forest.score.at(forest.changed(*change)) - forest.score.value))
    return float(np.mean(effects)) if any(effects) else 1.0
