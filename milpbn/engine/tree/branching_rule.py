"""The branching rule: fractionality times pseudo-costs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.records import ARC, EDGE, ORPHAN, PARENT_SET, Decision
from milpbn.engine.relaxation.oracle import BRANCHINGS, Oracle
from milpbn.engine.tuning import TUNING
from milpbn.util.compiled import kernel
from milpbn.util.saved_arrays import SavedArrays

#: A share this close to 0 or 1 is integral.
INTEGRAL = 1e-6
_TREE = TUNING.tree


@kernel
def _shares(oracle, vertices, shares, arcs, entries):  # type: ignore[no-untyped-def]  # numba infers the types
    """Write the shares of arcs j -> i at a point, shape (V, V), and those of parent sets, shape (P,)."""
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


class Gain(NamedTuple):
    """What a branching decision gains in one child, from the node's bound to the child's: an observation."""

    decision: Decision
    #: Whether the decision holds in the child.
    holds: bool
    #: The share of the parent's point for which the decision holds.
    share: float
    #: The node's bound minus the child's; infinite if the child has no structure.
    nats: float


class Candidate(NamedTuple):
    """A decision on which a node may be branched."""

    decision: Decision
    #: The share of the point for which the decision holds.
    share: float
    #: The product of the expected gains in both children, in square nats.
    score: float
    #: Whether both gains were observed often enough (`TreeTuning.observations`), or the decision has no pseudo-costs.
    reliable: bool


def product_of_gains(gains: Iterable[Gain], most: float) -> float:
    """Return the product of the gains in both children; a gain counts `most` nats at most, which prune the child."""
    score = 1.0
    for gain in gains:
        score *= max(min(gain.nats, most), _TREE.least_score)
    return score


class Observations(NamedTuple):
    """Observations that were made since some moment, in few arrays of equal length."""

    #: Places in the flattened arrays of `PseudoCosts`.
    places: NDArray[np.int64]
    #: What to add there.
    sums: NDArray[np.float64]
    counts: NDArray[np.float64]


class PseudoCosts(NamedTuple):
    """The observations of a branching rule, [0] where decisions do not hold and [1] where they do."""

    #: Sums of the gains per unit of fractionality, in nats, shape (2, V, V).
    sums: NDArray[np.float64]
    #: Numbers of observations, shape (2, V, V).
    counts: NDArray[np.float64]

    def copy(self) -> PseudoCosts:
        """Return an independent copy."""
        return PseudoCosts(self.sums.copy(), self.counts.copy())

    def since(self, before: PseudoCosts) -> Observations:
        """Return the observations that `before`, an earlier copy, lacks."""
        new = np.flatnonzero(self.counts != before.counts)
        return Observations(
            new, *(own.flat[new] - old.flat[new] for own, old in zip(self, before, strict=True))
        )

    def add(self, more: Observations) -> None:
        """Add observations that were made elsewhere."""
        self.sums.flat[more.places] += more.sums
        self.counts.flat[more.places] += more.counts


class BranchingRule:
    """Ranks decisions by pseudo-costs: the mean gain per unit of fractionality, in both children.

    Undirected edges come first: the two directions of an edge are Markov equivalent, except for smoothing and dropped
    features, so a decision on one arc changes little. The pseudo-costs of a decision without observations are estimated
    from decisions on the same variables. For example, a feature that hardly varies is as good a parent as none, and no
    decision on it lowers the bound. `costs` are the observations so far; by default none.

    With `few`, the number of features is limited, and arcs from the class are branched on first. While they are open, a
    mixture of structures can use a part of many features, and a part gains nearly as much as the whole feature.
    """

    def __init__(self, oracle: Oracle, costs: PseudoCosts | None = None, *, few: bool = False) -> None:
        self.oracle, self.few = oracle, few
        V = len(oracle.offsets) - 1
        self.V = V
        # For branchings: edges above the diagonal, orphans on it, arcs into the class in the last column, and with
        # `few` arcs from it in the last row. Else: arcs.
        self.costs = PseudoCosts(np.zeros((2, V, V)), np.zeros((2, V, V))) if costs is None else costs

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return the observations as arrays, which `restore` takes."""
        return self.costs.copy()._asdict()

    def restore(self, saved: SavedArrays) -> None:
        """Become the rule whose arrays `state` returned; raise UnfitError if they are of another problem."""
        shape = self.costs.sums.shape
        found = (saved.array(name, np.float64, *shape) for name in PseudoCosts._fields)
        self.costs = PseudoCosts(*found).copy()

    def _table(self, arcs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the shares of all decisions with pseudo-costs, shape (V, V); the others are 0."""
        if self.oracle.kind != BRANCHINGS:
            return arcs
        c = self.V - 1
        table = np.zeros_like(arcs)
        inner = arcs[:c, :c]
        table[:c, :c] = np.triu(inner + inner.T, 1)
        table[np.arange(c), np.arange(c)] = 1.0 - inner.sum(axis=0)
        table[:c, c] = arcs[:c, c]
        table[c, :c] = arcs[c, :c] if self.few else 0.0
        return table

    def _decision(self, a: int, b: int) -> Decision:
        if self.oracle.kind != BRANCHINGS or self.V - 1 in (a, b):
            return Decision(ARC, a, b)
        return Decision(ORPHAN, a, 0) if a == b else Decision(EDGE, a, b)

    def place(self, decision: Decision) -> tuple[int, int] | None:
        """Return the row and column of a decision's pseudo-costs, or None for a decision without any."""
        kind, a, b = decision
        if kind == EDGE:
            return (a, b)
        if kind == ORPHAN:
            return (a, a)
        if kind == ARC and (
            self.oracle.kind != BRANCHINGS or b == self.V - 1 or (self.few and a == self.V - 1)
        ):
            return (a, b)
        return None

    def candidates(
        self,
        vertices: NDArray[np.integer],
        shares: NDArray[np.float64],
        allowed: NDArray[np.bool_],
        most: int = 1,
    ) -> list[Candidate]:
        """Return at most `most` decisions at a point, best first; none if only one choice of parent sets is allowed.

        The point has vertices and shares, shapes (k, V) and (k,); the allowed parent sets are a bool array, shape (P,).
        Decisions without pseudo-costs come alone.
        """
        arcs = np.empty((self.V, self.V))
        entries = np.empty(len(self.oracle.variable))
        _shares(self.oracle, vertices.astype(np.int64), shares, arcs, entries)
        table = self._table(arcs)
        inside = np.clip(table, 0.0, 1.0)
        open_ = (inside > INTEGRAL) & (inside < 1 - INTEGRAL)
        if self.few and open_[-1].any():
            open_[:-1] = False
        if open_.any():
            gain, least = self.expected(), _TREE.least_score
            score = np.maximum(gain[1] * (1 - inside), least) * np.maximum(gain[0] * inside, least)
            reliable = self.costs.counts.min(axis=0) >= _TREE.observations
            score[~open_] = -1.0
            # A stable sort: of equal scores the first comes first.
            order = np.argsort(-score, axis=None, kind="stable")[: min(most, int(open_.sum()))]
            places = [divmod(int(x), self.V) for x in order]
            return [
                Candidate(self._decision(a, b), float(inside[a, b]), float(score[a, b]), bool(reliable[a, b]))
                for a, b in places
            ]
        alone = self._without_pseudo_costs(vertices, arcs, entries, allowed)
        return [] if alone is None else [Candidate(*alone, 0.0, True)]

    def _without_pseudo_costs(
        self,
        vertices: NDArray[np.integer],
        arcs: NDArray[np.float64],
        entries: NDArray[np.float64],
        allowed: NDArray[np.bool_],
    ) -> tuple[Decision, float] | None:
        """Return a decision on an arc or a parent set, and its share, where edges and orphans are integral."""
        open_ = (arcs > INTEGRAL) & (arcs < 1 - INTEGRAL)
        if open_.any():
            a, b = divmod(int(np.argmax(np.where(open_, 0.5 - np.abs(arcs - 0.5), -1.0))), self.V)
            return Decision(ARC, a, b), float(arcs[a, b])
        p = int(np.argmax(np.where(allowed, 0.5 - np.abs(entries - 0.5), -1.0)))
        if INTEGRAL < entries[p] < 1 - INTEGRAL:
            return Decision(PARENT_SET, p, 0), float(entries[p])
        # The point is one structure. Decide on one of its parent sets whose variable has an alternative.
        left = np.add.reduceat(allowed.astype(np.int64), self.oracle.offsets[:-1])
        for p in vertices[0]:
            if left[self.oracle.variable[p]] > 1:
                return Decision(PARENT_SET, int(p), 0), 1.0
        return None

    def expected(self) -> NDArray[np.float64]:
        """Return the expected gains per unit, [0] if decisions do not hold and [1] if they do, shape (2, V, V)."""
        out = np.empty_like(self.costs.sums)
        for answer in (0, 1):
            sums, counts = self.costs.sums[answer], self.costs.counts[answer]
            total = counts.sum()
            mean = sums.sum() / total if total else 1.0
            # Per variable: the gains and the observations of all decisions on it.
            gains, n = (x.sum(axis=0) + x.sum(axis=1) - np.diag(x) for x in (sums, counts))
            prior = _TREE.prior_observations
            estimate = (gains[:, None] + gains + prior * mean) / (n[:, None] + n + prior)
            # The estimate counts as one observation beside the real ones.
            out[answer] = (sums + estimate) / (counts + 1)
        return out

    def learn(self, gain: Gain) -> None:
        """Add a gain to the pseudo-costs."""
        where = self.place(gain.decision)
        if where is None or not np.isfinite(gain.nats):
            return
        distance = 1 - gain.share if gain.holds else gain.share
        answer = int(gain.holds)
        self.costs.sums[(answer, *where)] += max(0.0, gain.nats) / max(distance, _TREE.least_distance)
        self.costs.counts[(answer, *where)] += 1
