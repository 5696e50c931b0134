"""Tree-augmented naive Bayes as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from milpbn.estimators.inputs import Columns
from milpbn.estimators.learnt import WeightedClassifier
from milpbn.learners.base import Learner
from milpbn.learners.generative.tan import Tan


class TANClassifier(WeightedClassifier):
    """Tree-augmented naive Bayes (Friedman, Geiger & Goldszmidt 1997): naive Bayes plus a tree of the features.

    The tree is a maximum spanning tree under conditional mutual information. With a penalty it becomes a forest.

    Parameters
    ----------
    penalty : {"none", "bic", "aic", "aicc", "holdout"}, default="none"
        How the number of edges is chosen. ``holdout`` splits rows at random, so that a row of weight 2 may differ
        from two rows.
    root : str or None, default=None
        Feature at the root of the tree; by default the first one.
    holdout : float, default=0.2
        Share of the rows held out with the penalty ``holdout``.
    smoothing : float, default=1.0
        Laplace constant of the parameters.
    smoothing_towards : {"uniform", "marginal", "class"}, default="uniform"
        Mean of the parameters' prior.
    parameters : str or None, default=None
        How the parameters are fitted: ``ml``, ``cll``, ``hybrid`` or ``temperature``. None and ``ml`` give smoothed
        relative frequencies.
    time_limit : float or None, default=None
        Seconds for the penalty ``aicc``, which solves a small MILP, and for the parameters.
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
        Seed of splits of rows.
    n_jobs : int or None, default=None
        Threads of the MILP solver; None means 1, and -1 all cores.

    Attributes
    ----------
    classes_ : array, shape (C,)
        Class labels, sorted, of the type of y.
    classifier_ : Classifier
        The model; `milpbn.network.save_classifier` writes it.
    structure_ : dict of str to list of str
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
    >>> from milpbn.sklearn import TANClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> TANClassifier().fit(X, y).predict(X[:2])
    array([0, 0])
    """

    def __init__(
        self,
        *,
        penalty: str = "none",
        root: str | None = None,
        holdout: float = 0.2,
        smoothing: float = 1.0,
        smoothing_towards: str = "uniform",
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
        self.penalty = penalty
        self.root = root
        self.holdout = holdout
        self.smoothing = smoothing
        self.smoothing_towards = smoothing_towards
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

    def _learner(self) -> Learner:
        return Tan(
            smoothing=self.smoothing,
            smoothing_towards=self.smoothing_towards,
            penalty=self.penalty,
            root=self.root,
            holdout=self.holdout,
        )
