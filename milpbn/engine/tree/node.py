"""Nodes of the tree: their structures, their bound, and the point from which their children start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.records import EDGE, ORPHAN, PARENT_SET, Decision, DualWeights
from milpbn.engine.relaxation.oracle import Oracle

#: Bytes of a node's Python objects, without its arrays.
OBJECT_BYTES = 500


class Restriction(NamedTuple):
    """The structures that have only allowed parent sets, and all forced edges.

    Attributes
    ----------
    allowed : bool array, shape (P,)
        Parent sets that may be chosen.
    edges : tuple of pairs of int
        Forced edges: pairs of features, one of which must be a parent of the other.
    """

    allowed: NDArray[np.bool_]
    edges: tuple[tuple[int, int], ...]

    def forced(self, n: int) -> NDArray[np.int64]:
        """Return the forced edges as the oracle takes them, int64 array, shape (n, n)."""
        out = np.zeros((n, n), dtype=np.int64)
        for a, b in self.edges:
            out[a + 1, b + 1] = out[b + 1, a + 1] = 1
        return out

    def child(self, oracle: Oracle, decision: Decision, holds: bool) -> Restriction:
        """Return the restriction to the structures for which a decision holds, or does not hold; a new array."""
        kind, a, b = decision
        if kind == EDGE and holds:
            return Restriction(self.allowed.copy(), (*self.edges, (a, b)))
        return Restriction(self.allowed & ~_excluded(oracle, decision, holds), self.edges)


def _excluded(oracle: Oracle, decision: Decision, holds: bool) -> NDArray[np.bool_]:
    """Return the parent sets that a decision rules out, bool array, shape (P,)."""
    kind, a, b = decision
    out = np.zeros(len(oracle.variable), dtype=bool)
    if kind == EDGE:
        head, tail = oracle.head - 1, oracle.tail - 1
        out[: len(head)] = ((head == a) & (tail == b)) | ((head == b) & (tail == a))
        return out
    if kind == PARENT_SET:
        own = oracle.variable == oracle.variable[a]
        own[a] = False
        if holds:
            return own
        out[a] = True
        return out
    if kind == ORPHAN:
        true = np.zeros(len(out), dtype=bool)
        true[: len(oracle.tail)] = oracle.tail == 0
        own = oracle.variable == a
    else:
        starts, stops = oracle.first[:-1], oracle.first[1:]
        here = np.concatenate([[0], np.cumsum(oracle.members == a)])
        true = here[stops] > here[starts]
        own = oracle.variable == b
    return own & (~true if holds else true)


class DualPoint(NamedTuple):
    """The point at which the steps of a node ended and those of its children start.

    Vertices and gradient take half the bytes per number that the steps use.

    Attributes
    ----------
    vertices : int32 array, shape (k, V)
        Structures, as the indices of their parent sets.
    shares : float64 array, shape (k,)
        Their shares of the point, which is a convex combination of them.
    gradient : float32 array, shape (P,)
        The gradient by the dual weights, from which the first selection of parent sets follows.
    temperature : float
        The temperature at which the children start, in nats.
    multipliers : float64 array, shape (R,)
        Multipliers of the inequalities.
    """

    vertices: NDArray[np.int32]
    shares: NDArray[np.float64]
    gradient: NDArray[np.float32]
    temperature: float
    multipliers: NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.vertices.nbytes + self.shares.nbytes + self.gradient.nbytes + self.multipliers.nbytes


@dataclass(frozen=True)
class Node:
    """An open node: a restricted subproblem that has a bound, and is neither pruned nor branched on yet.

    Attributes
    ----------
    number : int
        0 for the root. The k-th branching makes the children 2 k - 1, in which the decision holds, and 2 k.
    bound : float
        Upper bound on the score of the node's structures.
    packed : uint8 array, shape (ceil(P / 8),)
        The allowed parent sets, as bits.
    edges : tuple of pairs of int
        The forced edges, as in `Restriction`.
    weights : DualWeights or None
        The dual weights that prove the bound; None if no proof is wanted.
    """

    number: int
    bound: float
    packed: NDArray[np.uint8]
    edges: tuple[tuple[int, int], ...]
    start: DualPoint
    weights: DualWeights | None

    def restriction(self, n_sets: int) -> Restriction:
        """Return the node's structures; `n_sets` is the number P of parent sets of the problem."""
        return Restriction(np.unpackbits(self.packed, count=n_sets).astype(bool), self.edges)

    @property
    def nbytes(self) -> int:
        """Bytes of the node."""
        weights = 0 if self.weights is None else self.weights.nbytes
        return OBJECT_BYTES + self.packed.nbytes + self.start.nbytes + weights
