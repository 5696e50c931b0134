"""The order-based heuristic: its order by definition, its parents by scores from scratch."""

from __future__ import annotations

import numpy as np
import plain_scores
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import dataset, random_data

from milpbn.learners.base import Control
from milpbn.learners.discriminative import family_changes
from milpbn.learners.generative.order_based import OrderLikelihood, OrderMargin, OrderRate, information_order

LEARNERS = [OrderRate(), OrderLikelihood(), OrderMargin(gamma=0.8), OrderMargin(gamma=8.0)]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_the_order_follows_its_definition(seed: int, weights: bool) -> None:
    data = random_data(seed, n_features=6, n_samples=50, weights=weights)
    assert information_order(data) == plain_scores.information_order(data)


def test_features_that_add_nothing_come_by_their_own_information() -> None:
    """The first two features determine the class; of the others the more informative one comes first."""
    rows = [
        (a, b, b if m else 1 - b, a & b if m > 1 else 0, a + 2 * b)
        for a in (0, 1)
        for b in (0, 1)
        for m in range(4)
    ]
    data = dataset(rows)
    order = information_order(data)
    assert sorted(order[:2]) == [0, 1]
    alone = [plain_scores.entropy(data, [i]) for i in range(4)]
    assert order[2:] == sorted(order[2:], key=lambda i: alone[i])
    assert alone[order[2]] < alone[order[3]]


def test_an_interrupted_order_holds_all_features() -> None:
    data = random_data(3, n_features=5, n_samples=40)
    alone = [plain_scores.entropy(data, [i]) for i in range(5)]
    assert information_order(data, stopping=lambda: True) == list(np.argsort(alone))


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.parametrize("evaluation", ["train", "cv"])
@pytest.mark.parametrize("k", [1, 2])
def test_parents_are_those_of_the_plain_search(
    learner, evaluation: str, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family_changes, "PORTION", 200)  # several portions
    arcs = []
    for seed in range(3):
        data = random_data([16, seed], n_features=5, n_samples=60, weights=bool(seed % 2)).merged
        zero = 1e-5 if seed == 2 else None
        fold = plain_scores.folds_of(data, seed) if evaluation == "cv" else None
        gamma = getattr(learner, "gamma", 1.0)
        parents, value = plain_scores.order_based(
            data, learner.criterion, k, gamma=gamma, zero=zero, fold=fold
        )
        own = type(learner)(
            **({"gamma": gamma} if hasattr(learner, "gamma") else {}),
            evaluation=evaluation,
            zero_probability=zero,
            max_feature_parents=k,
        )
        learned = own.fit(data, Control(random_state=seed))
        assert learned.structure.parents == (*((*p, 5) for p in parents), ())
        assert learned.details["final_score"] == pytest.approx(value, abs=1e-9)
        order = plain_scores.information_order(data)
        assert learned.details["order"] == [data.names[i] for i in order]
        arcs.append(max(map(len, parents)))
    assert max(arcs) == k
