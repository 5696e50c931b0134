"""Nodes of the tree: their structures, their bound, and the point from which their children start."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.records import EDGE, ORPHAN, PARENT_SET, Decision, DualWeights
from milpbn.engine.relaxation.oracle import Oracle

#: Bytes of a node's Python objects, without what they hold.
OBJECT_BYTES = 400
#: What the packed part of a node begins with: P, V, k, R, the number of forced edges, the temperature.
_HEAD = struct.Struct("=5i4xd")


class Restriction(NamedTuple):
    """The structures that have only allowed parent sets, and all forced edges."""

    #: Parent sets that may be chosen, shape (P,).
    allowed: NDArray[np.bool_]
    #: Forced edges: pairs of features, one of which must be a parent of the other.
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
    """

    #: Structures, as the indices of their parent sets, shape (k, V).
    vertices: NDArray[np.int32]
    #: Their shares of the point, which is a convex combination of them, shape (k,).
    shares: NDArray[np.float64]
    #: The gradient by the dual weights, from which the first selection of parent sets follows, shape (P,).
    gradient: NDArray[np.float32]
    #: The temperature at which the children start, in nats.
    temperature: float
    #: Multipliers of the inequalities, shape (R,).
    multipliers: NDArray[np.float64]


@dataclass(frozen=True)
class Node:
    """An open node: a restricted subproblem that has a bound, and is neither pruned nor branched on yet.

    A search has very many of them, and workers send them to each other, so that all but these attributes is packed.
    """

    #: 0 for the root. The k-th branching makes the children 2 k - 1, in which the decision holds, and 2 k.
    number: int
    #: Upper bound on the score of the node's structures.
    bound: float
    #: The packed restriction and start. Of the vertices' parent sets the smallest of each variable and the distances
    #: from it are kept, which take one byte each as long as they are below 256.
    data: bytes
    #: The dual weights that prove the bound; None if no proof is wanted.
    weights: DualWeights | None

    @classmethod
    def packed(
        cls,
        number: int,
        bound: float,
        restriction: Restriction,
        start: DualPoint,
        weights: DualWeights | None,
    ) -> Node:
        """Return the node with this restriction and start."""
        k, V = start.vertices.shape
        counts = len(restriction.allowed), V, k, len(start.multipliers), len(restriction.edges)
        least = start.vertices.min(axis=0, initial=np.iinfo(np.int32).max)
        above = start.vertices - least
        arrays = (
            start.shares,
            start.multipliers,
            start.gradient,
            least,
            np.array(restriction.edges, dtype=np.int32),
            np.packbits(restriction.allowed),
            above.astype(np.min_scalar_type(above.max(initial=0))),
        )
        head = _HEAD.pack(*counts, start.temperature)
        return cls(number, bound, head + b"".join(array.tobytes() for array in arrays), weights)

    def __reduce__(self) -> tuple[type[Node], tuple[int, float, bytes, DualWeights | None]]:
        return Node, (self.number, self.bound, self.data, self.weights)

    def restriction(self) -> Restriction:
        """Return the node's structures; new arrays."""
        P, V, k, R, n_edges, _ = _HEAD.unpack_from(self.data)
        place = _HEAD.size + 8 * (k + R) + 4 * (P + V)
        edges = np.frombuffer(self.data, np.int32, 2 * n_edges, place).reshape(-1, 2).tolist()
        bits = np.frombuffer(self.data, np.uint8, (P + 7) // 8, place + 8 * n_edges)
        return Restriction(np.unpackbits(bits, count=P).astype(bool), tuple((a, b) for a, b in edges))

    @cached_property
    def start(self) -> DualPoint:
        """The point at which the steps of the node ended and those of its children start; kept for its probes."""
        return self.unpacked_start()

    def unpacked_start(self) -> DualPoint:
        """Return the point at which the steps of the node ended and those of its children start; new arrays."""
        P, V, k, R, n_edges, temperature = _HEAD.unpack_from(self.data)
        data = bytearray(self.data)  # so that the arrays can be written to, as compiled functions expect
        place = _HEAD.size + 8 * (k + R) + 4 * P
        least = np.frombuffer(data, np.int32, V, place)
        place += 4 * V + 8 * n_edges + (P + 7) // 8
        above = np.frombuffer(data, f"u{(len(data) - place) // max(1, k * V) or 1}", k * V, place)
        return DualPoint(
            least + above.reshape(k, V).astype(np.int32),
            np.frombuffer(data, np.float64, k, _HEAD.size),
            np.frombuffer(data, np.float32, P, _HEAD.size + 8 * (k + R)),
            temperature,
            np.frombuffer(data, np.float64, R, _HEAD.size + 8 * k),
        )

    @property
    def unpacked_nbytes(self) -> int:
        """Bytes of restriction and start as plain arrays, without the edges."""
        P, V, k, R, _, _ = _HEAD.unpack_from(self.data)
        return (P + 7) // 8 + 8 * (k + R) + 4 * (P + k * V)

    @property
    def nbytes(self) -> int:
        """Bytes of the node."""
        return OBJECT_BYTES + len(self.data) + (0 if self.weights is None else self.weights.nbytes)
