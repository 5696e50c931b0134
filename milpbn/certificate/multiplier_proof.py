"""The proof of a branch and cut over parent sets: decisions, and multipliers of inequalities at every node.

It is the second kind of proof in a certificate (`milpbn.certificate.format` has the first one). The score is a sum of
one term per variable and its parent set, so that multipliers y >= 0 of inequalities a_r @ eta <= b_r are a proof
without a point: no structure of a node scores more than

    sum_i max_S (term_iS - sum_r y_r a_r(i, S)) + sum_r y_r b_r,

where S runs over the parent sets of i that the node still has. Every node has some *steps*, each with its multipliers.
A step removes from the node, and so from its descendants, the parent sets whose structures cannot exceed the claimed
bound. What is left restricts the order of the variables, and that excludes more (`milpbn.certificate.verify.order`).
A node is proved when nothing is left, or when the number above does not exceed the claimed bound. The removed sets are
not in the file, because the verifier finds them.

`searched` are the parent sets of the search. Every other one contains one of them that scores no less.

If several best structures are listed, the bound is on all others. Where the search finds a structure, it divides the
node by its parent sets, one after the other (`MultiplierProof.divide`): the last child holds this structure only.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.format import LARGEST, PLACE_BYTES, kept_arrays
from milpbn.certificate.records import ARCS, BLOCK, PARENT_SET, REACHED, Decision
from milpbn.problem.candidates import Candidates
from milpbn.util.saved_arrays import SavedArrays, count

#: An inequality: its `milpbn.certificate.records.Inequalities.limit`, its members, and its numbers: the values of f on
#: the subsets of a block, the variable before a reached set, or how many arcs there are, and each as (parent, child).
Key = tuple[int, tuple[int, ...], tuple[int, ...]]


class ProofStep(NamedTuple):
    """Multipliers that are not 0: int32 array of their rows, and float64 array, both of shape (k,)."""

    rows: NDArray[np.int32]
    multipliers: NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        """Largest number of bytes that the step takes in the file."""
        return self.rows.nbytes + self.multipliers.nbytes + PLACE_BYTES


@dataclass
class MultiplierProof:
    """A proof that grows while the search runs; node 0 is the root. Every method may be called from any thread."""

    #: Number of variables, and the parent sets of the search (`kept_arrays`), also as indices in eta.
    n_variables: int = 0
    searched: dict[str, NDArray[Any]] = field(default_factory=dict)
    in_eta: NDArray[np.integer] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    branches: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    #: Steps that have removed parent sets, with their nodes, in their order; and the best bound of every node.
    fixings: list[tuple[int, ProofStep]] = field(default_factory=list)
    bounds: dict[int, ProofStep] = field(default_factory=dict)
    nbytes: int = 0
    _rows: dict[Key, int] = field(default_factory=dict)
    _nodes: int = 1
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def full(self) -> bool:
        """Whether the file could exceed 500 MB with one more decision."""
        return self.nbytes >= LARGEST

    def begin(self, candidates: Candidates, searched: NDArray[np.integer]) -> None:
        """Record which of the parent sets in eta the search has, those of a variable together."""
        sets = [candidates.flat[p] for p in searched.tolist()]
        with self._lock:
            self.n_variables, self.in_eta = candidates.n_variables, searched
            self.searched = kept_arrays(candidates.variable[searched], sets, "searched")
            self.nbytes += sum(array.nbytes for array in self.searched.values())

    def step(self, rows: Iterable[Key], multipliers: NDArray[np.float64]) -> ProofStep:
        """Return these multipliers as a step; nothing is recorded but the inequalities."""
        with self._lock:
            places = [self._place(key) for key in rows]
            return ProofStep(np.array(places, dtype=np.int32), multipliers.astype(np.float64))

    def _place(self, key: Key) -> int:
        """Return the number of an inequality, which is recorded if it is new."""
        if key not in self._rows:
            self._rows[key] = len(self._rows)
            self.nbytes += self.n_variables + 8 * (1 + len(key[2]))
        return self._rows[key]

    def fix(self, node: int, step: ProofStep) -> None:
        """Record that a step has removed parent sets from a node."""
        with self._lock:
            self.fixings.append((node, step))
            self.nbytes += step.nbytes

    def bound(self, node: int, step: ProofStep) -> None:
        """Record the step with the best bound of a node so far."""
        with self._lock:
            before = self.bounds.get(node)
            self.nbytes += step.nbytes - (0 if before is None else before.nbytes)
            self.bounds[node] = step

    def branch(self, node: int, decision: Decision) -> tuple[int, int]:
        """Record a node's decision; return the numbers of the two children, which have the bound of the node so far.

        The decision is true for all structures of the first child, false for all of the second.
        """
        with self._lock:
            children = self._nodes, self._nodes + 1
            self._nodes += 2
            self.branches.append((node, *decision, *children))
            self.nbytes += PLACE_BYTES
            return children

    def divide(self, node: int, step: ProofStep, choice: Iterable[int]) -> list[int]:
        """Record a node's division by a structure, given as numbers of searched sets; return the children's numbers.

        The structures of a child have the sets before one, and not this one. The step is one of the node.
        """
        children = []
        with self._lock:
            self.fix(node, step)
            for p in choice:
                node, child = self.branch(node, Decision(PARENT_SET, int(self.in_eta[p]), 0))
                children.append(child)
        return children

    def copy(self) -> MultiplierProof:
        """Return the proof of this moment, which does not grow any more. It shares its steps with this one."""
        with self._lock:
            grown = list(self.branches), list(self.fixings), dict(self.bounds), self.nbytes, dict(self._rows)
            return MultiplierProof(self.n_variables, self.searched, self.in_eta, *grown, self._nodes)

    @classmethod
    def restored(cls, saved: SavedArrays) -> MultiplierProof:
        """Return the proof of which `state` returned the arrays; it has to `begin` anew.

        Raises UnfitError if the arrays do not fit together.
        """
        limits = saved.array("row_limit", np.int64, None).tolist()
        members = saved.array("row_members", np.bool_, len(limits), None)
        values = iter(saved.array("row_values", np.int64, None).tolist())
        nodes = saved.array("step_node", np.int32, None).tolist()
        rows = saved.pieces("multipliers_size", "multiplier_row", np.int32, below=len(limits))
        multipliers = saved.pieces("multipliers_size", "multiplier", np.float64)
        proof = cls(n_variables=members.shape[1])
        for limit, own in zip(limits, members, strict=True):
            inside = tuple(np.flatnonzero(own).tolist())
            begun = tuple(islice(values, 1 if limit in (REACHED, ARCS) else 0))
            more = {BLOCK: 1 << len(inside), ARCS: 2 * max((0, *begun))}.get(limit, 0)
            proof._place((limit, inside, (*begun, *islice(values, more))))
        steps = list(zip(nodes, map(ProofStep, rows, multipliers), strict=True))
        fixed = saved.count("fixings")
        for steps_of, record in ((steps[:fixed], proof.fix), (steps[fixed:], proof.bound)):
            for step in steps_of:
                record(*step)
        proof.branches = [tuple(one) for one in saved.array("branches", np.int32, None, 6).tolist()]
        proof.nbytes += PLACE_BYTES * len(proof.branches)
        proof._nodes += 2 * len(proof.branches)
        return proof

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the proof, and the number of the steps that have removed parent sets."""
        known = self.copy()
        return {**known.arrays(), "fixings": count(len(known.fixings))}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the proof as arrays: inequalities, branches, and the concatenated steps of all nodes."""
        with self._lock:
            keys, branches, searched = list(self._rows), list(self.branches), self.searched
            steps = [*self.fixings, *self.bounds.items()]
        members = np.zeros((len(keys), self.n_variables), dtype=bool)
        for row, (_, own, _) in zip(members, keys, strict=True):
            row[list(own)] = True
        return {
            **searched,
            "row_members": members,
            "row_limit": np.array([limit for limit, _, _ in keys], dtype=np.int64),
            "row_values": np.array(
                list(chain.from_iterable(values for _, _, values in keys)), dtype=np.int64
            ),
            "branches": np.array(branches, dtype=np.int32).reshape(-1, 6),
            "step_node": np.array([node for node, _ in steps], dtype=np.int32),
            "multipliers_size": np.array([len(step.rows) for _, step in steps], dtype=np.int64),
            "multiplier_row": np.concatenate([np.empty(0, np.int32), *(step.rows for _, step in steps)]),
            "multiplier": np.concatenate([np.empty(0), *(step.multipliers for _, step in steps)]),
        }
