"""Classifiers that users would take instead, on raw columns and tuned as their users tune them.

All choices are made on the training rows: on a validation set above 1,000 of them, else on five folds
(`milpbn.trials.parts.validation_splits`).
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, SplineTransformer, StandardScaler
from sklearn.svm import SVC

from milpbn.data.dataset import Dataset, Variable
from milpbn.data.folds import stratified_folds, validation_split
from milpbn.errors import InputError, NoIncumbentError
from milpbn.learners.base import Control, Learned, Learner, setting
from milpbn.learners.peers import forest_size, trees_size
from milpbn.learners.raw_rows import RawRows, raw_data
from milpbn.learners.svm_machine import DecisionValues, of_all_classes
from milpbn.network.calibration import log_losses
from milpbn.network.predictor import Predictor, Source
from milpbn.trials.executors import alone
from milpbn.trials.parts import validation_splits
from milpbn.util.budget import Budget
from milpbn.util.threads import library_threads

#: Sigmoids replace a temperature whose log-loss of the training rows is larger than theirs by more than this, in nats.
MISCALIBRATED = 0.1
#: The most categories of a column that boosting takes as categories; others are numbered.
MOST_CATEGORIES = 255


@dataclass(frozen=True, eq=False, repr=False)
class RawClassifier(Predictor):
    """A fitted classifier of raw columns."""

    variables: tuple[Variable, ...]
    peer: RawPeer
    #: Fitted to the data frame of the training rows and their class codes.
    model: Any
    #: Number of fitted numbers.
    n_parameters: int

    def predict_codes(self, source: Source) -> NDArray[np.intp]:
        """Return the index of each sample's class, shape (M,); a class without training rows is never predicted."""
        with warnings.catch_warnings(action="ignore"):  # of categories that the training rows lack
            return self.peer.predicted(self.model, raw_data(source).frame)

    def predict_proba(self, source: Source) -> NDArray[np.float64]:
        """Return P(c | z_m), shape (M, C); 0 for a class without training rows."""
        with warnings.catch_warnings(action="ignore"):
            found = self.model.predict_proba(raw_data(source).frame)
        return of_all_classes(found, self.model.classes_, self.variables)


class RawPeer(Learner):
    """Base of the learners; a subclass fits its model, and counts its parameters."""

    is_network = False
    compiles = False
    #: What has to be installed beside the dependencies: module and name of the package.
    extra: ClassVar[tuple[str, str] | None] = None
    #: Up to this number of rows a fit is short, and runs in this process, where it cannot be stopped.
    unstoppable_rows: ClassVar[int] = 0

    def check(self) -> None:
        """Refuse a learner whose package is not installed."""
        if self.extra is not None and find_spec(self.extra[0]) is None:
            raise InputError(f"{self.name} needs the package {self.extra[1]}: pip install {self.extra[1]}")

    @abstractmethod
    def choose(self, rows: RawRows, random_state: int, n_jobs: int) -> tuple[Any, dict[str, Any]]:
        """Return the fitted model and what was chosen, as JSON values."""

    @abstractmethod
    def size(self, model: Any) -> int:
        """Return the number of parameters of a fitted model."""

    def predicted(self, model: Any, frame: pd.DataFrame) -> NDArray[np.intp]:
        """Return the predicted class codes of rows, shape (M,)."""
        codes: NDArray[np.intp] = model.classes_[model.predict_proba(frame).argmax(axis=1)]
        return codes

    def fitted(self, rows: RawRows, random_state: int = 0, n_jobs: int = 1) -> tuple[Any, dict[str, Any]]:
        """Do the same as `choose`, without warnings, and with so many threads."""
        with warnings.catch_warnings(), library_threads(n_jobs):
            warnings.simplefilter("ignore")  # of extreme settings that do not converge, and of rare classes
            return self.choose(rows, random_state, n_jobs)

    def _fit(self, data: Dataset, control: Control, budget: Budget) -> Learned:
        """Choose and fit, of many rows in a process that is killed when the time is over."""
        call = (self.fitted, RawRows.of(raw_data(data)), control.random_state, control.n_jobs)
        found = alone(call, budget.over, killable=data.n_samples > self.unstoppable_rows)
        if found is None:
            raise NoIncumbentError(
                "not fitted within the time limit; allow more with --time-limit (time_limit)"
            )
        model, choice = found
        predictor = RawClassifier(data.variables, self, model, self.size(model))
        return Learned(predictor=predictor, structure=None, details={"choice": choice})


@dataclass(frozen=True, kw_only=True)
class Ebm(RawPeer):
    """Explainable boosting machine, with the pairs that its package takes by default; also for several classes.

    Where classes can be separated, rounds go on to the limit of 50,000, and a fit to 56 rows may take a quarter of an
    hour. A lower limit would harm it: with 2,000 rounds and two bags the log-loss on inner splits of training rows is
    .216 instead of .110 (10,000 rounds) on balance-scale, and .101 instead of .070 on tic-tac-toe.
    """

    name = "ebm"
    summary = "Explainable boosting machine of InterpretML, with its defaults."
    reference = "interpret-core, ExplainableBoostingClassifier; Nori et al. 2019."
    extra = ("interpret", "interpret-core")

    interactions: str = setting("3x", "Number of pairs, or so many times the number of columns.")
    outer_bags: int = setting(14, "Number of bags.")

    def choose(self, rows: RawRows, random_state: int, n_jobs: int) -> tuple[Any, dict[str, Any]]:
        """Fit; the rounds that are returned are the most of a bag, for single columns and for pairs."""
        from interpret.glassbox import ExplainableBoostingClassifier

        kinds = ["continuous" if name in rows.numbers else "nominal" for name in rows.frame]
        model = ExplainableBoostingClassifier(
            feature_types=kinds,
            n_jobs=n_jobs,
            random_state=random_state,
            interactions=self.interactions,
            outer_bags=self.outer_bags,
        )
        model.fit(rows.frame, rows.classes, sample_weight=rows.weights)
        pairs = sum(len(term) > 1 for term in model.term_features_)
        terms = (len(kinds), max(1, pairs))
        rounds = [int(max(steps)) // n for steps, n in zip(model.best_iteration_, terms, strict=False)]
        return model, {"pairs": pairs, "rounds": rounds}

    def size(self, model: Any) -> int:
        """Return the number of scores of all terms."""
        return int(sum(np.size(scores) for scores in model.term_scores_))


@dataclass(frozen=True, kw_only=True)
class RawBoosting(RawPeer):
    """Gradient boosting of histograms, with native categories: leaves and their rows by held-out log-loss.

    The number of rounds is the best one of the mean over the splits; the final fit has it, and all rows.
    """

    name = "boosting"
    summary = "Gradient boosting of scikit-learn, its leaves and rounds chosen by validation."
    reference = "scikit-learn, HistGradientBoostingClassifier."

    leaves: ClassVar[tuple[int, ...]] = (2, 6, 31)
    leaf_rows: ClassVar[tuple[int, ...]] = (5, 20)
    patience: ClassVar[int] = 20
    least_gain: ClassVar[float] = 3e-4
    rate: float = setting(0.05, "Factor on every tree's values.")
    most: int = setting(1000, "Largest number of rounds.")

    def choose(self, rows: RawRows, random_state: int, n_jobs: int) -> tuple[Any, dict[str, Any]]:
        """Compare all settings on the same splits."""
        splits, y, x = validation_splits(rows.classes, random_state), rows.classes, numbered(rows.frame)
        fixed = {"categorical_features": "from_dtype", "random_state": random_state}
        weights = np.ones(len(y)) if rows.weights is None else rows.weights
        tried = []
        for leaves, least in product(self.leaves, self.leaf_rows):
            own = {"max_leaf_nodes": leaves, "min_samples_leaf": least, "learning_rate": self.rate}
            curves = []
            for train, held in splits:
                known = held[np.isin(y[held], y[train])]
                model = HistGradientBoostingClassifier(
                    **(own | fixed),
                    max_iter=self.most,
                    early_stopping=True,
                    n_iter_no_change=self.patience,
                    tol=self.least_gain,
                )
                model.fit(
                    x.iloc[train],
                    y[train],
                    weights[train],
                    X_val=x.iloc[known],
                    y_val=y[known],
                    sample_weight_val=weights[known],
                )
                curves.append(-model.validation_score_)
            mean = mean_curve(curves, self.patience)
            tried.append((float(mean.min()), {**own, "max_iter": max(1, int(mean.argmin()))}))
        chosen = min(tried, key=lambda entry: entry[0])[1]
        model = HistGradientBoostingClassifier(**(chosen | fixed), early_stopping=False)
        return make_pipeline(FunctionTransformer(numbered), model.fit(x, y, rows.weights)), chosen

    def size(self, model: Any) -> int:
        """Return the number of nodes of all trees."""
        return trees_size(model[-1])


def numbered(frame: pd.DataFrame) -> pd.DataFrame:
    """Return columns with more than `MOST_CATEGORIES` categories as their numbers, and others as they are."""
    wide = [str(n) for n, c in frame.items() if hasattr(c, "cat") and c.cat.categories.size > MOST_CATEGORIES]
    return frame.assign(**{n: frame[n].cat.codes.astype(float).where(frame[n].notna()) for n in wide})


def mean_curve(curves: Sequence[NDArray[np.float64]], patience: int) -> NDArray[np.float64]:
    """Return the mean of losses by rounds; a curve that stopped goes on rising as it did in its last rounds."""
    longest = max(len(curve) for curve in curves)
    rest = [np.arange(1, longest - len(curve) + 1) for curve in curves]
    rise = [max(0.0, float(curve[-1] - curve.min())) / patience for curve in curves]
    whole = [np.concatenate([c, c[-1] + r * more]) for c, r, more in zip(curves, rise, rest, strict=True)]
    return np.asarray(np.mean(whole, axis=0))


@dataclass(frozen=True, kw_only=True)
class RawForest(RawPeer):
    """Random forest on numbers and indicators: leaves and columns by the log-loss of rows out of the bags."""

    name = "random-forest"
    summary = "Random forest of scikit-learn, its leaves and columns chosen out of the bags."
    reference = "scikit-learn, RandomForestClassifier; Breiman 2001."

    tried_trees: ClassVar[int] = 100
    leaf_rows: ClassVar[tuple[int, ...]] = (1, 5)
    columns: ClassVar[tuple[Any, ...]] = ("sqrt", 0.5)
    trees: int = setting(500, "Number of trees.")

    def choose(self, rows: RawRows, random_state: int, n_jobs: int) -> tuple[Any, dict[str, Any]]:
        """Compare all settings out of the bags."""
        encode = rows.encoder(("passthrough", rows.numbers))
        matrix, y, weights = encode.fit_transform(rows.frame), rows.classes, rows.weights
        fixed = {"random_state": random_state, "n_jobs": n_jobs}
        tried = []
        for least, columns in product(self.leaf_rows, self.columns):
            own = {"min_samples_leaf": least, "max_features": columns}
            forest = RandomForestClassifier(self.tried_trees, **(own | fixed), oob_score=True)
            votes = forest.fit(matrix, y, weights).oob_decision_function_
            inside = np.isfinite(votes).all(axis=1)
            losses = log_losses(votes[inside], np.searchsorted(forest.classes_, y[inside]))
            tried.append(
                (float(np.average(losses, weights=None if weights is None else weights[inside])), own)
            )
        chosen = min(tried, key=lambda entry: entry[0])[1]
        forest = RandomForestClassifier(self.trees, **(chosen | fixed)).fit(matrix, y, weights)
        return make_pipeline(encode, forest), chosen

    def size(self, model: Any) -> int:
        """Return the number of thresholds and of free probabilities in the leaves."""
        return forest_size(model[-1])


@dataclass(frozen=True, kw_only=True)
class RawLogistic(RawPeer):
    """Logistic regression on standardised columns, with an L2 penalty chosen by held-out log-loss.

    With knots, a column whose quantiles coincide has them at equal distances.
    """

    name = "logistic"
    summary = "Logistic regression of scikit-learn on standardised columns, C chosen by validation."
    reference = "scikit-learn, LogisticRegressionCV."
    unstoppable_rows = 1000

    knots: int = setting(0, "Number of knots of cubic splines; 0 for straight lines.")
    costs: int = setting(10, "Number of values of C that are tried, from 1e-4 to 1e4.")
    iterations: int = setting(1000, "Iterations of L-BFGS for each value.")

    def choose(self, rows: RawRows, random_state: int, n_jobs: int) -> tuple[Any, dict[str, Any]]:
        """Choose C; by accuracy where a split lacks a class."""
        splits, y = validation_splits(rows.classes, random_state), rows.classes
        complete = all(set(y[held]) == set(y[train]) for train, held in splits)
        by = "neg_log_loss" if complete else "accuracy"
        fit = LogisticRegressionCV(
            Cs=self.costs, cv=splits, scoring=by, max_iter=self.iterations, random_state=random_state
        )
        model = make_pipeline(self.encoder(rows), fit)
        model.fit(rows.frame, y, logisticregressioncv__sample_weight=rows.weights)
        return model, {"C": float(np.ravel(model[-1].C_)[0]), "by": "log-loss" if complete else "accuracy"}

    def encoder(self, rows: RawRows) -> Any:
        """Return the transformer of the columns."""
        if not self.knots:
            return rows.encoder((StandardScaler(), rows.numbers))
        grid = np.linspace(0, 1, self.knots)
        even = [n for n in rows.numbers if len(np.unique(rows.frame[n].quantile(grid))) < self.knots]
        kinds = {"quantile": [n for n in rows.numbers if n not in even], "uniform": even}
        splines = {kind: SplineTransformer(self.knots, knots=kind, extrapolation="linear") for kind in kinds}
        return rows.encoder(
            *((make_pipeline(splines[kind], StandardScaler()), names) for kind, names in kinds.items())
        )

    def size(self, model: Any) -> int:
        """Return the number of coefficients and intercepts."""
        return int(model[-1].coef_.size + model[-1].intercept_.size)


@dataclass(frozen=True, kw_only=True)
class Splines(RawLogistic):
    """Logistic regression on cubic splines of the numbers."""

    name = "splines"
    summary = "Logistic regression of scikit-learn on cubic splines of the numbers."
    reference = "scikit-learn, SplineTransformer and LogisticRegressionCV."

    knots: int = setting(6, "Number of knots of a spline.")


@dataclass(frozen=True, kw_only=True)
class RawSvm(RawPeer):
    """Support vector machine with a Gaussian kernel on standardised columns; C and gamma are chosen by accuracy.

    Gamma is a factor over the number of columns. The choice has at most `most` rows. Accuracy is that of the machine.
    Probabilities are fitted to decision values of five folds (`CalibratedClassifierCV`, without an ensemble): a sigmoid
    for two classes, a temperature for more, and sigmoids for these if the temperature's log-loss of training rows is
    larger by more than `MISCALIBRATED`.
    """

    name = "svm"
    summary = "Support vector machine with a Gaussian kernel, C and gamma chosen by validation."
    reference = "scikit-learn, SVC; Chang & Lin 2011."

    costs: ClassVar[tuple[float, ...]] = (0.1, 1.0, 10.0, 100.0, 1000.0)
    factors: ClassVar[tuple[float, ...]] = (0.03, 0.1, 0.3, 1.0, 3.0)
    two_classes: ClassVar[str] = "sigmoid"
    more_classes: ClassVar[str] = "temperature"
    most: int = setting(5000, "Largest number of rows for the choice.")
    folds: int = setting(5, "Number of folds for the probabilities.")

    def choose(self, rows: RawRows, random_state: int, n_jobs: int) -> tuple[Any, dict[str, Any]]:
        """Choose, fit the machine, and calibrate it."""
        y, weights = rows.classes, rows.weights
        few = np.arange(len(y))
        if len(y) > self.most:
            few = validation_split(y, self.most / len(y), random_state)[1]
        encode = rows.encoder((StandardScaler(), rows.numbers))
        matrix = encode.fit_transform(rows.frame)
        grid = {"C": self.costs, "gamma": [factor / matrix.shape[1] for factor in self.factors]}
        splits = validation_splits(y[few], random_state)
        search = GridSearchCV(SVC(cache_size=500), grid, cv=splits, refit=False)
        some = None if weights is None else weights[few]
        chosen = search.fit(matrix[few], y[few], sample_weight=some).best_params_
        # The only row of a class is left out of the fit: no fold could both learn the class and judge it.
        several = np.flatnonzero(np.bincount(y)[y] > 1)
        y, fitted = y[several], matrix[several]
        weights = None if weights is None else weights[several]

        own = {} if weights is None else {"sample_weight": weights}
        machine, folds = SVC(cache_size=500, **chosen), stratified_folds(y, self.folds, random_state)
        values = cross_val_predict(machine, fitted, y, cv=folds, method="decision_function", params=own)
        machine.fit(fitted, y, **own)
        classes = np.unique(y)

        def calibrated(curve: str) -> CalibratedClassifierCV:
            model = CalibratedClassifierCV(DecisionValues(classes), method=curve, cv=folds, ensemble=False)
            return model.fit(values, y, sample_weight=weights)

        model = calibrated(self.two_classes)
        if len(classes) > 2:
            # The search for a temperature fails where a class is not in every fold, or all held-out rows are right.
            other, of_rows = calibrated(self.more_classes), machine.decision_function(fitted)
            losses = [
                log_loss(y, each.predict_proba(of_rows), sample_weight=weights) for each in (other, model)
            ]
            model = other if losses[0] <= losses[1] + MISCALIBRATED else model
        model.calibrated_classifiers_[0].estimator = machine
        return make_pipeline(encode, model), chosen

    def predicted(self, model: Any, frame: pd.DataFrame) -> NDArray[np.intp]:
        """Return the machine's own predictions."""
        machine = model[-1].calibrated_classifiers_[0].estimator
        codes: NDArray[np.intp] = machine.predict(model[0].transform(frame))
        return codes

    def size(self, model: Any) -> int:
        """Return the number of dual variables of support vectors, and of intercepts."""
        machine = model[-1].calibrated_classifiers_[0].estimator
        return int(machine.dual_coef_.size + machine.intercept_.size)
