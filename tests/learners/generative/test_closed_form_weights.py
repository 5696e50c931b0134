"""A sample of weight 2 is as good as two samples, for all generative learners."""

from __future__ import annotations

import numpy as np
import pytest
from learner_cases import duplicated, log_joint
from running import random_data

from milpbn.learners.generative.exact import Exact
from milpbn.learners.generative.forests import ChowLiu, NaiveBayes, Tan
from milpbn.learners.generative.hill_climbing import HillClimbing
from milpbn.learners.generative.multinet import MultinetLearner
from milpbn.learners.generative.orders import AllOrders, OrderSearch
from milpbn.learners.generative.stochastic import Stochastic

FORESTS = [kind(penalty=name) for kind in (ChowLiu, Tan) for name in ("none", "bic", "aic", "aicc")]
MULTINETS = [MultinetLearner(penalty=name) for name in ("none", "bic")]


@pytest.mark.parametrize(
    "learner",
    [NaiveBayes(), *FORESTS, *MULTINETS, HillClimbing(), OrderSearch(), AllOrders(), Stochastic(), Exact()],
    ids=str,
)
def test_copies_equal_weights(learner) -> None:
    weighted, copied = duplicated(random_data(9, n_features=4, n_samples=60))
    a, b = learner.fit(weighted), learner.fit(copied)
    assert a.structure == b.structure
    assert a.details.get("score") == pytest.approx(b.details.get("score"), abs=1e-8)
    np.testing.assert_allclose(log_joint(a, weighted), log_joint(b, weighted), atol=1e-10)
    if learner in FORESTS:
        assert a.structure != learner.fit(random_data(10, n_features=4, n_samples=60)).structure
