"""Evaluation of a classifier on samples with known classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING, UNKNOWN, Dataset
from milpbn.data.encodings import missing_values, unknown_values
from milpbn.data.labels import label_of
from milpbn.errors import DataWarning, InputError, warn
from milpbn.network.calibration import (
    ReliabilityBin,
    calibration_error,
    losses_of_logs,
    reliability_curve,
    squared_errors,
)
from milpbn.network.decisions import CostFigures, cost_figures
from milpbn.network.discrimination import RARE, ClassFigures, class_figures
from milpbn.network.intervals import (
    Z_95,
    Interval,
    effective_size,
    equal,
    score_interval,
    stratified_mean_interval,
)
from milpbn.network.margins import checked_gamma, log_margins, log_posterior, soft_margin
from milpbn.network.predictor import Predictor, ProbabilityPredictor, Source
from milpbn.util.jsonable import json_safe, shorten
from milpbn.util.plurals import counted


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Results on the rows that have a class label and a positive weight; each counts with its weight.

    A class that training never saw has the probability 0: its rows are errors in the accuracy, cost the largest
    log-loss (`milpbn.network.calibration.LARGEST_LOSS`), and add 1 to the Brier score. `known` has the same figures
    without these rows.
    """

    #: Name of the data.
    data: str
    #: Class labels.
    classes: tuple[str, ...]
    #: Number of evaluated rows.
    samples: int
    #: Total weight of these rows.
    weight: float
    #: Number of equally weighted rows that say as much (`milpbn.network.intervals.effective_size`).
    effective_size: float
    #: Share of correctly classified weight; ties go to the first class.
    accuracy: float
    #: 95 % score interval of the accuracy (`milpbn.network.intervals.score_interval`); with equal weights Wilson's.
    interval: tuple[float, float]
    #: Half the width of the normal 95 % interval; with equal weights 1.96 sqrt(a (1 - a) / n) (Mitchell 1997), as in
    #: Table 2 of Peharz and Pernkopf (2012, P12).
    half_width: float
    #: Weight by true class (rows) and predicted class (columns), of rows whose class training saw, shape (C, C).
    confusion: NDArray[np.float64]
    #: Weight of the other rows by predicted class, shape (C,).
    unseen: NDArray[np.float64]
    #: By class, shape (C,); recall is NaN for a class that never occurs, precision for one that is never predicted.
    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    #: Mean log-margin in nats of the rows whose class training saw; others have none.
    mean_log_margin: float
    #: Mean of -log P(c_m | z_m) in nats.
    log_loss: float
    #: Brier score, between 0 and 2, the mean of the sum over the classes of (P(c | z_m) - [c = c_m])^2.
    brier: float
    #: Their 95 % intervals (`milpbn.network.intervals.stratified_mean_interval`); None if one row has the weight.
    log_loss_interval: Interval | None
    brier_interval: Interval | None
    #: The class to detect, the one that was asked for, else the rarest of those in the data.
    positive: str
    #: How well each class is told from all others.
    by_class: tuple[ClassFigures, ...]
    #: How classes are chosen, in words; None if the most probable class is predicted.
    decision: str | None
    #: What the decisions cost; None if the classifier has no costs.
    cost: CostFigures | None
    #: Expected calibration error, between 0 and 1 (`milpbn.network.calibration.calibration_error`).
    calibration_error: float
    #: The reliability curve, at most 10 bins of samples by the probability of their predicted class.
    reliability: tuple[ReliabilityBin, ...]
    #: The class with the largest weight among those that training saw.
    majority_class: str
    #: Its share of the weight, the accuracy of a classifier that always answers with it.
    majority_share: float
    #: 95 % score interval of this share.
    majority_interval: tuple[float, float]
    #: Desired log-margin of the soft margin, in nats.
    gamma: float | None
    #: Weighted sum of min(log-margin, gamma) in nats, P12 (9), over the rows that have a margin; None without gamma.
    soft_margin: float | None
    #: Number of evaluated rows with a class that training never saw.
    unknown_class: int
    #: Number of rows that are left out because they have no class label.
    unlabelled: int
    #: Number of values that training never saw by feature, over all rows, for features that have any.
    unknown_values: dict[str, int]
    #: Number of missing values without a state of their own by feature, over all rows, for features that have any. They
    #: are marginalised.
    missing_values: dict[str, int]
    #: The results without the rows of classes that training never saw; None if there are no such rows.
    known: Evaluation | None
    #: The results if every row counts once; None if all weights are equal.
    unweighted: Evaluation | None

    def __repr__(self) -> str:
        return (
            f"<Evaluation on {shorten(self.data)}: {counted(self.samples, 'sample')}, "
            f"{'weighted ' if self.unweighted else ''}accuracy {self.accuracy:.4f} "
            f"(majority class {self.majority_share:.4f}), "
            f"log-loss {self.log_loss:.4f}, Brier score {self.brier:.4f}>"
        )

    @property
    def detected(self) -> ClassFigures:
        """The figures of the positive class."""
        return self.by_class[self.classes.index(self.positive)]

    @property
    def has_rare_class(self) -> bool:
        """Whether some class in the data has so small a share (`RARE`) that the accuracy says little."""
        return min(of.share for of in self.by_class if of.rows) < RARE

    def to_dict(self) -> dict[str, Any]:
        """Return all results as JSON values; undefined and infinite ones are None."""
        return dict(json_safe(asdict(self)))


def accuracy(predictor: Predictor, data: Dataset) -> float:
    """Return the share of correctly classified weight; a class that is not in the training data is an error.

    `InputError` if there is no row with a class label and a positive weight.
    """
    return accuracies(predictor, data)[0]


def accuracies(predictor: Predictor, data: Dataset) -> tuple[float, float | None]:
    """Return the `accuracy`, and the share of the rows if each counts once; None where their weights are equal."""
    rows = labelled_rows(data)
    right = predictor.predict_codes(rows) == rows.y
    once = None if equal(rows.weights) else float(right.mean())
    return float(rows.weights[right].sum() / rows.weights.sum()), once


def labelled_rows(data: Dataset) -> Dataset:
    """Return the rows that have a class label, be it one that training never saw, and a positive weight.

    `InputError` if there is none.
    """
    labelled = data.y != MISSING
    if not labelled.any():
        raise InputError(f"No row of {data.name!r} has a class label; there is nothing to count.")
    counted = data.take(np.flatnonzero(labelled & (data.weights > 0)))
    if not counted.n_samples:
        raise InputError(
            f"All {np.count_nonzero(labelled)} rows of {data.name!r} with a class label have weight 0; there is "
            "nothing to count."
        )
    return counted


def unseen_classes(classes: NDArray[np.integer], rows: str) -> tuple[str, ...]:
    """Return a sentence on the rows of classes that the training rows lack; none if there are no such rows.

    The class codes have the shape (M,); `rows` says what the rows are, a plural.
    """
    unseen, labelled = np.count_nonzero(classes == UNKNOWN), np.count_nonzero(classes != MISSING)
    if not unseen:
        return ()
    return (
        f"{unseen} of {labelled} {rows} have a class that the training rows lack: they count as errors, with the "
        "probability 0.",
    )


def evaluate(
    classifier: ProbabilityPredictor,
    source: Source,
    gamma: float | None = None,
    *,
    positive: str | None = None,
) -> Evaluation:
    """Evaluate a classifier on labelled samples.

    Parameters
    ----------
    classifier : ProbabilityPredictor
        A classifier, or another model with log-probabilities of the classes, such as a multinet. Margins and losses
        of a pseudo-TAN are computed from the sums of its tables' log-probabilities, those of an average from its
        posteriors.
    source : Dataset, pandas.DataFrame, str or path-like
        Samples; see `Classifier.encode`. Rows without a class label, or with weight 0, are left out.
    gamma : float, optional
        Desired log-margin in nats, for the soft margin.
    positive : str, optional
        The class to detect; by default the rarest one of the samples.

    Raises
    ------
    InputError
        If `positive` is not a class, no row has a class label that training saw and a positive weight, the samples
        cannot be encoded, the model has no log-probabilities (such as a support vector machine), or gamma is not a
        positive number.

    Warns
    -----
    DataWarning
        If rows have a class that training never saw, with their number.
    """
    gamma = checked_gamma(gamma)
    if not isinstance(classifier, ProbabilityPredictor):
        raise InputError(
            f"A {type(classifier).__name__} has no log-probabilities of the classes, so that margins are not defined; "
            "`milpbn.network.evaluation.accuracy` counts its errors."
        )
    data = classifier.encode(source)
    if not (data.y >= 0).any():
        raise InputError(
            f"No row of {data.name!r} has a class label that the classifier knows; "
            f"column {classifier.variables[-1].name!r} must hold labels such as {classifier.classes[0]!r}."
        )
    positive = None if positive is None else positive_class(classifier.classes, data, positive)
    rows = labelled_rows(data)
    if not (rows.y >= 0).any():
        raise InputError(
            f"All rows of {data.name!r} with a class that the classifier knows have weight 0; there is nothing to "
            "count."
        )
    for note in unseen_classes(rows.y, f"rows of {data.name!r}"):
        warn(note, DataWarning)
    # Margins and losses are differences of a row's numbers, which are the same for log-joints and log-posteriors.
    log_scores = classifier.predict_log_scores(rows)
    about = {
        "data": data.name,
        "classes": classifier.classes,
        "gamma": gamma,
        "decision": classifier.decision,
        "positive": positive or classifier.classes[rarest(rows)],
        "unlabelled": int(np.count_nonzero(data.y == MISSING)),
        "unknown_values": unknown_values(data),
        "missing_values": missing_values(data),
    }
    return _figures(log_scores, rows.y, rows.weights, about)


def _figures(
    log_joint: NDArray[np.float64],
    y: NDArray[np.int32],
    weights: NDArray[np.float64],
    about: dict[str, Any],
) -> Evaluation:
    """Return the figures of log-joints, shape (M, C), of rows with these classes and positive weights, shape (M,)."""
    total, seen, n_classes = float(weights.sum()), y >= 0, log_joint.shape[1]
    margins = log_margins(log_joint[seen], y[seen])
    log_probabilities = log_posterior(log_joint)
    probabilities, decision = np.exp(log_probabilities), about["decision"]
    predicted = log_joint.argmax(axis=1) if decision is None else decision.choose(probabilities)
    right = predicted == y
    curve = reliability_curve(probabilities, y, weights)
    # The last row counts classes that training never saw, whose code is -1.
    cells = np.where(seen, y, n_classes).astype(np.intp) * n_classes + predicted
    counts = np.bincount(cells, weights=weights, minlength=(n_classes + 1) * n_classes)
    table = counts.astype(np.float64).reshape(n_classes + 1, n_classes)
    confusion = table[:-1]
    hits, by_class = np.diag(confusion), confusion.sum(axis=1)
    majority = int(by_class.argmax())
    of_classes = (
        class_figures(label, probabilities[:, c], y == c, predicted == c, weights)
        for c, label in enumerate(about["classes"])
    )
    losses, errors = losses_of_logs(log_probabilities, y), squared_errors(probabilities, y)
    cost = None
    if decision is not None and not decision.is_threshold:
        positive = about["classes"].index(about["positive"])
        cost = cost_figures(decision, about["classes"], probabilities, y, weights, positive)
    accuracy = min(1.0, float(hits.sum()) / total)  # rounding errors may bring the quotient above 1
    return Evaluation(
        **{key: value for key, value in about.items() if key != "decision"},
        samples=len(y),
        weight=total,
        effective_size=effective_size(weights),
        accuracy=accuracy,
        interval=score_interval(right, weights),
        half_width=Z_95 * math.sqrt(float(weights**2 @ (right - accuracy) ** 2)) / total,
        confusion=confusion,
        unseen=table[-1],
        recall=_ratio(hits, by_class),
        precision=_ratio(hits, table.sum(axis=0)),
        mean_log_margin=float(weights[seen] @ margins / weights[seen].sum()),
        log_loss=float(weights @ losses) / total,
        brier=float(weights @ errors) / total,
        log_loss_interval=_of_losses(losses, weights, y),
        brier_interval=_of_losses(errors, weights, y),
        by_class=tuple(of_classes),
        decision=None if decision is None else decision.described(about["classes"]),
        cost=cost,
        calibration_error=calibration_error(curve),
        reliability=curve,
        majority_class=about["classes"][majority],
        majority_share=min(1.0, float(by_class[majority]) / total),
        majority_interval=score_interval(y == majority, weights),
        soft_margin=None if about["gamma"] is None else soft_margin(margins, about["gamma"], weights[seen]),
        unknown_class=int(np.count_nonzero(~seen)),
        known=None if seen.all() else _figures(log_joint[seen], y[seen], weights[seen], about),
        unweighted=None if equal(weights) else _figures(log_joint, y, np.ones(len(y)), about),
    )


def _of_losses(
    values: NDArray[np.float64], weights: NDArray[np.float64], y: NDArray[np.integer]
) -> Interval | None:
    """Return the interval of a mean of numbers of at least 0."""
    found = stratified_mean_interval(values, weights, y)
    return None if found is None else (max(0.0, found[0]), found[1])


def rarest(data: Dataset) -> int:
    """Return the class with the smallest positive weight; the last of several."""
    totals = np.bincount(data.y[data.y >= 0], data.weights[data.y >= 0], data.n_classes)
    totals[totals <= 0] = np.inf
    return data.n_classes - 1 - int(totals[::-1].argmin())


def positive_class(classes: Sequence[str], data: Dataset, asked: str | None) -> str | None:
    """Return the class to detect: the one that is asked for, or the rarest of two; None for several.

    `InputError` if it is no class.
    """
    asked = None if asked is None else label_of(asked)
    if asked is not None and asked not in classes:
        raise InputError(
            f"--positive (positive) is {asked!r}, and the classes are {', '.join(map(repr, classes))}."
        )
    return classes[rarest(data)] if asked is None and len(classes) == 2 else asked


def majority(train: Dataset, rows: Dataset) -> tuple[str, float]:
    """Return the class with the largest weight in training data, and its share of the weight of other rows."""
    seen = train.y >= 0
    most = int(np.bincount(train.y[seen], train.weights[seen]).argmax())
    share = float(rows.weights[rows.y == most].sum() / rows.weights.sum())
    return train.variables[-1].states[most], min(1.0, share)


def _ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
