"""Published test errors of closed-form classifiers (Roth & Pernkopf 2020, Table 1), to the digit."""

from __future__ import annotations

import numpy as np
import pytest

from milpbn.learners.generative.forests import NaiveBayes, Tan
from milpbn.network.evaluation import accuracy


@pytest.mark.parametrize(
    ("name", "naive_bayes", "tan"),
    [("letter", 25.89, 15.23), ("satimage", 17.95, 11.90), ("usps", 13.11, 8.74)],
)
def test_test_errors_are_the_published_ones(image_folds, name: str, naive_bayes: float, tan: float) -> None:
    errors = [
        [100 * (1 - accuracy(learner.fit(train).predictor, test)) for learner in (NaiveBayes(), Tan())]
        for train, test in image_folds(name)
    ]
    mean = np.mean(errors, axis=0)
    assert (round(mean[0], 2), round(mean[1], 2)) == (naive_bayes, tan)
