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
    structure : str, default="subset"
        Candidate parents, or a fixed structure: ``subset``, ``all``, ``heuristic-a``, ``heuristic-b``,
        ``heuristic-c``, ``random``, ``chow-liu``, ``naive-bayes``, ``pseudo-subset``, ``pseudo-all`` or
        ``pseudo-heuristic``.
    k : int, default=8
        Maximum number of candidate parents of a feature.
    loss : {"hyb", "nll", "lm", "cll"}, default="hyb"
        Negative log-likelihood, margin loss, hybrid of both, or negative conditional log-likelihood.
    margin_weight : float, default=30.0
        Weight lambda of the margin loss in the hybrid loss.
    gamma : float, default=3.0
        Desired log-margin in nats.
    eta : float, default=10.0
        Sharpness of the softened maximum over the competing classes.
    epochs : int, default=500
        Number of passes over the data.
    batch_size : int, default=100
        Samples per step.
    learning_rate : float, default=0.03
        Learning rate of the parameters in the first epoch; it falls by a factor of 1e-3 over the run.
    structure_rate : float, default=0.001
        Learning rate of the distribution of structures, which is constant.
    init : {"uniform", "ml"}, default="uniform"
        Initial parameters: random, or maximum likelihood.
    smoothing : float, default=1.0
        Laplace constant of the initial parameters ``ml``.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the parameters.
    validation : float, default=0.0
        Share of the samples held out to measure the error during the training.
    averaged_runs : int, default=1
        Number of runs from the same initial parameters whose log-probabilities are averaged.
    ordering, selection : int, default=0
        Numbers of the random ordering, and of the random selection of parents.
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
        """Learn from training data.

        Parameters
        ----------
        X : array-like or data frame, shape (M, N)
            Features.
        y : array-like, shape (M,)
            Class labels of any type.

        Returns
        -------
        self : object
            The fitted classifier.

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
