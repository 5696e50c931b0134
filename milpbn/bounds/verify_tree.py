"""The arrays of a certificate as a tree of decisions with weights, for `verify`; whatever does not fit is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.verify_rows import Rows
from milpbn.bounds.verify_space import Space, is_decision
from milpbn.errors import InputError
from milpbn.scores.constraints import Rules


class Tree:
    """A certificate's arrays, checked: a complete binary tree, deletions at its nodes, and weights.

    Attributes
    ----------
    children : dict from node to (kind, a, b, inside, outside)
        Of the nodes that were split.
    leaves : dict from node to int
        Number of each leaf's weights.
    deletions : dict from node to list of (number of the weights, entries)
        In the order in which they hold.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]], space: Space, rules: Rules) -> None:
        self._arrays, self.space = arrays, space
        branches = self._integers("branches", (-1, 6))
        sizes, places = self._integers("deletion_size"), self._integers("deletion_node")
        deleted, leaf_node = self._integers("deleted"), self._integers("leaf_node")
        lengths, self.entries = self._integers("weights_size"), self._integers("entries")
        self.eta, self.temperatures = self._floats("eta"), self._floats("temperature")
        numbers = self._integers("multipliers_size")
        self._rows, self._multipliers = self._integers("multiplier_row"), self._floats("multiplier")
        limits = self._integers("row_limit")
        n_weights = len(sizes) + len(leaf_node)
        fits = (
            len(places) == len(sizes)
            and len(lengths) == len(self.temperatures) == n_weights
            and len(self.entries) == len(self.eta)
            and _total(sizes) == len(deleted)
            and _total(lengths) == len(self.entries)
            and len(numbers) == n_weights
            and _total(numbers) == len(self._rows) == len(self._multipliers)
        )
        if not fits:
            raise InputError("The certificate is damaged: its arrays do not fit together.")
        for entries in (deleted, self.entries):
            if len(entries) and not (entries.min() >= 0 and entries.max() < len(space.variable)):
                raise InputError("The certificate speaks of parent sets that there are none of.")
        if not (np.isfinite(self.eta).all() and (self.temperatures > 0).all()):
            raise InputError("The certificate holds weights at points that are none.")
        if len(self._rows) and not (self._rows.min() >= 0 and self._rows.max() < len(limits)):
            raise InputError("The certificate speaks of inequalities that there are none of.")
        if not (np.isfinite(self._multipliers).all() and (self._multipliers >= 0).all()):
            raise InputError("The certificate holds multipliers that are not positive numbers.")
        members = self._integers("row_members", (-1, 0)).astype(bool)
        self.rows = Rows(space, rules, members, limits)
        self._first = np.concatenate([[0], np.cumsum(lengths)])
        self._first_row = np.concatenate([[0], np.cumsum(numbers)])
        self.leaves = {int(node): len(sizes) + x for x, node in enumerate(leaf_node)}
        self.children = {int(row[0]): tuple(int(v) for v in row[1:]) for row in branches}
        self.deletions: dict[int, list[tuple[int, NDArray[np.int64]]]] = {}
        for x, (node, entries) in enumerate(
            zip(places, np.split(deleted, np.cumsum(sizes)[:-1]), strict=False)
        ):
            self.deletions.setdefault(int(node), []).append((x, entries))
        if len(self.leaves) < len(leaf_node) or len(self.children) < len(branches):
            raise InputError("The certificate is damaged: it speaks of one part of the search space twice.")
        self._check()

    def _integers(self, name: str, shape: tuple[int, ...] = (-1,)) -> NDArray[np.int64]:
        values = self._arrays.get(name)
        if values is None or values.dtype.kind not in "biu" or values.ndim != len(shape):
            raise InputError(f"The certificate is damaged: {name} is missing or not of whole numbers.")
        if shape[-1] > 0 and values.shape[-1] != shape[-1]:
            raise InputError(f"The certificate is damaged: {name} has not {shape[-1]} columns.")
        return values.astype(np.int64)

    def _floats(self, name: str) -> NDArray[np.float64]:
        values = self._arrays.get(name)
        if values is None or values.dtype.kind != "f" or values.ndim != 1:
            raise InputError(f"The certificate is damaged: {name} is missing or not of numbers.")
        return values.astype(np.float64)

    def _check(self) -> None:
        """Refuse a tree with parts that are missing, met twice, or out of reach."""
        seen, open_ = {0}, [0]
        while open_:
            node = open_.pop()
            split = self.children.get(node)
            if split is None:
                # A tree that is nothing but its root may do without weights, where the bound without search suffices.
                if node not in self.leaves and (node or self.leaves):
                    raise InputError(f"The certificate has no bound for part {node} of the search space.")
                continue
            if node in self.leaves:
                raise InputError(
                    f"The certificate splits part {node} of the search space, and calls it a leaf."
                )
            if not is_decision(self.space, *split[:3]):
                raise InputError(
                    f"The certificate splits part {node} of the search space by no known decision."
                )
            for child in split[3:]:
                if child in seen:
                    raise InputError(f"The certificate comes to part {child} of the search space twice.")
                seen.add(child)
                open_.append(child)
        for node in (*self.children, *self.leaves, *self.deletions):
            if node not in seen:
                raise InputError(f"The certificate never comes to part {node} of the search space.")

    def weights(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the entries and values of the point that some weights belong to."""
        here = slice(self._first[number], self._first[number + 1])
        return self.entries[here], self.eta[here]

    def prices(self, number: int) -> tuple[float, NDArray[np.float64]]:
        """Return what the multipliers that belong to some weights add to a bound's constant and to its gradient."""
        here = slice(self._first_row[number], self._first_row[number + 1])
        return self.rows.price(self._rows[here], self._multipliers[here])


def _total(sizes: NDArray[np.int64]) -> int:
    """Return the sum of some sizes; -1 if one is no size."""
    return -1 if len(sizes) and sizes.min() < 0 else sum(sizes.tolist())
