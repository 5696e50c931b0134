"""The tree of branching decisions and dual weights that a certificate's arrays describe, for the verifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.verify.maxima import LARGEST
from milpbn.certificate.verify.rows import Rows
from milpbn.certificate.verify.space import Space, is_decision
from milpbn.errors import InputError
from milpbn.problem.constraints import Rules


class ProofTree:
    """A certificate's arrays after checking: a binary tree, reduced-cost fixings at its nodes, and dual weights.

    Raises InputError if the arrays do not describe a tree whose leaves together contain all structures.

    Attributes
    ----------
    children : dict from node to (kind, a, b, inside, outside)
        Decision and children of every branched node.
    leaves : dict from node to int
        Number of each leaf's dual weights.
    fixings : dict from node to list of (number of the dual weights, parent sets)
        Parent sets that are removed at the node, in the order in which they are.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]], space: Space, rules: Rules) -> None:
        self._arrays, self.space = arrays, space
        branches = self._integers("branches", (-1, 6))
        sizes, nodes = self._integers("deletion_size"), self._integers("deletion_node")
        removed, leaf_node = self._integers("deleted"), self._integers("leaf_node")
        lengths, self.parent_sets = self._integers("weights_size"), self._integers("entries")
        self.eta, self.temperatures = self._floats("eta"), self._floats("temperature")
        numbers = self._integers("multipliers_size")
        self._rows, self._multipliers = self._integers("multiplier_row"), self._floats("multiplier")
        limits = self._integers("row_limit")
        n_weights = len(sizes) + len(leaf_node)
        fits = (
            len(nodes) == len(sizes)
            and len(lengths) == len(self.temperatures) == n_weights
            and len(self.parent_sets) == len(self.eta)
            and _total(sizes) == len(removed)
            and _total(lengths) == len(self.parent_sets)
            and len(numbers) == n_weights
            and _total(numbers) == len(self._rows) == len(self._multipliers)
        )
        if not fits:
            raise InputError("The certificate is damaged: its arrays do not fit together.")
        for parent_sets in (removed, self.parent_sets):
            if len(parent_sets) and not (parent_sets.min() >= 0 and parent_sets.max() < len(space.variable)):
                raise InputError("The certificate is damaged: it names a parent set that does not exist.")
        if not (np.isfinite(self.eta).all() and (self.temperatures > 0).all()):
            raise InputError(
                "The certificate is damaged: a point is not finite, or a temperature is not positive."
            )
        if len(self._rows) and not (self._rows.min() >= 0 and self._rows.max() < len(limits)):
            raise InputError("The certificate is damaged: it names an inequality that does not exist.")
        if not ((self._multipliers >= 0) & (self._multipliers < LARGEST)).all():
            raise InputError("The certificate is damaged: a multiplier is negative or too large.")
        members = self._integers("row_members", (-1, 0)).astype(bool)
        self.rows = Rows(space, rules, members, limits)
        self._first = np.concatenate([[0], np.cumsum(lengths)])
        self._first_row = np.concatenate([[0], np.cumsum(numbers)])
        self.leaves = {int(node): len(sizes) + x for x, node in enumerate(leaf_node)}
        self.children = {int(row[0]): tuple(int(v) for v in row[1:]) for row in branches}
        self.fixings: dict[int, list[tuple[int, NDArray[np.int64]]]] = {}
        for x, (node, parent_sets) in enumerate(
            zip(nodes, np.split(removed, np.cumsum(sizes)[:-1]), strict=False)
        ):
            self.fixings.setdefault(int(node), []).append((x, parent_sets))
        if len(self.leaves) < len(leaf_node) or len(self.children) < len(branches):
            raise InputError("The certificate is damaged: it has a node twice.")
        self._check()

    def _integers(self, name: str, shape: tuple[int, ...] = (-1,)) -> NDArray[np.int64]:
        values = self._arrays.get(name)
        if values is None or values.dtype.kind not in "biu" or values.ndim != len(shape):
            raise InputError(f"The certificate is damaged: {name} is missing or has no whole numbers.")
        if shape[-1] > 0 and values.shape[-1] != shape[-1]:
            raise InputError(f"The certificate is damaged: {name} does not have {shape[-1]} columns.")
        return values.astype(np.int64)

    def _floats(self, name: str) -> NDArray[np.float64]:
        values = self._arrays.get(name)
        if values is None or values.dtype.kind != "f" or values.ndim != 1:
            raise InputError(f"The certificate is damaged: {name} is missing or has no numbers.")
        return values.astype(np.float64)

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

    def point(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the parent sets with eta not 0, and eta, at the point of some dual weights."""
        here = slice(self._first[number], self._first[number + 1])
        return self.parent_sets[here], self.eta[here]

    def multiplier_terms(self, number: int) -> tuple[float, NDArray[np.float64]]:
        """Return the terms of a bound's constant and gradient, shape (P,) from the multipliers of some dual weights."""
        here = slice(self._first_row[number], self._first_row[number + 1])
        return self.rows.combine(self._rows[here], self._multipliers[here])


def _total(sizes: NDArray[np.int64]) -> int:
    """Return the sum of some sizes; -1 if a size is negative."""
    return -1 if len(sizes) and sizes.min() < 0 else sum(sizes.tolist())
