"""Learners of decomposable scores against the enumeration of all structures."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import oracle
import pytest
from running import random_data

from milpbn.errors import InputError
from milpbn.learners.base import Control
from milpbn.learners.generative.decomposable import Decomposable, choose_max_parents
from milpbn.learners.generative.exact import Exact
from milpbn.learners.generative.orders import AllOrders, OrderSearch, find_order
from milpbn.learners.generative.stochastic import Stochastic
from milpbn.network.structure import Structure
from milpbn.problem.rescore import rescore

SCORES = ("mdl", "aic", "bdeu", "ll")


def subsets(items, most: int) -> list[tuple[int, ...]]:
    return [s for size in range(most + 1) for s in combinations(sorted(items), size)]


def before(order, most: int) -> list[list[tuple[int, ...]]]:
    """All sets of at most `most` variables before each one."""
    sets: list[list[tuple[int, ...]]] = [[]] * len(order)
    for k, i in enumerate(order):
        sets[i] = subsets(order[:k], most)
    return sets


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_order_search_tries_all_parent_sets(score: str, most: int, seed: int) -> None:
    data = random_data([1, most, seed], n_features=3, n_samples=40, weights=bool(seed % 2))
    order = np.random.default_rng(seed).permutation(4).tolist()
    learner = OrderSearch(
        score=score,
        max_parents=most,
        parent_sets="all",
        ess=2.5 if score == "bdeu" else 1.0,
        order=tuple(data.names[i] for i in order),
    )
    learned = learner.fit(data)
    best = oracle.enumerate_best(
        data, score, candidates=before(order, most), ess=learner.ess, parent_sets="all"
    )
    assert learned.structure is not None
    value = oracle.score_structure(data, learned.structure.parents, score, ess=learner.ess)
    assert value == pytest.approx(best.objective, abs=1e-8)
    assert learned.details["score"] == pytest.approx(value)
    place = {i: k for k, i in enumerate(order)}
    assert all(place[j] < place[i] for j, i in learned.structure.arcs)


def test_words_for_orders_give_the_orders() -> None:
    from sklearn.metrics import mutual_info_score

    data = random_data(2, n_features=4, n_samples=60)
    assert find_order(data, "data") == [4, 0, 1, 2, 3]
    order = find_order(data, ("information",))
    assert order[0] == 4
    information = [mutual_info_score(data.codes[:, i], data.y) for i in order[1:]]
    assert information == sorted(information, reverse=True)
    assert sorted(find_order(data, "random", 3)) == [0, 1, 2, 3, 4]
    assert find_order(data, "random", 3) == find_order(data, "random", 3)
    assert len({tuple(find_order(data, "random", seed)) for seed in range(20)}) > 5
    assert find_order(data, ("X3", "X1", "X2", "X4")) == [4, 2, 0, 1, 3]
    assert find_order(data, ("X3", "C", "X1", "X2", "X4")) == [2, 4, 0, 1, 3]
    for names in (("X1",), ("X1", "X1", "X2", "X3", "X4"), ("X1", "X2", "X3", "X9")):
        with pytest.raises(InputError, match="order"):
            find_order(data, names)


@pytest.mark.parametrize("learner", [AllOrders, Exact])
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("parent_sets", ["paper", "all"])
@pytest.mark.parametrize("class_parents", [True, False])
def test_exact_learners_find_the_optimum(learner, score: str, parent_sets: str, class_parents: bool) -> None:
    data = random_data([3, class_parents], n_features=3, n_samples=30, weights=True)
    best = oracle.enumerate_best(
        data, score, max_parents=2, class_parents=class_parents, parent_sets=parent_sets
    )
    learned = learner(score=score, parent_sets=parent_sets, class_parents=class_parents).fit(data)
    value = oracle.score_structure(data, learned.structure.parents, score)
    assert value == pytest.approx(best.objective, abs=1e-7)
    assert learned.details["score"] == pytest.approx(value)
    assert learned.details.get("optimal", True)


def test_dynamic_programming_over_more_variables() -> None:
    data = random_data(4, n_features=7, n_samples=60)
    a = AllOrders(score="bdeu", parent_sets="all", max_parents=3).fit(data)
    b = Exact(score="bdeu", parent_sets="all", max_parents=3).fit(data)
    assert a.details["score"] == pytest.approx(b.details["score"], abs=1e-6)


@pytest.mark.parametrize("questions", [0, 3, 8, 9])
def test_dynamic_programming_stops_when_asked_to(questions: int, monkeypatch) -> None:
    monkeypatch.setattr("milpbn.engine.parent_sets.subsets.AT_ONCE", 100)
    data = random_data(4, n_features=7, n_samples=60)
    best = AllOrders(score="bdeu", parent_sets="all").fit(data)
    order = OrderSearch(score="bdeu", parent_sets="all").fit(data)
    asked = iter(range(questions))
    stopped = AllOrders(score="bdeu", parent_sets="all").fit(
        data, Control(interrupted=lambda: next(asked, None) is None)
    )
    assert best.details["optimal"]
    assert stopped.details["stopped_early"]
    assert stopped.structure == order.structure
    assert stopped.details["score"] == pytest.approx(order.details["score"])
    assert stopped.details["score"] < best.details["score"]


@pytest.mark.parametrize("learner", [AllOrders(), OrderSearch()])
def test_searches_over_orders_report_their_progress(learner, monkeypatch) -> None:
    monkeypatch.setattr("milpbn.learners.generative.orders.REPORT_SECONDS", 0.0)
    told: list[str] = []
    learned = learner.fit(random_data(4, n_features=4, n_samples=60), Control(report=told.append))
    assert told[0] == "scoring the parent sets of 5 variables, max_parents 2"
    assert told[1].endswith(" parent sets are scored")
    assert f"{learned.details['score']:.6f} nats" in told[-1]
    if isinstance(learner, AllOrders):
        steps = [line for line in told if "step" in line]
        assert "step 1 of at most 10" in steps[0]
        assert 6 <= len(steps) <= 10  # one for each variable, and one for each component


def test_too_many_variables_for_dynamic_programming_are_refused() -> None:
    data = random_data(5, n_features=50, n_samples=20)
    with pytest.raises(InputError, match="memory"):
        AllOrders().fit(data)


@pytest.mark.parametrize("score", [*SCORES, "aicc"])
@pytest.mark.parametrize("seed", range(3))
def test_stochastic_search_finds_the_optimum_of_small_problems(score: str, seed: int) -> None:
    data = random_data([6, seed], n_features=3, n_samples=60)
    best = oracle.enumerate_best(data, score, max_parents=2, parent_sets="all")
    learned = Stochastic(score=score, parent_sets="all").fit(data, Control(random_state=seed))
    assert learned.structure is not None
    value = oracle.score_structure(data, learned.structure.parents, score)
    assert learned.details["score"] == pytest.approx(value)
    assert value == pytest.approx(best.objective, abs=1e-7)


def test_more_restarts_find_no_worse_structure() -> None:
    data = random_data(7, n_features=8, n_samples=60)
    values = {
        restarts: Stochastic(score="aic", parent_sets="all", max_parents=3, restarts=restarts, changes=0)
        .fit(data)
        .details["score"]
        for restarts in (0, 30)
    }
    assert values[30] >= values[0]
    best = AllOrders(score="aic", parent_sets="all", max_parents=3).fit(data).details["score"]
    assert values[30] <= best + 1e-7


def test_aicc_is_refused_by_learners_of_single_families() -> None:
    data = random_data(9)
    for learner in (OrderSearch, AllOrders):
        with pytest.raises(InputError, match="AICc"):
            learner(score="aicc").fit(data)
    with pytest.raises(InputError, match="maximises"):
        Exact(score="sm").fit(data)


def test_hold_out_takes_the_best_on_the_other_part() -> None:
    data = random_data(10, n_features=3, n_samples=100, weights=True)
    seen = []

    def learn(rows, count, budget=None):
        seen.append(rows)
        parents = {1: [(3,), (3,), (3,), ()], 2: [(3,), (0, 3), (1, 3), ()], 3: [(3,), (0, 3), (0, 1, 3), ()]}
        return Structure(rows.names, tuple(parents[count]))

    learner, control = OrderSearch(max_parents=3), Control(random_state=4)
    chosen, details = choose_max_parents(learn, data, learner, 0.3, control, control.budget())
    fit = seen[0]
    assert fit.n_samples == 70
    values = details["held_out"]
    assert values[str(chosen)] == max(values.values())
    assert chosen == details["max_parents"]
    # The held-out rows are those that the other part lacks.
    rest = data.weights.sum() - fit.weights.sum()
    value = 0.0
    taken = {(tuple(c), w) for c, w in zip(fit.codes.tolist(), fit.weights, strict=True)}
    from milpbn.network.classifier import Classifier

    classifier = Classifier.fit(fit, learn(fit, chosen))
    joint = classifier.predict_log_joint(data)[np.arange(100), data.y]
    held = [m for m in range(100) if (tuple(data.codes[m].tolist()), data.weights[m]) not in taken]
    value = float(data.weights[held] @ joint[held]) / rest
    assert data.weights[held].sum() == pytest.approx(rest)
    assert values[str(chosen)] == pytest.approx(value)


def test_hold_out_within_the_search() -> None:
    data = random_data(11, n_features=4, n_samples=60)
    learned = OrderSearch(score="ll", max_parents=4, parent_sets="all", holdout=0.3).fit(data)
    values = learned.details["held_out"]
    assert set(values) == {"1", "2", "3", "4"}
    assert learned.details["max_parents"] < 4  # the likelihood alone would take the complete graph
    full = OrderSearch(score="ll", max_parents=learned.details["max_parents"], parent_sets="all").fit(data)
    assert learned.structure == full.structure


@pytest.mark.parametrize("learner", [OrderSearch(), AllOrders(), Stochastic(), Exact()])
def test_without_time_the_answer_is_naive_bayes(learner: Decomposable) -> None:
    data = random_data(12, n_features=5)
    learned = learner.fit(data, Control(time_limit=1e-9))
    assert learned.structure == Structure.naive_bayes(data.names)
    assert learned.details["stopped_early"]
    assert learned.details["score"] == pytest.approx(rescore(data, learned.structure, learner.spec()))
