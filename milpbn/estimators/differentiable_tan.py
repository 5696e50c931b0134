"""Differentiable TAN as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from milpbn.estimators.inputs import Columns
from milpbn.estimators.learnt import LearntClassifier
from milpbn.learners.base import Learner
from milpbn.learners.differentiable.learner import DifferentiableTan


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
    drop, features : collection of str or int, default=None
        Columns of X to leave out, and the only columns to use, by name or by position. By default all columns are
        features, except those of a data frame that look like identifiers, dates or free text.
    continuous, nominal : collection of str or int, default=None
        Features declared as continuous and as nominal, by name or by position. Of the others, floats are continuous,
        text, booleans and categoricals are nominal, and integers are nominal if they have at most 10 different values.
    missing : {"drop", "state", "error"}, default="drop"
        What to do with missing values in training: drop the rows that have any (with a `milpbn.DataWarning`, and their
        number in ``n_dropped_``), give those of a feature a state of their own, or refuse them. Unless it is "error",
        predictions take missing values, too: they have that state, or else are marginalised.
    states : {"seen", "declared"}, default="seen"
        Whether the states of a pandas categorical are the values of the training rows, or all of its categories.
    absent_columns : {"error", "marginalise"}, default="error"
        What to do at prediction if a data frame lacks features: refuse it as scikit-learn does, or sum over their
        states, with a `milpbn.DataWarning`. Columns that training left out may always be absent.
    discretise : str, default="mdl"
        How continuous features are cut into intervals: ``mdl``, ``quantile:K``, ``uniform:K`` or ``kmeans:K``.
    class_weight : dict, "balanced" or None, default=None
        Factors on the sample weights by class label.
    random_state : int, RandomState or None, default=0
        Seed.
    n_jobs : int or None, default=None
        Threads; None means 1, and -1 all cores.

    Attributes
    ----------
    classes_ : array, shape (C,)
        Class labels, sorted, of the type of y.
    classifier_ : Classifier or PseudoClassifier
        The model; `milpbn.network.save_classifier` writes it.
    structure_ : dict of str to list of str or None
        Parents of every variable, the class included. Columns of arrays are called ``x0``, ``x1``, ..., and the class
        has the name of y, or is called ``class``.
    n_dropped_ : int
        Number of training rows that were dropped because values are missing.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str, shape (N,)
        Names of the features, if X has column names that are all text.
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

    def __init__(
        self,
        *,
        structure: str = "subset",
        k: int = 8,
        loss: str = "hyb",
        margin_weight: float = 30.0,
        gamma: float = 3.0,
        eta: float = 10.0,
        epochs: int = 500,
        batch_size: int = 100,
        learning_rate: float = 3e-2,
        structure_rate: float = 1e-3,
        init: str = "uniform",
        smoothing: float = 1.0,
        dtype: str = "float32",
        validation: float = 0.0,
        averaged_runs: int = 1,
        ordering: int = 0,
        selection: int = 0,
        parameters: str | None = None,
        time_limit: float | None = None,
        drop: Columns = None,
        features: Columns = None,
        continuous: Columns = None,
        nominal: Columns = None,
        missing: str = "drop",
        states: str = "seen",
        absent_columns: str = "error",
        discretise: str = "mdl",
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.structure = structure
        self.k = k
        self.loss = loss
        self.margin_weight = margin_weight
        self.gamma = gamma
        self.eta = eta
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.structure_rate = structure_rate
        self.init = init
        self.smoothing = smoothing
        self.dtype = dtype
        self.validation = validation
        self.averaged_runs = averaged_runs
        self.ordering = ordering
        self.selection = selection
        self.parameters = parameters
        self.time_limit = time_limit
        self.drop = drop
        self.features = features
        self.continuous = continuous
        self.nominal = nominal
        self.missing = missing
        self.states = states
        self.absent_columns = absent_columns
        self.discretise = discretise
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs

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
        own = self.get_params()
        options = {field.name: own[field.name] for field in fields(DifferentiableTan) if field.name in own}
        return DifferentiableTan(lambda_=self.margin_weight, **options)
