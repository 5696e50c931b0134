"""The records of a proof: branching decisions, dual weights, and inequalities that every structure obeys.

The engine records its steps with them, and `milpbn.certificate.format` writes them to a file. The verifier does not
use them; it reads the file with its own definitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Kinds of decisions. EDGE a, b: features a and b are neighbours, in either direction. ARC j, i: variable j is a
#: parent of variable i. ORPHAN i: feature i has no feature parent. PARENT_SET p: the variable of parent set p has it.
EDGE, ARC, ORPHAN, PARENT_SET = 0, 1, 2, 3
#: Value of `Inequalities.limit` that marks a cluster.
CLUSTER = -1


class Decision(NamedTuple):
    """A branching decision: true for all structures of one child, false for all structures of the other."""

    kind: int
    a: int
    b: int


@dataclass(frozen=True)
class DualWeights:
    """Dual weights, given by a point eta and a temperature, and the multipliers of inequalities."""

    #: Indices of the parent sets whose eta is not 0, and these components of eta, shape (n,) each.
    parent_sets: NDArray[np.int32]
    eta: NDArray[np.float64]
    #: Of the soft minimum, in nats.
    temperature: float
    #: Indices of the inequalities (`Inequalities`) whose multipliers are not 0, and these multipliers, shape (k,) each.
    rows: NDArray[np.int32]
    multipliers: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        vertices: NDArray[np.int64],
        shares: NDArray[np.float64],
        temperature: float,
        multipliers: NDArray[np.float64],
    ) -> DualWeights:
        """Return the dual weights at a convex combination of k structures, and with these multipliers of all rows.

        `vertices`, shape (k, V), are the parent sets of the structures, `shares`, shape (k,), the coefficients of the
        combination.
        """
        used, place = np.unique(vertices, return_inverse=True)
        eta = np.bincount(place.ravel(), weights=np.repeat(shares, vertices.shape[1]))
        rows = np.flatnonzero(multipliers).astype(np.int32)
        return cls(used.astype(np.int32), eta.astype(np.float64), float(temperature), rows, multipliers[rows])

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        return self.parent_sets.nbytes + self.eta.nbytes + self.rows.nbytes + self.multipliers.nbytes


class Inequalities(NamedTuple):
    """Inequalities a_r @ eta >= b_r, each of a cluster or of a child limit, as the kernels take them."""

    #: The variables of the cluster, or the one parent of a child limit, shape (R, V).
    members: NDArray[np.bool_]
    #: Largest number of children of that parent; `CLUSTER` for a cluster. Shape (R,).
    limit: NDArray[np.int64]
