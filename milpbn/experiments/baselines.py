"""Methods that are no Bayesian networks: support vector machine, logistic regression, gradient boosting.

The first is in Table 2 of Peharz & Pernkopf (2012, P12); the others are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from milpbn.experiments.base import Figures, Method, MethodInput
from milpbn.experiments.protocol import FOLDS
from milpbn.learners.registry import get_learner
from milpbn.learners.svm import COSTS, SIGMAS, choose_pair, grid_from_the_middle
from milpbn.learners.svm_machine import SvmClassifier, calibrated
from milpbn.trials.parts import validation_datasets


@dataclass(frozen=True, kw_only=True)
class SupportVectors(Method):
    """Support vector machine with a Gaussian kernel on indicators, with P12's grid on P12's validation splits.

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
        control = given.control()
        parts = validation_datasets(given.part.training, given.seed)
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
class PeerMethod(Method):
    """A classifier of scikit-learn on indicators, with these settings (`milpbn.learners.peers`)."""

    learner: str
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the learner."""
        return self.learner

    @property
    def options(self) -> dict[str, Any]:
        """The settings alone."""
        return dict(self.settings)

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Fit."""
        learned = get_learner(self.learner)(**self.settings).fit(given.part.train, given.control())
        figures = Figures.of(learned.predictor, given.part.test)
        choice = {k: v for k, v in learned.details.items() if k not in ("rows", "stopped_early")}
        return {"figures": figures.to_dict(), "choice": choice}
