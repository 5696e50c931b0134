"""The state of a branch and cut at one moment, as plain arrays: open nodes, rows, fixed parent sets, the proof.

Bases of linear programs and random numbers are left out. So a search that goes on solves its linear program anew, and
may take other steps than one without a stop; the optimum that it proves is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.multiplier_proof import MultiplierProof
from milpbn.engine.events import CHILDREN, NODE, PROOF
from milpbn.engine.parent_sets.cutting import Cutting
from milpbn.engine.parent_sets.open_nodes import SearchNode
from milpbn.engine.parent_sets.rows import ARCS, BLOCK, LARGEST_BLOCK, LIMIT, REACHED, Row
from milpbn.engine.parent_sets.search import Search
from milpbn.util.archives import Source
from milpbn.util.saved_arrays import SavedArrays, UnfitError, count, number

#: Prefix of the search's own arrays.
OWN = "search."
#: Bytes of the numbers of a node.
NUMBERS = 24


@dataclass(frozen=True)
class CutState:
    """The state of a branch and cut at one moment. Nothing in it changes any more."""

    #: The numbers of the search, the fixed parent sets, and the columns of the linear program.
    own: Mapping[str, NDArray[Any]]
    #: The rows of the linear program, and those of the pool.
    rows: Sequence[Row]
    pooled: Sequence[Row]
    #: The open nodes; the root while its rounds go on.
    nodes: Sequence[SearchNode]
    #: Returns the arrays of the best structures.
    best: Callable[[], Mapping[str, NDArray[Any]]]
    #: The proof, if a certificate is wanted.
    proof: MultiplierProof | None
    #: Number of nodes so far.
    count: int

    @cached_property
    def _parts(self) -> dict[str, NDArray[Any]]:
        """Everything but nodes and proof."""
        rows = [*self.rows, *dict.fromkeys(self.pooled)]
        text = np.frombuffer(json.dumps(rows, default=int).encode(), dtype=np.uint8)
        own = {OWN + name: array for name, array in self.own.items()}
        return {**own, CHILDREN: count(self.count), OWN + "rows": text, **self.best()}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, at most."""
        nodes = sum(node.allowed.nbytes + node.before.nbytes + NUMBERS for node in self.nodes)
        proof = 0 if self.proof is None else self.proof.nbytes
        return sum(array.nbytes for array in self._parts.values()) + nodes + proof

    def arrays(self) -> dict[str, Source]:
        """Return everything as arrays by name, those of the nodes as functions that make them."""
        nodes = self.nodes

        def joined(dtype: type, of: Callable[[SearchNode], Any]) -> Callable[[], NDArray[Any]]:
            return lambda: np.array([of(node) for node in nodes], dtype=dtype)

        found: dict[str, Source] = {NODE + "number": joined(np.int64, lambda node: node.number)}
        if nodes:
            found[NODE + "bound"] = joined(np.float64, lambda node: node.bound)
            found[NODE + "depth"] = joined(np.int64, lambda node: node.depth)
            found[NODE + "allowed"] = joined(np.uint8, lambda node: node.allowed)
            found[NODE + "before"] = joined(np.uint64, lambda node: node.before)
        proof = {} if self.proof is None else self.proof.state()
        return {**self._parts, **found, **{PROOF + name: array for name, array in proof.items()}}


def state_of(
    cutting: Cutting,
    search: Search | None,
    in_eta: NDArray[np.int64],
    best: Callable[[], Mapping[str, NDArray[Any]]],
) -> CutState:
    """Return the state between two rounds of the root, before there is a `search` in the tree, or between two nodes.

    `in_eta` has the indices of the parent sets, shape (P,); for `best` see `CutState`.
    """
    relaxation, sets = cutting.relaxation, cutting.sets
    before = np.zeros((sets.n_variables, sets.masks.shape[1]), dtype=np.uint64)
    root = SearchNode(cutting.bound, np.packbits(cutting.allowed), before)
    return CutState(
        own={
            "in_tree": count(search is not None),
            "left": number(np.inf if search is None else search.open.left),
            "bound": number(cutting.bound),
            "in_eta": in_eta,
            "allowed": root.allowed,
            "columns": relaxation.columns,
            "present": count(len(relaxation.rows)),
        },
        rows=list(relaxation.rows),
        pooled=cutting.pool.rows(),
        nodes=[root] if search is None else search.open.nodes(),
        best=best,
        proof=None if cutting.proof is None else cutting.proof.copy(),
        count=0 if search is None else search.open.count,
    )


def restore_cutting(saved: SavedArrays, cutting: Cutting, in_eta: NDArray[np.int64]) -> bool:
    """Take the linear program and the fixed parent sets of a saved state; return whether the rounds have ended.

    Raises UnfitError if the state is not one of this problem.
    """
    own, P = saved.under(OWN), cutting.sets.n_sets
    if not np.array_equal(own.array("in_eta", np.int64, P), in_eta):
        raise UnfitError("the parent sets are others")
    cutting.allowed = _unpacked(own.array("allowed", np.uint8, (P + 7) // 8), P)
    cutting.bound = own.number("bound")
    rows, present = _rows(own, cutting.sets.n_variables), own.count("present")
    columns = own.array("columns", np.int64, None, below=P)
    if len(np.unique(columns)) < len(columns):
        raise UnfitError("a column is there twice")
    cutting.resume(rows[:present], rows[present:], columns)
    return bool(own.count("in_tree"))


def restore_search(saved: SavedArrays, search: Search) -> None:
    """Take the open nodes of a saved state; raise UnfitError if they are not those of this problem."""
    sets, own = search.sets, saved.under(NODE)
    numbers = own.array("number", np.int64, None).tolist()
    k = len(numbers)
    search.open.left, search.open.count = saved.number(OWN + "left"), saved.count(CHILDREN)
    if not k:
        return
    arrays = (
        own.array("bound", np.float64, k).tolist(),
        own.array("allowed", np.uint8, k, (sets.n_sets + 7) // 8),
        own.array("before", np.uint64, k, sets.n_variables, sets.masks.shape[1]),
        own.array("depth", np.int64, k).tolist(),
    )
    for bound, allowed, before, depth, one in zip(*arrays, numbers, strict=True):
        search.open.store(SearchNode(bound, allowed.copy(), before.copy(), depth, number=one))


def _unpacked(bits: NDArray[np.uint8], size: int) -> NDArray[np.bool_]:
    return np.unpackbits(bits, count=size).astype(bool)


def _rows(own: SavedArrays, V: int) -> list[Row]:
    """Return the saved rows; raise UnfitError if one of them is none."""
    try:
        rows = [
            Row(kind, tuple(members), tuple(numbers))
            for kind, members, numbers in json.loads(own.array("rows", np.uint8, None).tobytes())
        ]
        if all(_is_row(row, V) for row in rows):
            return rows
    except (TypeError, ValueError):
        pass
    raise UnfitError("a row is not one of this problem")


def _is_row(row: Row, V: int) -> bool:
    """Whether the kernels can read a row."""
    kind, members, numbers = row
    if not all(type(n) is int for n in (kind, *members, *numbers)) or list(members) != sorted({*members}):
        return False
    size, own = len(members), 0 <= min(members, default=-1) <= max(members, default=V) < V
    if kind == BLOCK:
        return own and size <= LARGEST_BLOCK and len(numbers) == 1 << size
    if kind == ARCS:
        return own and len(numbers) == size and all(0 <= bits < 1 << V for bits in numbers)
    if kind == REACHED:
        return own and len(numbers) == 1 and 0 <= numbers[0] < V
    return own and 0 <= kind <= REACHED and (size == len(numbers) == 1 if kind == LIMIT else not numbers)
