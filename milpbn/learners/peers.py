"""Classifiers of scikit-learn that users would take instead: logistic regression, boosting, random forest.

They see what the networks see: the discretised columns, as one indicator per state of every feature.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV

from milpbn.data.dataset import Dataset, Variable
from milpbn.errors import InputError
from milpbn.learners.base import Control, Learned, Learner, setting
from milpbn.learners.svm import sample_rows
from milpbn.learners.svm_machine import indicators, of_all_classes
from milpbn.network.predictor import Predictor, Source, encode
from milpbn.trials.executors import alone
from milpbn.trials.parts import validation_splits
from milpbn.util.budget import Budget
from milpbn.util.threads import library_threads

#: Up to this number of rows a fit runs in this process, where it cannot be stopped.
UNSTOPPABLE_ROWS = 5000


@dataclass(frozen=True, eq=False, repr=False)
class PeerClassifier(Predictor):
    """A fitted classifier of scikit-learn, whose `predict` accepts the same data as that of a `Classifier`."""

    variables: tuple[Variable, ...]
    #: Fitted to the indicators of the features' states and the class codes. All indicators of a value without a state
    #: are 0.
    model: Any
    #: Number of fitted numbers; see the learner.
    n_parameters: int
    sparse: bool

    def _matrix(self, source: Source) -> Any:
        return matrix(encode(source, self.variables), self.sparse)

    def predict_codes(self, source: Source) -> NDArray[np.intp]:
        """Return the index of each sample's class, shape (M,); a class without training rows is never predicted."""
        found: NDArray[np.intp] = self.model.predict(self._matrix(source))
        return found

    def predict_proba(self, source: Source) -> NDArray[np.float64]:
        """Return P(c | z_m), shape (M, C); 0 for a class without training rows."""
        return of_all_classes(
            self.model.predict_proba(self._matrix(source)), self.model.classes_, self.variables
        )


def matrix(data: Dataset, sparse: bool) -> Any:
    """Return the indicators of the features' states, sparse or dense."""
    return indicators(data) if sparse else indicators(data).toarray()


class Peer(Learner):
    """Base of the learners; a subclass names the model of scikit-learn and counts its parameters."""

    is_network = False
    compiles = False
    #: Whether the model takes sparse matrices.
    sparse: ClassVar[bool] = True
    #: Options that must be positive, and finite.
    positive: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.positive:
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"{name} must be a positive number, got {getattr(self, name)}.")

    @abstractmethod
    def model(self, data: Dataset, random_state: int, n_jobs: int) -> Any:
        """Return the unfitted model."""

    @abstractmethod
    def describe(self, model: Any) -> tuple[int, dict[str, Any]]:
        """Return the number of parameters of a fitted model, and details of the fit."""

    def _fit(self, data: Dataset, control: Control, budget: Budget) -> Learned:
        """Fit the model, in a process that can be killed if there are more than `UNSTOPPABLE_ROWS` rows.

        If the fit has to be stopped, the model is fitted to `milpbn.learners.svm.LATE_ROWS` of the rows instead.
        """
        if len(np.unique(data.y)) < 2:
            raise InputError(
                f"The data {data.name!r} have rows of one class only; {self.name} needs at least two classes."
            )
        call = (fit_model, self, data, control.random_state, control.n_jobs)
        model = alone(call, budget.over, killable=data.n_samples > UNSTOPPABLE_ROWS)
        stopped = model is None
        fitted = sample_rows(data, control.random_state) if stopped else data
        if stopped:
            control.report(f"the time is over; fitting on {fitted.n_samples} of the rows instead")
            model = fit_model(self, fitted, control.random_state, control.n_jobs)
        count, details = self.describe(model)
        return Learned(
            predictor=PeerClassifier(data.variables, model, count, self.sparse),
            structure=None,
            details={**details, "rows": fitted.n_samples, "stopped_early": stopped},
        )


def fit_model(peer: Peer, data: Dataset, random_state: int, n_jobs: int) -> Any:
    """Return a peer's model, fitted to all rows with their weights."""
    model = peer.model(data, random_state, n_jobs)
    weights = None if (data.weights == 1.0).all() else data.weights
    with warnings.catch_warnings(), library_threads(n_jobs):
        warnings.simplefilter("ignore")  # about future defaults, and about extreme C that do not converge
        model.fit(matrix(data, peer.sparse), data.y, sample_weight=weights)
    return model


@dataclass(frozen=True, kw_only=True)
class LogisticLearner(Peer):
    """Multinomial logistic regression with an L2 penalty, whose C is chosen by validation, as P12 chooses gamma.

    The number of parameters is that of coefficients and intercepts.
    """

    name = "logistic"
    positive = ("costs", "max_iter")
    summary = "Logistic regression of scikit-learn on indicators, C chosen by validation; it has no graph."
    reference = "scikit-learn, LogisticRegressionCV."

    costs: int = setting(10, "Number of values of C that are tried, from 1e-4 to 1e4.")
    scoring: str = setting(
        "neg_log_loss", "What chooses C on held-out rows.", choices=("neg_log_loss", "accuracy")
    )
    max_iter: int = setting(1000, "Iterations of L-BFGS for each value.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scoring not in ("neg_log_loss", "accuracy"):
            raise InputError(f"scoring must be neg_log_loss or accuracy, got {self.scoring!r}.")

    def model(self, data: Dataset, random_state: int, n_jobs: int) -> Any:
        """Return the unfitted model."""
        splits = validation_splits(data.y, random_state)
        # The log-loss of a class that a split's training rows lack is undefined.
        complete = all(set(data.y[held]) <= set(data.y[fit]) for fit, held in splits)
        return LogisticRegressionCV(
            Cs=self.costs,
            cv=splits,
            scoring=self.scoring if complete else "accuracy",
            max_iter=self.max_iter,
            random_state=random_state,
        )

    def describe(self, model: Any) -> tuple[int, dict[str, Any]]:
        """Return the number of coefficients and intercepts, and C."""
        return int(model.coef_.size + model.intercept_.size), {"C": float(np.ravel(model.C_)[0])}


@dataclass(frozen=True, kw_only=True)
class BoostingLearner(Peer):
    """Gradient boosting of trees on histograms.

    A round has one tree, or with three or more classes one per class. With ``early_stopping`` ``auto``, held-out rows
    stop the rounds above 10,000 rows. The number of parameters is that of all nodes: a threshold or a value each.
    """

    name = "boosting"
    summary = "Gradient boosting of scikit-learn on indicators; it has no graph."
    reference = "scikit-learn, HistGradientBoostingClassifier."
    sparse = False
    positive = ("learning_rate", "max_iter")

    learning_rate: float = setting(0.1, "Factor on every tree's values.")
    max_iter: int = setting(100, "Number of rounds.")
    early_stopping: str = setting(
        "auto", "Whether held-out rows stop the rounds.", choices=("auto", "yes", "no")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.early_stopping not in ("auto", "yes", "no"):
            raise InputError(f"early_stopping must be auto, yes or no, got {self.early_stopping!r}.")

    def model(self, data: Dataset, random_state: int, n_jobs: int) -> Any:
        """Return the unfitted model."""
        return HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.max_iter,
            early_stopping="auto" if self.early_stopping == "auto" else self.early_stopping == "yes",
            random_state=random_state,
        )

    def describe(self, model: Any) -> tuple[int, dict[str, Any]]:
        """Return the number of nodes of all trees, and the number of rounds."""
        return trees_size(model), {"iterations": int(model.n_iter_)}


@dataclass(frozen=True, kw_only=True)
class RandomForestLearner(Peer):
    """Random forest.

    The number of parameters is that of the trees' thresholds, and C - 1 for every leaf. Larger leaves give better
    probabilities.
    """

    name = "random-forest"
    summary = "Random forest of scikit-learn on indicators; it has no graph."
    reference = "scikit-learn, RandomForestClassifier; Breiman 2001."
    positive = ("n_estimators", "min_samples_leaf")

    n_estimators: int = setting(100, "Number of trees.")
    min_samples_leaf: int = setting(1, "Least number of rows of a leaf.")

    def model(self, data: Dataset, random_state: int, n_jobs: int) -> Any:
        """Return the unfitted model."""
        return RandomForestClassifier(
            n_estimators=self.n_estimators,
            min_samples_leaf=self.min_samples_leaf,
            random_state=random_state,
            n_jobs=n_jobs,
        )

    def describe(self, model: Any) -> tuple[int, dict[str, Any]]:
        """Return the number of thresholds and of free probabilities in the leaves, and no details."""
        return forest_size(model), {}


def trees_size(model: HistGradientBoostingClassifier) -> int:
    """Return the number of nodes of all trees of a boosted model."""
    # The trees are a private attribute, which is the only place that has them.
    return sum(len(tree.nodes) for trees in model._predictors for tree in trees)


def forest_size(model: RandomForestClassifier) -> int:
    """Return the number of thresholds and of free probabilities in the leaves of a forest."""
    free = len(model.classes_) - 1
    leaves = [tree.get_n_leaves() for tree in model.estimators_]
    return int(sum(count - 1 + free * count for count in leaves))
