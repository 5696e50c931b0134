"""Greedy hill climbing takes the path of the plain one; what all discriminative searches share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import plain_scores
import pytest
from running import random_data

from milpbn.errors import InputError
from milpbn.heuristics.spanning import tan_structure
from milpbn.learners.base import Control
from milpbn.learners.discriminative import learner as discriminative
from milpbn.learners.discriminative.annealing import Annealing
from milpbn.learners.discriminative.margin_search import GreedyLikelihood, GreedyMargin, GreedyRate
from milpbn.learners.generative.order_based import OrderLikelihood, OrderMargin, OrderRate
from milpbn.network import Classifier, Structure, evaluate
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import DEFAULT_P, Score, gamma_from_p

GREEDY = [GreedyRate(), GreedyLikelihood(), GreedyMargin(gamma=0.8), GreedyMargin(gamma=8.0)]
ALL = [*GREEDY[:3], OrderRate(), OrderLikelihood(), OrderMargin(max_feature_parents=2), Annealing(steps=200)]


def names_of(learners) -> list[str]:
    return [type(learner).__name__ for learner in learners]


@pytest.mark.parametrize("learner", GREEDY, ids=str)
@pytest.mark.parametrize("evaluation", ["train", "cv"])
@pytest.mark.parametrize("zero", [None, 1e-5])
def test_path_is_that_of_the_plain_search(learner, evaluation: str, zero: float | None) -> None:
    lengths = []
    for seed in range(2):
        data = random_data([7, seed], n_features=5, n_samples=60, weights=bool(seed % 2)).merged
        fold = plain_scores.folds_of(data, seed) if evaluation == "cv" else None
        options = {"gamma": getattr(learner, "gamma", 1.0), "zero": zero, "fold": fold}
        path = plain_scores.greedy(data, learner.criterion, **options)
        told: list[str] = []
        learned = replace(learner, evaluation=evaluation, zero_probability=zero).fit(
            data, Control(random_state=seed, report=told.append)
        )
        names = data.names
        assert [line.split(":")[0] for line in told] == [f"{names[j]} -> {names[i]}" for (j, i), _ in path]
        if path:
            assert learned.details["final_score"] == pytest.approx(path[-1][1], abs=1e-9)
        assert learned.details["arcs"] == len(path)
        assert learned.details["naive_bayes_score"] <= learned.details["final_score"]
        assert not learned.details["stopped_early"]
        lengths.append(len(path))
    assert max(lengths) > 1


def test_final_score_is_the_soft_margin_of_the_project() -> None:
    data = random_data(8, n_features=5, n_samples=80, weights=True)
    learned = GreedyMargin(gamma=2.0).fit(data)
    expected = rescore(data, learned.structure, Score(gamma=2.0))
    assert learned.details["final_score"] == pytest.approx(expected, abs=1e-9)
    likelihood = GreedyLikelihood().fit(data)
    expected = rescore(data, likelihood.structure, Score(name="cll"))
    assert likelihood.details["final_score"] == pytest.approx(expected, abs=1e-9)
    rate = GreedyRate().fit(data)
    accuracy = evaluate(rate.predictor, data).accuracy
    assert rate.details["final_score"] == pytest.approx(accuracy * data.weights.sum(), abs=1e-9)


@pytest.mark.parametrize("learner", ALL, ids=names_of(ALL))
@pytest.mark.parametrize("evaluation", ["train", "cv"])
def test_a_weight_of_two_is_two_samples(learner, evaluation: str) -> None:
    data = random_data(9, n_features=5, n_samples=60)
    twice = np.arange(0, 60, 3)
    weights = data.weights.copy()
    weights[twice] = 2.0
    weighted = replace(data, weights=weights)
    copied = data.take(np.random.default_rng(0).permutation(np.concatenate([np.arange(60), twice])))
    learner = replace(learner, evaluation=evaluation)
    one, other = learner.fit(weighted), learner.fit(copied)
    assert one.structure == other.structure
    assert one.details["final_score"] == pytest.approx(other.details["final_score"], abs=1e-9)
    for a, b in zip(one.predictor.cpts, other.predictor.cpts, strict=True):
        np.testing.assert_allclose(a.table, b.table, rtol=1e-12)


@pytest.mark.parametrize("learner", ALL, ids=names_of(ALL))
def test_threads_and_repetition_change_nothing(learner) -> None:
    data = random_data(10, n_features=5, n_samples=60)
    results = [learner.fit(data, Control(random_state=3, n_jobs=jobs)) for jobs in (1, 1, 2)]
    assert all(r.structure == results[0].structure and r.details == results[0].details for r in results[:2])
    assert results[2].structure == results[0].structure


@pytest.mark.parametrize("learner", ALL, ids=names_of(ALL))
def test_without_time_the_answer_is_naive_bayes(learner) -> None:
    data = random_data(11, n_features=4, n_samples=40)
    for control in (Control(time_limit=0.0), Control(interrupted=lambda: True)):
        learned = learner.fit(data, control)
        assert learned.structure == Structure.naive_bayes(data.names)
        assert learned.details["stopped_early"]


@pytest.mark.parametrize("learner", ALL, ids=names_of(ALL))
def test_one_feature_is_learnt(learner) -> None:
    data = random_data(12, n_features=1, n_samples=30)
    assert learner.fit(data).structure == Structure.naive_bayes(data.names)


@pytest.mark.parametrize(
    ("learner", "options", "word"),
    [
        (GreedyRate, {"evaluation": "test"}, "evaluation"),
        (GreedyRate, {"smoothing": 0.0}, "smoothing"),
        (GreedyMargin, {"gamma": "large"}, "gamma"),
        (GreedyMargin, {"gamma": -1.0}, "gamma"),
        (OrderRate, {"max_feature_parents": 0}, "max_feature_parents"),
        (Annealing, {"start": "random"}, "start"),
        (Annealing, {"steps": 0}, "steps"),
        (Annealing, {"temperature": 0.0}, "temperature"),
    ],
)
def test_bad_options_are_refused(learner, options: dict, word: str) -> None:
    with pytest.raises(InputError, match=word):
        learner(**options)


def test_cross_validation_needs_two_samples() -> None:
    one = random_data(14, n_samples=20).take([0])
    for learner in (GreedyRate(evaluation="cv"), GreedyMargin(gamma="cv")):
        with pytest.raises(InputError, match="two different samples"):
            learner.fit(one)


def test_gamma_is_chosen_by_cross_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gamma with the best accuracy on held-out folds, the smaller of equals, and nothing but gamma chosen."""
    grid = (0.3, 3.0, 30.0)
    monkeypatch.setattr(discriminative, "GAMMA_GRID", grid)
    data = random_data(15, n_features=4, n_samples=80, weights=True).merged
    fold = plain_scores.folds_of(data, 2)
    rates = []
    for gamma in grid:
        right = 0.0
        for f in range(5):
            test = data.take(np.flatnonzero(fold == f))
            learned = GreedyMargin(gamma=gamma).fit(data.take(np.flatnonzero(fold != f)))
            right += evaluate(learned.predictor, test).accuracy * test.weights.sum()
        rates.append(right / data.weights.sum())
    learned = GreedyMargin(gamma="cv").fit(data, Control(random_state=2, time_limit=1000.0))
    assert list(learned.details["gamma_rates"].values()) == pytest.approx(rates)
    best = grid[plain_scores.first_best(rates)]
    assert learned.details["gamma"] == best
    assert learned.structure == GreedyMargin(gamma=best).fit(data).structure
    assert len(set(np.round(rates, 9))) > 1
    monkeypatch.setattr(discriminative, "GAMMA_GRID", (5.0, 2.0, 2.5))
    alike = data.take(np.flatnonzero(data.y >= 0)[:3])
    assert GreedyMargin(gamma="cv").fit(alike).details["gamma"] == 2.0


@pytest.mark.slow
def test_the_margin_beats_the_generative_tree_on_handwritten_digits(image_folds) -> None:
    train, test = image_folds("usps")[0]
    learned = OrderMargin(gamma=10.0).fit(train)
    margin = evaluate(learned.predictor, test).accuracy
    tree = evaluate(Classifier.fit(train, tan_structure(train)), test).accuracy
    assert margin > tree + 0.03
    assert margin > 0.95


def test_without_time_gamma_is_the_default() -> None:
    learned = GreedyMargin(gamma="cv").fit(
        random_data(3, n_features=5, n_samples=60), Control(time_limit=0.0)
    )
    assert learned.details["gamma"] == gamma_from_p(DEFAULT_P)
    assert learned.details["gamma_rates"] == {}
    assert learned.details["stopped_early"]


def test_a_choice_of_gamma_that_was_cut_short_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the search with what was chosen had time enough."""
    data = random_data(3, n_features=4, n_samples=60)
    assert not GreedyMargin(gamma="cv").fit(data).details["stopped_early"]
    original = discriminative.MarginLearner._correct_weights
    folds = iter(range(3))
    monkeypatch.setattr(
        discriminative.MarginLearner,
        "_correct_weights",
        lambda *a: None if next(folds, None) is None else original(*a),
    )
    learned = GreedyMargin(gamma="cv").fit(data)
    assert learned.details["gamma_rates"]
    assert learned.details["stopped_early"]
