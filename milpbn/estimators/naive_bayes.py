"""Naive Bayes as a scikit-learn classifier."""

from __future__ import annotations

from milpbn.estimators.learnt import WeightedClassifier
from milpbn.estimators.parameters import estimator
from milpbn.learners.generative.forests import NaiveBayes


@estimator
class NaiveBayesClassifier(WeightedClassifier):
    """Naive Bayes over discrete and discretised features: the class is the only parent of every feature.

    Parameters
    ----------
    {options}
    {parameters}
    time_limit : float or None, default=None
        Seconds for the parameters.
    {data}
    random_state : int, RandomState or None, default=0
        Seed of the folds on which ``hybrid`` chooses its strength.

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
    >>> from milpbn.sklearn import NaiveBayesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> NaiveBayesClassifier().fit(X, y).predict(X[:2])
    array([0, 0])
    """

    _kind = NaiveBayes
    smoothing: float = 1.0
    smoothing_towards: str = "uniform"
    parameters: str | None = None
    time_limit: float | None = None
