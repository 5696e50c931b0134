"""What a predictor does on single rows: which it classifies correctly, and how good its probabilities are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.network.calibration import log_losses, losses_of_logs, squared_errors
from milpbn.network.discrimination import (
    LEADING,
    ClassFigures,
    ClassRanking,
    class_figures,
    mean_figures,
    rankings,
)
from milpbn.network.evaluation import labelled_rows
from milpbn.network.intervals import Interval, equal, mean_interval, score_interval, stratified_mean_interval
from milpbn.network.margins import log_posterior
from milpbn.network.predictor import Predictor
from milpbn.trials.differences import Difference, paired_means, paired_rankings, paired_shares

#: The largest values of the figures of rows; log-losses have none that matters.
LARGEST = {"test": 1.0, "unweighted": 1.0, "brier": 2.0}
#: The figures that are means of losses; the others are shares of correctly classified rows.
LOSSES = ("log_loss", "brier")


@dataclass(frozen=True, eq=False)
class Judged:
    """The rows with a class label, M of them, as a predictor classifies them.

    A class that the training rows lack has the probability 0: it is an error (`milpbn.network.evaluation`).
    """

    #: Sample weights, shape (M,); all are positive in the rows of `of`.
    weights: NDArray[np.float64]
    #: Whether each row is classified correctly, shape (M,); a float64 array has shares of repetitions.
    correct: NDArray[np.bool_] | NDArray[np.float64]
    #: Parts of log-loss in nats and Brier score, shape (M,) (`milpbn.network.calibration`); None for a predictor
    #: without probabilities.
    log_losses: NDArray[np.float64] | None
    squared_errors: NDArray[np.float64] | None
    #: Codes of the true and of the predicted classes, shape (M,); None for means over repetitions, as the next.
    classes: NDArray[np.integer] | None = None
    predicted: NDArray[np.integer] | None = None
    #: Probabilities of the classes, shape (M, C).
    probabilities: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, predictor: Predictor, data: Dataset) -> Judged:
        """Classify rows; `InputError` if no row has a class label and a positive weight."""
        rows = labelled_rows(data)
        predict_proba = getattr(predictor, "predict_proba", None)
        predicted = predictor.predict_codes(rows)
        correct = predicted == rows.y
        if predict_proba is None:
            return cls(rows.weights, correct, None, None, rows.y, predicted)
        probabilities = predict_proba(rows)
        losses, errors = log_losses(probabilities, rows.y), squared_errors(probabilities, rows.y)
        return cls(rows.weights, correct, losses, errors, rows.y, predicted, probabilities)

    @classmethod
    def of_logs(
        cls, logs: NDArray[np.float64], data: Dataset, predicted: NDArray[np.integer] | None = None
    ) -> Judged:
        """Judge log-joints or log-posteriors of the classes, shape (M, C), of all rows of some data.

        By default the most probable classes are predicted.
        """
        log_posteriors = log_posterior(logs)
        predicted = logs.argmax(axis=1) if predicted is None else predicted
        probabilities = np.exp(log_posteriors)
        return cls(
            data.weights,
            predicted == data.y,
            losses_of_logs(log_posteriors, data.y),
            squared_errors(probabilities, data.y),
            data.y,
            predicted,
            probabilities,
        )

    @property
    def values(self) -> dict[str, NDArray[np.float64]]:
        """What the rows add to the figures, by the attributes of `milpbn.learners.rows.ComparisonRow`."""
        found = {"test": self.correct, "log_loss": self.log_losses, "brier": self.squared_errors}
        return {key: values.astype(np.float64) for key, values in found.items() if values is not None}

    def means(self) -> dict[str, Any]:
        """Return the weighted means of `values`; `unweighted` is that of `test` without weights, if it differs."""
        # Rounding errors may bring a quotient above the largest value.
        return {key: min(LARGEST.get(key, np.inf), float(w @ v / w.sum())) for key, v, w in self._weighted()}

    def intervals(self) -> dict[str, Interval]:
        """Return the 95 % intervals of these means, as far as there are any."""
        found = {}
        for key, v, w in self._weighted():
            interval = self._of_losses(v) if key in LOSSES else score_interval(v, w)
            if interval is not None:
                found[key] = max(0.0, interval[0]), min(LARGEST.get(key, np.inf), interval[1])
        return found

    def minus(self, other: Judged) -> dict[str, Difference]:
        """Return these means minus those of another predictor on the same rows, as far as they have intervals."""
        found = {}
        others = {key: v for key, v, _ in other._weighted()}
        for key, v, w in self._weighted():
            if key in others:
                difference = (paired_means if key in LOSSES else paired_shares)(v, others[key], w)
                if difference is not None:
                    found[key] = difference
        return found

    def _of_losses(self, values: NDArray[np.float64]) -> Interval | None:
        """Return the interval of a mean loss, by class where the classes are known."""
        if self.classes is None:
            return mean_interval(values, self.weights)
        return stratified_mean_interval(values, self.weights, self.classes)

    def detection(self, positive: int | None) -> tuple[dict[str, float], dict[str, Interval]]:
        """Return figures of `milpbn.network.discrimination.NAMES` with intervals: of a class, or the means over all."""
        return mean_figures([self._of_class(c) for c in self._detected(positive)])

    def _detected(self, positive: int | None) -> list[int]:
        """Return the code of a class, or those of all classes that occur."""
        assert self.classes is not None
        return np.unique(self.classes[self.classes >= 0]).tolist() if positive is None else [positive]

    def _of_class(self, c: int) -> ClassFigures:
        assert self.classes is not None
        assert self.predicted is not None
        scores = None if self.probabilities is None else self.probabilities[:, c]
        return class_figures("", scores, self.classes == c, self.predicted == c, self.weights)

    def rankings(self, positive: int | None) -> list[dict[str, ClassRanking]]:
        """Return the rankings by a class, or by each class that occurs; none without probabilities."""
        if self.classes is None or self.probabilities is None:
            return []
        return [
            rankings(self.probabilities[:, c], self.classes == c, self.weights)
            for c in self._detected(positive)
        ]

    def ranked_minus(self, other: Judged, positive: int | None) -> dict[str, Difference]:
        """Return the differences of ROC-AUC and average precision to another predictor on the same rows."""
        pairs = list(zip(self.rankings(positive), other.rankings(positive), strict=False))
        found = {}
        for key in LEADING:
            both = [(ours[key], theirs[key]) for ours, theirs in pairs if key in ours]
            if both:
                found[key] = paired_rankings(both, self.weights)
        return found

    def _weighted(self) -> Iterator[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
        """Yield each figure's values and weights."""
        for key, v in self.values.items():
            yield key, v, self.weights
        if not equal(self.weights):
            yield "unweighted", self.values["test"], np.ones(len(self.weights))
