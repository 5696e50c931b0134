"""The checkpoint of a search: what it holds, what it refuses, and when it is written.

It holds the incumbent, the trace and the counters of the run, and once the tree search has begun, that search's whole
state with the proof (`milpbn.engine.tree.saved_search`, `milpbn.engine.parent_sets.saved_state`). Its bounds are claims
of the file. The incumbent is scored again from the data, and the certificate, which is verified apart from all this,
proves the bound.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.format import Proof, kept_arrays, kept_candidates
from milpbn.certificate.multiplier_proof import MultiplierProof
from milpbn.claims.reading import TracePoint, read_among
from milpbn.engine.events import CHILDREN, NODE, PROOF, SavedState
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Constraints
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.solving.state import Session
from milpbn.util.atomic import check_writable
from milpbn.util.checkpoints import (
    ADVICE,
    LARGEST,
    Checkpoint,
    absent,
    difference,
    incomplete,
    load_checkpoint,
    save_checkpoint,
)
from milpbn.util.clock import Pause
from milpbn.util.memory import available_memory, format_bytes
from milpbn.util.saved_arrays import SavedArrays, count, number

KIND = "search"
#: Seconds between two checkpoints: at most, and at the beginning, from which they double.
SAVE_EVERY, SAVE_FIRST = 60.0, 2.0
#: What the names of the arrays about the run begin with.
RUN = "run."
#: Header, arrays, and the state of the tree search, if it has begun, at one moment of a run.
_State = tuple[dict[str, Any], dict[str, NDArray[Any]], SavedState | None]


class SavedSearch(NamedTuple):
    """An earlier run, from which a run goes on.

    Its `bound` on every structure, in nats, is infinite without one; its `trace` has seconds, incumbents and bounds.
    Seconds are all that it took, those for data and coefficients, and those to build a MILP. `nodes` counts the nodes
    of its tree, `open_nodes` those that are open. `tree` is the state of its tree search; before that begins it is
    None, as `proof` is, and only the incumbent is of use. Screening has `ranked` so many parent sets, and kept the
    `candidates`. `sample_weights`, shape (M,), are those of the samples in a subset. `among` are the structures that
    the bound is about (`milpbn.problem.class_free.among`); it is empty if all are meant.
    """

    path: str
    structure: Structure
    objective: float
    bound: float
    trace: list[TracePoint]
    seconds: float
    coefficient_seconds: float
    model_seconds: float
    nodes: int
    open_nodes: int
    tree: SavedArrays | None
    candidates: Candidates | None
    ranked: int
    sample_weights: NDArray[np.float64] | None
    proof: Proof | MultiplierProof | None
    among: str

    def state(self) -> str:
        """Return a clause about the state of the search."""
        where = "before the tree search"
        if self.tree is not None:
            where = f"with {self.nodes} nodes, {self.open_nodes} open"
            if self.nodes == 0:
                where = "at the root of the tree"
            elif self.open_nodes == 0:
                where = f"with {self.nodes} nodes, after the search has ended"
        numbers = f"incumbent {self.objective:.6f}, bound {self.bound:.6f}"
        return f"written after {self.seconds:.1f} s {where}; {numbers}{f' among {self.among}' if self.among else ''}"

    @property
    def sentence(self) -> str:
        """What a run says that goes on from it."""
        return f"Going on from the checkpoint {self.path!r}, {self.state()}."


def describe(question: Question, options: Options) -> dict[str, Any]:
    """Return what a search must have in common with the one whose checkpoint it goes on from, as JSON values."""
    values: dict[str, Any] = {
        "data": question.data.sha256,
        "score": question.score.to_dict(),
        "constraints": (question.constraints or Constraints()).to_dict(),
        "options": {
            "--subset": question.subset,
            "--screen": question.screen,
            "--n-best": options.most_listed,
            "--within": options.within,
            "--seed": options.random_state,
            "--no-merge": not options.merge,
            "reduce": options.reduce,
        },
    }
    return dict(json.loads(json.dumps(values)))


def read_saved_search(
    path: str | os.PathLike[str], options: Options, names: tuple[str, ...], described: Mapping[str, Any]
) -> SavedSearch | None:
    """Read the checkpoint of a run that `describe` describes; return None if there is none yet.

    Raise InputError if the file is no checkpoint of a search with the same data and options by the same version, or if
    it must exist (``resume``) and does not, or if it has no proof and a certificate is wanted.
    """
    found = load_checkpoint(path, KIND, LARGEST)
    if found is None:
        if options.resume:
            raise absent(path)
        return None
    name = f"The checkpoint {found.path!r}"
    differs = difference(found.header.get("search"), described)
    if differs is not None:
        raise InputError(f"{name} belongs to a search {differs}; {ADVICE}")
    arrays = SavedArrays(found.arrays)
    wants_proof = options.certificate is not None and CHILDREN in arrays
    if wants_proof and PROOF + "branches" not in arrays:
        raise InputError(
            f"{name} has no proof, since its search was begun without --certificate (certificate); leave the "
            "certificate out, or begin anew with another checkpoint."
        )
    return _saved(found, arrays, names, proved=wants_proof)


def load_saved_search(path: str | os.PathLike[str]) -> SavedSearch:
    """Read a checkpoint without a run to go on with it, to say what it holds.

    Raise InputError if there is no such file, or it is no checkpoint of a search by the same version.
    """
    found = load_checkpoint(path, KIND, LARGEST)
    if found is None:
        raise InputError(f"There is no checkpoint {str(path)!r}.")
    return _saved(found, SavedArrays(found.arrays), None, proved=False)


def _saved(
    found: Checkpoint, saved: SavedArrays, names: tuple[str, ...] | None, *, proved: bool
) -> SavedSearch:
    """Return the run that a checkpoint holds, with its proof if that is wanted.

    A checksum protects the file against accidents, so nothing looks for faults but the types of what is taken from it.
    """
    run, begun = saved.under(RUN), CHILDREN in saved
    try:
        names = names or tuple(found.header["structure"])
        seconds = run.array("seconds", np.float64, 3).tolist()
        trace = run.array("trace", np.float64, None, 3).tolist()
        return SavedSearch(
            path=found.path,
            structure=Structure.from_mapping(names, found.header["structure"]),
            objective=run.number("objective"),
            bound=run.number("bound"),
            trace=[
                (t, z if math.isfinite(z) else None, b if math.isfinite(b) else None) for t, z, b in trace
            ],
            seconds=seconds[0],
            coefficient_seconds=seconds[1],
            model_seconds=seconds[2],
            nodes=run.count("nodes"),
            open_nodes=len(saved.array(NODE + "number", np.int64, None)) if begun else 0,
            tree=saved if begun else None,
            candidates=kept_candidates(saved, names) if begun and "kept_size" in saved else None,
            ranked=run.count("ranked"),
            sample_weights=run.array("samples", np.float64, None).copy() if "samples" in run else None,
            proof=_proof(saved.under(PROOF)) if proved else None,
            among=read_among(found.header["search"], f"The checkpoint {found.path!r}"),
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise incomplete(found.path) from None


def _proof(saved: SavedArrays) -> Proof | MultiplierProof:
    return MultiplierProof.restored(saved) if "step_node" in saved else Proof.restored(saved)


class CheckpointFile:
    """The checkpoint that a run writes; raises InputError if that is impossible. This run goes on from `earlier`."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        session: Session,
        described: Mapping[str, Any],
        earlier: SavedSearch | None,
    ) -> None:
        check_writable(path)
        self._path, self._session, self._described = path, session, described
        #: Whether the file has the state of a tree search. If so, no poorer state replaces it.
        self._has_tree = earlier is not None and earlier.tree is not None
        self._pause = Pause(SAVE_FIRST, SAVE_EVERY)
        self._last: _State | None = None

    def update(self) -> None:
        """Write the file, from time to time; raise InputError if that is impossible."""
        if self._session.budget.left() < 2 * self._pause.took or not self._pause.over():
            return  # at the end, the one of `finish` comes soon
        with self._pause.after():
            self._write(self._state())

    def capture(self) -> None:
        """Keep the state of this moment for `finish`."""
        self._last = self._state()

    def finish(self) -> None:
        """Write the state that `capture` kept; raise InputError if that is impossible."""
        self._write(self._last or self._state())

    def _state(self) -> _State | None:
        """Return header and arrays of this moment, and the state of the tree; None if there is nothing to save.

        Bound and trace are read before the tree, whose bound is then no larger.
        """
        session = self._session
        structure, objective, bound, trace = session.snapshot()
        seconds, products = session.elapsed(), session.products
        tree = None if products.search is None else products.search()
        if structure is None or objective is None or (tree is None and self._has_tree):
            return None
        points = [(t, -math.inf if z is None else z, math.inf if b is None else b) for t, z, b in trace]
        screened, weights = products.problem.screened, products.problem.sample_weights
        run = {
            "objective": number(objective),
            "bound": number(math.inf if bound is None else bound),
            "trace": np.array(points, dtype=np.float64).reshape(-1, 3),
            "seconds": np.array([seconds, products.coefficient_seconds, products.model_seconds]),
            "nodes": count((session.node_count or 0) if tree is None else tree.count),
            "ranked": count(0 if screened is None else screened.ranked),
            **({} if weights is None else {"samples": weights}),
        }
        candidates = products.problem.candidates
        kept = {} if screened is None else kept_arrays(candidates.variable, candidates.flat)
        header = {"search": self._described, "structure": structure.to_mapping(), "seconds": seconds}
        return header, {**{RUN + name: array for name, array in run.items()}, **kept}, tree

    def _write(self, state: _State | None) -> None:
        if state is None:
            return
        header, arrays, tree = state
        size = sum(array.nbytes for array in arrays.values()) + (0 if tree is None else tree.nbytes)
        disk = memory = available_memory()
        with suppress(OSError):  # if there is no folder any more, writing says so
            disk = shutil.disk_usage(os.path.dirname(os.path.realpath(self._path))).free
        limits = (
            (LARGEST, "such files have at most"),
            (disk, "the disk has only"),
            (memory, "the memory has only"),
        )
        for most, whose in limits:
            if most is not None and size > most:
                raise InputError(
                    f"The checkpoint {str(self._path)!r} would take {format_bytes(size)}, but {whose} "
                    f"{format_bytes(most)}; it was not written."
                )
        save_checkpoint(self._path, KIND, header, {**arrays, **({} if tree is None else tree.arrays())})
        self._has_tree = tree is not None
