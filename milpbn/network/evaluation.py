"""Evaluation of a classifier on samples with known classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from milpbn.data.dataset import UNKNOWN, Dataset
from milpbn.data.encodings import missing_values, unknown_values
from milpbn.errors import InputError
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.calibration import ReliabilityBin, calibration_error, reliability_curve, squared_errors
from milpbn.network.classifier import JointPredictor, Predictor, Source
from milpbn.network.margins import log_margins, log_posterior, soft_margin
from milpbn.util.jsonable import json_safe, shorten
from milpbn.util.plurals import counted
from milpbn.util.validation import real_number

#: Two-sided 95 % quantile of the standard normal distribution, 1.96.
Z_95 = float(ndtri(0.975))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Results on the evaluated samples; each sample counts with its weight.

    Attributes
    ----------
    data : str
        Name of the data.
    classes : tuple of str, length C
        Class labels.
    samples : int
        Number of evaluated rows.
    weight : float
        Total weight of these rows, the sample size n of the intervals.
    accuracy : float
        Share of correctly classified weight; ties go to the first class.
    interval : tuple of float
        95 % Wilson score interval of the accuracy.
    half_width : float
        Half the width of the normal 95 % interval (Mitchell 1997), 1.96 sqrt(a (1 - a) / n), as in Table 2 of
        Peharz and Pernkopf (2012, P12).
    confusion : float64 array, shape (C, C)
        Weight by true class (rows) and predicted class (columns).
    recall, precision : float64 arrays, shape (C,)
        By class; recall is NaN for a class that never occurs, precision for a class that is never predicted.
    mean_log_margin : float
        Mean log-margin in nats.
    log_loss : float
        Mean of -log P(c_m | z_m) in nats.
    brier : float
        Brier score, between 0 and 2: mean of the sum over the classes of (P(c | z_m) - [c = c_m])^2.
    calibration_error : float
        Expected calibration error, between 0 and 1 (`milpbn.network.calibration.calibration_error`).
    reliability : tuple of ReliabilityBin
        The reliability curve: at most 10 bins of samples by the probability of their predicted class.
    majority_class : str
        The most frequent class of the evaluated rows.
    majority_share : float
        Its share of the weight: the accuracy of a classifier that always answers with it.
    majority_interval : tuple of float
        95 % Wilson score interval of this share.
    gamma : float or None
        Desired log-margin of the soft margin, in nats.
    soft_margin : float or None
        Weighted sum of min(log-margin, gamma) in nats, P12 (9); None without gamma.
    unknown_class : int
        Number of rows that are left out because their class label is missing or not in the training data.
    unknown_values : dict of str to int
        Number of values that training never saw by feature, over all rows, for features that have any.
    missing_values : dict of str to int
        Number of missing values without a state of their own by feature, over all rows, for features that have any.
        They are marginalised.
    """

    data: str
    classes: tuple[str, ...]
    samples: int
    weight: float
    accuracy: float
    interval: tuple[float, float]
    half_width: float
    confusion: NDArray[np.float64]
    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    mean_log_margin: float
    log_loss: float
    brier: float
    calibration_error: float
    reliability: tuple[ReliabilityBin, ...]
    majority_class: str
    majority_share: float
    majority_interval: tuple[float, float]
    gamma: float | None
    soft_margin: float | None
    unknown_class: int
    unknown_values: dict[str, int]
    missing_values: dict[str, int]

    def __repr__(self) -> str:
        return (
            f"<Evaluation on {shorten(self.data)}: {counted(self.samples, 'sample')}, "
            f"accuracy {self.accuracy:.4f} (majority class {self.majority_share:.4f}), "
            f"log-loss {self.log_loss:.4f}, Brier score {self.brier:.4f}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all results as JSON values; undefined and infinite ones are None."""
        return json_safe({**vars(self), "reliability": [vars(part) for part in self.reliability]})


def accuracy(predictor: Predictor, data: Dataset) -> float:
    """Return the share of correctly classified weight among the rows whose class is in the training data.

    Raises
    ------
    InputError
        If there is no such row, or all of them have weight 0.
    """
    known = known_rows(data)
    right = predictor.predict_codes(known) == known.y
    return float(known.weights[right].sum() / known.weights.sum())


def known_rows(data: Dataset) -> Dataset:
    """Return the rows whose class is in the training data.

    Raises
    ------
    InputError
        If there is no such row, or all of them have weight 0.
    """
    known = data.take(np.flatnonzero(data.y != UNKNOWN))
    if not known.n_samples:
        raise InputError(
            f"No row of {data.name!r} has a class of the training data; there is nothing to count."
        )
    _require_weight(known)
    return known


def _require_weight(data: Dataset) -> None:
    """Raise InputError if all rows have weight 0."""
    if not data.weights.sum() > 0:
        raise InputError(
            f"All {data.n_samples} rows of {data.name!r} with a known class have weight 0; there is nothing to count."
        )


def evaluate(
    classifier: JointPredictor | AveragedClassifier, source: Source, gamma: float | None = None
) -> Evaluation:
    """Evaluate a classifier on labelled samples.

    Parameters
    ----------
    classifier : JointPredictor or AveragedClassifier
        A classifier, or another model with log-probabilities of the classes, such as a multinet. Margins and losses
        of a pseudo-TAN are computed from the sums of its tables' log-probabilities, those of an average from its
        posteriors.
    source : Dataset, pandas.DataFrame, str or path-like
        Samples; see `Classifier.encode`. Rows with an unknown class label are left out and counted.
    gamma : float, optional
        Desired log-margin in nats, for the soft margin.

    Raises
    ------
    InputError
        If no row has a known class label and a positive weight, the samples cannot be encoded, the model has no
        log-probabilities (such as a support vector machine), or gamma is not a positive number.
    """
    if gamma is not None:
        gamma = real_number("gamma", gamma)
        if not gamma > 0:
            raise InputError(f"gamma must be a positive number of nats, got {gamma:g}.")
    if not isinstance(classifier, AveragedClassifier) and not hasattr(classifier, "predict_log_joint"):
        raise InputError(
            f"A {type(classifier).__name__} has no log-probabilities of the classes, so that margins are not defined; "
            "`milpbn.network.evaluation.accuracy` counts its errors."
        )
    data = classifier.encode(source)
    known = np.flatnonzero(data.y != UNKNOWN)
    if not known.size:
        raise InputError(
            f"No row of {data.name!r} has a class label that the classifier knows; "
            f"column {classifier.variables[-1].name!r} must hold labels such as {classifier.classes[0]!r}."
        )
    labelled = data.take(known)
    _require_weight(labelled)
    y, weights, total = labelled.y, labelled.weights, float(labelled.weights.sum())
    # Margins and losses are differences of a row's numbers, which are the same for log-joints and log-posteriors.
    log_joint = (
        classifier.predict_log_posterior(labelled)
        if isinstance(classifier, AveragedClassifier)
        else classifier.predict_log_joint(labelled)
    )
    margins = log_margins(log_joint, y)
    log_probabilities = log_posterior(log_joint)
    losses = -log_probabilities[np.arange(len(y)), y]
    probabilities = np.exp(log_probabilities)
    curve = reliability_curve(probabilities, y, weights)

    n_classes = len(classifier.classes)
    cells = y.astype(np.intp) * n_classes + log_joint.argmax(axis=1)
    counts = np.bincount(cells, weights=weights, minlength=n_classes**2).astype(np.float64)
    confusion = counts.reshape(n_classes, n_classes)
    hits, by_class = np.diag(confusion), confusion.sum(axis=1)
    majority = float(by_class.max()) / total
    accuracy = min(1.0, float(hits.sum()) / total)  # rounding errors may bring the quotient above 1
    return Evaluation(
        data=data.name,
        classes=classifier.classes,
        samples=len(y),
        weight=total,
        accuracy=accuracy,
        interval=wilson_interval(accuracy, total),
        half_width=normal_half_width(accuracy, total),
        confusion=confusion,
        recall=_ratio(hits, by_class),
        precision=_ratio(hits, confusion.sum(axis=0)),
        mean_log_margin=float(weights @ margins) / total,
        log_loss=float(weights @ losses) / total,
        brier=float(weights @ squared_errors(probabilities, y)) / total,
        calibration_error=calibration_error(curve),
        reliability=curve,
        majority_class=classifier.classes[int(by_class.argmax())],
        majority_share=min(1.0, majority),
        majority_interval=wilson_interval(min(1.0, majority), total),
        gamma=gamma,
        soft_margin=None if gamma is None else soft_margin(margins, gamma, weights),
        unknown_class=data.n_samples - len(y),
        unknown_values=unknown_values(data),
        missing_values=missing_values(data),
    )


def wilson_interval(share: float, n: float) -> tuple[float, float]:
    """Return the 95 % score interval of a share that was observed on n samples (Wilson 1927)."""
    z2 = Z_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    radius = Z_95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, centre - radius), min(1.0, centre + radius)


def normal_half_width(share: float, n: float) -> float:
    """Return 1.96 sqrt(share (1 - share) / n), half the width of the normal 95 % interval (Mitchell 1997)."""
    return Z_95 * math.sqrt(share * (1 - share) / n)


def _ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
