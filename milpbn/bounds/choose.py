"""Which decision splits a part of the search space: fractionality times what such splits have brought so far."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.oracle import BRANCHINGS, Oracle
from milpbn.bounds.space import ARC, EDGE, ENTRY, ORPHAN, Decision
from milpbn.compiled import kernel

#: A share this close to 0 or 1 is not fractional.
INTEGRAL = 1e-6
#: Observations of the mean over all decisions that a variable's own ones have to outweigh.
IMAGINED = 4


@kernel
def _shares(oracle, vertices, shares, arcs, entries):  # type: ignore[no-untyped-def]  # numba infers the types
    """Add up the shares of arcs j -> i, shape (V, V), and of entries, shape (P,)."""
    for i in range(arcs.shape[0]):
        for j in range(arcs.shape[1]):
            arcs[i, j] = 0.0
    for p in range(len(entries)):
        entries[p] = 0.0
    for v in range(len(shares)):
        for i in range(vertices.shape[1]):
            p = vertices[v, i]
            entries[p] += shares[v]
            for x in range(oracle.first[p], oracle.first[p + 1]):
                arcs[oracle.members[x], i] += shares[v]


class Chooser:
    """Pseudo-costs: the mean fall of the bound per unit of fractionality, for every decision and both answers.

    Undirected edges come first: the two directions of an edge are Markov equivalent but for smoothing and dropped
    features, so that deciding one arc changes little. What is not known of a decision is guessed from others on the
    same variables: a feature that hardly varies is as good a parent as none for all others, and no decision on it
    lowers the bound.

    Parameters
    ----------
    oracle : Oracle
        Candidate sets.
    """

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        V = len(oracle.offsets) - 1
        self.V = V
        # Edges above the diagonal, orphans on it, arcs into the class in the last column; or all arcs.
        self._sums = np.zeros((2, V, V))
        self._counts = np.zeros((2, V, V))

    def _table(self, arcs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the shares of all first-rank decisions, shape (V, V); others are 0."""
        if self.oracle.kind != BRANCHINGS:
            return arcs
        c = self.V - 1
        table = np.zeros_like(arcs)
        inner = arcs[:c, :c]
        table[:c, :c] = np.triu(inner + inner.T, 1)
        table[np.arange(c), np.arange(c)] = 1.0 - inner.sum(axis=0)
        table[:c, c] = arcs[:c, c]
        return table

    def _decision(self, a: int, b: int) -> Decision:
        if self.oracle.kind != BRANCHINGS or b == self.V - 1:
            return Decision(ARC, a, b)
        return Decision(ORPHAN, a, 0) if a == b else Decision(EDGE, a, b)

    def place(self, decision: Decision) -> tuple[int, int] | None:
        """Return where a decision's pseudo-costs are kept, or None for one of second rank."""
        kind, a, b = decision
        if kind == EDGE:
            return (a, b)
        if kind == ORPHAN:
            return (a, a)
        if kind == ARC and (self.oracle.kind != BRANCHINGS or b == self.V - 1):
            return (a, b)
        return None

    def choose(
        self,
        vertices: NDArray[np.int64],
        shares: NDArray[np.float64],
        allowed: NDArray[np.bool_],
    ) -> tuple[Decision, float] | None:
        """Return a decision and its share at a point, or None if one structure is left.

        Parameters
        ----------
        vertices, shares : arrays, shapes (k, V) and (k,)
            The point.
        allowed : bool array, shape (P,)
            Entries that are left.
        """
        arcs = np.empty((self.V, self.V))
        entries = np.empty(len(self.oracle.variable))
        _shares(self.oracle, vertices, shares, arcs, entries)
        table = self._table(arcs)
        inside = np.clip(table, 0.0, 1.0)
        open_ = (inside > INTEGRAL) & (inside < 1 - INTEGRAL)
        if open_.any():
            gain = self.expected()
            score = np.maximum(gain[1] * (1 - inside), 1e-9) * np.maximum(gain[0] * inside, 1e-9)
            score[~open_] = -1.0
            a, b = divmod(int(np.argmax(score)), self.V)
            return self._decision(a, b), float(inside[a, b])
        open_ = (arcs > INTEGRAL) & (arcs < 1 - INTEGRAL)
        if open_.any():
            a, b = divmod(int(np.argmax(np.where(open_, 0.5 - np.abs(arcs - 0.5), -1.0))), self.V)
            return Decision(ARC, a, b), float(arcs[a, b])
        p = int(np.argmax(np.where(allowed, 0.5 - np.abs(entries - 0.5), -1.0)))
        if INTEGRAL < entries[p] < 1 - INTEGRAL:
            return Decision(ENTRY, p, 0), float(entries[p])
        # The point is one choice; split off one of its entries that has an alternative.
        left = np.add.reduceat(allowed.astype(np.int64), self.oracle.offsets[:-1])
        for p in vertices[0]:
            if left[self.oracle.variable[p]] > 1:
                return Decision(ENTRY, int(p), 0), 1.0
        return None

    def expected(self) -> NDArray[np.float64]:
        """Return the expected fall per unit for the answers no and yes, shape (2, V, V)."""
        out = np.empty_like(self._sums)
        for answer in (0, 1):
            sums, counts = self._sums[answer], self._counts[answer]
            total = counts.sum()
            mean = sums.sum() / total if total else 1.0
            own, n = (x.sum(axis=0) + x.sum(axis=1) - np.diag(x) for x in (sums, counts))
            guess = (own[:, None] + own + IMAGINED * mean) / (n[:, None] + n + IMAGINED)
            # One imagined observation of the guess steadies the first real ones.
            out[answer] = (sums + guess) / (counts + 1)
        return out

    def learn(self, decision: Decision, inside: bool, share: float, fall: float) -> None:
        """Take note of how far the bound fell when a decision with some share was answered."""
        where = self.place(decision)
        if where is None or not np.isfinite(fall):
            return
        distance = 1 - share if inside else share
        answer = int(inside)
        self._sums[(answer, *where)] += max(0.0, fall) / max(distance, 1e-3)
        self._counts[(answer, *where)] += 1
