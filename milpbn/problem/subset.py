"""A subset of representative, weighted samples over which a margin score is summed instead of all samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.sums import exact_sums
from milpbn.errors import InputError
from milpbn.problem.scores.registry import sums_of_samples
from milpbn.problem.scores.spec import Score
from milpbn.util.validation import whole_number

#: Largest number of k-means iterations; the groups need not have converged.
ROUNDS = 20
#: Rows of a class that are grouped, at most, or `PER_GROUP` for each group if that is more.
MOST_ROWS, PER_GROUP = 20_000, 4


@dataclass(frozen=True)
class Subset:
    """A choice of representative samples. It changes the function that is maximised, so it is part of the problem.

    `samples` is their number, and `random_state` the seed of the choice; InputError if the number is not a positive
    whole number.
    """

    samples: int
    random_state: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", whole_number("subset", self.samples))
        if self.samples < 1:
            raise InputError(f"A subset must have at least 1 sample, got {self.samples}.")

    @classmethod
    def of(cls, samples: int | None, random_state: int = 0) -> Subset | None:
        """Return the subset of a number of samples, or None if no number is given."""
        return None if samples is None else cls(samples, random_state)

    def weights(self, data: Dataset, score: Score) -> NDArray[np.float64]:
        """Return the weights of all samples, most of them 0, float64 array, shape (M,).

        InputError if the score is not a sum over samples, or the subset is smaller than the number of classes.
        """
        if not score.kind.sums_samples:
            those = " and ".join(", ".join(sums_of_samples()).rsplit(", ", 1))
            raise InputError(f"A subset can represent all samples under {those}, not under {score.name}.")
        return representative_weights(data, self.samples, self.random_state)


def representative_weights(data: Dataset, n_samples: int, random_state: int = 0) -> NDArray[np.float64]:
    """Choose representative samples, and weights with which they represent all samples; float64 array, shape (M,).

    Peharz and Pernkopf (2012, section 4) mention the idea and leave the method open. Every class gets a number of
    samples in proportion to its weight, at least one. k-means groups its rows by their indicator vectors, whose squared
    distance is twice the number of features that differ. The row nearest to a group's centre gets the weight of the
    whole group, and the other rows get 0. The weights of every class keep their sum. Of a class of more than
    `MOST_ROWS` rows a random sample is grouped. Merged identical rows make it faster. If the data have at most
    `n_samples` rows, the weights are those of the data. InputError if `n_samples` is smaller than the number of classes
    in the data.
    """
    # Late: half a second that only subsets need.
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import OneHotEncoder

    classes, inverse = np.unique(data.y, return_inverse=True)
    if n_samples < len(classes):
        raise InputError(
            f"A subset of {n_samples} samples cannot represent {len(classes)} classes; take at least {len(classes)}."
        )
    if n_samples >= data.n_samples:
        return data.weights.copy()
    counts = _shares(data.total_weights(inverse, len(classes)), np.bincount(inverse), n_samples)
    chosen = np.zeros(data.n_samples)
    for c, count in enumerate(counts):
        rows = np.flatnonzero(inverse == c)
        if count == len(rows):
            chosen[rows] = data.weights[rows]
            continue
        total = data.weights[rows].sum()
        if len(rows) > (most := max(MOST_ROWS, PER_GROUP * int(count))):
            rows = np.sort(np.random.default_rng(random_state).choice(rows, most, replace=False))
        scale = total / data.weights[rows].sum()
        indicators = OneHotEncoder().fit_transform(data.X[rows])
        groups = KMeans(int(count), n_init=1, max_iter=ROUNDS, random_state=random_state)
        distances = groups.fit_transform(indicators, sample_weight=data.weights[rows])
        label = distances.argmin(axis=1)
        weight = exact_sums(label, data.weights[rows], int(count))
        for k in np.flatnonzero(weight):
            members = np.flatnonzero(label == k)
            chosen[rows[members[distances[members, k].argmin()]]] = scale * weight[k]
    return chosen


def _shares(weights: NDArray[np.float64], rows: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Divide `total` samples among the classes in proportion to their weights, int64 array of shape (C,).

    Every class gets at least 1 sample and at most as many as it has rows.
    """
    counts = np.ones(len(weights), dtype=np.int64)
    for _ in range(total - len(weights)):
        # The next sample goes to the class with the most weight per sample among those with rows left.
        behind = np.where(counts < rows, weights / counts, -1.0)
        if behind.max() < 0:
            break
        counts[behind.argmax()] += 1
    return counts
