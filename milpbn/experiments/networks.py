"""Methods that learn Bayesian networks: closed forms, and exact searches with p and max_parents chosen by validation.

They are those of Table 2 of Peharz & Pernkopf (2012, P12).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milpbn.certificate.verify.check import verify
from milpbn.claims.reasons import BoundSource, Limit
from milpbn.claims.result import Result
from milpbn.data import Dataset
from milpbn.errors import InputError, NoIncumbentError
from milpbn.experiments.base import Figures, Method, MethodInput
from milpbn.learners.generative.closed_form import ClosedForm
from milpbn.learners.generative.forests import NaiveBayes, Tan
from milpbn.network.structure import Structure
from milpbn.problem.scores.registry import find_score
from milpbn.problem.scores.spec import P_GRID, Score
from milpbn.solving.api import maximise
from milpbn.solving.grid import MAX_PARENTS_GRID, Grid
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.solving.selection import choose
from milpbn.util.scratch import scratch_folder


@dataclass(frozen=True, kw_only=True)
class ClosedFormMethod(Method):
    """Naive Bayes or TAN with Laplace-smoothed parameters."""

    learner: str
    smoothing: float = 1.0

    @property
    def name(self) -> str:
        """Name in the tables."""
        return self.learner

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Learn the structure in closed form."""
        learner: ClosedForm = (NaiveBayes if self.learner == "nb" else Tan)(smoothing=self.smoothing)
        learned = learner.fit(given.part.train, given.control())
        assert learned.structure is not None
        return {
            "figures": Figures.of(learned.predictor, given.part.test).to_dict(),
            "structure": learned.structure.to_mapping(),
        }


@dataclass(frozen=True, kw_only=True)
class SettingChoice(Method):
    """Choice of p and max_parents by accuracy on validation rows (P12, section 6).

    Of a score without gamma only max_parents is chosen. Each trial may take so many seconds.
    """

    score: str
    seconds: float
    max_parents: tuple[int, ...] = MAX_PARENTS_GRID
    p: tuple[float, ...] | None = P_GRID
    class_parents: bool = True
    smoothing: float = 1.0
    #: How earlier versions excluded cycles. It has no effect; kept cells have it in their keys.
    acyclicity: str = "order"

    @property
    def name(self) -> str:
        """Name of the step."""
        return f"{self.score}-choice"

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Try all values."""
        score = Score(name=self.score, class_parents=self.class_parents, smoothing=self.smoothing)
        chosen = choose(
            Question(given.part.training, score),
            Options(threads=given.threads, random_state=given.seed, verbose=False),
            Grid(self.p, self.max_parents),
            trial_seconds=self.seconds,
        )
        if chosen.interrupted:
            raise KeyboardInterrupt
        incumbent = chosen.incumbent
        return {**chosen.to_dict(), "incumbent": None if incumbent is None else incumbent.to_mapping()}


@dataclass(frozen=True, kw_only=True)
class ExactSearch(Method):
    """The structure that maximises a score on all training rows, with the values that were chosen by validation."""

    choice: SettingChoice
    seconds: float

    @property
    def name(self) -> str:
        """Name of the score."""
        return self.choice.score

    @property
    def needs(self) -> Method:
        """The choice of the values."""
        return self.choice

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Search, and verify the certificate."""
        train = given.part.train
        chosen = {key: given.needed[key] for key in ("p", "max_parents")}
        score = Score(
            name=self.choice.score,
            **chosen,
            class_parents=self.choice.class_parents,
            smoothing=self.choice.smoothing,
        )
        start = given.needed["incumbent"]
        with scratch_folder() as folder:
            certificate = folder / "certificate.npz" if find_score(score.name).certified else None
            options = Options(
                time_limit=self.seconds,
                threads=given.threads,
                random_state=given.seed,
                start=None if start is None else Structure.from_mapping(train.names, start),
                certificate=certificate,
                verbose=False,
            )
            result = maximise(Question(train, score), options)
            if result.limit is Limit.USER:
                raise KeyboardInterrupt
            if result.structure is None or result.classifier is None:
                raise NoIncumbentError(f"No structure was found within {self.seconds:g} s; allow more time.")
            proof = _proof(result, certificate, train)
        backend = f"{result.backend.name} {result.backend.version}"
        return {
            "figures": Figures.of(result.classifier, given.part.test).to_dict(),
            "choice": chosen,
            "search": described(result) | {"backend": backend} | proof,
            "structure": result.structure.to_mapping(),
        }


def described(result: Result) -> dict[str, Any]:
    """Return what a cell keeps of a search."""
    return {
        "reason": result.reason.value,
        "limit": None if result.limit is None else result.limit.value,
        "objective": result.objective,
        "bound": result.bound,
        "gap": vars(result.gap),
        "nodes": result.nodes,
        "seconds": vars(result.seconds),
    }


def _proof(result: Result, certificate: Path | None, train: Dataset) -> dict[str, Any]:
    """Return whether the bound is certified, and whether its certificate is verified."""
    certified = result.bound_source is BoundSource.CERTIFIED
    if certificate is None:
        return {"certified": certified, "verified": None}
    try:
        verified = verify(result, certificate, train)
    except InputError as error:
        return {"certified": certified, "verified": False, "verification": str(error)}
    return {
        "certified": certified,
        "verified": True,
        "verify_seconds": verified.seconds,
        "certificate_bytes": certificate.stat().st_size,
    }
