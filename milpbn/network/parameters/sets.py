"""Prediction sets: their calibration, and how often they hold the true class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.classifier import TableClassifier
from milpbn.network.conformal import Conformal
from milpbn.network.evaluation import labelled_rows
from milpbn.network.intervals import Interval, score_interval
from milpbn.network.parameters.thresholds import held_out_folds, left_out_probabilities
from milpbn.network.predictor import ProbabilityPredictor, Source

AnyTables = TypeVar("AnyTables", bound=TableClassifier | AveragedClassifier)
#: On which rows sets are calibrated.
CALIBRATIONS = ("folds", "leave-one-out", "new")


def calibrate_sets(
    classifier: AnyTables, source: Source, on: str = "new", *, random_state: int = 0
) -> AnyTables:
    """Return the classifier with calibrated prediction sets.

    With ``new`` rows, the true class is outside the set of a further row with at most the promised probability, if the
    rows are drawn alike (Vovk, Gammerman & Shafer 2005). With ``folds`` it is CV+: every row is judged by tables of the
    folds that do not hold it, and a further row by the tables of each fold. Twice the probability is promised then, if
    structure and cuts had not seen the rows (Romano, Sesia & Candes 2020, theorem 3); usually it is about the single
    one. With ``leave-one-out``, every row is judged by the tables of all others, and a further row by the classifier's
    own; then nothing is promised in a finite sample.

    Rows without a class or a weight are left out; the seed is that of the folds. Raises `InputError` if no row has a
    class, new rows are the training data, or tables cannot be fitted by folds.
    """
    if on not in CALIBRATIONS:
        raise InputError(
            f"Sets are calibrated on one of {', '.join(CALIBRATIONS)} (--conformal), got {on!r}."
        )
    if not isinstance(classifier, TableClassifier | AveragedClassifier):
        raise InputError(f"The sets of a {type(classifier).__name__} cannot be calibrated.")
    rows = labelled_rows(classifier.encode(source))
    if on == "folds":
        held_out = held_out_folds(classifier, rows, random_state)
        p, numbers = np.empty((rows.n_samples, len(classifier.classes))), np.empty(rows.n_samples, np.int64)
        for number, fold in enumerate(held_out):
            p[fold.rows], numbers[fold.rows] = fold.probabilities, number
        found = Conformal.of(rows, p, numbers, [fold.tables for fold in held_out])
    elif on == "leave-one-out":
        found = Conformal.of(rows, left_out_probabilities(classifier, rows), left_out=True)
    else:
        first = classifier.members[0] if isinstance(classifier, AveragedClassifier) else classifier
        trained = getattr(first, "provenance", {}).get("data")
        if isinstance(trained, dict) and trained.get("sha256") == rows.sha256:
            raise InputError(
                f"The rows of {rows.name!r} are those of training, on which the classifier looks surer than it is; "
                "calibrate by folds (--conformal folds), or on other rows."
            )
        found = Conformal.of(rows, classifier.predict_proba(rows))
    return classifier.with_sets(found)  # type: ignore[return-value]


@dataclass(frozen=True)
class SetFigures:
    """How often prediction sets hold the true class, and how large they are; shares are of the weight."""

    #: The true class of the rows; None for all rows.
    label: str | None
    #: Their number.
    rows: int
    #: Share of the rows whose set holds the true class, and its 95 % interval.
    coverage: float
    coverage_interval: Interval
    #: Mean number of classes in a set.
    size: float
    #: Share of the rows with one class in the set, two, ...
    sizes: tuple[float, ...]

    @classmethod
    def of(
        cls, label: str | None, held: NDArray[np.bool_], inside: NDArray[np.bool_], w: NDArray[np.float64]
    ) -> Self:
        """Return the figures of rows from whether their sets hold the true class, the sets, and weights."""
        shares = np.bincount(inside.sum(axis=1), w, inside.shape[1] + 1)[1:] / w.sum()
        coverage = min(1.0, float(w @ held / w.sum()))
        size = float(shares @ np.arange(1, len(shares) + 1))
        return cls(label, len(w), coverage, score_interval(held, w), size, tuple(shares.tolist()))


def evaluate_sets(
    classifier: ProbabilityPredictor, source: Source, error: float = 0.1, *, by_class: bool = False
) -> tuple[SetFigures, ...]:
    """Return the figures of prediction sets of all labelled rows, then of the rows of each class that occurs.

    A class that training never saw is in no set. `InputError` as `ProbabilityPredictor.predict_set` raises it, or if no
    row has a class.
    """
    rows = labelled_rows(classifier.encode(source))
    inside = classifier.predict_set(rows, error, by_class=by_class)
    held = (rows.y >= 0) & inside[np.arange(rows.n_samples), rows.y]
    found = [SetFigures.of(None, held, inside, rows.weights)]
    for c, label in enumerate(classifier.classes):
        if (own := rows.y == c).any():
            found.append(SetFigures.of(label, held[own], inside[own], rows.weights[own]))
    return tuple(found)
