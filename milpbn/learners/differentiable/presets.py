"""The experiments of Roth & Pernkopf (2020, R20), section 4.2: structures, hyperparameters and schedules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from milpbn.errors import InputError
from milpbn.learners.differentiable.learner import DifferentiableTan

#: Samples per step, by data set.
BATCH_SIZES = {"letter": 100, "satimage": 50, "usps": 100, "mnist": 250}
#: R20 runs both and reports the better result.
LEARNING_RATES = (3e-3, 3e-2)
EPOCHS = 500
#: Number of random orderings (for Random, Subset and All), and of selections of parents for each ordering.
ORDERINGS, RANDOM_SELECTIONS, SUBSET_SELECTIONS = 5, 10, 5
SUBSET_K, HEURISTIC_K = (2, 5, 8), (1, 2, 5, 8)


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters of the hybrid loss; see `milpbn.learners.differentiable.losses.make_loss`."""

    lambda_: float
    gamma: float
    eta: float


def search_one(count: int = 500, random_state: int = 0) -> list[Hyperparameters]:
    """Return the points of random search (I): log10 lambda ~ U(0, 3), log10 gamma ~ U(-1, 2), eta ~ U(1, 20)."""
    draw = np.random.default_rng([random_state, 1]).uniform
    return [
        Hyperparameters(float(10 ** draw(0, 3)), float(10 ** draw(-1, 2)), float(draw(1, 20)))
        for _ in range(count)
    ]


def search_two(count: int = 100, random_state: int = 0) -> list[Hyperparameters]:
    """Return the points of random search (II): log10 lambda ~ U(1, 3), log10 gamma ~ U(-1, 2), eta = 10."""
    draw = np.random.default_rng([random_state, 2]).uniform
    return [Hyperparameters(float(10 ** draw(1, 3)), float(10 ** draw(-1, 2)), 10.0) for _ in range(count)]


def structures(family: str) -> list[DifferentiableTan]:
    """Return the learners for R20's structures of one kind; the options of loss and optimiser have their defaults.

    Parameters
    ----------
    family : str
        ``naive-bayes``, ``chow-liu`` (one each), ``random`` (50), ``subset`` (25 for each K), ``all`` (5) or
        ``heuristic`` (3 for each K).

    Raises
    ------
    InputError
        If there is no such kind.
    """
    base = DifferentiableTan(epochs=EPOCHS)
    drawn = {
        "random": product((base.k,), range(ORDERINGS), range(RANDOM_SELECTIONS)),
        "subset": product(SUBSET_K, range(ORDERINGS), range(SUBSET_SELECTIONS)),
        "all": product((base.k,), range(ORDERINGS), (base.selection,)),
    }
    if family in drawn:
        return [replace(base, structure=family, k=k, ordering=o, selection=s) for k, o, s in drawn[family]]
    if family in ("naive-bayes", "chow-liu"):
        return [replace(base, structure=family)]
    if family == "heuristic":
        return [replace(base, structure=f"heuristic-{letter}", k=k) for letter in "abc" for k in HEURISTIC_K]
    raise InputError(
        f"There is no structure preset {family!r}; choose naive-bayes, chow-liu, random, subset, all or heuristic."
    )
