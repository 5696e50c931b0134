"""What the experiments ask of a method: its settings, its budget, what it works with, and the figures of test rows."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.experiments.protocol import PartRows
from milpbn.learners.base import Control
from milpbn.network.predictor import Predictor
from milpbn.trials.judged import Judged


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """Seconds of the searches: of each trial of the selection of p and max_parents, and of the final search.

    Those of a recipe are for its selection, the final search and the fit of the parameters together.
    """

    selection: float
    final: float
    recipe: float = 600.0

    def __post_init__(self) -> None:
        for name, option in (
            ("selection", "--selection-budget"),
            ("final", "--budget"),
            ("recipe", "--recipe-budget"),
        ):
            value = float(getattr(self, name))  # 10 and 10.0 are one key
            if not 0 < value < math.inf:
                raise InputError(f"{option} ({name}) must be a positive number of seconds, got {value:g}.")
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class MethodInput:
    """What a method works with; `needed` is what the method found that this one needs (`Method.needs`)."""

    part: PartRows
    seed: int
    threads: int
    needed: Mapping[str, Any]

    def control(self, time_limit: float | None = None) -> Control:
        """Return the seed, the threads and the time limit for a learner."""
        return Control(random_state=self.seed, n_jobs=self.threads, time_limit=time_limit)


@dataclass(frozen=True, eq=False)
class Figures:
    """What one method achieves on the test rows of one part."""

    #: Whether each test row is classified correctly, shape (M,). A row whose class is not in the training rows is not.
    correct: NDArray[np.bool_]
    #: Means of log-loss in nats and Brier score, between 0 and 2 (`milpbn.network.calibration`).
    log_loss: float
    brier: float
    #: Number of rows whose class is not in the training rows; its probability is 0.
    unknown_class: int

    @property
    def accuracy(self) -> float:
        """Share of correctly classified rows."""
        return float(self.correct.mean())

    @classmethod
    def of(cls, predictor: Predictor, test: Dataset) -> Figures:
        """Return the figures of a predictor with probabilities; each row counts once."""
        judged = Judged.of(predictor, test)
        assert judged.log_losses is not None
        assert judged.squared_errors is not None
        means = float(judged.log_losses.mean()), float(judged.squared_errors.mean())
        return cls(judged.correct.astype(bool), *means, int(np.count_nonzero(test.y < 0)))

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


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way to learn a classifier, or a step of it that is worth a cell of its own."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the method in keys and on the command line."""

    @property
    def needs(self) -> Method | None:
        """The method whose findings this one needs, on the same part."""
        return None

    @property
    def steps(self) -> list[Method]:
        """The methods to run, in their order: those that this one needs, and itself. Each gets what the last found."""
        return [*(self.needs.steps if self.needs is not None else []), self]

    @property
    def budget(self) -> float | None:
        """Seconds of the search, the field `seconds`; None for a method without a limit."""
        return getattr(self, "seconds", None)

    @property
    def options(self) -> dict[str, Any]:
        """All settings but the method's own budget, as JSON values; those of a method that it needs are among them."""
        return {key: value for key, value in asdict(self).items() if key != "seconds"}

    @abstractmethod
    def run(self, given: MethodInput) -> dict[str, Any]:
        """Return what the method finds, as JSON values; ``figures`` are those of the test rows.

        `KeyboardInterrupt` if the user stopped it; then nothing is kept. `MilpbnError` if the method cannot run on
        these data.
        """
