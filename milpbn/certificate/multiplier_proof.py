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
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.format import LARGEST, PLACE_BYTES, kept_arrays
from milpbn.certificate.records import Decision
from milpbn.problem.candidates import Candidates

#: An inequality: its `milpbn.certificate.records.Inequalities.limit`, its members, and the values of f on their
#: subsets if it is a block's.
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

    #: Number of variables, and the parent sets of the search (`kept_arrays`).
    n_variables: int = 0
    searched: dict[str, NDArray[Any]] = field(default_factory=dict)
    branches: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    #: Steps that have removed parent sets, in their order; and the best bound of every node.
    fixings: dict[int, list[ProofStep]] = field(default_factory=dict)
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
            self.n_variables = candidates.n_variables
            self.searched = kept_arrays(candidates.variable[searched], sets, "searched")
            self.nbytes += sum(array.nbytes for array in self.searched.values())

    def step(self, rows: Iterable[Key], multipliers: NDArray[np.float64]) -> ProofStep:
        """Return these multipliers as a step; nothing is recorded but the inequalities."""
        with self._lock:
            places = []
            for key in rows:
                if key not in self._rows:
                    self._rows[key] = len(self._rows)
                    self.nbytes += self.n_variables + 8 * (1 + len(key[2]))
                places.append(self._rows[key])
            return ProofStep(np.array(places, dtype=np.int32), multipliers.astype(np.float64))

    def fix(self, node: int, step: ProofStep) -> None:
        """Record that a step has removed parent sets from a node."""
        with self._lock:
            self.fixings.setdefault(node, []).append(step)
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

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the proof as arrays: inequalities, branches, and the concatenated steps of all nodes."""
        with self._lock:
            keys, branches, searched = list(self._rows), list(self.branches), self.searched
            steps = [(node, step) for node, own in self.fixings.items() for step in own]
            steps += self.bounds.items()
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
