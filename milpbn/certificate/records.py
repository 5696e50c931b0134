"""The records of a proof: branching decisions, dual weights, and inequalities that every structure obeys.

The engine records its steps with them, and `milpbn.certificate.format` writes them to a file. The verifier does not
use them; it reads the file with its own definitions.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Kinds of decisions. EDGE a, b: features a and b are neighbours, in either direction. ARC j, i: variable j is a
#: parent of variable i. ORPHAN i: feature i has no feature parent. PARENT_SET p: the variable of parent set p has it.
#: ORDER j, i: variable j comes before variable i in an order in which parents come before their children.
EDGE, ARC, ORPHAN, PARENT_SET, ORDER = 0, 1, 2, 3, 4
#: Values of `Inequalities.limit` that mark a cluster, and the other kinds of `milpbn.engine.parent_sets.rows`.
CLUSTER, BLOCK, CLOSED, REACHED, ARCS = -1, -2, -3, -4, -5


class Decision(NamedTuple):
    """A branching decision: true for all structures of one child, false for all structures of the other."""

    kind: int
    a: int
    b: int


#: What the packed dual weights begin with: n, k and the temperature.
_WEIGHTS = struct.Struct("=iid")


class DualWeights(NamedTuple):
    """Dual weights, given by a point eta and a temperature, and the multipliers of inequalities.

    A search keeps, sends and receives very many of them, so that they are one string of bytes.
    """

    #: n, k and the temperature, then eta, the multipliers, the parent sets and the rows.
    data: bytes

    @classmethod
    def packed(
        cls,
        parent_sets: NDArray[np.int32],
        eta: NDArray[np.float64],
        temperature: float,
        rows: NDArray[np.int32],
        multipliers: NDArray[np.float64],
    ) -> DualWeights:
        """Return the dual weights with these values, which the properties explain."""
        head = _WEIGHTS.pack(len(eta), len(rows), temperature)
        return cls(
            b"".join((head, eta.tobytes(), multipliers.tobytes(), parent_sets.tobytes(), rows.tobytes()))
        )

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
        return cls.packed(
            used.astype(np.int32), eta.astype(np.float64), float(temperature), rows, multipliers[rows]
        )

    @property
    def temperature(self) -> float:
        """Temperature of the soft minimum, in nats."""
        temperature: float = _WEIGHTS.unpack_from(self.data)[2]
        return temperature

    @property
    def eta(self) -> NDArray[np.float64]:
        """Components of eta that are not 0, shape (n,)."""
        n, _, _ = _WEIGHTS.unpack_from(self.data)
        return np.frombuffer(self.data, np.float64, n, _WEIGHTS.size)

    @property
    def parent_sets(self) -> NDArray[np.int32]:
        """Indices of the parent sets of these components, shape (n,)."""
        n, k, _ = _WEIGHTS.unpack_from(self.data)
        return np.frombuffer(self.data, np.int32, n, _WEIGHTS.size + 8 * (n + k))

    @property
    def rows(self) -> NDArray[np.int32]:
        """Indices of the inequalities (`Inequalities`) whose multipliers are not 0, shape (k,)."""
        n, k, _ = _WEIGHTS.unpack_from(self.data)
        return np.frombuffer(self.data, np.int32, k, _WEIGHTS.size + 8 * (n + k) + 4 * n)

    @property
    def multipliers(self) -> NDArray[np.float64]:
        """These multipliers, shape (k,)."""
        n, k, _ = _WEIGHTS.unpack_from(self.data)
        return np.frombuffer(self.data, np.float64, k, _WEIGHTS.size + 8 * n)

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        return len(self.data) - _WEIGHTS.size


class Inequalities(NamedTuple):
    """Inequalities a_r @ eta >= b_r, each of a cluster or of a child limit, as the kernels take them."""

    #: The variables of the cluster, or the one parent of a child limit, shape (R, V).
    members: NDArray[np.bool_]
    #: Largest number of children of that parent; `CLUSTER` for a cluster. Shape (R,).
    limit: NDArray[np.int64]
