"""The certificate file: the tree's branching decisions, and the duals of every leaf and every reduced-cost fixing.

The file does not hold the dual weights themselves. It holds a point eta, few of whose components differ from 0, and a
temperature T; the dual weights are those of the softened score there. The verifier computes them again. An error in
them can only loosen the bound, because every point of the simplex gives a valid one. Which terms of a soft minimum
count as 0 (`milpbn.problem.duals.SPARSE`, `SPARSE_LIKELY`) is part of the format.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.records import DualWeights, Inequalities
from milpbn.claims.result import Result
from milpbn.errors import InputError
from milpbn.problem.candidates import Candidates, ParentSet
from milpbn.util.archives import read_sealed, write_sealed
from milpbn.util.jsonable import parse_object
from milpbn.util.saved_arrays import SavedArrays, UnfitError

#: Version of the file format. Since version 5 the header holds all that the result says about the run.
VERSION = 5
#: Largest number of bytes per fixing, leaf or branch besides its dual weights: node numbers, sizes, decision.
PLACE_BYTES = 36
#: Bytes of arrays at which a proof is full. Compression about halves them in the file, and never enlarges them.
LARGEST = 490_000_000
#: Bytes in memory for every byte of arrays; 1.74 were measured (objects and small arrays).
OVERHEAD = 2.0
#: Largest number of bytes of a certificate's arrays when they are read: a full proof, the last decisions of all
#: threads, the inequalities, the samples of a subset and the header.
LARGEST_FILE = LARGEST + LARGEST // 4
#: Keys of a result that the header of its certificate lacks: times, how the score was chosen, how the classifier's
#: parameters were fitted, notes.
NOT_IN_HEADER = ("version", "seconds", "trace", "selection", "parameters", "average", "request", "notes")
#: What the names of the arrays of a proof over all samples begin with if the certificate is of a subset.
ON_ALL = "all_"
NO_ROWS = Inequalities(np.empty((0, 0), dtype=bool), np.empty(0, dtype=np.int64))


@dataclass
class Proof:
    """A proof that grows while the search runs; node 0 is the root. Every method may be called from any thread."""

    branches: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    fixings: list[tuple[int, DualWeights, NDArray[np.int32]]] = field(default_factory=list)
    leaves: dict[int, DualWeights] = field(default_factory=dict)
    #: The inequalities of the multipliers; the search may add more.
    rows: Inequalities = NO_ROWS
    #: Weights of the distinct samples (`Dataset.merged`) in a subset that represents all samples; None without one.
    sample_weights: NDArray[np.float64] | None = None
    #: Size of all arrays in bytes.
    nbytes: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def full(self) -> bool:
        """Whether the file could exceed 500 MB with one more decision."""
        return self.nbytes >= LARGEST

    def fix(self, node: int, weights: DualWeights, parent_sets: NDArray[np.integer]) -> None:
        """Record that these dual weights prove that no better structure of a node has one of some parent sets."""
        with self._lock:
            self.fixings.append((node, weights, parent_sets.astype(np.int32)))
            self.nbytes += weights.nbytes + 4 * len(parent_sets) + PLACE_BYTES

    def extend(
        self,
        branches: Iterable[tuple[int, int, int, int, int, int]],
        fixings: Iterable[tuple[int, DualWeights, NDArray[np.integer]]],
        leaves: Iterable[tuple[int, DualWeights]],
    ) -> None:
        """Record branching decisions, (node, decision, children), together with the bounds of the children.

        A decision is true for all structures of the first child, false for all of the second. `fixings` and `leaves`
        are arguments of `fix` and of `leaf`. A file holds all of them, or none. Nodes come before their children.
        """
        with self._lock:
            for branch in branches:
                self._drop(branch[0])
                self.branches.append(branch)
                self.nbytes += PLACE_BYTES
            for fixing in fixings:
                self.fix(*fixing)
            for leaf in leaves:
                self.leaf(*leaf)

    def leaf(self, node: int, weights: DualWeights) -> None:
        """Record the dual weights that bound a node without children."""
        with self._lock:
            self._drop(node)
            self.leaves[node] = weights
            self.nbytes += weights.nbytes + PLACE_BYTES

    def _drop(self, node: int) -> None:
        dropped = self.leaves.pop(node, None)
        if dropped is not None:
            self.nbytes -= dropped.nbytes + PLACE_BYTES

    def copy(self) -> Proof:
        """Return the proof of this moment, which does not grow any more. It shares its arrays with this one."""
        with self._lock:
            grown = list(self.branches), list(self.fixings), dict(self.leaves)
            return Proof(*grown, self.rows, self.sample_weights, self.nbytes)

    @classmethod
    def restored(cls, saved: SavedArrays) -> Proof:
        """Return the proof of which `arrays` returned the arrays; without the weights of a subset's samples.

        Raises UnfitError if the arrays do not fit together.
        """
        proof = cls(rows=restored_rows(saved))
        nodes = saved.array("deletion_node", np.int32, None).tolist()
        fixed = saved.pieces("deletion_size", "deleted", np.int32)
        leaves = saved.array("leaf_node", np.int32, None)
        entries = saved.pieces("weights_size", "entries", np.int32)
        eta = saved.pieces("weights_size", "eta", np.float64)
        rows = saved.pieces("multipliers_size", "multiplier_row", np.int32)
        multipliers = saved.pieces("multipliers_size", "multiplier", np.float64)
        temperature = saved.array("temperature", np.float64, None).tolist()
        points = zip(entries, eta, temperature, rows, multipliers, strict=True)
        weights = (DualWeights.packed(*point) for point in points)
        for node, parent_sets in zip(nodes, fixed, strict=True):
            proof.fix(node, next(weights), parent_sets)
        for node, own in zip(leaves.tolist(), weights, strict=True):
            proof.leaf(node, own)
        proof.branches = [tuple(one) for one in saved.array("branches", np.int32, None, 6).tolist()]
        proof.nbytes += PLACE_BYTES * len(proof.branches)
        return proof

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the proof as arrays: branches, and the concatenated dual weights of fixings and leaves."""
        known = self.copy()
        fixings, rows = known.fixings, known.rows
        weights = [w for _, w, _ in fixings] + list(known.leaves.values())
        fixed = [parent_sets for _, _, parent_sets in fixings]
        empty = np.empty(0, dtype=np.int32)
        subset = {}
        if self.sample_weights is not None:
            counted = np.flatnonzero(self.sample_weights)
            subset = {"subset_row": counted, "subset_weight": self.sample_weights[counted]}
        return {
            **subset,
            "branches": np.array(known.branches, dtype=np.int32).reshape(-1, 6),
            "deletion_node": np.array([node for node, _, _ in fixings], dtype=np.int32),
            "deletion_size": np.array([len(parent_sets) for parent_sets in fixed], dtype=np.int64),
            "deleted": np.concatenate([empty, *fixed]),
            "leaf_node": np.array(list(known.leaves), dtype=np.int32),
            "weights_size": np.array([len(w.parent_sets) for w in weights], dtype=np.int64),
            "entries": np.concatenate([empty, *(w.parent_sets for w in weights)]),
            "eta": np.concatenate([np.empty(0), *(w.eta for w in weights)]),
            "temperature": np.array([w.temperature for w in weights]),
            "row_members": rows.members,
            "row_limit": rows.limit,
            "multipliers_size": np.array([len(w.rows) for w in weights], dtype=np.int64),
            "multiplier_row": np.concatenate([empty, *(w.rows for w in weights)]),
            "multiplier": np.concatenate([np.empty(0), *(w.multipliers for w in weights)]),
        }


def restored_rows(saved: SavedArrays) -> Inequalities:
    """Return the inequalities among the arrays of a proof; raise UnfitError if they do not fit together."""
    members = saved.array("row_members", np.bool_, None, None)
    return Inequalities(members, saved.array("row_limit", np.int64, len(members)))


def on_all_samples(proof: Proof) -> dict[str, NDArray[Any]]:
    """Return the arrays of a proof over all samples as they stand beside the proof over a subset."""
    return {f"{ON_ALL}{name}": values for name, values in proof.arrays().items()}


def arrays_on_all(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of the proof over all samples by their names in a certificate without a subset."""
    return {name.removeprefix(ON_ALL): own for name, own in arrays.items() if name.startswith(ON_ALL)}


def kept_arrays(
    variable: NDArray[np.integer], sets: Sequence[ParentSet], what: str = "kept"
) -> dict[str, NDArray[Any]]:
    """Return parent sets as arrays of a certificate: those that screening ``kept``, or that were ``searched``.

    ``kept_variable`` and ``kept_size``, shape (P,), have the variable and the number of members of each parent set,
    ``kept_member`` all members one after the other.
    """
    return {
        f"{what}_variable": variable.astype(np.int32),
        f"{what}_size": np.array([len(s) for s in sets], dtype=np.int32),
        f"{what}_member": np.array([j for s in sets for j in s], dtype=np.int32),
    }


def kept_candidates(saved: SavedArrays, names: tuple[str, ...], what: str = "kept") -> Candidates:
    """Return the parent sets of which `kept_arrays` returned the arrays; raise UnfitError if there are none."""
    V = len(names)
    variable = saved.array(f"{what}_variable", np.int32, None, below=V)
    sizes = saved.array(f"{what}_size", np.int32, len(variable), below=V)
    members = saved.array(f"{what}_member", np.int32, int(sizes.sum())).tolist()
    if (np.diff(variable) < 0).any():
        raise UnfitError(f"{what}_variable is not sorted")
    sets: list[list[tuple[int, ...]]] = [[] for _ in names]
    for i, n, end in zip(variable.tolist(), sizes.tolist(), np.cumsum(sizes).tolist(), strict=True):
        sets[i].append(tuple(members[end - n : end]))
    return Candidates(names, tuple(map(tuple, sets)))


def save_certificate(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> None:
    """Write the arrays of a proof, and a header (`certificate_header`) that says what they prove, atomically.

    Raises InputError if the file cannot be written.
    """
    write_sealed(path, {"version": VERSION, **header}, arrays, compressed=True)


def certificate_header(result: Result) -> dict[str, Any]:
    """Return the header of a certificate: the contents of the result without the keys `NOT_IN_HEADER`.

    If a subset of the samples was searched, its proved score and bound are under the key ``subset``, beside the bound
    over all samples; if screened parent sets were, the proved bound is under ``screened``.
    """
    values = result.to_dict()
    header = {key: value for key, value in values.items() if key not in NOT_IN_HEADER}
    return {**header, "milpbn": values["version"]}


def load_proof(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a certificate file.

    Raises InputError if the file cannot be read, is not a certificate, or was changed after it was written.
    """
    where = f"The certificate {str(path)!r}"
    try:
        text, arrays, unchanged = read_sealed(path, LARGEST_FILE)
    except FileNotFoundError:
        raise InputError(f"There is no certificate {str(path)!r}.") from None
    except InputError as error:
        raise InputError(f"{where} cannot be read: {str(error).rstrip('.')}.") from None
    except MemoryError:
        raise
    except Exception:  # of zip, zlib, npy or Unicode, with messages that do not help the user
        raise InputError(
            f"{str(path)!r} is no readable certificate; name the file that --certificate wrote."
        ) from None
    try:
        header = parse_object(text)
    except InputError as error:
        raise InputError(f"{where} has no readable header: {error}") from None
    version = header.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise InputError(
            f"{where} is not of version {VERSION}, the only one that this milpbn reads; solve again with --certificate."
        )
    if not unchanged:
        raise InputError(f"{where} was changed after it was written.")
    return header, arrays
