"""Parts of the search space: decisions, and what they leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.oracle import Oracle

#: Kinds of decisions. EDGE a, b: features a and b are neighbours, in either direction. ARC j, i: the variable j is
#: a parent of the variable i. ORPHAN i: feature i has no feature parent. ENTRY p: its variable has that parent set.
EDGE, ARC, ORPHAN, ENTRY = 0, 1, 2, 3


class Decision(NamedTuple):
    """A question that splits the structures in two: those of which it is true, and the others."""

    kind: int
    a: int
    b: int


class Part(NamedTuple):
    """The structures that have allowed entries only, and every forced edge.

    Attributes
    ----------
    allowed : bool array, shape (P,)
        Entries of eta.
    edges : tuple of pairs of int
        Features that have to be neighbours.
    """

    allowed: NDArray[np.bool_]
    edges: tuple[tuple[int, int], ...]

    def forced(self, n: int) -> NDArray[np.int64]:
        """Return the forced edges as the oracle takes them, shape (n, n)."""
        out = np.zeros((n, n), dtype=np.int64)
        for a, b in self.edges:
            out[a + 1, b + 1] = out[b + 1, a + 1] = 1
        return out

    def split(self, oracle: Oracle, decision: Decision, inside: bool) -> Part:
        """Return the structures of this part of which the decision is true (`inside`) or not."""
        kind, a, b = decision
        if kind == EDGE and inside:
            return Part(self.allowed.copy(), (*self.edges, (a, b)))
        return Part(self.allowed & ~_excluded(oracle, decision, inside), self.edges)


def _excluded(oracle: Oracle, decision: Decision, inside: bool) -> NDArray[np.bool_]:
    """Return the entries that a decision rules out, shape (P,)."""
    kind, a, b = decision
    out = np.zeros(len(oracle.variable), dtype=bool)
    if kind == EDGE:
        head, tail = oracle.head - 1, oracle.tail - 1
        out[: len(head)] = ((head == a) & (tail == b)) | ((head == b) & (tail == a))
        return out
    if kind == ENTRY:
        own = oracle.variable == oracle.variable[a]
        own[a] = False
        if inside:
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
    return own & (~true if inside else true)


@dataclass(frozen=True)
class Weights:
    """Dual weights, as the point and the temperature that they belong to, and multipliers of inequalities.

    Attributes
    ----------
    entries : int32 array, shape (n,)
        Entries of eta that are not 0.
    eta : float64 array, shape (n,)
        Their values.
    temperature : float
        In nats.
    rows : int32 array, shape (k,)
        Inequalities (`milpbn.bounds.inequalities`) whose multipliers are not 0.
    multipliers : float64 array, shape (k,)
        Their multipliers.
    """

    entries: NDArray[np.int32]
    eta: NDArray[np.float64]
    temperature: float
    rows: NDArray[np.int32]
    multipliers: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        vertices: NDArray[np.int64],
        shares: NDArray[np.float64],
        temperature: float,
        multipliers: NDArray[np.float64],
    ) -> Weights:
        """Return the weights of a convex combination of vertices, (k, V) entries and (k,) shares; (R,) multipliers."""
        entries, place = np.unique(vertices, return_inverse=True)
        eta = np.bincount(place.ravel(), weights=np.repeat(shares, vertices.shape[1]))
        rows = np.flatnonzero(multipliers).astype(np.int32)
        return cls(
            entries.astype(np.int32), eta.astype(np.float64), float(temperature), rows, multipliers[rows]
        )

    @property
    def nbytes(self) -> int:
        """Bytes that they hold."""
        return self.entries.nbytes + self.eta.nbytes + self.rows.nbytes + self.multipliers.nbytes


@dataclass
class Open:
    """A part that is not closed yet, with where its steps ended."""

    number: int
    bound: float
    allowed: NDArray[np.uint8]
    edges: tuple[tuple[int, int], ...]
    vertices: NDArray[np.int32]
    shares: NDArray[np.float64]
    gradient: NDArray[np.float32]
    temperature: float
    decision: Decision
    share: float
    #: Multipliers of the inequalities, float64 array, shape (R,).
    multipliers: NDArray[np.float64]
    #: What proves the bound, if a proof is wanted.
    weights: Weights | None

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        arrays = (self.allowed, self.vertices, self.shares, self.gradient, self.multipliers)
        return 500 + sum(a.nbytes for a in arrays) + (0 if self.weights is None else self.weights.nbytes)
