"""The finished rows of a comparison, and the checkpoint from which it goes on after a stop."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.learners.figures import ComparisonRow
from milpbn.learners.judged import Judged
from milpbn.util.atomic import save_or_warn
from milpbn.util.checkpoints import ADVICE, difference, incomplete, load_checkpoint, save_checkpoint
from milpbn.util.jsonable import json_safe
from milpbn.util.memory import format_bytes
from milpbn.util.saved_arrays import SavedArrays, UnfitError

KIND = "comparison"
#: Largest number of bytes of a checkpoint's arrays: 25 bytes for each test row and learner.
LARGEST = 2 * 10**9
#: Attributes of `ComparisonRow` that are made anew: from the test rows, or from all rows together.
REMADE = ("judged", "differences", "parts")


class FinishedRows:
    """The rows of learners that have finished, by training and test rows. A checkpoint keeps them if one is named.

    Parameters
    ----------
    path : path-like or None
        The checkpoint. If it exists, its rows are taken over.
    described : mapping
        What the comparison must have in common with the one that it goes on from: ``data``, ``score``, ``options``
        (`milpbn.util.checkpoints.difference`).
    resume : bool
        Refuse to begin anew if there is no checkpoint yet.

    Raises
    ------
    InputError
        If the file is not a checkpoint of a comparison with the same data and options by the same version, or if it
        must exist and does not.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, described: Mapping[str, Any], *, resume: bool = False
    ) -> None:
        self._path, self._described = path, dict(json_safe(described))
        self._rows: dict[tuple[str, str], ComparisonRow] = {}
        if path is None:
            if resume:
                raise InputError(
                    "--resume (resume) goes on from the file that --checkpoint (checkpoint) names; add it."
                )
            return
        found = load_checkpoint(path, KIND, LARGEST)
        if found is None:
            if resume:
                raise InputError(
                    f"There is no checkpoint {str(path)!r} to go on from; name the file that --checkpoint wrote, or "
                    "leave out --resume (resume)."
                )
            return
        differs = difference(found.header.get("comparison"), self._described)
        if differs is not None:
            raise InputError(f"The checkpoint {found.path!r} belongs to a comparison {differs}; {ADVICE}")
        try:
            arrays = SavedArrays(found.arrays)
            for i, (part, values) in enumerate(found.header["rows"]):
                row = _row(values, arrays.under(f"{i}."))
                self._rows[str(part), row.name] = row
        except (KeyError, TypeError, ValueError, AttributeError, UnfitError):
            raise incomplete(path) from None

    def __len__(self) -> int:
        return len(self._rows)

    def on(self, train: Dataset, test: Dataset | None) -> FinishedPart:
        """Return the finished rows of one split."""
        return FinishedPart(self, f"{train.sha256} {'' if test is None else test.sha256}")

    def get(self, part: str, name: str) -> ComparisonRow | None:
        """Return the row of a learner, if it has finished on a split."""
        return self._rows.get((part, name))

    def add(self, part: str, row: ComparisonRow) -> None:
        """Keep a row, and write the checkpoint; a warning says so if it cannot be written."""
        self._rows[part, row.name] = row
        if self._path is not None:
            save_or_warn(partial(self._save, self._path), "The comparison")

    def _save(self, path: str | os.PathLike[str]) -> None:
        rows: list[list[Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for i, ((part, _), row) in enumerate(self._rows.items()):
            rows.append([part, {k: v for k, v in row.to_dict().items() if k not in REMADE}])
            if row.judged is not None:
                arrays |= {f"{i}.{name}": values for name, values in _arrays(row.judged)}
        size = sum(values.nbytes for values in arrays.values())
        if size > LARGEST:
            raise InputError(
                f"The checkpoint {str(path)!r} would take {format_bytes(size)}, and {format_bytes(LARGEST)} are "
                "allowed at most; the one before stays."
            )
        save_checkpoint(path, KIND, json_safe({"comparison": self._described, "rows": rows}), arrays)


class FinishedPart:
    """The finished rows of one split, which learners are added to."""

    def __init__(self, rows: FinishedRows, part: str) -> None:
        self._rows, self._part = rows, part

    def get(self, name: str) -> ComparisonRow | None:
        """Return the row of a learner, if it has finished."""
        return self._rows.get(self._part, name)

    def add(self, row: ComparisonRow) -> None:
        """Keep the row of a learner that has returned a classifier. One that failed is tried again after a stop."""
        if row.training is not None:
            self._rows.add(self._part, row)


def _arrays(judged: Judged) -> Iterator[tuple[str, NDArray[Any]]]:
    for field in fields(judged):
        values = getattr(judged, field.name)
        if values is not None:
            yield field.name, values


def _row(values: Mapping[str, Any], arrays: SavedArrays) -> ComparisonRow:
    """Return a saved row; raise an exception if something is missing or of another type."""
    known = {f.name for f in fields(ComparisonRow)} - set(REMADE)
    if set(values) != known or not isinstance(values["name"], str):
        raise UnfitError("a row has other values")
    for key in ("training", "seconds"):
        float(values[key])
    row = ComparisonRow(
        **{
            **values,
            "intervals": {key: (float(low), float(high)) for key, (low, high) in values["intervals"].items()},
        }
    )
    if "weights" not in arrays:
        return row
    weights = arrays.finite("weights", np.float64, None, least=0.0)
    probabilities: list[NDArray[np.float64] | None] = [None, None]
    with suppress(UnfitError):
        probabilities = [
            arrays.array(name, np.float64, len(weights)) for name in ("log_losses", "squared_errors")
        ]
    judged = Judged(weights, arrays.array("correct", np.bool_, len(weights)), *probabilities)
    # JSON has no infinity, which a log-loss may be.
    return replace(row, judged=judged, test=judged.accuracy, log_loss=judged.log_loss, brier=judged.brier)
