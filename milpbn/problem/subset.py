"""A subset of representative, weighted samples over which a margin score is summed instead of all samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.representatives import representative_weights
from milpbn.errors import InputError
from milpbn.problem.scores.registry import sums_of_samples
from milpbn.problem.scores.spec import Score
from milpbn.util.validation import whole_number


@dataclass(frozen=True)
class Subset:
    """A choice of representative samples. It changes the function that is maximised, so it is part of the problem.

    Attributes
    ----------
    samples : int
        Number of representative samples, each with a weight.
    random_state : int
        Seed of the choice.

    Raises
    ------
    InputError
        If the number of samples is not a positive whole number.
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

        Raises
        ------
        InputError
            If the score is not a sum over samples, or the subset is smaller than the number of classes.
        """
        if not score.kind.sums_samples:
            those = " and ".join(", ".join(sums_of_samples()).rsplit(", ", 1))
            raise InputError(f"A subset can represent all samples under {those}, not under {score.name}.")
        return representative_weights(data, self.samples, self.random_state)
