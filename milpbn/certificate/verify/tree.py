"""The tree of decisions, dual weights and inequalities that a certificate's arrays describe, for the verifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.verify.maxima import LARGEST
from milpbn.certificate.verify.space import Space, is_decision
from milpbn.errors import InputError
from milpbn.problem.constraints import Rules
from milpbn.util.saved_arrays import SavedArrays, UnfitError

#: More than any piece of a certificate's arrays has entries; sums of so many sizes are exact.
MOST = 2**31
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


class ProofTree:
    """A certificate's arrays after checking: a binary tree, reduced-cost fixings at its nodes, and dual weights.

    Raises InputError if the arrays do not describe a tree whose leaves together contain all structures. By node:
    `children` are the decision and the children (kind, a, b, inside, outside), `leaves` the number of the dual weights,
    and `fixings` the numbers of dual weights with the parent sets that they remove, in their order.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]], space: Space, rules: Rules) -> None:
        self.space = space
        try:
            self._read(SavedArrays(dict(arrays)), rules)
        except UnfitError as error:
            raise InputError(f"The certificate is damaged: {error}.") from None
        self._check()

    def _read(self, saved: SavedArrays, rules: Rules) -> None:
        P, V = self.space.is_parent.shape
        branches = saved.array("branches", np.int32, None, 6)
        limits = saved.array("row_limit", np.int64, None)
        members = saved.array("row_members", np.bool_, len(limits), V if len(limits) else None)
        self.rows = Rows(self.space, rules, members, limits)
        nodes = saved.array("deletion_node", np.int32, None).tolist()
        leaves = saved.array("leaf_node", np.int32, None).tolist()
        n_weights = len(nodes) + len(leaves)
        sizes = saved.array("deletion_size", np.int64, len(nodes), below=MOST)
        removed = saved.array("deleted", np.int32, int(sizes.sum()), below=P)
        lengths = saved.array("weights_size", np.int64, n_weights, below=MOST)
        self.parent_sets = saved.array("entries", np.int32, int(lengths.sum()), below=P)
        self.eta = saved.array("eta", np.float64, len(self.parent_sets))
        self.temperatures = saved.array("temperature", np.float64, n_weights)
        numbers = saved.array("multipliers_size", np.int64, n_weights, below=MOST)
        self._rows = saved.array("multiplier_row", np.int32, int(numbers.sum()), below=len(limits))
        self._multipliers = saved.array("multiplier", np.float64, len(self._rows))
        if not (np.isfinite(self.eta).all() and (self.temperatures > 0).all()):
            raise UnfitError("a point is not finite, or a temperature is not positive")
        if not ((self._multipliers >= 0) & (self._multipliers < LARGEST)).all():
            raise UnfitError("a multiplier is negative or too large")
        self._first = np.concatenate([[0], np.cumsum(lengths)])
        self._first_row = np.concatenate([[0], np.cumsum(numbers)])
        self.leaves = {node: len(nodes) + x for x, node in enumerate(leaves)}
        self.children = {node: tuple(branch) for node, *branch in branches.tolist()}
        self.fixings: dict[int, list[tuple[int, NDArray[np.int64]]]] = {}
        pieces = np.split(removed.astype(np.int64), np.cumsum(sizes)[:-1])
        for x, (node, parent_sets) in enumerate(zip(nodes, pieces, strict=False)):
            self.fixings.setdefault(node, []).append((x, parent_sets))
        if len(self.leaves) < len(leaves) or len(self.children) < len(branches):
            raise UnfitError("it has a node twice")

    def _check(self) -> None:
        """Raise InputError if a node lacks a bound, is reached twice, or cannot be reached from the root."""
        seen, pending = {0}, [0]
        while pending:
            node = pending.pop()
            branch = self.children.get(node)
            if branch is None:
                # A root without children may lack dual weights: the bound without search may suffice.
                if node not in self.leaves and (node or self.leaves):
                    raise InputError(f"The certificate has no bound for node {node}.")
                continue
            if node in self.leaves:
                raise InputError(f"The certificate branches on node {node}, and calls it a leaf.")
            if not is_decision(self.space, *branch[:3]):
                raise InputError(f"The certificate branches on node {node} by an unknown decision.")
            for child in branch[3:]:
                if child in seen:
                    raise InputError(f"The certificate reaches node {child} twice.")
                seen.add(child)
                pending.append(child)
        for node in (*self.children, *self.leaves, *self.fixings):
            if node not in seen:
                raise InputError(f"The certificate never reaches node {node}.")

    def point(self, number: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the parent sets with eta not 0, and eta, at the point of some dual weights."""
        here = slice(self._first[number], self._first[number + 1])
        return self.parent_sets[here], self.eta[here]

    def multiplier_terms(self, number: int) -> tuple[float, NDArray[np.float64]]:
        """Return the terms of a bound's constant and gradient, shape (P,) from the multipliers of some dual weights."""
        here = slice(self._first_row[number], self._first_row[number + 1])
        return self.rows.combine(self._rows[here], self._multipliers[here])
