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

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.learners.base import Control
from milpbn.learners.figures import ComparisonRow, reference_row
from milpbn.network.evaluation import labelled_rows
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
#: What the score and the gap of a saved row refer to (name and bound of an exact search), and the row.
Saved = tuple[list[Any] | None, ComparisonRow]
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
        self.rows: dict[tuple[str, str], Saved] = {}
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
            for i, (part, reference, values) in enumerate(found.header["rows"]):
                row = ComparisonRow.read(Fields(values, "The row"), "The row", whole=False)
                kept: dict[str, Any] = {f.name: found.arrays.get(f"{i}.{f.name}") for f in fields(Judged)}
                judged = None if kept["weights"] is None else Judged(**kept)
                self.rows[part, row.name] = reference, replace(row, judged=judged)
        except (InputError, KeyError, TypeError, ValueError):
            raise incomplete(path) from None

    def on(self, train: Dataset, test: Dataset | None, control: Control = Control()) -> FinishedPart:
        """Return the finished rows of one split; the control reports which they are."""
        return FinishedPart(self, train, test, control)

    def add(self, part: str, reference: list[Any] | None, row: ComparisonRow) -> None:
        """Keep a row, and write the checkpoint; a warning says so if it cannot be written."""
        if self.path is not None:
            self.rows[part, row.name] = reference, row
            save_or_warn(partial(self._save, self.path), "The comparison")

    def _save(self, path: str | os.PathLike[str]) -> None:
        rows: list[list[Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for i, ((part, _), (reference, row)) in enumerate(self.rows.items()):
            rows.append([part, reference, {k: v for k, v in row.to_dict().items() if k not in REMADE}])
            if row.judged is not None:
                arrays |= {f"{i}.{k}": v for k, v in vars(row.judged).items() if v is not None}
        size = sum(values.nbytes for values in arrays.values())
        if size > LARGEST:
            raise InputError(
                f"The checkpoint {str(path)!r} would take {format_bytes(size)}, and {format_bytes(LARGEST)} are "
                "allowed at most; the one before stays."
            )
        save_checkpoint(path, KIND, json_safe({"comparison": self._described, "rows": rows}), arrays)


class FinishedPart:
    """The rows of one split: a store (`milpbn.trials.runner`) of what learners found, by their names.

    Attributes
    ----------
    so_far : list of ComparisonRow
        The rows that were taken or added, in their order. Scores and gaps of the next row refer to one of them
        (`reference_row`).
    """

    def __init__(self, rows: FinishedRows, train: Dataset, test: Dataset | None, control: Control) -> None:
        self._rows, self._test, self._control = rows, test, control
        self._part = f"{train.sha256} {'' if test is None else test.sha256}"
        self.so_far: list[ComparisonRow] = []

    def get(self, name: str) -> ComparisonRow | None:
        """Return the row of a learner, if it has finished.

        Its score and gap must refer to the same search as those of the rows before it, with the same bound.
        """
        saved = self._rows.rows.get((self._part, name))
        if saved is None or saved[0] != self._reference():
            return None
        judged = saved[1].judged
        if judged is not None and (
            self._test is None or not np.array_equal(judged.weights, labelled_rows(self._test).weights)
        ):
            return None
        self._control.report(f"{name} has finished before")
        self.so_far.append(saved[1])
        return saved[1]

    def add(self, name: str, row: ComparisonRow) -> None:
        """Keep the row of a learner that has returned a classifier. One that failed is tried again after a stop."""
        if row.has_classifier and not self._control.interrupted() and not exceeded():
            if row.training is not None:
                self._rows.add(self._part, self._reference(), row)
            self.drop(name)
        self.so_far.append(row)

    def unfinished(self, name: str) -> Path | None:
        """Return the file that keeps the state of a learner while it runs; None without a checkpoint."""
        if self._rows.path is None:
            return None
        key = hashlib.sha256(f"{self._part} {name}".encode()).hexdigest()[:12]
        return Path(f"{os.fspath(self._rows.path)}.{name}-{key}{UNFINISHED}")

    def drop(self, name: str) -> None:
        """Remove the state of a learner that has finished or failed."""
        state = self.unfinished(name)
        if state is not None:
            remove(state)

    def _reference(self) -> list[Any] | None:
        found = reference_row(self.so_far)
        return None if found is None else [found.name, found.details["bound"]]


def remove(state: Path) -> None:
    """Remove a file that nobody needs any more, if possible."""
    with suppress(OSError):
        state.unlink(missing_ok=True)
