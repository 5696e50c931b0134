"""Differentiable TAN as a scikit-learn classifier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from milpbn.estimators.learnt import LearntClassifier
from milpbn.estimators.parameters import estimator
from milpbn.learners.base import Learner
from milpbn.learners.differentiable.learner import DifferentiableTan


@estimator
class DifferentiableTANClassifier(LearntClassifier):
    """TAN structure and parameters learnt together by gradient descent (Roth & Pernkopf 2020).

    It has no `sample_weight`: a step of the training takes some rows at random, and two rows are not one row of
    weight 2 there. `class_weight` multiplies the losses of the rows.

    Parameters
    ----------
    {options}
    margin_weight : float, default=30.0
        Weight lambda of the margin loss in the hybrid loss.
    parameters : str or None, default=None
        Fit other parameters to the structure afterwards: ``ml``, ``cll``, ``hybrid`` or ``temperature``.
    time_limit : float or None, default=None
        Seconds, after which the training stops with what it has.
    {data}
    random_state : int, RandomState or None, default=0
        Seed.
    n_jobs : int or None, default=None
        Threads; None means 1, and -1 all cores.

    Attributes
    ----------
    {fitted}
    classifier_ : Classifier or PseudoClassifier
        The model; `milpbn.network.save_classifier` writes it.
    details_ : dict
        What the learner says about its run.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from milpbn.sklearn import DifferentiableTANClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> DifferentiableTANClassifier(epochs=20).fit(X, y).score(X, y) > 0.9
    True
    """

    _kind = DifferentiableTan
    structure: str = "subset"
    k: int = 8
    loss: str = "hyb"
    margin_weight: float = 30.0
    gamma: float = 3.0
    eta: float = 10.0
    epochs: int = 500
    batch_size: int = 100
    learning_rate: float = 3e-2
    structure_rate: float = 1e-3
    init: str = "uniform"
    smoothing: float = 1.0
    dtype: str = "float32"
    validation: float = 0.0
    averaged_runs: int = 1
    ordering: int = 0
    selection: int = 0
    parameters: str | None = None
    time_limit: float | None = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any) -> DifferentiableTANClassifier:
        """Learn from training data, and return the fitted classifier itself.

        Parameters
        ----------
        X : array-like or data frame, shape (M, N)
            Features.
        y : array-like, shape (M,)
            Class labels of any type.

        Raises
        ------
        ValueError
            If data or options are unusable (`milpbn.InputError` and scikit-learn's own errors).
        """
        self._learn(self._table(X, y, None))
        return self

    def _learner(self) -> Learner:
        learner: Any = super()._learner()
        return cast(Learner, replace(learner, lambda_=self.margin_weight))
