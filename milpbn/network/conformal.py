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
class CalibrationFold:
    """Rows that some tables have not seen, and how probable their own classes were; equal rows are one.

    Attributes
    ----------
    tables : Tables or None
        None: those of the classifier itself.
    probabilities : float64 array, shape (R,)
        P(c_m | z_m), ascending; 0 for a class that training never saw.
    classes : int array, shape (R,)
        Codes of the true classes.
    weights : float64 array, shape (R,)
        Total weights.
    """

    tables: Tables | None
    probabilities: NDArray[np.float64]
    classes: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, probabilities: NDArray[np.float64], rows: Dataset, tables: Tables | None) -> CalibrationFold:
        """Return the rows with their probabilities of all classes, shape (M, C)."""
        own = np.where(rows.y >= 0, probabilities[np.arange(rows.n_samples), rows.y], 0.0)
        different, index = np.unique(np.column_stack([own, rows.y]), axis=0, return_inverse=True)
        weights = np.bincount(index.ravel(), rows.weights)
        return cls(tables, different[:, 0], different[:, 1].astype(np.int64), weights)

    def weight_up_to(self, probabilities: NDArray[np.float64], of_class: int | None) -> NDArray[np.float64]:
        """Return the weight of the rows, or those of a class, with at most these probabilities; in their shape."""
        inside = slice(None) if of_class is None else self.classes == of_class
        totals = np.append(0.0, np.cumsum(self.weights[inside]))
        return totals[np.searchsorted(self.probabilities[inside], probabilities + TIE, side="right")]


@dataclass(frozen=True, eq=False)
class Conformal:
    """What prediction sets are calibrated on.

    Attributes
    ----------
    folds : tuple of CalibrationFold
        One of rows that training has not seen, or several of training rows, each with the tables of the others.
    rows : int
        Number of calibration rows.
    largest : tuple of float, length C + 1
        The largest weight of a row of each class, 0 without rows, and of all rows. A new row counts as much.
    """

    folds: tuple[CalibrationFold, ...]
    rows: int
    largest: tuple[float, ...]

    @classmethod
    def of(cls, rows: Dataset, folds: Sequence[CalibrationFold]) -> Conformal:
        """Return the calibration on some rows with classes, which are in the folds."""
        of_classes = (rows.weights[rows.y == c].max(initial=0.0) for c in range(rows.n_classes))
        return cls(tuple(folds), rows.n_samples, (*map(float, of_classes), float(rows.weights.max())))

    @property
    def origin(self) -> str:
        """What the sets were calibrated on, in words."""
        rows = counted(self.rows, "row")
        if self.folds[0].tables is None:
            return f"{rows} that training has not seen"
        return f"{rows} of training, by {len(self.folds)} folds"

    def shares(self, probabilities: Sequence[NDArray[np.float64]], *, by_class: bool) -> NDArray[np.float64]:
        """Return the share of rows whose class was at most as probable, the new row among them, shape (M, C).

        The probabilities, shape (M, C), are those by the tables of each fold. With `by_class`, each class is compared
        with the calibration rows of its own; without any, the share is 1.
        """
        found = np.ones(probabilities[0].shape)
        for c in range(found.shape[1]):
            own, new = (c, self.largest[c]) if by_class else (None, self.largest[-1])
            pairs = list(zip(self.folds, probabilities, strict=True))
            below = sum(fold.weight_up_to(p[:, c], own) for fold, p in pairs)
            total = sum(fold.weight_up_to(np.ones(1), own) for fold, _ in pairs)
            if new > 0:
                found[:, c] = (below + new) / (total + new)
        return found

    def least_errors(self, *, by_class: bool) -> NDArray[np.float64]:
        """Return by class the error at and below which every set has it, shape (C,)."""
        nothing = np.full((1, len(self.largest) - 1), -1.0)
        return self.shares([nothing] * len(self.folds), by_class=by_class)[0]

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

        `own` are the probabilities by the classifier itself, whose largest one is always in the set.

        Raises
        ------
        InputError
            If the error is no share between 0 and 1, or so small that all sets would hold all classes.
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
        if error <= least.max():
            always = ", ".join(label for label, low in zip(classes, least, strict=True) if error <= low)
            warn(
                f"For an error of {error:g} there are too few calibration rows of {always}, which is in every set.",
                DataWarning,
            )
        inside = self.shares(probabilities, by_class=by_class) > error
        inside[np.arange(len(own)), own.argmax(axis=1)] = True
        return inside

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        folds = []
        for fold in self.folds:
            tables = fold.tables and [[table.tolist() for table in network] for network in fold.tables]
            numbers = {key: getattr(fold, key).tolist() for key in ("probabilities", "classes", "weights")}
            folds.append({"tables": tables, **numbers})
        return {"rows": self.rows, "largest": list(self.largest), "folds": folds}

    @classmethod
    def read(cls, f: Fields, shapes: Sequence[Sequence[tuple[int, ...]]]) -> Conformal:
        """Read what `to_dict` returned; the shapes are those of the tables of each network.

        `InputError` if a part is missing or does not fit the others.
        """
        n_classes, folds = shapes[0][-1][-1], []
        for part in f.objects("folds"):
            tables = None if part.missing("tables") else _tables(part, shapes)
            numbers, weights = (np.array(part.numbers(key, 0.0)) for key in ("probabilities", "weights"))
            classes = np.array(part.wholes("classes", -1, n_classes - 1), dtype=np.int64)
            if not len(numbers) == len(classes) == len(weights) or (np.diff(numbers) < 0).any():
                raise part.contradiction("its calibration rows have lists of other lengths, or do not ascend")
            folds.append(CalibrationFold(tables, numbers, classes, weights))
        largest = f.numbers("largest", 0.0)
        if not folds or len(largest) != n_classes + 1:
            raise f.contradiction("the calibration of its sets has no rows, or other classes")
        return cls(tuple(folds), f.whole("rows", 1), tuple(largest))


def _tables(f: Fields, shapes: Sequence[Sequence[tuple[int, ...]]]) -> Tables:
    try:
        read = [[np.array(table, dtype=np.float64) for table in network] for network in f.items("tables")]
    except (TypeError, ValueError):
        read = []
    if [[table.shape for table in network] for network in read] != [list(own) for own in shapes]:
        raise f.contradiction("the tables of the calibration of its sets do not fit its own")
    return tuple(tuple(network) for network in read)
