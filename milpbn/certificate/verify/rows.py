"""The inequalities of a proof by multipliers, for the verifier: each is one that every structure obeys.

`milpbn.certificate.exact.multipliers` has their definitions, and why they hold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.verify.order import MemberSets
from milpbn.certificate.verify.paths import connected
from milpbn.certificate.verify.tree import CLUSTER
from milpbn.problem.constraints import Rules
from milpbn.util.saved_arrays import SavedArrays, UnfitError

#: Values of `row_limit` that mark a row as a block's, or as one of constraints on paths.
BLOCK, CLOSED, REACHED, ARCS = -2, -3, -4, -5
#: Most members of a block, and largest value of its function.
LARGEST_BLOCK, LARGEST_VALUE = 12, 2**31


class Inequality(NamedTuple):
    """An inequality sum_i a(i, S_i) <= right over its members i, ascending.

    a is 1 if S has one of the `parents`, for `CLOSED` if it has none of them, and for `ARCS`, where every member has
    parents of its own, if it has all of them. A block has a `table` of a instead (`_table`).
    """

    kind: int
    members: NDArray[np.int64]
    right: float
    parents: tuple[NDArray[np.int64], ...]
    table: NDArray[np.float64] | None = None

    def terms(self, sets: MemberSets) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the sets with a term that is not 0, and these terms."""
        if self.kind == ARCS:
            pairs = zip(self.members, self.parents, strict=True)
            found = [(sets.variable == i) & sets.is_parent[:, own].all(axis=1) for i, own in pairs]
            places = np.flatnonzero(np.any(found, axis=0))
            return places, np.ones(len(places))
        is_member = np.zeros(sets.n_variables, dtype=bool)
        is_member[self.members] = True
        own = np.flatnonzero(is_member[sets.variable])
        meets = sets.is_parent[np.ix_(own, self.parents[0])]
        hit = meets.any(axis=1) != (self.kind == CLOSED)
        own = own[hit]
        if self.table is None:
            return own, np.ones(len(own))
        place = np.searchsorted(self.members, sets.variable[own])
        return own, self.table[place, meets[hit] @ (1 << np.arange(len(self.members)))]


def read_rows(saved: SavedArrays, V: int, rules: Rules) -> list[Inequality]:
    """Return the inequalities of a certificate; raise UnfitError if one may not hold, or an array is damaged."""
    limits = saved.array("row_limit", np.int64, None)
    members = saved.array("row_members", np.bool_, len(limits), V if len(limits) else None)
    values = saved.array("row_values", np.int64, None)
    if not ((values >= -LARGEST_VALUE) & (values <= LARGEST_VALUE)).all():  # sums stay exact
        raise UnfitError("a block has a value that is too large")
    rows, used = list[Inequality](), 0
    for own, limit in zip(members, limits.tolist(), strict=True):
        inside = np.flatnonzero(own)
        size = _size(limit, len(inside), values[used:])
        rows.append(_row(limit, inside, values[used : used + size], rules, V))
        used += size
    return rows


def _size(limit: int, n: int, values: NDArray[np.int64]) -> int:
    """Return how many of the next values are those of a row with n members; arcs say it in the first one."""
    if limit == BLOCK:
        return 1 << n if n <= LARGEST_BLOCK else 0
    if limit == ARCS and len(values):
        return 1 + 2 * max(0, int(values[0]))
    return int(limit == REACHED)


def _row(
    limit: int, members: NDArray[np.int64], values: NDArray[np.int64], rules: Rules, V: int
) -> Inequality:
    """Return an inequality that every structure obeys; raise UnfitError if it is another one."""
    n, own = len(members), {*members.tolist()}
    if limit == CLUSTER and n:
        return Inequality(CLUSTER, members, n - 1.0, (members,))
    if limit == BLOCK and n and len(values) == 1 << n and values[0] == 0:
        table = _table(values)
        shared = table[:, :1]  # what all parent sets of a member have, on both sides
        right = float(values[-1] - shared.sum())
        return Inequality(BLOCK, members, right, (members,), (table - shared).astype(np.float64))
    if limit == CLOSED and any(d in own and a not in own for a, d in rules.ancestors):
        return Inequality(CLOSED, members, n - 1.0, (np.setdiff1d(np.arange(V), members),))
    if limit == REACHED and len(values) == 1:
        j = int(values[0])
        if j not in own and any(a == j and d in own for a, d in rules.no_ancestors):
            return Inequality(REACHED, members, n - 1.0, (np.append(members, j),))
    if limit == ARCS and n and len(values) % 2 and ((values[1:] >= 0) & (values[1:] < V)).all():
        tails, heads = values[1:].reshape(-1, 2).T
        parents = [tails[heads == i] for i in range(V)]
        there = [{*own.tolist()} for own in parents]
        connects = any(connected(there, *one) for one in rules.independences)
        if np.array_equal(np.unique(heads), members) and (connects or rules.too_many_features(there)):
            return Inequality(ARCS, members, n - 1.0, tuple(parents[i] for i in members))
    if n == 1 and limit >= rules.max_children.get(int(members[0]), np.inf):
        return Inequality(limit, np.arange(V), float(limit), (members,))
    raise UnfitError("it builds on an inequality that not every structure obeys")


def _table(f: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a(i, S) of a block with the values f of its subsets, shape (b, 2**b).

    a(i, S) is the least f(U + i) - f(U) over the sets U that contain S and not i.
    """
    n = len(f)
    subsets, b = np.arange(n), n.bit_length() - 1
    table = np.stack([f[subsets | 1 << i] - f[subsets & ~(1 << i)] for i in range(b)])
    for j in range(b):
        without = subsets[subsets >> j & 1 == 0]
        for i in range(b):
            if i != j:
                table[i, without] = np.minimum(table[i, without], table[i, without | 1 << j])
    return table
