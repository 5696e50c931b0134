"""How far predicted probabilities are from what happens: Brier score, reliability curve, calibration error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Number of equally wide bins of the reliability curve.
BINS = 10
#: Probabilities are raised to this value before their logarithm is taken, as scikit-learn's `log_loss` does; so the
#: largest log-loss of a row is 36.04 nats. A class that training never saw has the probability 0.
SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)
LARGEST_LOSS = -math.log(SMALLEST_PROBABILITY)


@dataclass(frozen=True)
class ReliabilityBin:
    """The samples whose predicted class has a probability above `low` and at most `high`, and their total weight.

    `confidence` is the weighted mean of these probabilities, and `accuracy` the share of the weight that is classified
    correctly; the two are near each other if the classifier is calibrated.
    """

    low: float
    high: float
    weight: float
    confidence: float
    accuracy: float


def log_losses(probabilities: NDArray[np.float64], classes: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return -log P(c_m | z_m) in nats, shape (M,), at most `LARGEST_LOSS`.

    The probabilities P(c | z_m) have the shape (M, C), the codes of the true classes the shape (M,). A negative code is
    a class without a column, with the probability 0.
    """
    with np.errstate(divide="ignore"):
        return losses_of_logs(np.log(probabilities), classes)


def losses_of_logs(
    log_probabilities: NDArray[np.float64], classes: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the losses of `log_losses` from log P(c | z_m), shape (M, C)."""
    own = np.where(classes < 0, -np.inf, log_probabilities[np.arange(len(classes)), classes])
    losses: NDArray[np.float64] = np.clip(-own, 0.0, LARGEST_LOSS)
    return losses


def squared_errors(probabilities: NDArray[np.float64], classes: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return each sample's part of the Brier score, sum over the classes of (P(c | z_m) - [c = c_m])^2 (Brier 1950).

    It lies between 0 and 2, for two classes too; scikit-learn's `brier_score_loss` halves it there. Arguments are those
    of `log_losses`; a class without a column adds 1. The shape is (M,).
    """
    known = classes >= 0
    true = np.zeros_like(probabilities)
    true[known, classes[known]] = 1.0
    errors: NDArray[np.float64] = ((probabilities - true) ** 2).sum(axis=1) + ~known
    return errors


def reliability_curve(
    probabilities: NDArray[np.float64],
    classes: NDArray[np.integer],
    weights: NDArray[np.float64],
    bins: int = BINS,
) -> tuple[ReliabilityBin, ...]:
    """Return the reliability curve of the predicted classes: the bins that have samples, in ascending order.

    See Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks, section 2. Arguments are those
    of `log_losses`, and weights of the samples, shape (M,); under a negative class no prediction is right.
    """
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == classes
    place = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    curve = []
    for k in np.unique(place[weights > 0]):
        inside = place == k
        weight = float(weights[inside].sum())
        curve.append(
            ReliabilityBin(
                low=int(k) / bins,
                high=int(k + 1) / bins,
                weight=weight,
                confidence=float(weights[inside] @ confidence[inside]) / weight,
                accuracy=float(weights[inside] @ right[inside]) / weight,
            )
        )
    return tuple(curve)


def calibration_error(curve: Sequence[ReliabilityBin]) -> float:
    """Return the expected calibration error, the weighted mean of abs(accuracy - confidence) (Guo et al. 2017, (3))."""
    total = sum(part.weight for part in curve)
    return sum(part.weight * abs(part.accuracy - part.confidence) for part in curve) / total
