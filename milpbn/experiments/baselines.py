"""Methods that are no Bayesian networks: support vector machine, logistic regression, gradient boosting.

The first is in Table 2 of Peharz & Pernkopf (2012, P12); the others are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from milpbn.experiments.base import Figures, Method, MethodInput
from milpbn.experiments.protocol import FOLDS
from milpbn.learners import peers
from milpbn.learners.base import Control
from milpbn.learners.svm import COSTS, SIGMAS, choose_pair, grid_from_the_middle
from milpbn.learners.svm_machine import SvmClassifier, calibrated


@dataclass(frozen=True, kw_only=True)
class SupportVectors(Method):
    """Support vector machine with a Gaussian kernel on indicators, with P12's grid on the splits of `Part.validation`.

    Accuracy is that of the machine's own predictions. Its probabilities, for log-loss and Brier score, are those of
    scikit-learn's `CalibratedClassifierCV` with ``ensemble=False``: a sigmoid of the decision values of 5-fold
    cross-validation on the training rows, one for each class against the others, normalised over the classes.
    """

    sigmas: tuple[float, ...] = SIGMAS
    costs: tuple[float, ...] = COSTS
    calibration: str = "sigmoid"
    calibration_folds: int = FOLDS

    name = "svm"

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Choose sigma and C, fit and calibrate."""
        train, test = given.part.train, given.part.test
        grid = grid_from_the_middle(train.n_features, self.sigmas, self.costs)
        control = Control(random_state=given.seed, n_jobs=given.threads)
        parts = given.part.validation(given.seed)
        (sigma, cost), details = choose_pair(parts, grid, control, control.budget())
        model = calibrated(
            train, sigma, cost, given.seed, method=self.calibration, folds=self.calibration_folds
        )
        predictor = SvmClassifier(train.variables, model.calibrated_classifiers_[0].estimator, model)
        return {
            "figures": Figures.of(predictor, test).to_dict(),
            "choice": {
                "sigma": sigma,
                "cost": cost,
                "tried": details["tried"],
                "validation_accuracy": details["validation_accuracy"],
            },
        }


@dataclass(frozen=True, kw_only=True)
class Logistic(Method):
    """Logistic regression on indicators, with C chosen by accuracy on the splits of `Part.validation`."""

    costs: int = 10
    scoring: str = "accuracy"
    max_iter: int = 1000

    name = "logistic"

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Choose C and fit."""
        return _figures(given, peers.LogisticLearner(**self.options))


@dataclass(frozen=True, kw_only=True)
class Boosting(Method):
    """Gradient boosting of trees on indicators, with scikit-learn's defaults."""

    learning_rate: float = 0.1
    max_iter: int = 100
    early_stopping: str = "auto"

    name = "boosting"

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Fit."""
        return _figures(given, peers.BoostingLearner(**self.options))


def _figures(given: MethodInput, peer: peers.Peer) -> dict[str, Any]:
    """Return the figures of a peer on the test rows, and its details."""
    learned = peer.fit(given.part.train, Control(random_state=given.seed, n_jobs=given.threads))
    figures = Figures.of(learned.predictor, given.part.test)
    choice = {key: value for key, value in learned.details.items() if key not in ("rows", "stopped_early")}
    return {"figures": figures.to_dict(), "choice": choice}
