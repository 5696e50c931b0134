"""Naive Bayes against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from learner_cases import log_joint
from running import random_data

from milpbn.errors import InputError
from milpbn.learners.generative.forests import NaiveBayes, Tan
from milpbn.network.classifier import Classifier
from milpbn.network.structure import Structure


@pytest.mark.parametrize("smoothing", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("weights", [False, True])
def test_posteriors_are_those_of_scikit_learn(smoothing: float, weights: bool) -> None:
    from sklearn.naive_bayes import CategoricalNB

    data = random_data([5, weights], n_features=5, n_samples=60, weights=weights)
    learned = NaiveBayes(smoothing=smoothing).fit(data)
    assert learned.structure == Structure.naive_bayes(data.names)
    prior = np.bincount(data.y, weights=data.weights) + smoothing  # scikit-learn does not smooth the classes
    other = CategoricalNB(alpha=smoothing, class_prior=prior / prior.sum(), min_categories=data.n_states[:-1])
    other.fit(data.X, data.y, sample_weight=data.weights)
    np.testing.assert_allclose(
        learned.predictor.predict_proba(data),  # type: ignore[attr-defined]
        other.predict_proba(data.X),
        atol=1e-12,
    )
    np.testing.assert_allclose(log_joint(learned, data), other.predict_joint_log_proba(data.X), atol=1e-10)


def test_the_prior_is_that_of_the_parameters() -> None:
    data = random_data(8, n_samples=40)
    learner = Tan(smoothing=0.5, smoothing_towards="class")
    learned = learner.fit(data)
    expected = Classifier.fit(data, learned.structure, 0.5, smoothing_towards="class")
    np.testing.assert_array_equal(log_joint(learned, data), expected.predict_log_joint(data))
    assert (log_joint(learned, data) != log_joint(Tan(smoothing=0.5).fit(data), data)).any()
    with pytest.raises(InputError, match="smoothing_towards changes nothing with smoothing 0"):
        Tan(smoothing=0.0, smoothing_towards="class").fit(data)
    with pytest.raises(InputError, match="uniform, marginal or class"):
        NaiveBayes(smoothing_towards="parents").fit(data)


def test_unknown_values_and_negative_smoothing_are_refused() -> None:
    data = random_data(7)
    with pytest.raises(InputError, match="smoothing"):
        NaiveBayes(smoothing=-1.0).fit(data)
    codes = data.codes.copy()
    codes[3, 1] = -1
    with pytest.raises(InputError, match="X2"):
        NaiveBayes().fit(type(data)("test", data.variables, codes, data.weights))
