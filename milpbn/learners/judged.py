"""What a predictor does on single rows: which it classifies correctly, and how good its probabilities are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.network.calibration import log_losses, squared_errors
from milpbn.network.classifier import Predictor
from milpbn.network.evaluation import known_rows


@dataclass(frozen=True, eq=False)
class Judged:
    """The rows whose class is known, M of them, as a predictor classifies them.

    Attributes
    ----------
    weights : float64 array, shape (M,)
        Sample weights.
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
            If no row has a known class and a positive weight.
        """
        known = known_rows(data)
        probabilities = predict_proba(predictor, known)
        correct = predictor.predict_codes(known) == known.y
        if probabilities is None:
            return cls(known.weights, correct, None, None)
        losses, errors = log_losses(probabilities, known.y), squared_errors(probabilities, known.y)
        return cls(known.weights, correct, losses, errors)

    @property
    def accuracy(self) -> float:
        """Share of the weight that is classified correctly."""
        return float(self.weights[self.correct].sum() / self.weights.sum())

    @property
    def log_loss(self) -> float | None:
        """Mean of -log P(c_m | z_m) in nats."""
        return self._mean(self.log_losses)

    @property
    def brier(self) -> float | None:
        """Brier score, between 0 and 2."""
        return self._mean(self.squared_errors)

    def _mean(self, values: NDArray[np.float64] | None) -> float | None:
        return None if values is None else float(self.weights @ values / self.weights.sum())


def predict_proba(predictor: Predictor, data: Dataset) -> NDArray[np.float64] | None:
    """Return P(c | z_m) of a predictor, shape (M, C); None if it has no probabilities."""
    method = getattr(predictor, "predict_proba", None)
    return None if method is None else method(data)
