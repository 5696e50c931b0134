"""What a predictor does on single rows: which it classifies correctly, and how good its probabilities are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.learners.differences import Difference, paired_means, paired_shares
from milpbn.network.calibration import log_losses, squared_errors
from milpbn.network.classifier import Predictor
from milpbn.network.evaluation import labelled_rows
from milpbn.network.intervals import Interval, equal, mean_interval, score_interval


@dataclass(frozen=True, eq=False)
class Judged:
    """The rows with a class label, M of them, as a predictor classifies them.

    A class that the training rows lack has the probability 0: it is an error (`milpbn.network.evaluation`).

    Attributes
    ----------
    weights : float64 array, shape (M,)
        Sample weights, all positive.
    correct : bool array, shape (M,)
        Whether each row is classified correctly.
    log_losses, squared_errors : float64 arrays, shape (M,), or None
        Parts of log-loss in nats and Brier score (`milpbn.network.calibration`); None for a predictor without
        probabilities.
    """

    weights: NDArray[np.float64]
    correct: NDArray[np.bool_]
    log_losses: NDArray[np.float64] | None
    squared_errors: NDArray[np.float64] | None

    @classmethod
    def of(cls, predictor: Predictor, data: Dataset) -> Judged:
        """Classify rows.

        Raises
        ------
        InputError
            If no row has a class label and a positive weight.
        """
        rows = labelled_rows(data)
        probabilities = predict_proba(predictor, rows)
        correct = predictor.predict_codes(rows) == rows.y
        if probabilities is None:
            return cls(rows.weights, correct, None, None)
        losses, errors = log_losses(probabilities, rows.y), squared_errors(probabilities, rows.y)
        return cls(rows.weights, correct, losses, errors)

    @property
    def values(self) -> dict[str, NDArray[np.float64]]:
        """What the rows add to the figures, by the attributes of `ComparisonRow`."""
        found = {"test": self.correct, "log_loss": self.log_losses, "brier": self.squared_errors}
        return {key: values.astype(np.float64) for key, values in found.items() if values is not None}


#: The largest values of the figures of rows; log-losses have none that matters.
LARGEST = {"test": 1.0, "unweighted": 1.0, "brier": 2.0}


def means(values: Mapping[str, NDArray[np.float64]], weights: NDArray[np.float64]) -> dict[str, Any]:
    """Return the weighted means of `Judged.values`; `unweighted` is that of `test` without weights, if it differs."""
    # Rounding errors may bring a quotient above the largest value.
    return {
        key: min(LARGEST.get(key, np.inf), float(w @ v / w.sum())) for key, v, w in _weighted(values, weights)
    }


def intervals(values: Mapping[str, NDArray[np.float64]], weights: NDArray[np.float64]) -> dict[str, Interval]:
    """Return the 95 % intervals of these means, as far as there are any."""
    found = {}
    for key, v, w in _weighted(values, weights):
        interval = mean_interval(v, w) if key in ("log_loss", "brier") else score_interval(v, w)
        if interval is not None:
            found[key] = max(0.0, interval[0]), min(LARGEST.get(key, np.inf), interval[1])
    return found


def differences(
    ours: Mapping[str, NDArray[np.float64]],
    theirs: Mapping[str, NDArray[np.float64]],
    weights: NDArray[np.float64],
) -> dict[str, Difference]:
    """Return the differences of these means, as far as they have intervals."""
    found = {}
    others = {key: v for key, v, _ in _weighted(theirs, weights)}
    for key, v, w in _weighted(ours, weights):
        if key in others:
            compare = paired_means if key in ("log_loss", "brier") else paired_shares
            difference = compare(v, others[key], w)
            if difference is not None:
                found[key] = difference
    return found


def _weighted(
    values: Mapping[str, NDArray[np.float64]], weights: NDArray[np.float64]
) -> Iterator[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
    """Yield each figure's values and weights."""
    for key, v in values.items():
        yield key, v, weights
    if not equal(weights):
        yield "unweighted", values["test"], np.ones(len(weights))


def predict_proba(predictor: Predictor, data: Dataset) -> NDArray[np.float64] | None:
    """Return P(c | z_m) of a predictor, shape (M, C); None if it has no probabilities."""
    method = getattr(predictor, "predict_proba", None)
    return None if method is None else method(data)
