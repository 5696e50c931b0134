"""The finished rows of a comparison, and the checkpoint from which it goes on after a stop."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.learners.base import Control
from milpbn.learners.cells import LearnerCell, Learnt, SplitRows
from milpbn.learners.rows import ComparisonRow
from milpbn.network.evaluation import labelled_rows
from milpbn.network.structure import Structure
from milpbn.trials.judged import Judged
from milpbn.util.atomic import check_writable, save_or_warn
from milpbn.util.checkpoints import (
    ADVICE,
    LARGEST,
    absent,
    difference,
    incomplete,
    load_checkpoint,
    save_checkpoint,
)
from milpbn.util.jsonable import Fields, json_safe
from milpbn.util.memory import exceeded, format_bytes

KIND = "comparison"
#: Ending of the file that keeps the state of the learner that runs, beside the checkpoint of the comparison.
UNFINISHED = ".unfinished"
#: Attributes of `ComparisonRow` that are made anew: from the test rows, or from all rows together.
REMADE = ("judged", "differences", "parts")


class FinishedRows:
    """The rows of learners that have finished, by split and learner. A checkpoint keeps them if one is named.

    Parameters
    ----------
    path : path-like or None
        The checkpoint. If it exists, its rows are taken over. While a learner runs that can go on after a stop, a file
        beside it, with the ending `UNFINISHED`, keeps the learner's own state.
    described : mapping
        What the comparison must have in common with the one that it goes on from: ``data``, ``score``, ``options``
        (`milpbn.util.checkpoints.difference`).
    resume : bool
        Refuse to begin anew if there is no checkpoint yet.

    Raises
    ------
    InputError
        If the file is not a checkpoint of such a comparison by the same version, or if it must exist and does not.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, described: Mapping[str, Any], *, resume: bool = False
    ) -> None:
        self.path, self._described = path, dict(json_safe(described))
        self.rows: dict[tuple[str, str], Learnt] = {}
        if path is None:
            if resume:
                raise InputError(
                    "--resume (resume) goes on from the file that --checkpoint (checkpoint) names; add it."
                )
            return
        check_writable(path)
        found = load_checkpoint(path, KIND, LARGEST)
        if found is None:
            if resume:
                raise absent(path)
            # States of a comparison whose checkpoint was deleted, so that it begins anew.
            for state in Path(path).parent.glob(f"{glob.escape(Path(path).name)}.*{UNFINISHED}"):
                remove(state)
            self._save(path)
            return
        differs = difference(found.header.get("comparison"), self._described)
        if differs is not None:
            raise InputError(f"The checkpoint {found.path!r} belongs to a comparison {differs}; {ADVICE}")
        try:
            for i, (part, graph, values) in enumerate(found.header["rows"]):
                row = ComparisonRow.read(Fields(values, "The row"), "The row", whole=False)
                kept: dict[str, Any] = {f.name: found.arrays.get(f"{i}.{f.name}") for f in fields(Judged)}
                judged = None if kept["weights"] is None else Judged(**kept)
                structure = None if graph is None else Structure(tuple(graph[0]), graph[1])
                self.rows[part, row.name] = Learnt(replace(row, judged=judged), structure)
        except (InputError, KeyError, TypeError, ValueError):
            raise incomplete(path) from None

    def on(self, parts: SplitRows, control: Control = Control()) -> FinishedParts:
        """Return the finished rows of some parts; the control reports which they are."""
        return FinishedParts(self, parts, control)

    def add(self, part: str, found: Learnt) -> None:
        """Keep what was found, and write the checkpoint; a warning says so if it cannot be written."""
        if self.path is not None:
            self.rows[part, found.row.name] = found
            save_or_warn(partial(self._save, self.path), "The comparison")

    def _save(self, path: str | os.PathLike[str]) -> None:
        rows: list[list[Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for i, ((part, _), (row, structure, _)) in enumerate(self.rows.items()):
            graph = None if structure is None else [structure.names, structure.parents]
            rows.append([part, graph, {k: v for k, v in row.to_dict().items() if k not in REMADE}])
            if row.judged is not None:
                arrays |= {f"{i}.{k}": v for k, v in vars(row.judged).items() if v is not None}
        size = sum(values.nbytes for values in arrays.values())
        if size > LARGEST:
            raise InputError(
                f"The checkpoint {str(path)!r} would take {format_bytes(size)}, and {format_bytes(LARGEST)} are "
                "allowed at most; the one before stays."
            )
        save_checkpoint(path, KIND, json_safe({"comparison": self._described, "rows": rows}), arrays)


class FinishedParts:
    """The rows of all parts: a store (`milpbn.trials.runner`) of what learners found."""

    def __init__(self, rows: FinishedRows, parts: SplitRows, control: Control) -> None:
        self._rows, self._parts, self._control = rows, parts, control
        self._names: dict[int, str] = {}

    def get(self, cell: LearnerCell) -> Learnt | None:
        """Return what a learner found on a part, if it has finished."""
        number, name = cell
        if not self._rows.rows:
            return None
        found = self._rows.rows.get((self._part(number), name))
        if found is None:
            return None
        judged, test = found.row.judged, self._parts[number][1]
        if judged is not None and (
            test is None or not np.array_equal(judged.weights, labelled_rows(test).weights)
        ):
            return None
        self._parts.control(self._control, number).report(f"{name} has finished before")
        return found

    def add(self, cell: LearnerCell, found: Learnt) -> None:
        """Keep what a learner found that has returned a classifier. One that failed is tried again after a stop."""
        number, row = cell[0], found.row
        if self._rows.path is None or not row.has_classifier or self._control.interrupted() or exceeded():
            return
        if row.training is not None:
            self._rows.add(self._part(number), found)
        self.drop(cell)

    def unfinished(self, cell: LearnerCell) -> Path | None:
        """Return the file that keeps the state of a learner while it runs; None without a checkpoint."""
        if self._rows.path is None:
            return None
        number, name = cell
        key = hashlib.sha256(f"{self._part(number)} {name}".encode()).hexdigest()[:12]
        return Path(f"{os.fspath(self._rows.path)}.{name}-{key}{UNFINISHED}")

    def drop(self, cell: LearnerCell) -> None:
        """Remove the state of a learner that has finished or failed."""
        state = self.unfinished(cell)
        if state is not None:
            remove(state)

    def _part(self, number: int) -> str:
        """Return the hashes that stand for a part in the checkpoint."""
        if number not in self._names:
            train, test = self._parts[number]
            self._names[number] = f"{train.sha256} {'' if test is None else test.sha256}"
        return self._names[number]


def remove(state: Path) -> None:
    """Remove a file that nobody needs any more, if possible."""
    with suppress(OSError):
        state.unlink(missing_ok=True)
