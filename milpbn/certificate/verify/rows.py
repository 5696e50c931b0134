"""The inequalities of a certificate, which every structure obeys, for the verifier."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.verify.space import Space
from milpbn.errors import InputError
from milpbn.problem.constraints import Rules

#: Value of `limits` that marks a row as a cluster's.
CLUSTER = -1
_EPS = float(np.finfo(np.float64).eps)


class Rows:
    """Rows a_r @ eta >= b_r: clusters, in which some variable has no parent of the cluster, and child limits.

    `members`, bool array of shape (R, V), is true for the variables of a cluster, or for the one parent of a child
    limit; `limits`, int64 array of shape (R,), is `CLUSTER`, or the largest number of children of that parent. Raises
    InputError if some structure violates a row.
    """

    def __init__(
        self, space: Space, rules: Rules, members: NDArray[np.bool_], limits: NDArray[np.int64]
    ) -> None:
        V = len(space.offsets) - 1
        for row, limit in zip(members, limits.tolist(), strict=True):
            inside = np.flatnonzero(row)
            if limit == CLUSTER and len(inside):
                continue
            parent = int(inside[0]) if len(inside) == 1 else -1
            if limit < rules.max_children.get(parent, np.inf):
                raise InputError("The certificate builds on an inequality that not every structure obeys.")
        clusters = limits == CLUSTER
        self.side = np.where(clusters, 1.0, -limits.astype(np.float64))
        self._parent_sets: list[NDArray[np.intp]] = []
        for row, cluster in zip(members, clusters, strict=True):
            meets = space.is_parent[:, row].any(axis=1)
            self._parent_sets.append(np.flatnonzero(row[space.variable] & ~meets if cluster else meets))
        self._sign = np.where(clusters, 1.0, -1.0)
        self._V, self._P = V, len(space.variable)

    def combine(
        self, rows: NDArray[np.integer], multipliers: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return - mu @ b, rounded up, and sum_r mu_r a_r, shape (P,), for the multipliers mu of some rows."""
        side = self.side[rows]
        slack = _EPS * (len(rows) + 64) * float(multipliers @ (self._V + 1 + np.abs(side)))
        total = np.zeros(self._P)
        for r, multiplier in zip(rows.tolist(), multipliers, strict=True):
            total[self._parent_sets[r]] += self._sign[r] * multiplier
        return slack - float(multipliers @ side), total
