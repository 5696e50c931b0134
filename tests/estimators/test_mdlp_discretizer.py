from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline

import milpbn
from milpbn.sklearn import MDLPDiscretizer, NaiveBayesClassifier


def test_the_cuts_are_those_of_tables() -> None:
    X, y = load_iris(return_X_y=True)
    cuts = MDLPDiscretizer().fit(X, y).cuts_
    data = milpbn.read_table((X, y)).dataset()
    assert [tuple(c) for c in cuts] == [v.cuts for v in data.variables[:-1]]
    codes = MDLPDiscretizer().fit_transform(X, y)
    assert codes.dtype == np.int64
    assert np.array_equal(codes, data.X)


def test_weights_are_copies() -> None:
    X, y = load_iris(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = MDLPDiscretizer().fit(X, y, sample_weight=weights)
    repeated = MDLPDiscretizer().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert all(map(np.array_equal, weighted.cuts_, repeated.cuts_))
    assert weighted.n_bins_.tolist() == [len(c) + 1 for c in weighted.cuts_]


def test_output_as_a_frame() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    frame = MDLPDiscretizer().set_output(transform="pandas").fit_transform(X, y)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(X.columns)
    assert frame.index.equals(X.index)


def test_before_a_classifier_of_discrete_features() -> None:
    X, y = load_iris(return_X_y=True)
    own = make_pipeline(MDLPDiscretizer(), NaiveBayesClassifier()).fit(X, y)
    assert np.allclose(own.predict_proba(X), NaiveBayesClassifier().fit(X, y).predict_proba(X))
    assert own[-1].classifier_.variables[0].cuts is None
    other = make_pipeline(MDLPDiscretizer(), CategoricalNB()).fit(X, y)
    assert other.score(X, y) > 0.9
