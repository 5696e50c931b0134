"""Figures of predicted probabilities on test rows: accuracy, log-loss, Brier score, and which rows are right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.network.calibration import log_losses, squared_errors
from milpbn.network.margins import log_posterior


@dataclass(frozen=True, eq=False)
class Figures:
    """What one method achieves on the test rows of one part.

    Attributes
    ----------
    correct : bool array, shape (M,)
        Whether each test row is classified correctly. A row whose class is not in the training rows is not.
    log_loss : float
        Mean of -log P(c_m | z_m) in nats; see `milpbn.network.calibration.log_losses`.
    brier : float
        Mean over the rows of the sum over the classes of (P(c | z_m) - [c = c_m])^2, between 0 and 2 (Brier 1950).
    unknown_class : int
        Number of rows whose class is not in the training rows; its probability is 0.
    """

    correct: NDArray[np.bool_]
    log_loss: float
    brier: float
    unknown_class: int

    @property
    def accuracy(self) -> float:
        """Share of correctly classified rows."""
        return float(self.correct.mean())

    @classmethod
    def of(
        cls, predicted: NDArray[np.integer], probabilities: NDArray[np.float64], classes: NDArray[np.integer]
    ) -> Figures:
        """Compute all figures.

        Parameters
        ----------
        predicted : int array, shape (M,)
            Predicted class codes.
        probabilities : float64 array, shape (M, C)
            Predicted probabilities of the classes of the training rows.
        classes : int array, shape (M,)
            True class codes; `UNKNOWN` for a class that the training rows lack.
        """
        known = classes >= 0
        squares = squared_errors(probabilities, classes)
        return cls(
            correct=(predicted == classes) & known,
            log_loss=float(log_losses(probabilities, classes).mean()),
            brier=float(squares.mean()),
            unknown_class=int(np.count_nonzero(~known)),
        )

    @classmethod
    def of_logs(cls, logs: NDArray[np.float64], classes: NDArray[np.integer]) -> Figures:
        """Return the figures of log-joints or log-posteriors, shape (M, C), beside the true classes, shape (M,)."""
        return cls.of(logs.argmax(axis=1), np.exp(log_posterior(logs)), classes)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; `correct` as hexadecimal digits, eight rows a byte, the first row in the highest bit."""
        return {
            "accuracy": self.accuracy,
            "log_loss": self.log_loss,
            "brier": self.brier,
            "rows": len(self.correct),
            "unknown_class": self.unknown_class,
            "correct": np.packbits(self.correct).tobytes().hex(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Figures:
        """Read what `to_dict` returned."""
        packed = np.frombuffer(bytes.fromhex(values["correct"]), dtype=np.uint8)
        correct = np.unpackbits(packed, count=values["rows"]).astype(bool)
        return cls(correct, values["log_loss"], values["brier"], values["unknown_class"])
