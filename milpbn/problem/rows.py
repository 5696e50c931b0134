"""Rows of a MILP over eta that hold exactly for structures, and blocks of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from milpbn.problem.candidates import Candidates


@dataclass(frozen=True)
class RowBlock:
    """Some rows of a MILP. The matrix may have fewer columns than the model; the missing coefficients are 0."""

    matrix: sp.csr_array
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    names: list[str]

    @classmethod
    def from_coordinates(
        cls,
        rows: ArrayLike,
        columns: ArrayLike,
        values: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        names: list[str],
    ) -> RowBlock:
        """Build rows from triples (row, column, value); zero values are left out."""
        r, c = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
        v = np.asarray(values, dtype=np.float64)
        keep = v != 0
        width = int(c.max()) + 1 if c.size else 0
        matrix = sp.csr_array((v[keep], (r[keep], c[keep])), shape=(len(names), width))
        return cls(matrix, np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64), names)

    def take(self, rows: NDArray[np.integer]) -> RowBlock:
        """Return some of the rows."""
        names = [self.names[r] for r in rows]
        return RowBlock(self.matrix[rows], self.lower[rows], self.upper[rows], names)

    def slack(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the distance of each row from its nearer bound at a point; negative if the row is violated."""
        activity = self.matrix @ x[: self.matrix.shape[1]]
        return np.asarray(np.minimum(activity - self.lower, self.upper - activity))


def stack(blocks: list[RowBlock], n_columns: int) -> RowBlock:
    """Stack blocks into one block of `n_columns` columns with sorted int32 indices."""
    data = np.concatenate([b.matrix.data for b in blocks])
    indices = np.concatenate([b.matrix.indices.astype(np.int32, copy=False) for b in blocks])
    lengths = np.concatenate([np.diff(b.matrix.indptr) for b in blocks])
    index_type = np.int32 if len(data) < 2**31 else np.int64
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(index_type)
    matrix = sp.csr_array((data, indices, indptr), shape=(len(lengths), n_columns))
    matrix.sort_indices()
    return RowBlock(
        matrix,
        np.concatenate([b.lower for b in blocks]),
        np.concatenate([b.upper for b in blocks]),
        [name for b in blocks for name in b.names],
    )


def set_block(candidates: Candidates) -> RowBlock:
    """Rows (5) of Peharz & Pernkopf (2012): exactly one parent set per variable, named ``s_<variable>``."""
    V, P = candidates.n_variables, candidates.n_sets
    names = [f"s_{i}" for i in range(V)]
    return RowBlock.from_coordinates(
        candidates.variable, np.arange(P), np.ones(P), np.ones(V), np.ones(V), names
    )


def order_block(candidates: Candidates, order: int, *, arcs_only: bool = False) -> RowBlock:
    """Rows (16) of Peharz & Pernkopf (2012) with Delta = V: o_j - o_i - 2 V a_ij >= 1 - 2 V, named ``a_<i>_<j>``.

    `order` is the column of the first order variable. With `arcs_only`, pairs (i, j) for which no candidate of j
    contains i have no row; by default all V^2 - V pairs have one.
    """
    V = candidates.n_variables
    parent, child, index = candidates.arcs
    pair = parent * V + child
    pairs = np.unique(pair) if arcs_only else np.flatnonzero(~np.eye(V, dtype=bool))
    i, j = np.divmod(pairs, V)
    r = np.arange(len(pairs))
    return RowBlock.from_coordinates(
        np.concatenate([np.searchsorted(pairs, pair), r, r]),
        np.concatenate([index, order + j, order + i]),
        np.concatenate([np.full(len(index), -2.0 * V), np.ones(len(r)), -np.ones(len(r))]),
        np.full(len(r), 1.0 - 2.0 * V),
        np.full(len(r), np.inf),
        [f"a_{a}_{b}" for a, b in zip(i.tolist(), j.tolist(), strict=True)],
    )


def children_block(candidates: Candidates, max_children: Mapping[int, int]) -> RowBlock:
    """One row per child limit, named ``d_<variable>``: the number of children is at most the limit."""
    parent, _, index = candidates.arcs
    limited = sorted(max_children)
    at = {j: k for k, j in enumerate(limited)}
    keep = np.isin(parent, limited)
    rows = np.array([at[int(j)] for j in parent[keep]], dtype=np.int64)
    upper = np.array([float(max_children[j]) for j in limited])
    names = [f"d_{j}" for j in limited]
    return RowBlock.from_coordinates(
        rows, index[keep], np.ones(len(rows)), np.full(len(limited), -np.inf), upper, names
    )


def features_block(candidates: Candidates, most: int, first: int) -> RowBlock:
    """At most so many features in the Markov blanket of the class, by the columns u_j from `first` on, one per feature.

    The rows ``f_<j>_<i>`` say that u_j is at least the share of the parent sets of i that put j into the blanket
    (`Candidates.uses`), ``f`` that all u_j add up to at most `most`. If eta is integral, u need not be.
    """
    feature, variable, index = candidates.uses
    V = candidates.n_variables
    pairs, row = np.unique(feature * V + variable, return_inverse=True)
    n = len(pairs)
    return RowBlock.from_coordinates(
        np.concatenate([row.ravel(), np.arange(n), np.full(V - 1, n)]),
        np.concatenate([index, first + pairs // V, first + np.arange(V - 1)]),
        np.concatenate([-np.ones(len(index)), np.ones(n + V - 1)]),
        np.concatenate([np.zeros(n), [-np.inf]]),
        np.concatenate([np.full(n, np.inf), [float(most)]]),
        [*(f"f_{j}_{i}" for j, i in zip(*np.divmod(pairs, V), strict=True)), "f"],
    )


def cluster_parent_sets(candidates: Candidates, cluster: frozenset[int]) -> NDArray[np.int64]:
    """Return the indices in eta that row (7) of a cluster sums: its members' parent sets without a member of it."""
    return np.array(
        [
            int(candidates.offsets[i]) + k
            for i in sorted(cluster)
            for k, s in enumerate(candidates.sets[i])
            if cluster.isdisjoint(s)
        ],
        dtype=np.int64,
    )


def cluster_block(candidates: Candidates, cluster: frozenset[int]) -> RowBlock:
    """Row (7) of Peharz & Pernkopf (2012): some member of a cluster has no parent in the cluster."""
    entries = cluster_parent_sets(candidates, cluster)
    name = "c_" + "_".join(str(i) for i in sorted(cluster))
    if len(name) > 80:
        name = "c_" + hashlib.sha256(name.encode()).hexdigest()[:24]
    return RowBlock.from_coordinates(
        np.zeros(len(entries)), entries, np.ones(len(entries)), [1.0], [np.inf], [name]
    )
