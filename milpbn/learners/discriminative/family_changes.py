"""The change of the log-joint by feature parents: tables log theta(x_i | x_S, c) - log theta(x_i | c) of families.

The parameters are closed-form functions of counts. The log-joint of a classifier is therefore that of naive Bayes plus
one such table for every feature with feature parents. The tables are `milpbn.problem.family_tables.Tables`, so that the
kernels of `milpbn.problem` can add and score them.

In cross-validation a sample is scored with parameters from the other folds. Its fold is then part of the number of its
cell, and every fold has its own rows in a table. Only the counting differs from that for training rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import Cpt
from milpbn.network.structure import Structure
from milpbn.problem.candidates import ParentSet
from milpbn.problem.changes import table_spreads
from milpbn.problem.family_tables import Tables
from milpbn.problem.products import add_columns
from milpbn.util.compiled import kernel
from milpbn.util.memory import require_memory
from milpbn.util.threads import in_parts

#: A feature and a set of feature parents for it.
Family = tuple[int, ParentSet]
#: Largest number of float64 values in the tables that are made at a time: 256 MiB.
PORTION = 1 << 25


@dataclass(frozen=True)
class Estimation:
    """The estimation of parameters from counts.

    Raises `InputError` if a number is out of range.
    """

    #: Laplace constant a > 0, which is not used if there is a `zero_probability`.
    smoothing: float = 1.0
    #: Use maximum-likelihood estimates. Every probability 0 is replaced by this number, and the row is scaled to sum to
    #: 1 again (1e-5 in Pernkopf et al. 2011, section 5). Rows without counts are uniform.
    zero_probability: float | None = None

    def __post_init__(self) -> None:
        zero = self.zero_probability
        if zero is not None and not 0 < zero < 1:
            raise InputError(f"zero_probability must be above 0 and below 1, got {zero}.")
        if zero is None and not (self.smoothing > 0 and math.isfinite(self.smoothing)):
            raise InputError(
                f"smoothing must be a positive finite number, got {self.smoothing}; "
                "for maximum likelihood give zero_probability."
            )

    def classifier(
        self, data: Dataset, structure: Structure, provenance: Mapping[str, Any] | None = None
    ) -> Classifier:
        """Return the classifier of a structure with parameters from the data; see `milpbn.network.cpt.fit_cpts`."""
        zero = self.zero_probability
        if zero is None:
            return Classifier.fit(data, structure, self.smoothing, provenance)
        plain = Classifier.fit(data, structure, 0.0, provenance)
        return replace(plain, cpts=tuple(_without_zeros(cpt, zero) for cpt in plain.cpts))


def _without_zeros(cpt: Cpt, zero: float) -> Cpt:
    table = np.where(cpt.table > 0, cpt.table, zero)
    return replace(cpt, table=table / table.sum(axis=-1, keepdims=True))


class Changes(NamedTuple):
    """Tables of K families, and the largest change of a log-margin by each table, shape (K,)."""

    tables: Tables
    spreads: NDArray[np.float64]


class FamilyChanges:
    """The tables of families, computed from the counts of the data.

    Parameters
    ----------
    fold : int array, shape (M,), optional
        Number of each sample's fold, from 0. The parameters for a sample come from the other folds. Without `fold` they
        come from all samples.
    parallel : bool
        Whether to use threads.
    """

    def __init__(
        self,
        data: Dataset,
        estimation: Estimation,
        fold: NDArray[np.integer] | None = None,
        *,
        parallel: bool = False,
    ) -> None:
        self.data = data
        self.parallel = parallel
        self._constants = estimation.smoothing, estimation.zero_probability or 0.0
        self._n_folds = 1 if fold is None else int(fold.max()) + 1
        self._fold = np.zeros(data.n_samples, dtype=np.int32) if fold is None else fold.astype(np.int32)
        self._states: list[int] = data.n_states.tolist()
        features = np.ascontiguousarray(data.X.T)
        # The code of a child combines the fold and the state: fold * states + state.
        children = features + self._fold * data.n_states[:-1, None].astype(np.int32)
        self._codes = np.concatenate([features, children])
        self._true = np.ascontiguousarray(data.y)

    def naive_bayes(self) -> NDArray[np.float64]:
        """Return log P(c, z_m) of naive Bayes in nats, float64 array, shape (M, C)."""
        N, C, F = self.data.n_features, self.data.n_classes, self._n_folds
        cells = self._true.astype(np.int64) * F + self._fold
        counts = np.bincount(cells, weights=self.data.weights, minlength=C * F).reshape(1, C, F)
        prior = _leave_out(np.ascontiguousarray(counts.transpose(0, 2, 1)))[0].T.copy()
        _to_logarithms(prior, C, *self._constants)
        logits = np.ascontiguousarray(prior.T[self._fold])
        features = self._tables([(i, ()) for i in range(N)], change=False)
        add_columns(features, np.arange(N), np.ones(N), logits, self.parallel)
        return logits

    def changes(self, families: Sequence[Family]) -> Changes:
        """Return the tables of some families; column k belongs to ``families[k]``."""
        tables = self._tables(families, change=True)
        return Changes(tables, table_spreads(tables))

    def portions(self, families: Sequence[Family]) -> Iterator[Sequence[Family]]:
        """Divide families into parts whose tables have at most `PORTION` values; a larger family is a part itself."""
        sizes = self._sizes(families) * self.data.n_classes
        begin, total = 0, 0
        for k, size in enumerate(sizes.tolist()):
            if k > begin and total + size > PORTION:
                yield families[begin:k]
                begin, total = k, 0
            total += size
        if begin < len(families):
            yield families[begin:]

    def _sizes(self, families: Sequence[Family]) -> NDArray[np.int64]:
        states = self._states
        sizes = [self._n_folds * states[i] * math.prod(states[j] for j in parents) for i, parents in families]
        return np.array(sizes, dtype=np.int64)

    def _tables(self, families: Sequence[Family], *, change: bool) -> Tables:
        K, C, N = len(families), self.data.n_classes, self.data.n_features
        sizes = self._sizes(families)
        require_memory(
            8 * C * int(sizes.sum()),
            f"The tables of {K} parent sets",
            "use fewer features, fewer states, or fewer feature parents",
        )
        width = 1 + max((len(parents) for _, parents in families), default=0)
        rows = np.full((K, width), -1, dtype=np.int64)
        strides = np.zeros((K, width), dtype=np.int64)
        for k, (child, parents) in enumerate(families):
            rows[k, : len(parents) + 1] = (N + child, *parents)
            stride = self._n_folds * self._states[child]
            strides[k, 0] = 1
            for t, j in enumerate(parents, start=1):
                strides[k, t] = stride
                stride *= self._states[j]
        each = np.arange(K)
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        tables = Tables(
            self._codes,
            self._true,
            rows,
            strides,
            sizes,
            each,
            each,
            start[:-1],
            np.zeros((int(start[-1]), C)),
            np.arange(K + 1),
            each,
            self.data.weights,
            False,
        )
        states = self.data.n_states[[child for child, _ in families]]
        in_parts(
            lambda begin, end: _fill(tables, states, self._n_folds, *self._constants, change, begin, end),
            K,
            self.parallel,
        )
        return tables


@kernel
def column_cells(tables, k):  # type: ignore[no-untyped-def]
    """Return the cell of every sample in the domain of column k, int64 array, shape (M,)."""
    d = tables.domain[k]
    cells = np.zeros(tables.codes.shape[1], dtype=np.int64)
    for t in range(tables.rows.shape[1]):
        if tables.rows[d, t] < 0:
            break
        stride, codes = tables.strides[d, t], tables.codes[tables.rows[d, t]]
        for m in range(len(cells)):
            cells[m] += stride * codes[m]
    return cells


@kernel
def _leave_out(counts):  # type: ignore[no-untyped-def]
    """Return for every fold the counts of the others; of a single fold its own; float64 array, shape (n, F, w).

    The others are added up, not subtracted from the total, so that a count of 0 is exactly 0.
    """
    n, F, width = counts.shape
    if F == 1:
        return counts
    out = np.zeros_like(counts)
    for h in range(n):
        for f in range(F):
            for g in range(F):
                if g != f:
                    for j in range(width):
                        out[h, f, j] += counts[h, g, j]
    return out


@kernel
def _to_logarithms(counts, states, smoothing, zero):  # type: ignore[no-untyped-def]
    """Replace counts, shape (rows * states, C), by log-probabilities over the states: see `Estimation`."""
    for first in range(0, counts.shape[0], states):
        for c in range(counts.shape[1]):
            total = 0.0
            for r in range(first, first + states):
                total += counts[r, c]
            if zero == 0.0:
                total = np.log(total + smoothing * states)
                for r in range(first, first + states):
                    counts[r, c] = np.log(counts[r, c] + smoothing) - total
                continue
            mass = 0.0
            for r in range(first, first + states):
                p = 1.0 / states if total == 0.0 else counts[r, c] / total
                counts[r, c] = p if p > 0.0 else zero
                mass += counts[r, c]
            for r in range(first, first + states):
                counts[r, c] = np.log(counts[r, c] / mass)


@kernel
def _fill_column(tables, states, n_folds, smoothing, zero, change, k):  # type: ignore[no-untyped-def]
    Q = tables.values.shape[1]
    size = tables.sizes[k]
    table = tables.values[tables.start[k] : tables.start[k] + size]
    cells = column_cells(tables, k)
    for m in range(len(cells)):
        table[cells[m], tables.true[m]] += tables.weights[m]
    block = n_folds * states[k]
    table[:] = _leave_out(table.reshape(size // block, n_folds, states[k] * Q)).reshape(size, Q)
    plain = np.zeros((block, Q))
    if change:
        for r in range(size):
            for c in range(Q):  # loops compile sooner than slices
                plain[r % block, c] += table[r, c]
        _to_logarithms(plain, states[k], smoothing, zero)
    _to_logarithms(table, states[k], smoothing, zero)
    for r in range(size):
        for c in range(Q):
            table[r, c] -= plain[r % block, c]


@kernel
def _fill(tables, states, n_folds, smoothing, zero, change, begin, end):  # type: ignore[no-untyped-def]
    """Count every column's family, and write its table: log theta, or with `change` the difference to no parents."""
    for k in range(begin, end):
        _fill_column(tables, states, n_folds, smoothing, zero, change, k)
