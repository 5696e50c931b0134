"""Classifiers that see raw columns: those of `milpbn compare --raw` and naive Bayes, as methods of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

from milpbn.experiments.base import Figures, Method, MethodInput
from milpbn.experiments.protocol import Part
from milpbn.learners.raw_peers import Ebm, RawBoosting, RawForest, RawLogistic, RawPeer, RawSvm, Splines
from milpbn.learners.raw_rows import RawData, RawRows
from milpbn.network.calibration import calibration_error, log_losses, reliability_curve, squared_errors
from milpbn.solving.selection import solve_selected


def rows_of(part: Part) -> tuple[RawRows, pd.DataFrame]:
    """Return the training rows of a part, and the features of its test rows; columns are what their catalogs say."""
    table, train = replace(part.table, few_integers=()), part.train
    test = RawData.of(part.test, table, part.test_rows)
    return RawRows.of(RawData.of(train, table, part.train_rows)), test.frame


@dataclass(frozen=True, kw_only=True)
class RawMethod(Method):
    """A learner on raw columns of `milpbn compare --raw`."""

    learner: RawPeer

    @property
    def name(self) -> str:
        """Name in the tables."""
        return "forest" if self.learner.name == "random-forest" else self.learner.name

    @property
    def options(self) -> dict[str, Any]:
        """The settings of the learner, and what it chooses from."""
        kind = type(self.learner)
        names = {
            name for base in kind.__mro__[: kind.__mro__.index(RawPeer)] for name in base.__annotations__
        }
        return {name: getattr(self.learner, name) for name in sorted(names - {"extra"})}

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Fit, and judge the test rows."""
        part = given.part
        assert isinstance(part, Part)
        rows, test = rows_of(part)
        model, choice = self.learner.fitted(rows, given.seed)
        labels = part.train.variables[-1].states
        probabilities = np.zeros((len(test), len(labels)))
        probabilities[:, model.classes_] = model.predict_proba(test)
        predicted = self.learner.predicted(model, test)
        return judged(probabilities, predicted, test_classes(part, labels)) | {"choice": choice}


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
class NaiveBayes(RawPeer):
    """Naive Bayes of bins of the numbers with as many rows, and of categories, with Laplace's estimates.

    They are the multinomial model's of all indicators together, whose constants agree if columns have as many states.
    """

    bins: int = 5

    name = "naive-bayes"
    summary = "Naive Bayes of five bins of the numbers."
    reference = "scikit-learn, MultinomialNB."

    def choose(self, rows: RawRows, random_state: int, n_jobs: int) -> tuple[Any, dict[str, Any]]:
        """Fit."""
        cut = KBinsDiscretizer(
            self.bins, encode="onehot-dense", strategy="quantile", random_state=random_state
        )
        model = make_pipeline(rows.encoder((cut, rows.numbers), drop=None), MultinomialNB())
        return model.fit(rows.frame, rows.classes), {}

    def size(self, model: Any) -> int:
        """Return the number of log-probabilities."""
        return int(model[-1].feature_log_prob_.size)


def methods(seconds: float) -> dict[str, Method]:
    """Return the methods by name, in the order of the tables; `accurate` has twice the seconds of `readable`."""
    peers = (Ebm(), RawBoosting(), RawForest(), RawLogistic(), Splines(), RawSvm(), NaiveBayes())
    found: Sequence[Method] = (
        Ours(recipe="accurate", seconds=2 * seconds),
        Ours(recipe="readable", seconds=seconds),
        *(RawMethod(learner=peer) for peer in peers),
    )
    return {one.name: one for one in found}
