"""Classifiers that see raw columns, as their users run them; settings and searches are the fields of the classes.

To add one, write a subclass of `RawMethod`, or an `Ours` with another recipe, and name it in `METHODS`.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.svm import SVC

from milpbn.data import stratified_folds
from milpbn.data.folds import validation_split
from milpbn.experiments.base import Figures, Method, MethodInput
from milpbn.experiments.protocol import Part
from milpbn.network.calibration import calibration_error, log_losses, reliability_curve, squared_errors
from milpbn.solving.selection import solve_selected
from milpbn.trials.parts import validation_splits


@dataclass(frozen=True, eq=False)
class RawRows:
    """Training and test rows of a part: numbers, and texts as categories of the training rows.

    Attributes
    ----------
    train, test : DataFrame
        A category that the training rows lack is missing in `test`.
    numbers, texts : list of str
        Names of the columns of each kind.
    classes : int array, shape (M,)
        Class codes of the training rows.
    labels : list
        The class labels of these codes.
    """

    train: pd.DataFrame
    test: pd.DataFrame
    numbers: list[str]
    texts: list[str]
    classes: NDArray[np.intp]
    labels: list[Any]

    @classmethod
    def of(cls, part: Part) -> RawRows:
        """Take the columns as the table names their kinds."""
        frame, kinds = part.table.frame, part.table.kinds
        numbers = [name for name in part.table.features if kinds[name] == "continuous"]
        texts = [name for name in part.table.features if kinds[name] != "continuous"]
        train, test = (
            frame.iloc[rows][list(part.table.features)].copy() for rows in (part.train_rows, part.test_rows)
        )
        for one in (train, test):
            one[numbers] = one[numbers].astype(float)
        for name in texts:
            states = sorted(train[name].astype(str).unique())
            for one in (train, test):
                one[name] = pd.Categorical.from_codes(
                    pd.Index(states).get_indexer(one[name].astype(str)), states
                )
        labels, classes = np.unique(part.training.frame[part.table.target].astype(str), return_inverse=True)
        return cls(train, test, numbers, texts, classes, labels.tolist())

    def encoder(self, *steps: tuple[Any, list[str]], drop: str | None = "if_binary") -> Any:
        """Return a transformer: steps on columns of numbers, and indicators of the texts' categories."""
        one_hot = OneHotEncoder(handle_unknown="ignore", drop=drop, sparse_output=False)
        return make_column_transformer(*steps, (one_hot, self.texts))


@dataclass(frozen=True, kw_only=True)
class RawMethod(Method):
    """Base of the methods that scikit-learn's interface fits."""

    @abstractmethod
    def fit(self, rows: RawRows, seed: int) -> tuple[Any, dict[str, Any]]:
        """Return the fitted classifier and what was chosen."""

    def predicted(self, model: Any, rows: RawRows) -> NDArray[np.intp]:
        """Return the class codes that are counted as right or wrong."""
        codes: NDArray[np.intp] = model.classes_[model.predict_proba(rows.test).argmax(axis=1)]
        return codes

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Fit, and judge the test rows."""
        part = given.part
        assert isinstance(part, Part)
        rows = RawRows.of(part)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of extreme settings that do not converge, and of rare classes
            model, choice = self.fit(rows, given.seed)
            probabilities = np.zeros((len(rows.test), len(rows.labels)))
            probabilities[:, model.classes_] = model.predict_proba(rows.test)
            predicted = self.predicted(model, rows)
        return judged(probabilities, predicted, test_classes(part, rows.labels)) | {"choice": choice}


def test_classes(part: Part, labels: Sequence[Any]) -> NDArray[np.intp]:
    """Return the class codes of the test rows, -1 for a class that is not among the labels."""
    return pd.Index(labels).get_indexer(part.table.frame[part.table.target].iloc[part.test_rows].astype(str))


def judged(
    probabilities: NDArray[np.float64], predicted: NDArray[np.intp], classes: NDArray[np.intp]
) -> dict[str, Any]:
    """Return the figures of test rows, the expected calibration error, and for two classes the area under the curve."""
    losses, errors = log_losses(probabilities, classes), squared_errors(probabilities, classes)
    unknown = int(np.count_nonzero(classes < 0))
    figures = Figures(predicted == classes, float(losses.mean()), float(errors.mean()), unknown)
    curve = reliability_curve(probabilities, classes, np.ones(len(classes)))
    two = probabilities.shape[1] == 2 and len(np.unique(classes)) == 2 and not unknown
    return {
        "figures": figures.to_dict(),
        "ece": calibration_error(curve),
        "auc": float(roc_auc_score(classes, probabilities[:, 1])) if two else None,
    }


@dataclass(frozen=True, kw_only=True)
class Ours(Method):
    """A recipe of this package, as `milpbn solve --recipe` runs it."""

    recipe: str
    seconds: float

    @property
    def name(self) -> str:
        """Name in the tables."""
        return self.recipe

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Choose, search and fit on the training rows, and judge the test rows as the package encodes them."""
        part = given.part
        assert isinstance(part, Part)
        result = solve_selected(
            part.training,
            recipe=self.recipe,
            time_limit=self.seconds,
            threads=given.threads,
            random_state=given.seed,
            verbose=False,
        )
        assert result.classifier is not None
        test = part.table.frame.iloc[part.test_rows][list(part.table.features)]
        probabilities = result.classifier.predict_proba(test)
        labels = [str(label) for label in result.classifier.variables[-1].states]
        found = judged(probabilities, probabilities.argmax(axis=1), test_classes(part, labels))
        chosen: dict[str, Any] = {}
        if result.parameters is not None:
            chosen["parameters"] = result.parameters.to_dict()
        if result.selection is not None:
            chosen |= {"max_parents": result.selection.max_parents, **result.selection.options}
        return found | {"choice": chosen, "gap": result.gap.relative_to_bound}


@dataclass(frozen=True, kw_only=True)
class Ebm(RawMethod):
    """Explainable boosting machine with the defaults of its package, pairs included.

    Where classes can be separated, rounds go on to the limit of 50,000, and a fit to 56 rows may take a quarter of an
    hour. A lower limit would harm it: with 2,000 rounds and two bags the log-loss on inner splits of training rows is
    .216 instead of .110 (10,000 rounds) on balance-scale, and .101 instead of .070 on tic-tac-toe.
    """

    interactions: str = "3x"
    outer_bags: int = 14

    name = "ebm"

    def fit(self, rows: RawRows, seed: int) -> tuple[Any, dict[str, Any]]:
        """Fit; several classes have one score each, in every term. Rounds are the most of a bag: mains, pairs."""
        from interpret.glassbox import ExplainableBoostingClassifier  # not among the package's dependencies

        kinds = ["continuous" if name in rows.numbers else "nominal" for name in rows.train]
        model = ExplainableBoostingClassifier(
            feature_types=kinds, n_jobs=1, random_state=seed, **self.options
        )
        model.fit(rows.train, rows.classes)
        pairs = sum(len(term) > 1 for term in model.term_features_)
        terms = (len(kinds), max(1, pairs))
        rounds = [int(max(steps)) // n for steps, n in zip(model.best_iteration_, terms, strict=False)]
        return model, {"pairs": pairs, "rounds": rounds, "interpret-core": version("interpret-core")}


@dataclass(frozen=True, kw_only=True)
class Boosting(RawMethod):
    """Gradient boosting of histograms, with native categories: leaves and their rows by held-out log-loss.

    The number of rounds is the best one of the mean over the splits; the final fit has it, and all rows.
    """

    leaves: tuple[int, ...] = (2, 6, 31)
    leaf_rows: tuple[int, ...] = (5, 20)
    rate: float = 0.05
    patience: int = 20
    least_gain: float = 3e-4
    most: int = 1000

    name = "boosting"

    def fit(self, rows: RawRows, seed: int) -> tuple[Any, dict[str, Any]]:
        """Compare all settings on the same splits."""
        splits, y = validation_splits(rows.classes, seed), rows.classes
        tried = []
        for leaves, least in product(self.leaves, self.leaf_rows):
            setting = {"max_leaf_nodes": leaves, "min_samples_leaf": least, "learning_rate": self.rate}
            curves = []
            for train, held in splits:
                known = held[np.isin(y[held], y[train])]
                model = HistGradientBoostingClassifier(
                    **setting,
                    max_iter=self.most,
                    early_stopping=True,
                    n_iter_no_change=self.patience,
                    tol=self.least_gain,
                    categorical_features="from_dtype",
                    random_state=seed,
                )
                model.fit(rows.train.iloc[train], y[train], X_val=rows.train.iloc[known], y_val=y[known])
                curves.append(-model.validation_score_)
            mean = mean_curve(curves, self.patience)
            tried.append((float(mean.min()), {**setting, "max_iter": max(1, int(mean.argmin()))}))
        chosen = min(tried, key=lambda entry: entry[0])[1]
        model = HistGradientBoostingClassifier(
            **chosen, early_stopping=False, categorical_features="from_dtype", random_state=seed
        )
        return model.fit(rows.train, y), chosen


def mean_curve(curves: Sequence[NDArray[np.float64]], patience: int) -> NDArray[np.float64]:
    """Return the mean of losses by rounds; a curve that stopped goes on rising as it did in its last rounds."""
    longest = max(len(curve) for curve in curves)
    rest = [np.arange(1, longest - len(curve) + 1) for curve in curves]
    rise = [max(0.0, float(curve[-1] - curve.min())) / patience for curve in curves]
    whole = [np.concatenate([c, c[-1] + r * more]) for c, r, more in zip(curves, rise, rest, strict=True)]
    return np.asarray(np.mean(whole, axis=0))


@dataclass(frozen=True, kw_only=True)
class Forest(RawMethod):
    """Random forest on numbers and indicators: leaves and columns by the log-loss of rows out of the bags."""

    trees: int = 500
    tried_trees: int = 100
    leaf_rows: tuple[int, ...] = (1, 5)
    columns: tuple[Any, ...] = ("sqrt", 0.5)

    name = "forest"

    def fit(self, rows: RawRows, seed: int) -> tuple[Any, dict[str, Any]]:
        """Compare all settings out of the bags."""
        encode = rows.encoder(("passthrough", rows.numbers))
        matrix, y = encode.fit_transform(rows.train), rows.classes
        tried = []
        for least, columns in product(self.leaf_rows, self.columns):
            setting = {"min_samples_leaf": least, "max_features": columns}
            forest = RandomForestClassifier(self.tried_trees, **setting, oob_score=True, random_state=seed)
            votes = forest.fit(matrix, y).oob_decision_function_
            inside = np.isfinite(votes).all(axis=1)
            tried.append((float(log_losses(votes[inside], y[inside]).mean()), setting))
        chosen = min(tried, key=lambda entry: entry[0])[1]
        forest = RandomForestClassifier(self.trees, **chosen, random_state=seed).fit(matrix, y)
        return make_pipeline(encode, forest), chosen


@dataclass(frozen=True, kw_only=True)
class Logistic(RawMethod):
    """Logistic regression, standardised, with an L2 penalty by held-out log-loss; with splines if there are knots.

    A column whose quantiles coincide has knots at equal distances.
    """

    costs: int = 10
    knots: int = 0
    iterations: int = 1000

    @property
    def name(self) -> str:
        """Name in the tables."""
        return "splines" if self.knots else "logistic"

    def fit(self, rows: RawRows, seed: int) -> tuple[Any, dict[str, Any]]:
        """Choose C on the splits of `milpbn.trials.parts`; by accuracy where a split lacks a class."""
        splits, y = validation_splits(rows.classes, seed), rows.classes
        complete = all(set(y[held]) == set(y[train]) for train, held in splits)
        fit = LogisticRegressionCV(
            Cs=self.costs,
            cv=splits,
            scoring="neg_log_loss" if complete else "accuracy",
            max_iter=self.iterations,
            random_state=seed,
        )
        model = make_pipeline(self._encoder(rows), fit).fit(rows.train, y)
        return model, {"C": float(np.ravel(model[-1].C_)[0]), "by": "log-loss" if complete else "accuracy"}

    def _encoder(self, rows: RawRows) -> Any:
        if not self.knots:
            return rows.encoder((StandardScaler(), rows.numbers))
        grid = np.linspace(0, 1, self.knots)
        even = [n for n in rows.numbers if len(np.unique(rows.train[n].quantile(grid))) < self.knots]
        kinds = {"quantile": [n for n in rows.numbers if n not in even], "uniform": even}
        splines = {kind: SplineTransformer(self.knots, knots=kind, extrapolation="linear") for kind in kinds}
        return rows.encoder(
            *((make_pipeline(splines[kind], StandardScaler()), names) for kind, names in kinds.items())
        )


@dataclass(frozen=True, kw_only=True)
class SupportVectors(RawMethod):
    """Gaussian kernel on standardised numbers and indicators; C and gamma are chosen by accuracy.

    Gamma is a factor over the number of columns. The choice has at most `most` rows. Accuracy is that of the machine.
    Probabilities are fitted to decision values of five folds (`CalibratedClassifierCV`, without an ensemble): a sigmoid
    for two classes, a temperature for more.
    """

    costs: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0, 1000.0)
    factors: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)
    most: int = 5000
    folds: int = 5
    two_classes: str = "sigmoid"
    more_classes: str = "temperature"

    name = "svm"

    def fit(self, rows: RawRows, seed: int) -> tuple[Any, dict[str, Any]]:
        """Choose, fit the machine, and calibrate it."""
        y, frame = rows.classes, rows.train
        few = np.arange(len(y)) if len(y) <= self.most else validation_split(y, self.most / len(y), seed)[1]
        encode = rows.encoder((StandardScaler(), rows.numbers))
        matrix = encode.fit_transform(frame)
        grid = {"C": self.costs, "gamma": [factor / matrix.shape[1] for factor in self.factors]}
        search = GridSearchCV(SVC(cache_size=500), grid, cv=validation_splits(y[few], seed), refit=False)
        chosen = search.fit(matrix[few], y[few]).best_params_
        method = self.two_classes if len(rows.labels) == 2 else self.more_classes
        model = CalibratedClassifierCV(
            SVC(cache_size=500, **chosen),
            method=method,
            cv=stratified_folds(y, self.folds, seed),
            ensemble=False,
        )
        return make_pipeline(encode, model.fit(matrix, y)), chosen

    def predicted(self, model: Any, rows: RawRows) -> NDArray[np.intp]:
        """Return the machine's own predictions."""
        codes: NDArray[np.intp] = (
            model[-1].calibrated_classifiers_[0].estimator.predict(model[0].transform(rows.test))
        )
        return codes


@dataclass(frozen=True, kw_only=True)
class NaiveBayes(RawMethod):
    """Naive Bayes of bins of the numbers with as many rows, and of categories, with Laplace's estimates.

    They are the multinomial model's of all indicators together, whose constants agree if columns have as many states.
    """

    bins: int = 5

    name = "naive-bayes"

    def fit(self, rows: RawRows, seed: int) -> tuple[Any, dict[str, Any]]:
        """Fit."""
        cut = KBinsDiscretizer(self.bins, encode="onehot-dense", strategy="quantile", random_state=seed)
        model = make_pipeline(rows.encoder((cut, rows.numbers), drop=None), MultinomialNB())
        return model.fit(rows.train, rows.classes), {}


def methods(seconds: float) -> dict[str, Method]:
    """Return the methods by name, in the order of the tables; `accurate` has twice the seconds of `readable`."""
    found: Sequence[Method] = (
        Ours(recipe="accurate", seconds=2 * seconds),
        Ours(recipe="readable", seconds=seconds),
        Ebm(),
        Boosting(),
        Forest(),
        Logistic(),
        Logistic(knots=6),
        SupportVectors(),
        NaiveBayes(),
    )
    return {one.name: one for one in found}
