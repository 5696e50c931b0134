"""Tree-augmented naive Bayes as a scikit-learn classifier."""

from __future__ import annotations

from milpbn.estimators.learnt import WeightedClassifier
from milpbn.estimators.parameters import estimator
from milpbn.learners.generative.forests import Tan


@estimator
class TANClassifier(WeightedClassifier):
    """Tree-augmented naive Bayes (Friedman, Geiger & Goldszmidt 1997): naive Bayes plus a tree of the features.

    The tree is a maximum spanning tree under conditional mutual information. With a penalty it becomes a forest. The
    penalty ``holdout`` splits rows at random, so that a row of weight 2 may differ from two rows.

    Parameters
    ----------
    {options}
    {parameters}
    time_limit : float or None, default=None
        Seconds for the penalty ``aicc``, which solves a small MILP, and for the parameters.
    {data}
    random_state : int, RandomState or None, default=0
        Seed of splits of rows.
    n_jobs : int or None, default=None
        Threads of the MILP solver; None means 1, and -1 all cores.

    Attributes
    ----------
    {fitted}
    classifier_ : Classifier
        The model; `milpbn.network.save_classifier` writes it.
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

    _kind = Tan
    penalty: str = "none"
    root: str | None = None
    holdout: float = 0.2
    smoothing: float = 1.0
    smoothing_towards: str = "uniform"
    parameters: str | None = None
    time_limit: float | None = None
    n_jobs: int | None = None
