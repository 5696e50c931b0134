"""The state of a search at one moment, as plain arrays: the open nodes, the proof, and everything else.

A search on one thread that goes on from its state takes the same steps as one without a stop, to the last digit. So
the state has everything that a step depends on besides the problem and the options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.format import Proof
from milpbn.certificate.records import DualWeights
from milpbn.engine.events import NODE, PROOF
from milpbn.engine.tree.node import DualPoint, Node, Restriction
from milpbn.problem.candidates import Candidates
from milpbn.util.archives import Source
from milpbn.util.saved_arrays import SavedArrays

#: Largest number of bytes per node in a file besides its arrays: numbers, sizes, edges.
NUMBERS = 80


@dataclass(frozen=True)
class SearchState:
    """The state of a search at one moment. Nothing in it changes any more."""

    #: Root, pool, frontier, branching rule, optima, primal heuristic, and the search's own numbers.
    parts: Mapping[str, NDArray[Any]]
    #: The open nodes. A node that was being expanded is one of them.
    nodes: Sequence[Node]
    #: The proof, if a certificate is wanted.
    proof: Proof | None
    #: Upper bound on the score of every structure, and number of nodes so far.
    bound: float
    count: int

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, at most."""
        proof = 0 if self.proof is None else self.proof.nbytes
        nodes = sum(node.unpacked_nbytes + NUMBERS for node in self.nodes)
        return sum(array.nbytes for array in self.parts.values()) + nodes + proof

    def arrays(self) -> dict[str, Source]:
        """Return everything as arrays by name, those of the nodes as functions that make them."""
        proof = {} if self.proof is None else self.proof.arrays()
        named = {PROOF + name: array for name, array in proof.items()}
        return {**self.parts, **named, **_node_arrays(self.nodes)}


def _node_arrays(nodes: Sequence[Node]) -> dict[str, Callable[[], NDArray[Any]]]:
    """Return functions that make the arrays of nodes; their proof has the dual weights."""

    def joined(dtype: type, of: Callable[[Node], Any]) -> Callable[[], NDArray[Any]]:
        return lambda: np.array([of(node) for node in nodes], dtype=dtype)

    def pieces(dtype: type, of: Callable[[Node], NDArray[Any]]) -> Callable[[], NDArray[Any]]:
        return lambda: np.concatenate([of(node) for node in nodes], dtype=dtype)

    if not nodes:
        return {NODE + "number": joined(np.int64, lambda node: node.number)}
    found = {
        "number": joined(np.int64, lambda node: node.number),
        "bound": joined(np.float64, lambda node: node.bound),
        "allowed": joined(np.uint8, lambda node: np.packbits(node.restriction().allowed)),
        "edges_size": joined(np.int64, lambda node: len(node.restriction().edges)),
        "edges": pieces(
            np.int64, lambda node: np.array(node.restriction().edges, dtype=np.int64).reshape(-1, 2)
        ),
        "vertices_size": joined(np.int64, lambda node: len(node.unpacked_start().shares)),
        "vertices": pieces(np.int32, lambda node: node.unpacked_start().vertices),
        "shares": pieces(np.float64, lambda node: node.unpacked_start().shares),
        "gradient": joined(np.float32, lambda node: node.unpacked_start().gradient),
        "temperature": joined(np.float64, lambda node: node.unpacked_start().temperature),
        "multipliers": joined(np.float64, lambda node: node.unpacked_start().multipliers),
    }
    return {NODE + name: make for name, make in found.items()}


def restored_nodes(
    saved: SavedArrays, candidates: Candidates, n_rows: int, leaves: Mapping[int, DualWeights] | None
) -> list[Node]:
    """Return the open nodes that `SearchState.arrays` returned.

    `n_rows` is the number of inequalities with multipliers, and `leaves` are the proof's dual weights by the numbers of
    the nodes; None without a proof. Raise UnfitError if the arrays have other shapes than those of open nodes of this
    problem, or indices that it does not have.
    """
    P, V, offsets = candidates.n_sets, candidates.n_variables, candidates.offsets
    numbers = saved.array("number", np.int64, None).tolist()
    k = len(numbers)
    if k == 0:
        return []
    saved_nodes = zip(
        numbers,
        saved.array("bound", np.float64, k).tolist(),
        saved.array("allowed", np.uint8, k, (P + 7) // 8),
        saved.pieces("edges_size", "edges", np.int64, 2, below=V - 1),
        saved.pieces("vertices_size", "vertices", np.int32, V, least=offsets[:-1], below=offsets[1:]),
        saved.pieces("vertices_size", "shares", np.float64),
        saved.array("gradient", np.float32, k, P),
        saved.array("temperature", np.float64, k).tolist(),
        saved.array("multipliers", np.float64, k, n_rows),
        strict=True,
    )
    nodes = []
    for number, bound, allowed, edges, vertices, shares, gradient, temperature, multipliers in saved_nodes:
        point = DualPoint(vertices, shares, gradient, temperature, multipliers)
        bits = np.unpackbits(allowed, count=P).astype(bool)
        forced = tuple((int(a), int(b)) for a, b in edges)
        weights = None if leaves is None else leaves[number]
        nodes.append(Node.packed(number, bound, Restriction(bits, forced), point, weights))
    return nodes
