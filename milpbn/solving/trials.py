"""What the trials of a selection found, and which settings the next split compares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from milpbn.claims.parts import Trial
from milpbn.claims.result import Result
from milpbn.data.dataset import UNKNOWN, Dataset
from milpbn.network.margins import log_posterior
from milpbn.network.structure import Structure
from milpbn.solving.grid import Setting

#: Halving keeps at least so many settings.
FEWEST = 8
#: Least probability that enters a log-loss.
LEAST_PROBABILITY = 1e-15


@dataclass
class Tally:
    """Validation results of one setting, summed over the splits so far."""

    correct: float = 0.0
    loss: float = 0.0
    total: float = 0.0
    proved: int = 0
    starved: int = 0
    splits: int = 0
    incumbent: Structure | None = None

    def trial(self, setting: Setting) -> Trial:
        """Return what the result says about the setting."""
        return Trial(
            setting.p,
            setting.score.max_parents,
            self.correct / self.total,
            self.proved,
            self.splits,
            self.loss / self.total,
            self.starved,
            setting.options,
        )

    def add(self, result: Result, held_out: Dataset, starved: bool) -> None:
        """Add the result of one split, and its classifier's predictions of the held-out rows."""
        self.total += float(held_out.weights.sum())
        self.proved += int(result.optimal)
        self.starved += int(starved)
        self.splits += 1
        self.incumbent = result.structure
        floor = math.log(LEAST_PROBABILITY)
        if result.classifier is None:  # no structure, so no prediction
            self.loss -= float(held_out.weights.sum()) * floor
            return
        log_joint = result.classifier.predict_log_joint(held_out)
        known = held_out.y != UNKNOWN
        right = (log_joint.argmax(axis=1) == held_out.y) & known
        self.correct += float(held_out.weights[right].sum())
        of_class = log_posterior(log_joint)[np.arange(len(known)), held_out.y]
        self.loss -= float(held_out.weights @ np.where(known, np.maximum(of_class, floor), floor))


def trials_left(alive: int, splits: int, halving: bool) -> int:
    """Return the number of trials of the remaining splits, at most."""
    count = 0
    for _ in range(splits):
        count += alive
        alive = _kept(alive) if halving else alive
    return count


def _kept(alive: int) -> int:
    """Return how many of so many settings the next split compares, at most."""
    return min(alive, max(FEWEST, (alive + 1) // 2))


def survivors(
    alive: Sequence[int], found: Mapping[int, tuple[Tally, Setting]], by: str, left: float
) -> list[int]:
    """Return the settings that the next split compares: the better half, without those that cannot win any more.

    `left` is the weight of the held-out rows of all remaining splits.
    """
    order = sorted(alive, key=lambda k: found[k][0].trial(found[k][1]).rank(by))
    kept = set(order[: _kept(len(alive))])
    if by == "accuracy":
        most = max(tally.correct for tally, _ in found.values())
        kept = {k for k in kept if found[k][0].correct + left >= most}
    return [k for k in alive if k in kept]
