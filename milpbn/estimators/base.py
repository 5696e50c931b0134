"""What all classifiers share: reading of X and y, labels of y's own type, predictions and their explanations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from milpbn.data import Table
from milpbn.data.dataset import MISSING, UNKNOWN, Dataset, by_column
from milpbn.data.encodings import Encodings, encodings_of
from milpbn.data.frames import warn_of_order
from milpbn.data.weights import require_range
from milpbn.errors import InputError
from milpbn.estimators.inputs import (
    class_texts,
    label_type_of,
    labels,
    seed,
    states_of_classes,
    weights_of_classes,
    weights_of_rows,
)
from milpbn.estimators.network import NetworkEstimator
from milpbn.estimators.parameters import ClassifierParameters
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.classifier import Classifier
from milpbn.network.credible import DRAWS
from milpbn.network.margins import log_posterior
from milpbn.network.parameters.sets import calibrate_sets
from milpbn.network.predictor import JointPredictor
from milpbn.network.structure import Structure

#: Name of the class variable where y has none.
CLASS = "class"
#: Importances are computed on at most so many training rows, and on fewer if these times the columns are more than
#: `CHANGED`, but on at least `FEWEST`: fits with 500 columns took a minute longer than their limit.
ROWS, CHANGED, FEWEST = 2000, 100_000, 200


def _has_joint(estimator: Any) -> bool:
    """Return whether the model has joint probabilities, as far as is known before a fit; an average has none."""
    return hasattr(getattr(estimator, "classifier_", Classifier), "predict_log_joint")


class BaseBNClassifier(ClassifierParameters, ClassifierMixin, NetworkEstimator):
    """Base of the classifiers. A subclass is an `estimator` with a `fit`.

    Notes
    -----
    Private attributes are fitted, too: the label of each class in `classifier_`, the code of its state there, and the
    positions of the features in X. Columns of a data frame that look like identifiers, dates or free text are no
    features.
    """

    def _table(self, X: Any, y: Any, sample_weight: Any) -> Table:
        """Check training data, set `classes_`, and return them as a table of rows with positive weight."""
        frame = self._features(X, y)
        names = [str(name).strip() for name in frame.columns]
        name = getattr(y, "name", None)
        target = CLASS if name is None else str(name).strip() or CLASS
        while target in names:
            target += "_"
        y = labels(self, y, len(frame))
        warn_of_order(X, sample_weight, "sample_weight")
        weights = weights_of_rows(sample_weight, frame)
        present = weights > 0  # rows of weight 0 count as absent, also their values and classes
        frame, y, weights = frame[present].reset_index(drop=True), y[present], weights[present]

        classes, codes = np.unique(y, return_inverse=True)
        texts = class_texts(classes)
        of_rows = pd.Series(texts, dtype=object).take(codes).to_numpy()
        table = self._read(X, frame.assign(**{target: of_rows}), weights, target)
        kept = np.asarray(table.frame.index)
        left = np.unique(codes[kept])
        if len(left) < 2:
            gone = len(frame) - len(kept)
            dropped = f" Rows dropped for missing values: {gone} of {len(frame)}; missing='state' keeps them."
            raise InputError(
                f"There is one class only in the training data ({texts[left[0]]!r}); a classifier needs at least two."
                + (dropped if gone else "")
            )
        if self.class_weight is not None:
            table = table.reweighted(weights_of_classes(self.class_weight, y[kept], table.weights))
        require_range(table.weights, "The products of sample weights and class weights")
        self.classes_, self._class_texts = classes[left], [texts[k] for k in left]
        return table.changed(label_type=label_type_of(classes))

    def _fitted(
        self, predictor: JointPredictor | AveragedClassifier, structure: Structure | None
    ) -> dict[str, Any]:
        """Return the fitted attributes that all classifiers have, by name."""
        if self.costs is not None:
            predictor = predictor.deciding(self.costs)
        return {
            "classifier_": predictor,
            "structure_": None if structure is None else structure.to_mapping(),
            "_class_states": states_of_classes(predictor.variables[-1], self._class_texts),
        }

    def _importances(self, table: Table) -> NDArray[np.float64]:
        """Return how much the class probabilities of training rows change where a column of X is unknown, shape (N,).

        It is the mean, over at most `ROWS` rows, of half the sum of the absolute changes, between 0 and 1. What
        is unknown is summed over.
        """
        data = self.classifier_.encode(table)
        most = max(FEWEST, min(ROWS, CHANGED // self.n_features_in_))
        data = data.take(np.linspace(0, data.n_samples - 1, min(most, data.n_samples)).astype(np.intp))
        known, found = self.classifier_.predict_proba(data), np.zeros(self.n_features_in_)
        for place, k in enumerate(self._kept):
            parts = ((part, list(by_column(part.variables).values())[place]) for part in encodings_of(data))
            without = Encodings.of([_changed(part, columns, MISSING) for part, columns in parts])
            changes = np.abs(known - self.classifier_.predict_proba(without)).sum(axis=1) / 2
            found[k] = np.average(changes, weights=data.weights)
        return found

    @available_if(_has_joint)
    def predict_joint_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return joint log-probabilities; X is as for `score_samples`.

        Returns
        -------
        float64 array, shape (M, C)
            log P(c, x) in nats, in the order of ``classes_``.
        """
        data = self._encoded(X)
        return self.classifier_.predict_log_joint(data)[:, self._class_states]

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithms of the class probabilities; X is as for `score_samples`.

        Returns
        -------
        float64 array, shape (M, C)
            log P(c | x) in nats; uniform where the probability of x is 0 for every class.
        """
        data = self._encoded(X)
        if _has_joint(self):
            return log_posterior(self.classifier_.predict_log_joint(data)[:, self._class_states])
        return self.classifier_.predict_log_posterior(data)[:, self._class_states]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return class probabilities; X is as for `score_samples`.

        Returns
        -------
        float64 array, shape (M, C)
            P(c | x), in the order of ``classes_``.
        """
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the log-odds of the second class, or the logarithms of all classes' probabilities.

        X is as for `score_samples`.

        Returns
        -------
        float64 array, shape (M,) for two classes, else (M, C)
            log P(c | x), of two classes minus that of the first, in nats.
        """
        logs = np.maximum(self.predict_log_proba(X), np.finfo(np.float64).min / 2)
        return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each sample, or with `costs` that of least expected cost.

        Ties go to the first class. X is as for `score_samples`.

        Returns
        -------
        array, shape (M,)
            Labels, of the type of y; with ``abstain`` among the costs objects, and "do not know" where that costs less.
        """
        if self.costs is not None:
            logs = self.classifier_.predict_log_scores(self._encoded(X))
            return self.classifier_.answered(logs, self.classes_[np.argsort(self._class_states)])
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def calibrate_sets(self, X: Any, y: Any, sample_weight: Any = None, *, on: str = "new") -> Self:
        """Calibrate the sets of `predict_set`, and return the classifier itself.

        The rows are as for `fit`: ``new`` ones that `fit` has not seen, or those of `fit` (``folds``,
        ``leave-one-out``); see `milpbn.network.parameters.sets.calibrate_sets`. With class weights, the latter are for
        rows that are weighed by these.
        """
        check_is_fitted(self)
        data = self._labelled(X, y)
        weights = weights_of_rows(sample_weight, self._checked(X, reset=False))
        if on != "new":
            weights = weights_of_classes(self.class_weight, np.asarray(y), weights)
        data = Encodings.of([replace(part, weights=weights) for part in encodings_of(data)])
        self._set({"classifier_": calibrate_sets(self.classifier_, data, on)})
        return self

    def predict_set(self, X: Any, error: float = 0.1, *, by_class: bool = False) -> NDArray[np.bool_]:
        """Return which classes are in the prediction set of each sample, after `calibrate_sets`.

        X is as for `score_samples`; `milpbn.Classifier.predict_set` describes the others.

        Returns
        -------
        bool array, shape (M, C)
            In the order of ``classes_``.
        """
        data = self._encoded(X)
        return self.classifier_.predict_set(data, error, by_class=by_class)[:, self._class_states]

    def predict_interval(
        self, X: Any, share: float = 0.95, *, draws: int = DRAWS, random_state: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of intervals of the class probabilities, because the tables come from so few rows.

        X is as for `score_samples`; `milpbn.Classifier.predict_interval` describes the others. Both ends have the shape
        (M, C), in the order of ``classes_``. Raises ValueError if the probabilities have none: those of an average, or
        of tables that are fitted to the classes.
        """
        found = self.classifier_.predict_interval(
            self._encoded(X), share, draws=draws, random_state=random_state
        )
        low, high = (ends[:, self._class_states] for ends in found)
        return low, high

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[pd.DataFrame, NDArray[Any]]:
        """Draw samples from the joint distribution of features and class.

        Parameters
        ----------
        n_samples : int
            Number of samples.
        random_state : int, RandomState or None
            Seed; None draws other samples each time.

        Returns
        -------
        X : DataFrame, shape (n_samples, N)
            Labels of the features' states as text; continuous features have intervals.
        y : array, shape (n_samples,)
            Classes, of the type of y in training.

        Raises
        ------
        ValueError
            If the model is not one Bayesian network, such as an average.
        """
        check_is_fitted(self)
        data = self._queries().sample(n_samples, random_state=seed(random_state)).of_columns()
        X = pd.DataFrame(data.labels[:, :-1], columns=list(data.names[:-1]))
        return X, self.classes_[np.argsort(self._class_states)[data.y]]

    def explain_local(self, X: Any, *, label: Any = None, against: Any = None) -> tuple[Any, ...]:
        """Explain the prediction of every sample: the log-odds of two classes as an exact sum over features.

        Parameters
        ----------
        X : array-like or data frame, shape (M, N)
            Features.
        label, against : optional
            The classes to compare, of the type of y; by default the most probable ones of the sample.

        Returns
        -------
        tuple of `milpbn.network.explanation.LocalExplanation`, length M
            `print` shows one as text. Class labels are text there. Of an average of networks, the explanations of its
            networks.

        Raises
        ------
        ValueError
            If X is unusable, or a label is not a class.
        """
        data = self._encoded(X)
        return self.classifier_.explain_local(
            data, label=self._text_of(label), against=self._text_of(against)
        )

    def explain_global(self, X: Any = None, y: Any = None, *, gamma: float | None = None) -> Any:
        """Explain the model: the log-ratios of every family, and on data also importances and margins.

        Parameters
        ----------
        X : array-like or data frame, shape (M, N), optional
            Features, for importances.
        y : array-like, shape (M,), optional
            Class labels, for margins.
        gamma : float, optional
            Desired log-margin in nats; samples below it are listed. By default the one of the fit, if it had one.

        Returns
        -------
        `milpbn.network.explanation.GlobalExplanation`
            `print` shows it as text. Of an average of networks, the explanations of its networks.

        Raises
        ------
        ValueError
            If X or y are unusable.
        """
        check_is_fitted(self)
        if X is None:
            if y is not None:
                raise InputError("y without X explains nothing; give the features, too.")
            return self.classifier_.explain_global()
        data = self._encoded(X) if y is None else self._labelled(X, y)
        return self.classifier_.explain_global(data, gamma=gamma)

    def _labelled(self, X: Any, y: Any) -> Dataset:
        """Return checked features as the model reads them, with the classes of the rows."""
        data, states = self._encoded(X), self._states()
        codes = [states.get(label, UNKNOWN) for label in labels(self, y, data.n_samples).tolist()]
        if not any(code != UNKNOWN for code in codes):
            raise InputError(
                f"No label of y is one of the classes, which are {list(states)}; give y its type."
            )
        return Encodings.of([_changed(part, -1, codes) for part in encodings_of(data)])

    def _states(self) -> dict[Any, int]:
        """Return the state in the model of each class label."""
        return dict(zip(self.classes_.tolist(), self._class_states.tolist(), strict=True))

    def _text_of(self, label: Any) -> str | None:
        """Return the text of a class label in the model; None for None."""
        if label is None:
            return None
        states = self._states()
        if label not in states:
            raise InputError(f"{label!r} is not a class; the classes are {list(states)}.")
        return str(self.classifier_.classes[states[label]])


def _changed(data: Dataset, columns: int | list[int], codes: list[int] | int) -> Dataset:
    """Return samples with other codes of a variable, or of several."""
    changed = data.codes.copy()
    changed[:, columns] = codes
    return replace(data, codes=changed)
