"""The pseudo-counts of the coefficients' tables: what the prior of the parameters adds to each cell and class.

Under leave-one-out scores one unit of the sample's weight is left out of the prior's own table, too. A sample looks up
only cells with its own states, so the number for a cell and a class is the same for all samples that look it up:

- given the class, the prior's table lacks the unit for the true class only, like the family's own table;
- without parents, it lacks the unit for every class alike, since all of them have the sample's own state;
- if the variable is the class itself, the true class lacks the unit, and of the other classes the total does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.network.prior import Prior, PseudoCounts, prior_parents, shrunk_counts, uniform_counts


class PriorCounts(NamedTuple):
    """The pseudo-counts of a table: for the true class, and for the competing classes.

    Under a binary margin they are for each class, and for all others together. They are numbers, or arrays with one row
    for every state of a feature (one row if the variable is the class), and one column for every class (or one for
    all).
    """

    own: PseudoCounts
    other: PseudoCounts

    def by_state(self, states: NDArray[np.int64]) -> PriorCounts:
        """Return the rows of some states, in their order; numbers and single rows stay."""

        def pick(values: float | NDArray[np.float64]) -> float | NDArray[np.float64]:
            return values[states] if isinstance(values, np.ndarray) and len(values) > 1 else values

        own, other = (PseudoCounts(*map(pick, counts)) for counts in self)
        return PriorCounts(own, other)


class CoefficientPrior:
    """The prior of all tables of a margin score.

    Its Laplace constant is above 0. If `binary`, the class is re-read as {c, not c}. The prior's tables lack the weight
    `unit`, 1 or 0, of the sample that is scored.
    """

    def __init__(self, data: Dataset, prior: Prior, *, binary: bool, unit: float) -> None:
        self._data, self._prior, self.binary, self.unit = data, prior, binary, unit
        #: Whether the pseudo-counts depend on the states.
        self.has_table = prior.has_table
        self._n_states = data.n_states.copy()
        if binary:
            self._n_states[-1] = 2
        uniform = [uniform_counts(prior.smoothing, states) for states in self._n_states.tolist()]
        self._uniform = [PriorCounts(counts, counts) for counts in uniform]
        self._kept: dict[tuple[int, bool], PriorCounts] = {}

    def of(self, child: int | None, features: tuple[int, ...]) -> PriorCounts:
        """Return the pseudo-counts of a feature given other features and the class, or of the class given features.

        A child of None stands for the class; `features` are the parents without the class.
        """
        last = len(self._uniform) - 1
        variable = last if child is None else child
        if not self.has_table:
            return self._uniform[variable]
        parents = features if child is None else (*features, last)
        fewer = prior_parents(self._prior, parents, self._n_states)
        if fewer is None:
            return self._uniform[variable]
        key = variable, bool(fewer)
        if key not in self._kept:
            if child is None:
                self._kept[key] = self._of_class()
            else:
                self._kept[key] = self._given_class(child) if fewer else self._without_parents(child)
        return self._kept[key]

    def _given_class(self, child: int) -> PriorCounts:
        data, C = self._data, self._data.n_classes
        states = int(self._n_states[child])
        counts = data.total_weights(data.codes[:, child].astype(np.int64) * C + data.y, states * C)
        counts = counts.reshape(states, C)
        rest = data.other_weights(counts, axis=0)
        own = self._shrunk(self._left_out(counts), rest, states)
        if self.binary:
            return PriorCounts(
                own, self._shrunk(data.other_weights(counts), data.other_weights(rest), states)
            )
        return PriorCounts(own, self._shrunk(counts, rest, states) if self.unit else own)

    def _without_parents(self, child: int) -> PriorCounts:
        data, states = self._data, int(self._n_states[child])
        counts = data.total_weights(data.codes[:, child], states).reshape(states, 1)
        shrunk = self._shrunk(self._left_out(counts), data.other_weights(counts, axis=0), states)
        return PriorCounts(shrunk, shrunk)

    def _of_class(self) -> PriorCounts:
        data, states = self._data, int(self._n_states[-1])
        counts = data.total_weights(data.y, data.n_classes).reshape(1, -1)
        rest = data.other_weights(counts)
        own = self._shrunk(self._left_out(counts), rest, states)
        if self.binary:
            return PriorCounts(own, self._shrunk(rest, self._left_out(counts), states))
        return PriorCounts(own, self._shrunk(counts, self._left_out(rest), states) if self.unit else own)

    def _left_out(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the counts less the unit. Counts of 0 stay 0, since no sample looks them up."""
        return np.maximum(counts - self.unit, 0.0) if self.unit else counts

    def _shrunk(self, part: NDArray[np.float64], rest: NDArray[np.float64], states: int) -> PseudoCounts:
        return shrunk_counts(part, rest, self._prior.smoothing, states)
