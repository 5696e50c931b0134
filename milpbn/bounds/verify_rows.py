"""Inequalities that every structure obeys, as certificates write them, for `verify`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.verify_space import Space
from milpbn.errors import InputError
from milpbn.scores.constraints import Rules

#: The limit of a row that is a cluster's.
CLUSTER = -1
_EPS = float(np.finfo(np.float64).eps)


class Rows:
    """Rows a_r @ eta >= b_r: in every cluster one variable has no parent there; limits on children.

    Parameters
    ----------
    space : Space
        Candidate sets.
    rules : Rules
        With the limits on children.
    members : array, shape (R, V)
        Not 0 for the variables of a cluster, or for the one parent of a limit.
    limits : int64 array, shape (R,)
        `CLUSTER`, or how many children that parent may have.

    Raises
    ------
    InputError
        If a row is none that every structure obeys.
    """

    def __init__(
        self, space: Space, rules: Rules, members: NDArray[np.bool_], limits: NDArray[np.int64]
    ) -> None:
        V = len(space.offsets) - 1
        if len(limits) != len(members) or (len(members) and members.shape[1] != V):
            raise InputError("The certificate is damaged: its arrays do not fit together.")
        for row, limit in zip(members, limits.tolist(), strict=True):
            inside = np.flatnonzero(row)
            if limit == CLUSTER and len(inside):
                continue
            parent = int(inside[0]) if len(inside) == 1 else -1
            if limit < rules.max_children.get(parent, np.inf):
                raise InputError("The certificate builds on an inequality that not every structure obeys.")
        clusters = limits == CLUSTER
        self.side = np.where(clusters, 1.0, -limits.astype(np.float64))
        self._entries: list[NDArray[np.intp]] = []
        for row, cluster in zip(members, clusters, strict=True):
            meets = space.is_parent[:, row].any(axis=1)
            self._entries.append(np.flatnonzero(row[space.variable] & ~meets if cluster else meets))
        self._sign = np.where(clusters, 1.0, -1.0)
        self._V, self._P = V, len(space.variable)

    def price(
        self, rows: NDArray[np.int64], multipliers: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return - mu @ b, rounding included, and sum_r mu_r a_r, shape (P,), for some rows' multipliers mu."""
        side = self.side[rows]
        slack = _EPS * (len(rows) + 64) * float(multipliers @ (self._V + 1 + np.abs(side)))
        total = np.zeros(self._P)
        for r, multiplier in zip(rows.tolist(), multipliers, strict=True):
            total[self._entries[r]] += self._sign[r] * multiplier
        return slack - float(multipliers @ side), total
