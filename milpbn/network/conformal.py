"""Conformal prediction: sets of classes that hold the true one with a promised probability.

A class is left out of the set of a row if its probability is lower than nearly all true classes' probabilities were on
calibration rows. Their probabilities are by tables that have not seen them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.errors import DataWarning, InputError, warn
from milpbn.util.jsonable import Fields
from milpbn.util.plurals import counted
from milpbn.util.validation import real_number

#: Probabilities that are closer than this count as equal, so that rounding leaves out no class.
TIE = 1e-9
#: Per network, the probability tables of all variables.
Tables = tuple[tuple[NDArray[np.float64], ...], ...]


@dataclass(frozen=True, eq=False)
class Conformal:
    """What prediction sets are calibrated on: how probable the classes of rows were that some tables had not seen."""

    #: For each fold, those of the other folds' rows. None, if all rows are new to the classifier's own tables.
    tables: tuple[Tables, ...]
    #: The fold of each row, shape (R,), and the code of its class, negative for a new one. Equal rows are one.
    folds: NDArray[np.int64]
    classes: NDArray[np.int64]
    #: P(c_m | z_m) by the tables of the fold, shape (R,), 0 for a class that training never saw; and total weights.
    probabilities: NDArray[np.float64]
    weights: NDArray[np.float64]
    #: The largest weight of a row of each class, 0 without rows, and last of all rows. A new row counts as much.
    largest: tuple[float, ...]
    rows: int
    #: Whether each training row was judged by tables of all others, which the file does not keep.
    left_out: bool = False

    @classmethod
    def of(
        cls,
        rows: Dataset,
        probabilities: NDArray[np.float64],
        folds: NDArray[np.integer] | None = None,
        tables: Sequence[Tables] = (),
        *,
        left_out: bool = False,
    ) -> Conformal:
        """Return the calibration on rows with classes, from their probabilities of all classes, shape (M, C)."""
        own = np.where(rows.y >= 0, probabilities[np.arange(rows.n_samples), rows.y], 0.0)
        numbers = np.column_stack([np.zeros(rows.n_samples) if folds is None else folds, rows.y, own])
        different, index = np.unique(numbers, axis=0, return_inverse=True)
        fold, classes = different[:, :2].T.astype(np.int64)
        largest = [rows.weights[rows.y == c].max(initial=0.0) for c in range(rows.n_classes)]
        weights = np.bincount(index.ravel(), rows.weights).astype(np.float64)
        most = tuple(map(float, [*largest, rows.weights.max()]))
        return cls(tuple(tables), fold, classes, different[:, 2], weights, most, rows.n_samples, left_out)

    @property
    def origin(self) -> str:
        """What the sets were calibrated on, in words."""
        seen = f"by {len(self.tables)} folds" if self.tables else "each left out of the tables"
        how = f"of training, {seen}" if self.tables or self.left_out else "that training has not seen"
        return f"{counted(self.rows, 'row')} {how}"

    def shares(self, probabilities: Sequence[NDArray[np.float64]], *, by_class: bool) -> NDArray[np.float64]:
        """Return the share of rows whose class was at most as probable, the new row among them, shape (M, C).

        The probabilities, shape (M, C), are those by the tables of each fold. With `by_class`, each class is compared
        with the calibration rows of its own; without any, the share is 1.
        """
        found = np.ones(probabilities[0].shape)
        for c in range(len(self.largest) - 1):
            compared = self.classes == c if by_class else np.ones(len(self.classes), dtype=bool)
            new, below = self.largest[c if by_class else -1], np.zeros(len(found))
            for fold, p in enumerate(probabilities):
                inside = np.flatnonzero(compared & (self.folds == fold))
                inside = inside[np.argsort(self.probabilities[inside])]
                totals = np.append(0.0, np.cumsum(self.weights[inside]))
                below += totals[np.searchsorted(self.probabilities[inside], p[:, c] + TIE, side="right")]
            if new > 0:
                found[:, c] = (below + new) / (self.weights[compared].sum() + new)
        return found

    def least_errors(self, *, by_class: bool) -> NDArray[np.float64]:
        """Return by class the error at and below which every set has it, shape (C,)."""
        nothing = np.full((1, len(self.largest) - 1), -1.0)
        return self.shares([nothing] * (len(self.tables) or 1), by_class=by_class)[0]

    def rare_classes(self, classes: Sequence[str], error: float, *, by_class: bool) -> str | None:
        """Return a sentence on classes with so few calibration rows that they are in every set; None without any."""
        least = self.least_errors(by_class=by_class)
        always = ", ".join(label for label, low in zip(classes, least, strict=True) if error <= low)
        if not always:
            return None
        return f"For an error of {error:g} there are too few calibration rows of {always}, which is in every set."

    def sets(
        self,
        probabilities: Sequence[NDArray[np.float64]],
        own: NDArray[np.float64],
        classes: Sequence[str],
        error: float,
        *,
        by_class: bool,
    ) -> NDArray[np.bool_]:
        """Return whether each class is in the set of each row, shape (M, C).

        `own` are the probabilities by the classifier itself, whose largest one is always in the set. `InputError` if
        the error is no share between 0 and 1, or so small that all sets would hold all classes.
        """
        error = real_number("error", error)
        if not 0 < error < 1:
            raise InputError(
                f"--conformal (error) must be a share above 0 and below 1, such as 0.1; got {error:g}."
            )
        least = self.least_errors(by_class=by_class)
        if error <= least.min():
            raise InputError(
                f"Sets are calibrated on {self.origin}, which is too few for an error of {error:g}: all classes would "
                f"be in every set. Give more than {least.min():.4g} (--conformal), or calibrate on more rows."
            )
        if (doubt := self.rare_classes(classes, error, by_class=by_class)) is not None:
            warn(doubt, DataWarning)
        inside = self.shares(probabilities, by_class=by_class) > error
        inside[np.arange(len(own)), own.argmax(axis=1)] = True
        return inside

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        tables = [[[table.tolist() for table in network] for network in fold] for fold in self.tables]
        lists = {key: getattr(self, key).tolist() for key in ("folds", "classes", "probabilities", "weights")}
        numbers = {"largest": list(self.largest), "rows": self.rows, "left_out": self.left_out}
        return {"tables": tables, **lists, **numbers}

    @classmethod
    def read(cls, f: Fields, shapes: Sequence[Sequence[tuple[int, ...]]]) -> Conformal:
        """Read what `to_dict` returned; the shapes are those of the tables of each network.

        `InputError` if a part is missing or does not fit the others.
        """
        try:
            tables = tuple(
                tuple(tuple(np.array(table, dtype=np.float64) for table in network) for network in fold)
                for fold in f.items("tables")
            )
        except (TypeError, ValueError):
            raise f.contradiction(
                "a table has rows of other lengths, or values that are no numbers"
            ) from None
        n_classes, largest = shapes[0][-1][-1], tuple(f.numbers("largest", 0.0))
        folds = np.array(f.wholes("folds", 0, max(len(tables) - 1, 0)), dtype=np.int64)
        classes = np.array(f.wholes("classes", -1, n_classes - 1), dtype=np.int64)
        numbers, weights = (np.array(f.numbers(key, 0.0)) for key in ("probabilities", "weights"))
        fit = all(
            [[t.shape for t in own] for own in fold] == [list(own) for own in shapes] for fold in tables
        )
        if not fit or not len(folds) == len(classes) == len(numbers) == len(weights) > 0:
            raise f.contradiction(
                "there are no calibration rows, their lists differ in length, or tables do not fit"
            )
        if len(largest) != n_classes + 1:
            raise f.contradiction("its calibration is of other classes")
        left_out = "left_out" in f and f.flag("left_out")  # files of earlier versions lack it
        return cls(tables, folds, classes, numbers, weights, largest, f.whole("rows", 1), left_out)
