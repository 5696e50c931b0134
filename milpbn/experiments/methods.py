"""The methods of Table 2 of Peharz & Pernkopf (2012, P12), and two more that they are compared with.

A method is a frozen dataclass whose fields are all its settings. They are fixed here, before any test row is scored,
and are part of the key of every cell. To add a method, write a subclass and name it in `METHODS`.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.svm import SVC

from milpbn.certificate.verify.check import verify
from milpbn.claims.reasons import BoundSource, Limit
from milpbn.claims.result import Result
from milpbn.data import Dataset, stratified_folds
from milpbn.errors import InputError, NoIncumbentError
from milpbn.experiments.figures import Figures
from milpbn.experiments.protocol import FOLDS, Part
from milpbn.learners.base import Control
from milpbn.learners.generative.closed_form import ClosedForm
from milpbn.learners.generative.naive_bayes import NaiveBayes
from milpbn.learners.generative.tan import Tan
from milpbn.learners.svm import COSTS, SIGMAS, choose_pair, grid_from_the_middle, indicators
from milpbn.network.classifier import Classifier
from milpbn.network.margins import log_posterior
from milpbn.network.structure import Structure
from milpbn.problem.scores.registry import find_score
from milpbn.problem.scores.spec import P_GRID, Score
from milpbn.solving.api import maximise
from milpbn.solving.options import Options
from milpbn.solving.selection import MAX_PARENTS_GRID, Grid, choose, validation_parts


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """Seconds of the searches.

    Attributes
    ----------
    selection : float
        Of each trial of the selection of p and max_parents.
    final : float
        Of the search with the chosen values.
    """

    selection: float
    final: float

    def __post_init__(self) -> None:
        for name, option in (("selection", "--selection-budget"), ("final", "--budget")):
            value = float(getattr(self, name))  # 10 and 10.0 are one key
            if not 0 < value < math.inf:
                raise InputError(f"{option} ({name}) must be a positive number of seconds, got {value:g}.")
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class Work:
    """What a method gets.

    Attributes
    ----------
    part : Part
        Training and test rows.
    seed : int
        Seed of all random choices.
    threads : int
        Number of threads.
    needed : mapping
        What the method found that this one needs (`Method.needs`).
    """

    part: Part
    seed: int
    threads: int
    needed: Mapping[str, Any]


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
    def budget(self) -> float | None:
        """Seconds of the search; None for a method without a limit."""
        return None

    @property
    def options(self) -> dict[str, Any]:
        """All settings but the method's own budget, as JSON values; those of a method that it needs are among them."""
        return {key: value for key, value in asdict(self).items() if key != "seconds"}

    @abstractmethod
    def run(self, work: Work) -> dict[str, Any]:
        """Return what the method finds, as JSON values; ``figures`` are those of the test rows.

        Raises
        ------
        KeyboardInterrupt
            If the user stopped it; then nothing is kept.
        MilpbnError
            If the method cannot run on these data.
        """


@dataclass(frozen=True, kw_only=True)
class ClosedFormMethod(Method):
    """Naive Bayes or TAN with Laplace-smoothed parameters."""

    learner: str
    smoothing: float = 1.0

    @property
    def name(self) -> str:
        """Name in the tables."""
        return self.learner

    def run(self, work: Work) -> dict[str, Any]:
        """Learn the structure in closed form."""
        learner: ClosedForm = (NaiveBayes if self.learner == "nb" else Tan)(smoothing=self.smoothing)
        learned = learner.fit(work.part.train, Control(random_state=work.seed, n_jobs=work.threads))
        assert isinstance(learned.predictor, Classifier)
        assert learned.structure is not None
        return {
            "figures": _figures(learned.predictor, work.part.test),
            "structure": learned.structure.to_mapping(),
        }


@dataclass(frozen=True, kw_only=True)
class Choice(Method):
    """Choice of p and max_parents by accuracy on validation rows (P12, section 6).

    Attributes
    ----------
    score : {"sm", "sbm", "mdl"}
        The score; without gamma only max_parents is chosen.
    seconds : float
        Limit of each trial.
    max_parents, p : sequences
        The values to choose from.
    class_parents, smoothing
        Options of the score.
    acyclicity : {"order", "cluster"}
        How the MILP of a generative score excludes cycles.
    """

    score: str
    seconds: float
    max_parents: tuple[int, ...] = MAX_PARENTS_GRID
    p: tuple[float, ...] | None = P_GRID
    class_parents: bool = True
    smoothing: float = 1.0
    acyclicity: str = "order"

    @property
    def name(self) -> str:
        """Name of the step."""
        return f"{self.score}-choice"

    @property
    def budget(self) -> float:
        """Seconds of each trial."""
        return self.seconds

    def run(self, work: Work) -> dict[str, Any]:
        """Try all values."""
        chosen = choose(
            work.part.training,
            Score(name=self.score, class_parents=self.class_parents, smoothing=self.smoothing),
            Options(threads=work.threads, random_state=work.seed, acyclicity=self.acyclicity, verbose=False),
            Grid(self.p, self.max_parents),
            trial_seconds=self.seconds,
        )
        if chosen.interrupted:
            raise KeyboardInterrupt
        incumbent = chosen.incumbent
        return {**chosen.to_dict(), "incumbent": None if incumbent is None else incumbent.to_mapping()}


@dataclass(frozen=True, kw_only=True)
class Exact(Method):
    """The structure that maximises a score on all training rows, with the values that were chosen by validation.

    Attributes
    ----------
    choice : Choice
        How the values are chosen.
    seconds : float
        Limit of the search.
    """

    choice: Choice
    seconds: float

    @property
    def name(self) -> str:
        """Name of the score."""
        return self.choice.score

    @property
    def needs(self) -> Method:
        """The choice of the values."""
        return self.choice

    @property
    def budget(self) -> float:
        """Seconds of the search."""
        return self.seconds

    def run(self, work: Work) -> dict[str, Any]:
        """Search, and verify the certificate."""
        train = work.part.train
        chosen = {key: work.needed[key] for key in ("p", "max_parents")}
        score = Score(
            name=self.choice.score,
            **chosen,
            class_parents=self.choice.class_parents,
            smoothing=self.choice.smoothing,
        )
        start = work.needed["incumbent"]
        with tempfile.TemporaryDirectory() as folder:
            certificate = Path(folder, "certificate.npz") if find_score(score.name).certified else None
            options = Options(
                time_limit=self.seconds,
                threads=work.threads,
                random_state=work.seed,
                acyclicity=self.choice.acyclicity,
                start=None if start is None else Structure.from_mapping(train.names, start),
                certificate=certificate,
                verbose=False,
            )
            result = maximise(train, score, options)
            if result.limit is Limit.USER:
                raise KeyboardInterrupt
            if result.structure is None or result.classifier is None:
                raise NoIncumbentError(f"No structure was found within {self.seconds:g} s; allow more time.")
            proof = _proof(result, certificate, train)
        return {
            "figures": _figures(result.classifier, work.part.test),
            "choice": chosen,
            "search": {
                "reason": result.reason.value,
                "limit": None if result.limit is None else result.limit.value,
                "objective": result.objective,
                "bound": result.bound,
                "gap": vars(result.gap),
                "nodes": result.nodes,
                "backend": f"{result.backend.name} {result.backend.version}",
                "seconds": vars(result.seconds),
                **proof,
            },
            "structure": result.structure.to_mapping(),
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


@dataclass(frozen=True, kw_only=True)
class SupportVectors(Method):
    """Support vector machine with a Gaussian kernel on indicators, with P12's grid on the splits of `Choice`.

    Accuracy is that of the machine's own predictions. Its probabilities, for log-loss and Brier score, are those of
    scikit-learn's `CalibratedClassifierCV` with ``ensemble=False``: a sigmoid of the decision values of 5-fold
    cross-validation on the training rows, one for each class against the others, normalised over the classes.
    """

    sigmas: tuple[float, ...] = SIGMAS
    costs: tuple[float, ...] = COSTS
    calibration: str = "sigmoid"
    calibration_folds: int = FOLDS

    @property
    def name(self) -> str:
        """Name in the tables."""
        return "svm"

    def run(self, work: Work) -> dict[str, Any]:
        """Choose sigma and C, fit and calibrate."""
        train, test = work.part.train, work.part.test
        grid = grid_from_the_middle(train.n_features, self.sigmas, self.costs)
        control = Control(random_state=work.seed, n_jobs=work.threads)
        (sigma, cost), details = choose_pair(work.part.validation(work.seed), grid, control)
        model = CalibratedClassifierCV(
            SVC(C=cost, gamma=1.0 / (2.0 * sigma**2)),
            method=self.calibration,
            cv=stratified_folds(train.y, min(self.calibration_folds, train.n_samples), work.seed),
            ensemble=False,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about classes that are not in every fold
            model.fit(indicators(train), train.y)
        machine = model.calibrated_classifiers_[0].estimator
        rows = indicators(test)
        figures = Figures.of(machine.predict(rows), model.predict_proba(rows), test.y)
        return {
            "figures": figures.to_dict(),
            "choice": {
                "sigma": sigma,
                "cost": cost,
                "tried": details["tried"],
                "validation_accuracy": details["validation_accuracy"],
            },
        }


@dataclass(frozen=True, kw_only=True)
class Logistic(Method):
    """Logistic regression on indicators, with C chosen on the validation rows of `Choice` by accuracy."""

    costs: int = 10
    scoring: str = "accuracy"
    max_iter: int = 1000

    @property
    def name(self) -> str:
        """Name in the tables."""
        return "logistic"

    def run(self, work: Work) -> dict[str, Any]:
        """Choose C and fit."""
        train, test = work.part.train, work.part.test
        model = LogisticRegressionCV(
            Cs=self.costs,
            cv=validation_parts(train.y, work.seed),
            scoring=self.scoring,
            max_iter=self.max_iter,
            random_state=work.seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about future defaults, and about extreme C that do not converge
            model.fit(indicators(train), train.y)
        rows = indicators(test)
        figures = Figures.of(model.predict(rows), model.predict_proba(rows), test.y)
        return {"figures": figures.to_dict(), "choice": {"C": float(np.ravel(model.C_)[0])}}


@dataclass(frozen=True, kw_only=True)
class Boosting(Method):
    """Gradient boosting of trees on indicators, with scikit-learn's defaults."""

    learning_rate: float = 0.1
    max_iter: int = 100
    early_stopping: str = "auto"

    @property
    def name(self) -> str:
        """Name in the tables."""
        return "boosting"

    def run(self, work: Work) -> dict[str, Any]:
        """Fit."""
        train, test = work.part.train, work.part.test
        model = HistGradientBoostingClassifier(**self.options, random_state=work.seed)
        model.fit(indicators(train).toarray(), train.y)
        rows = indicators(test).toarray()
        figures = Figures.of(model.predict(rows), model.predict_proba(rows), test.y)
        return {"figures": figures.to_dict(), "choice": {"iterations": int(model.n_iter_)}}


def _figures(classifier: Classifier, test: Dataset) -> dict[str, Any]:
    log_joint = classifier.predict_log_joint(test)
    return Figures.of(log_joint.argmax(axis=1), np.exp(log_posterior(log_joint)), test.y).to_dict()


def _exact(score: str, budgets: Budgets) -> Exact:
    kind = find_score(score)
    choice = Choice(
        score=score,
        seconds=budgets.selection,
        p=P_GRID if kind.takes("gamma") else None,
        acyclicity="order" if kind.is_margin else "cluster",
    )
    return Exact(choice=choice, seconds=budgets.final)


#: The methods by name, in the order of the tables.
METHODS: dict[str, Callable[[Budgets], Method]] = {
    "nb": lambda budgets: ClosedFormMethod(learner="nb"),
    "tan": lambda budgets: ClosedFormMethod(learner="tan"),
    "mdl": lambda budgets: _exact("mdl", budgets),
    "sm": lambda budgets: _exact("sm", budgets),
    "sbm": lambda budgets: _exact("sbm", budgets),
    "svm": lambda budgets: SupportVectors(),
    "logistic": lambda budgets: Logistic(),
    "boosting": lambda budgets: Boosting(),
}


def method(name: str, budgets: Budgets, n_classes: int) -> Method:
    """Return a method by its name.

    With two classes, SM and SBM are the same problem (P12, section 5), so that ``sbm`` is the method ``sm``, and
    nothing is computed twice.

    Raises
    ------
    InputError
        If there is no such method.
    """
    if name not in METHODS:
        raise InputError(f"There is no method {name!r}; choose from {', '.join(METHODS)}.")
    return METHODS["sm" if name == "sbm" and n_classes == 2 else name](budgets)
