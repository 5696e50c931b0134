"""The book of a tree search: what its closed nodes have proved."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.format import OVERHEAD
from milpbn.engine.optima import Optima
from milpbn.engine.root import Root
from milpbn.engine.tree.children import BoundedNodes
from milpbn.engine.tree.subtree import SubtreeResult
from milpbn.util.saved_arrays import SavedArrays, number


class ProofBook:
    """The bounds of the pruned nodes, the arcs that all optima share, and the proof if a certificate is wanted.

    The root's pool receives the bounds of nodes with a single structure, and its proof all that is recorded. `bound` is
    the largest bound of all pruned nodes with more than one choice of parent sets.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self.bound = -np.inf
        self.optima = Optima(root.problem.candidates, root.model.score_error)

    @property
    def full(self) -> bool:
        """Whether the proof has its largest size."""
        return self._root.proof is not None and self._root.proof.full

    @property
    def nbytes(self) -> float:
        """Bytes that the proof takes in memory."""
        return 0.0 if self._root.proof is None else OVERHEAD * self._root.proof.nbytes

    def record(self, number: int, nodes: BoundedNodes, incumbent: float) -> None:
        """Record how a node was closed: by a decision and what bounds both children, or by pruning it.

        `nodes` are its children; without a decision it is the node itself. The incumbent's score never falls.
        """
        proof = self._root.proof
        if proof is not None and nodes.decision is not None:
            proof.extend([(number, *nodes.decision, *nodes.numbers)], nodes.fixings, nodes.leaves)
        elif proof is not None:
            for leaf in nodes.leaves:
                proof.leaf(*leaf)
        for allowed, bound in nodes.pruned:
            self._prune(allowed, bound, incumbent)

    def record_subtree(self, result: SubtreeResult, incumbent: float) -> None:
        """Record what a search below nodes has closed; its numbers are those of the tree."""
        if self._root.proof is not None:
            fixings = zip(result.fixing_nodes.tolist(), result.fixings, strict=True)
            self._root.proof.extend(
                map(tuple, result.branches.tolist()),
                ((node, weights, np.frombuffer(gone, np.int32)) for node, (weights, gone) in fixings),
                zip(result.leaf_nodes.tolist(), result.leaves, strict=True),
            )
        n_sets = self._root.problem.candidates.n_sets
        for bits, bound in result.pruned:
            allowed = np.unpackbits(np.frombuffer(bits, np.uint8), count=n_sets).astype(bool)
            self._prune(allowed, bound, incumbent)

    def _prune(self, allowed: NDArray[np.bool_], bound: float, incumbent: float) -> None:
        """Take the allowed parent sets and the bound of a pruned node."""
        only = np.flatnonzero(allowed)
        if len(only) == self._root.problem.candidates.n_variables:
            self._root.pool.leaf(only, bound)
        else:
            self.bound = max(self.bound, bound)
        self.optima.add(allowed, bound, incumbent)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return bound and arcs as arrays, which `restore` takes; the proof has its own (`Proof.arrays`)."""
        optima = {f"optima.{name}": array for name, array in self.optima.state().items()}
        return {"search.pruned": number(self.bound), **optima}

    def restore(self, saved: SavedArrays) -> None:
        """Take what `state` returned; raise UnfitError if it is of another problem."""
        self.bound = saved.number("search.pruned")
        self.optima.restore(saved.under("optima."))
