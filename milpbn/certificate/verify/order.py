"""What the parent sets of a node say about the order of the variables, for the verifier of proofs by multipliers.

In an order of an acyclic structure parents come before their children. What comes before a variable in all structures
of a node excludes parent sets, and what all parent sets of a variable share comes before it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class MemberSets:
    """Parent sets: the variable of each, ascending, shape (K,), and its members, shape (K, V)."""

    def __init__(self, variable: NDArray[np.int64], is_parent: NDArray[np.bool_]) -> None:
        self.variable, self.is_parent = variable, is_parent
        self.n_variables = is_parent.shape[1]

    def close(self, allowed: NDArray[np.bool_], before: NDArray[np.bool_]) -> bool:
        """Exclude sets and extend the order until nothing changes; return whether a structure may be left.

        `allowed`, shape (K,), and `before`, shape (V, V), true where the first variable comes before the second one,
        are changed.
        """
        while True:
            left = np.flatnonzero(allowed)
            variable = self.variable[left]
            late = (self.is_parent[left] & before[variable]).any(axis=1)  # a member comes after the variable
            allowed[left[late]] = False
            left, variable = left[~late], variable[~late]
            starts = np.flatnonzero(np.diff(variable, prepend=-1))
            if len(starts) < self.n_variables:
                return False
            shared = np.logical_and.reduceat(self.is_parent[left], starts, axis=0).T
            if not (shared & ~before).any():
                return True
            before |= shared
            for j in range(self.n_variables):
                before |= before[:, j, None] & before[j]
            if before.diagonal().any():
                return False
