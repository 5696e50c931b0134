"""Classification rate, conditional log-likelihood and margin of a classifier whose structure changes step by step.

The log-joint of all samples and classes is kept. A change of one feature's parents adds one table to it
(`family_changes`). To score a change, one pass is made over the samples whose contribution the table can change.

The best of many changes is found without scoring all of them. The margin and the conditional log-likelihood are concave
in the log-joint, so that a supergradient bounds the score after every change, at a fraction of the cost of the score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.heuristics.tuning import TUNING
from milpbn.learners.discriminative.family_changes import Changes, FamilyChanges, column_cells
from milpbn.problem.changes import score_changes
from milpbn.problem.duals import add_gradient, empty_duals, score_temperature, weigh
from milpbn.problem.family_tables import Tables
from milpbn.problem.products import Softening, add_columns, total_score
from milpbn.util.compiled import kernel
from milpbn.util.threads import in_parts

#: Log-margins of at most this size are ties, which go to the first class, as in prediction.
TIE = 1e-9
#: Rounding error of a bound, relative to the score; a bound is a sum over all samples.
SLACK = 1e-9
#: First and largest number of changes that are scored before their best is compared with the bounds of the others.
BATCH = 4, 64


@dataclass(frozen=True)
class Criterion:
    """The score that a search maximises.

    Raises `InputError` if gamma is not positive and finite.
    """

    #: ``cr``: weight of the samples classified correctly. ``cl``: sum_m w_m log P(c_m | x_m) in nats (Grossman &
    #: Domingos 2004). ``mm``: sum_m w_m min(gamma, log d_m) in nats, which is gamma times the score of Pernkopf et al.
    #: (2011), section 4, with lambda = 1 / gamma.
    name: str
    #: Desired log-margin in nats, for ``mm``.
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not (self.gamma > 0 and math.isfinite(self.gamma)):
            raise InputError(f"gamma must be a positive finite number of nats, got {self.gamma}.")

    @property
    def softening(self) -> Softening:
        """The contribution of a sample to the score, in the form that the kernels use."""
        return Softening(0.0, True) if self.name == "cl" else Softening(self.gamma, False)


class ChangingScore:
    """The score of a classifier that begins as naive Bayes and changes by single features' parents.

    Attributes
    ----------
    logits : float64 array, shape (M, C)
        Log-joint of the current structure in nats. In cross-validation the parameters for a sample come from the folds
        without it.
    evaluations : int
        Number of changed structures that have been scored.
    """

    def __init__(self, families: FamilyChanges, criterion: Criterion) -> None:
        self.families, self.data = families, families.data
        self.criterion = criterion
        self.evaluations = 0
        self.logits = families.naive_bayes()
        # Tables without families, through which the kernels get the classes and weights of the samples.
        self._samples = families.changes([]).tables
        self._duals = empty_duals(self._samples)
        self.value = self._total(self.logits)

    def at(self, logits: NDArray[np.float64]) -> float:
        """Return the score at another log-joint, shape (M, C)."""
        self.evaluations += 1
        return self._total(logits)

    def _total(self, logits: NDArray[np.float64]) -> float:
        if self.criterion.name == "cr":
            return float(_rate(self._samples, logits))
        return float(total_score(self._samples, self.criterion.softening, logits, False))

    def scores(self, changes: Changes, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the score after the addition of each of n columns alone, float64 array, shape (n,)."""
        self.evaluations += len(columns)
        tables, spreads = changes
        parallel = self.families.parallel
        if self.criterion.name == "cr":
            return np.asarray(_rate_changes(tables, spreads, self.logits, columns, parallel))
        softening = self.criterion.softening
        return np.asarray(score_changes(tables, spreads, softening, self.logits, columns, False, parallel))

    def bounds(self, changes: Changes, allowed: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return an upper bound on the score after the addition of each column, shape (K,).

        The bounds are valid for the columns that are `allowed`, bool array, shape (K,).
        """
        tables, spreads = changes
        softening = self.criterion.softening
        if self.criterion.name == "cr":
            return self.value + self._within_reach(spreads)
        temperature = score_temperature(softening)
        _, constant, _ = weigh(tables, softening, self.logits, temperature, self._duals)
        n = int(self._duals.size[1])
        here = self.logits[self._duals.sample[:n], self._duals.label[:n]]
        bounds = np.full(len(spreads), constant + float(self._duals.value[:n] @ here))
        add_gradient(tables, self._duals, allowed, bounds, self.families.parallel)
        return bounds + SLACK * (1.0 + abs(self.value))

    def _within_reach(self, spreads: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return for each spread the weight of the misclassified samples that a table of this spread can correct."""
        rows, y = np.arange(len(self.logits)), self._samples.true
        margins = self.logits[rows, y]
        rivals = self.logits.copy()
        rivals[rows, y] = -np.inf
        missing = rivals.max(axis=1) - margins
        wrong = missing >= -TIE
        order = np.argsort(missing[wrong])
        weight = np.concatenate([[0.0], np.cumsum(self.data.weights[wrong][order])])
        return weight[np.searchsorted(missing[wrong][order], spreads + TIE, side="right")]

    def best(
        self,
        changes: Changes,
        allowed: NDArray[np.bool_] | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> tuple[int, float] | None:
        """Return the column whose addition gives the best score, and the score; None if no addition improves it.

        Columns are scored in the order of their bounds, until no remaining bound exceeds the best score, or `stopping`
        returns True. Only columns that are `allowed`, bool array of shape (K,), are looked at; by default all.
        """
        allowed = np.ones(len(changes.spreads), dtype=bool) if allowed is None else allowed
        bounds = self.bounds(changes, allowed)
        columns = np.flatnonzero(allowed)
        columns = columns[np.argsort(-bounds[columns], kind="stable")]
        values = np.full(len(bounds), -np.inf)
        top = self.value + TUNING.least_gain
        first, (size, most) = 0, BATCH
        while first < len(columns) and bounds[columns[first]] > top - TUNING.least_gain and not stopping():
            batch = columns[first : first + size]
            values[batch] = self.scores(changes, batch)
            top = max(top, float(values[batch].max()))
            first, size = first + size, min(2 * size, most)
        if not (values > self.value + TUNING.least_gain).any():
            return None
        k = int(np.argmax(values >= top - TUNING.least_gain))
        return k, float(values[k])

    def added(
        self, changes: Changes, columns: Sequence[int], signs: Sequence[float] = (1.0,)
    ) -> NDArray[np.float64]:
        """Return the current log-joint plus (sign 1) or minus (sign -1) some columns, shape (M, C)."""
        logits = self.logits.copy()
        places, factors = np.array(columns, dtype=np.int64), np.array(signs, dtype=np.float64)
        add_columns(changes.tables, places, factors, logits, self.families.parallel)
        return logits

    def move(self, logits: NDArray[np.float64]) -> None:
        """Make a log-joint, shape (M, C), the current one, and compute its score."""
        self.logits, self.value = logits, self._total(logits)


@kernel
def _is_right(row, true):  # type: ignore[no-untyped-def]
    """Return whether a row of the log-joint is largest at the true class, ties to the first class."""
    for c in range(len(row)):
        gap = row[true] - row[c]
        if c != true and (gap < -TIE or (c < true and gap <= TIE)):
            return False
    return True


@kernel
def _rate(tables, logits):  # type: ignore[no-untyped-def]
    """Return the weight of the samples classified correctly."""
    total = 0.0
    for m in range(logits.shape[0]):
        if _is_right(logits[m], tables.true[m]):
            total += tables.weights[m]
    return total


@kernel
def _rate_change(tables, logits, sample, k):  # type: ignore[no-untyped-def]
    """Return the weight of some samples that are classified correctly with column k added."""
    total = 0.0
    changed = np.empty(logits.shape[1])
    cells = column_cells(tables, k)
    for m in sample:
        row = np.uint64(tables.start[k] + cells[m])
        for c in range(len(changed)):
            changed[c] = logits[m, c] + tables.values[row, c]
        if _is_right(changed, tables.true[m]):
            total += tables.weights[m]
    return total


@kernel
def _add_rates(tables, logits, sample, columns, out, begin, end):  # type: ignore[no-untyped-def]
    for n in range(begin, end):
        out[n] += _rate_change(tables, logits, sample, columns[n])


def _rate_changes(
    tables: Tables,
    spreads: NDArray[np.float64],
    logits: NDArray[np.float64],
    columns: NDArray[np.int64],
    parallel: bool,
) -> NDArray[np.float64]:
    """Return the weight that is classified correctly after the addition of each of n columns alone, shape (n,).

    The samples whose classification none of these columns can change are counted once for all columns.
    """
    reach = float(spreads[columns].max(initial=0.0)) + 2 * TIE
    sample, decided = _undecided(tables, logits, reach)
    out = np.full(len(columns), decided)
    in_parts(
        lambda begin, end: _add_rates(tables, logits, sample, columns, out, begin, end),
        len(columns),
        parallel,
    )
    return out


@kernel
def _undecided(tables, logits, reach):  # type: ignore[no-untyped-def]
    """Return the samples whose log-margin is within reach of 0, and the weight of the others that are right."""
    M = logits.shape[0]
    sample = np.empty(M, dtype=np.int64)
    n = 0
    decided = 0.0
    for m in range(M):
        y = tables.true[m]
        low = np.inf
        for c in range(logits.shape[1]):
            if c != y:
                low = min(low, logits[m, y] - logits[m, c])
        if abs(low) <= reach:
            sample[n] = m
            n += 1
        elif low > 0.0:
            decided += tables.weights[m]
    return sample[:n], decided
