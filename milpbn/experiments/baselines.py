"""Methods that are no Bayesian networks: support vector machine, logistic regression, gradient boosting.

The first is in Table 2 of Peharz & Pernkopf (2012, P12); the others are not.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.svm import SVC

from milpbn.data import stratified_folds
from milpbn.experiments.base import Method, MethodInput
from milpbn.experiments.figures import Figures
from milpbn.experiments.protocol import FOLDS
from milpbn.learners.base import Control
from milpbn.learners.svm import COSTS, SIGMAS, choose_pair, grid_from_the_middle, indicators
from milpbn.solving.splits import validation_splits


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

    @property
    def name(self) -> str:
        """Name in the tables."""
        return "svm"

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Choose sigma and C, fit and calibrate."""
        train, test = given.part.train, given.part.test
        grid = grid_from_the_middle(train.n_features, self.sigmas, self.costs)
        control = Control(random_state=given.seed, n_jobs=given.threads)
        (sigma, cost), details = choose_pair(given.part.validation(given.seed), grid, control)
        model = CalibratedClassifierCV(
            SVC(C=cost, gamma=1.0 / (2.0 * sigma**2)),
            method=self.calibration,
            cv=stratified_folds(train.y, min(self.calibration_folds, train.n_samples), given.seed),
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
    """Logistic regression on indicators, with C chosen by accuracy on the splits of `Part.validation`."""

    costs: int = 10
    scoring: str = "accuracy"
    max_iter: int = 1000

    @property
    def name(self) -> str:
        """Name in the tables."""
        return "logistic"

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Choose C and fit."""
        train, test = given.part.train, given.part.test
        model = LogisticRegressionCV(
            Cs=self.costs,
            cv=validation_splits(train.y, given.seed),
            scoring=self.scoring,
            max_iter=self.max_iter,
            random_state=given.seed,
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

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Fit."""
        train, test = given.part.train, given.part.test
        model = HistGradientBoostingClassifier(**self.options, random_state=given.seed)
        model.fit(indicators(train).toarray(), train.y)
        rows = indicators(test).toarray()
        figures = Figures.of(model.predict(rows), model.predict_proba(rows), test.y)
        return {"figures": figures.to_dict(), "choice": {"iterations": int(model.n_iter_)}}
