"""What proves a bound: the tree's decisions, and the dual weights of every leaf and every deletion.

Dual weights are not stored themselves: they are the softened score's weights at a point eta and a temperature T, and
eta has few entries that are not 0. Whoever checks the bound computes them anew; any error in them only costs
tightness, because every point of the simplex gives a valid bound. What is left out of a soft minimum
(`milpbn.bounds.kernels.SPARSE`, `SPARSE_LIKELY`) belongs to the meaning of a certificate.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.atomic import atomic_path
from milpbn.bounds.inequalities import Inequalities
from milpbn.bounds.space import Decision, Weights
from milpbn.errors import InputError
from milpbn.result import Result

#: Version of the file format.
VERSION = 4
#: Bytes in a certificate for where a deletion, a leaf or a branch belongs, at most.
PLACE_BYTES = 36
#: Bytes of arrays with which a proof is full. The file compresses them to half of that, as measured; never to more.
LARGEST = 490_000_000
#: Bytes in memory for every byte of arrays: measured 1.74 (objects, small arrays).
OVERHEAD = 2.0
NO_ROWS = Inequalities(np.empty((0, 0), dtype=bool), np.empty(0, dtype=np.int64))


@dataclass
class Proof:
    """A growing proof; node 0 is the whole problem. Every method may be called from any thread."""

    branches: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    deletions: list[tuple[int, Weights, NDArray[np.int32]]] = field(default_factory=list)
    leaves: dict[int, Weights] = field(default_factory=dict)
    #: What the weights' multipliers belong to; rows may be added.
    rows: Inequalities = NO_ROWS
    #: What the different rows count instead of their weights, of a subset that stands for all (`Dataset.merged`).
    sample_weights: NDArray[np.float64] | None = None
    #: Bytes of all arrays.
    nbytes: int = 0
    #: Held while several notes have to become one.
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def full(self) -> bool:
        """Whether another decision might make the file larger than 500 MB."""
        return self.nbytes >= LARGEST

    def delete(self, node: int, weights: Weights, entries: NDArray[np.integer]) -> None:
        """Note that no better structure of a node has some entries, by the bound of these weights."""
        with self.lock:
            self.deletions.append((node, weights, entries.astype(np.int32)))
            self.nbytes += weights.nbytes + 4 * len(entries) + PLACE_BYTES

    def branch(self, node: int, decision: Decision, inside: int, outside: int) -> None:
        """Note that a node became two."""
        with self.lock:
            self._drop(node)
            self.branches.append((node, *decision, inside, outside))
            self.nbytes += PLACE_BYTES

    def leaf(self, node: int, weights: Weights) -> None:
        """Note the weights that bound a node which has no children."""
        with self.lock:
            self._drop(node)
            self.leaves[node] = weights
            self.nbytes += weights.nbytes + PLACE_BYTES

    def _drop(self, node: int) -> None:
        gone = self.leaves.pop(node, None)
        if gone is not None:
            self.nbytes -= gone.nbytes + PLACE_BYTES

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the proof as arrays: branches, and the concatenated weights of deletions and leaves."""
        with self.lock:
            branches, deletions = list(self.branches), list(self.deletions)
            leaves = dict(self.leaves)
        weights = [w for _, w, _ in deletions] + list(leaves.values())
        gone = [g for _, _, g in deletions]
        nothing = np.empty(0, dtype=np.int32)
        rows = self.rows
        subset = {}
        if self.sample_weights is not None:
            counted = np.flatnonzero(self.sample_weights)
            subset = {"subset_row": counted, "subset_weight": self.sample_weights[counted]}
        return {
            **subset,
            "branches": np.array(branches, dtype=np.int32).reshape(-1, 6),
            "deletion_node": np.array([node for node, _, _ in deletions], dtype=np.int32),
            "deletion_size": np.array([len(g) for g in gone], dtype=np.int64),
            "deleted": np.concatenate([nothing, *gone]),
            "leaf_node": np.array(list(leaves), dtype=np.int32),
            "weights_size": np.array([len(w.entries) for w in weights], dtype=np.int64),
            "entries": np.concatenate([nothing, *(w.entries for w in weights)]),
            "eta": np.concatenate([np.empty(0), *(w.eta for w in weights)]),
            "temperature": np.array([w.temperature for w in weights]),
            "row_members": rows.members,
            "row_limit": rows.limit,
            "multipliers_size": np.array([len(w.rows) for w in weights], dtype=np.int64),
            "multiplier_row": np.concatenate([nothing, *(w.rows for w in weights)]),
            "multiplier": np.concatenate([np.empty(0), *(w.multipliers for w in weights)]),
        }


def save_certificate(
    path: str | os.PathLike[str],
    header: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    ready: Callable[[], None] | None = None,
) -> None:
    """Write a proof's arrays with a header that says what they prove; atomically.

    Parameters
    ----------
    path : path
        The file.
    header : dict
        See `certificate_header`.
    arrays : dict
        See `Proof.arrays`.
    ready : callable, optional
        Called when all is written, just before the file replaces an older one.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    text = np.frombuffer(json.dumps({"version": VERSION, **header}).encode(), dtype=np.uint8)
    everything: dict[str, Any] = {"header": text, **arrays}
    everything["digest"] = _digest(everything)
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **everything)
        file.flush()
        if ready is not None:
            ready()


def certificate_header(result: Result) -> dict[str, Any]:
    """Return what a certificate says it proves: the result's data, score, constraints, incumbent and bound.

    Of a search over a subset of samples, the last two are in `milpbn.result.Result.subset`.
    """
    values = result.to_dict()
    return {
        key: values[key]
        for key in (
            "run",
            "data",
            "score",
            "constraints",
            "structure",
            "class",
            "objective",
            "bound",
            "subset",
        )
    }


def _digest(arrays: dict[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Return a hash of all names, types, shapes and numbers."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {values.dtype.str} {values.shape};".encode())
        found.update(values.tobytes())
    return np.frombuffer(found.digest(), dtype=np.uint8)


def load_proof(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a certificate file; return its header and its arrays.

    Raises
    ------
    InputError
        If the file cannot be read, is no certificate, or was changed after it was written.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        digest = arrays.pop("digest", None)
        unchanged = digest is not None and bool(np.array_equal(digest, _digest(arrays)))
        header = json.loads(arrays.pop("header").tobytes().decode())
    except FileNotFoundError:
        raise InputError(f"There is no certificate {str(path)!r}.") from None
    except Exception:  # zip, zlib, npy and JSON errors of many types, with advice of their own
        raise InputError(
            f"{str(path)!r} is no readable certificate; name the file that --certificate wrote."
        ) from None
    if not isinstance(header, dict) or header.get("version") != VERSION:
        raise InputError(f"{str(path)!r} is no certificate of version {VERSION}.")
    if not unchanged:
        raise InputError(f"The certificate {str(path)!r} was changed after it was written.")
    return header, arrays
