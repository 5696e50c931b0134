"""Base of the classifiers that a learner of `milpbn.learners` fits."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Self

from milpbn.data import Table
from milpbn.estimators.base import BaseBNClassifier
from milpbn.estimators.inputs import seed, threads
from milpbn.learners.base import Control, Learner
from milpbn.learners.parameters import learn_with_parameters
from milpbn.util import interrupts


class LearntClassifier(BaseBNClassifier):
    """A classifier whose structure and parameters a learner finds; a subclass names the learner.

    Parameters of the estimator with the name of an option of the learner are passed on.
    """

    _kind: ClassVar[Any]  # a subclass of `Learner`, which is a dataclass

    def _learner(self) -> Learner:
        """Return the learner with its options."""
        own, kind = self.get_params(), self._kind
        learner: Learner = kind(**{item.name: own[item.name] for item in fields(kind) if item.name in own})
        return learner

    def _learn(self, table: Table) -> None:
        """Fit the learner to the rows of a table, and set the fitted attributes."""
        with interrupts.handled(), interrupts.deferred():
            control = Control(
                random_state=seed(getattr(self, "random_state", 0)),
                time_limit=getattr(self, "time_limit", None),
                n_jobs=threads(getattr(self, "n_jobs", None)),
                parameters=None if self.parameters in (None, "own") else self.parameters,
                verbose=False,
            )
            learned = learn_with_parameters(self._learner(), table.dataset("train"), control)
        fitted: dict[str, Any] = self._fitted(learned.predictor, learned.structure)  # type: ignore[arg-type]
        self._set({**fitted, "details_": dict(learned.details)})
        self.feature_importances_ = self._importances(table)


class WeightedClassifier(LearntClassifier):
    """A learnt classifier whose learner takes weights of rows."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from training data, and return the fitted classifier itself.

        Parameters
        ----------
        X : array-like or data frame, shape (M, N)
            Features.
        y : array-like, shape (M,)
            Class labels of any type.
        sample_weight : array-like, shape (M,), optional
            Weights. A weight of 2 is the same as two rows, and a weight of 0 the same as none.

        Raises
        ------
        ValueError
            If data or options are unusable (`milpbn.InputError` and scikit-learn's own errors).
        """
        self._learn(self._table(X, y, sample_weight))
        return self
