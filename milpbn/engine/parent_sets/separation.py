"""Cluster and block rows for a MILP over all candidate parent sets: those that a point violates."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from milpbn.engine.parent_sets.blocks import violated_blocks
from milpbn.engine.parent_sets.clusters import support_of, violated_clusters
from milpbn.engine.parent_sets.cutting import BLOCK_SIZES, BLOCKS, MOST_CLUSTERS
from milpbn.engine.parent_sets.rows import Row, matrix_of, pack
from milpbn.engine.parent_sets.sets import ParentSets, masks_of
from milpbn.problem.candidates import Candidates
from milpbn.problem.rows import RowBlock


class Separation:
    """Finds rows that points violate; the choice of blocks and clusters is random, by the number of the point."""

    def __init__(self, candidates: Candidates) -> None:
        n_sets = candidates.n_sets
        self._sets = ParentSets(
            candidates.offsets, candidates.variable, masks_of(candidates), np.zeros(n_sets)
        )
        self._columns, self._points = np.arange(n_sets), 0

    def __call__(self, eta: NDArray[np.float64]) -> dict[Hashable, RowBlock]:
        """Return rows that a point eta, shape (P,), violates, each as a block of its own.

        If all shares are 0 or 1, there are none only if the graph has no cycle.
        """
        self._points += 1
        point = support_of(self._sets, self._columns, eta)
        rows = violated_clusters(point, self._points)[:MOST_CLUSTERS]
        if not point.integral:
            rows += violated_blocks(point, BLOCK_SIZES, BLOCKS, np.random.default_rng(self._points))
        return {row: self._block(row) for row in rows}

    def _block(self, row: Row) -> RowBlock:
        places, values, _, right, _ = matrix_of(
            self._sets, self._columns, pack([row], self._sets.n_variables)
        )
        matrix = sp.csr_array((values, places, [0, len(places)]), shape=(1, self._sets.n_sets))
        name = "r_" + hashlib.sha256(repr(row).encode()).hexdigest()[:24]
        return RowBlock(matrix, np.array([-np.inf]), right, [name])
