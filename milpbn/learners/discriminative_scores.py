"""Classification rate, conditional log-likelihood and margin of a classifier whose structure changes step by step.

The log-joint of all samples and classes is kept. A change of one feature's parents adds one table to it
(`family_changes`), so that its score costs one pass over the samples that the table can bring near a decision.
Of many changes the best is found without scoring all: the margin and the conditional log-likelihood are concave in the
log-joint, and a supergradient bounds every change from above at a fraction of the cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.kernels import HARD, add_gradient, empty_duals, weigh
from milpbn.compiled import kernel
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.learners.family_changes import Changes, FamilyChanges, column_cells
from milpbn.learners.local_search import MINIMAL_GAIN
from milpbn.scores.changes import score_changes
from milpbn.scores.products import Softening, Tables, add_columns, total_score
from milpbn.threads import in_parts

#: Log-margins so near to 0 are ties, and go to the first class, as in prediction.
TIE = 1e-9
#: Bounds are sums over all samples: so far, relative to the score, rounding may take them.
SLACK = 1e-9
#: Changes scored before the best of them is compared with the bounds of the others: at first, and at most.
BATCH = 4, 64


@dataclass(frozen=True)
class Criterion:
    """What a search maximises.

    Attributes
    ----------
    name : str
        ``cr``: weight of the samples classified correctly. ``cl``: sum_m w_m log P(c_m | x_m) in nats (Grossman &
        Domingos 2004). ``mm``: sum_m w_m min(gamma, log d_m) in nats, which is gamma times the score of P11,
        section 4, with lambda = 1 / gamma.
    gamma : float
        Desired log-margin in nats, for ``mm``.

    Raises
    ------
    InputError
        If gamma is not positive and finite.
    """

    name: str
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not (self.gamma > 0 and math.isfinite(self.gamma)):
            raise InputError(f"gamma must be a positive finite number of nats, got {self.gamma}.")

    @property
    def softening(self) -> Softening:
        """What a sample adds, as the kernels take it."""
        return Softening(0.0, True) if self.name == "cl" else Softening(self.gamma, False)


class ChangingScore:
    """The score of a classifier, at first naive Bayes, under changes of single features' parents.

    Parameters
    ----------
    families : FamilyChanges
        Data and parameters.
    criterion : Criterion
        What is maximised.

    Attributes
    ----------
    logits : float64 array, shape (M, C)
        Log-joint of the current structure in nats, under cross-validation by each sample's own parameters.
    value : float
        Score of the current structure.
    evaluations : int
        How many changed structures have been scored.
    """

    def __init__(self, families: FamilyChanges, criterion: Criterion) -> None:
        self.families = families
        self.criterion = criterion
        self.evaluations = 0
        self.logits = families.naive_bayes()
        # Without families: what the kernels know of the samples.
        self._samples = families.changes([]).tables
        self._duals = empty_duals(self._samples)
        self.value = self._total(self.logits)

    @property
    def data(self) -> Dataset:
        """The training samples."""
        return self.families.data

    def at(self, logits: NDArray[np.float64]) -> float:
        """Return the score at another log-joint, shape (M, C)."""
        self.evaluations += 1
        return self._total(logits)

    def _total(self, logits: NDArray[np.float64]) -> float:
        if self.criterion.name == "cr":
            return float(_rate(self._samples, logits))
        return float(total_score(self._samples, self.criterion.softening, logits, False))

    def scores(self, changes: Changes, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the score with each of some columns added, one at a time, float64 array, shape (n,)."""
        self.evaluations += len(columns)
        tables, spreads = changes
        parallel = self.families.parallel
        if self.criterion.name == "cr":
            return np.asarray(_rate_changes(tables, spreads, self.logits, columns, parallel))
        softening = self.criterion.softening
        return np.asarray(score_changes(tables, spreads, softening, self.logits, columns, False, parallel))

    def bounds(self, changes: Changes, alive: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return a number that the score with each column added cannot exceed, shape (K,).

        Only the columns that are `alive`, bool array, shape (K,), are looked at.
        """
        tables, spreads = changes
        softening = self.criterion.softening
        if self.criterion.name == "cr":
            return self.value + self._within_reach(spreads)
        temperature = 1.0 if softening.smooth else HARD
        _, constant = weigh(tables, softening, self.logits, temperature, self._duals)
        n = int(self._duals.size[1])
        here = self.logits[self._duals.sample[:n], self._duals.label[:n]]
        bounds = np.full(len(spreads), constant + float(self._duals.value[:n] @ here))
        add_gradient(tables, self._duals, alive, bounds, self.families.parallel)
        return bounds + SLACK * (1.0 + abs(self.value))

    def _within_reach(self, spreads: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weight of the misclassified samples whose margins tables of these spreads can turn."""
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
        alive: NDArray[np.bool_] | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> tuple[int, float] | None:
        """Return the column whose addition gives the best score, and that score, or None if none improves it.

        Columns are scored in the order of their bounds until no other can be better.

        Parameters
        ----------
        changes : Changes
            Tables of the families to choose from.
        alive : bool array, shape (K,), optional
            Which of them are allowed; all by default.
        stopping : callable
            Asked often; True ends the search with the best so far.
        """
        alive = np.ones(len(changes.spreads), dtype=bool) if alive is None else alive
        bounds = self.bounds(changes, alive)
        columns = np.flatnonzero(alive)
        columns = columns[np.argsort(-bounds[columns], kind="stable")]
        values = np.full(len(bounds), -np.inf)
        top = self.value + MINIMAL_GAIN
        first, (size, most) = 0, BATCH
        while first < len(columns) and bounds[columns[first]] > top - MINIMAL_GAIN and not stopping():
            batch = columns[first : first + size]
            values[batch] = self.scores(changes, batch)
            top = max(top, float(values[batch].max()))
            first, size = first + size, min(2 * size, most)
        if not (values > self.value + MINIMAL_GAIN).any():
            return None
        k = int(np.argmax(values >= top - MINIMAL_GAIN))
        return k, float(values[k])

    def added(
        self, changes: Changes, columns: Sequence[int], signs: Sequence[float] = (1.0,)
    ) -> NDArray[np.float64]:
        """Return the current log-joint with some columns added (sign 1) or subtracted (-1), shape (M, C)."""
        logits = self.logits.copy()
        places, factors = np.array(columns, dtype=np.int64), np.array(signs, dtype=np.float64)
        add_columns(changes.tables, places, factors, logits, self.families.parallel)
        return logits

    def move(self, logits: NDArray[np.float64]) -> None:
        """Take a log-joint, shape (M, C), as the current one."""
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
    """Return the weight classified correctly with each of some columns added, one at a time, shape (n,).

    Samples whose log-margin is beyond the reach of all these columns are not looked at again.
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
