"""Decisions by costs, against brute force; their costs, their files, and what is refused."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from milpbn.data.dataset import UNKNOWN
from milpbn.errors import InputError
from milpbn.network import (
    AveragedClassifier,
    Classifier,
    PseudoClassifier,
    Structure,
    evaluate,
    load_any_classifier,
    save_classifier,
)
from milpbn.network.decisions import DecisionRule, cost_figures


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_class_of_least_expected_cost_is_chosen(n_classes):
    """By a loop over rows and decisions; ties go to the first class."""
    rng = np.random.default_rng(n_classes)
    for _ in range(30):
        costs = rng.integers(-2, 5, (n_classes, n_classes)).astype(float)
        if not np.ptp(costs, axis=1).any():
            continue
        decision = DecisionRule(tuple(map(tuple, costs.tolist())))
        counts = rng.integers(0, 4, (60, n_classes)) + 1  # with small numbers there are ties
        p = counts / counts.sum(axis=1, keepdims=True)
        for m, chosen in enumerate(decision.choose(p)):
            expected = [
                sum(int(counts[m, t]) * int(costs[t, d]) for t in range(n_classes)) for d in range(n_classes)
            ]
            assert chosen == expected.index(min(expected))


def test_missed_and_false_alarm_are_a_threshold():
    decision = DecisionRule.of({"missed": 20, "false-alarm": "1"}, ("sick", "well"), "sick")
    assert decision.costs == ((0, 20), (1, 0))
    assert decision.threshold(0) == pytest.approx(1 / 21)
    p = np.linspace(0, 1, 2001)
    chosen = decision.choose(np.column_stack([p, 1 - p]))
    assert (chosen == 0).tolist() == [value >= 1 / 21 for value in p]
    assert decision.described(("sick", "well")).startswith("sick if its probability is above 0.047619")
    other = DecisionRule.of({"missed": 20, "false_alarm": 1, "positive": "well"}, ("sick", "well"), "sick")
    assert other.costs == ((0, 1), (20, 0))
    at = DecisionRule.at(0.3, "well", ("sick", "well"), "mine")
    assert at.threshold(1) == pytest.approx(0.3)
    assert at.choose(np.array([[0.69, 0.31], [0.71, 0.29]])).tolist() == [1, 0]


def test_costs_by_label_have_the_order_of_the_classes():
    costs = {"c": {"a": 1, "b": 2, "c": 0}, "a": {"c": 3, "a": 0, "b": 4}, "b": {"a": 5, "b": 0, "c": 6}}
    expected = ((0, 4, 3), (5, 0, 6), (1, 2, 0))
    assert DecisionRule.of(costs, ("a", "b", "c"), None).costs == expected
    assert DecisionRule.of(pd.DataFrame(costs).T, ("a", "b", "c"), None).costs == expected
    numbers = pd.DataFrame([[0, 1], [2, 0]], index=[0, 1], columns=[0, 1])
    assert DecisionRule.of(numbers, ("0", "1"), None).costs == ((0, 1), (2, 0))
    numbers = {0.0: {0.0: 0, 1.0: 1}, np.float32(1): {0.0: 2, 1.0: 0}}  # the labels of a class of floats
    assert DecisionRule.of(numbers, ("0", "1"), None).costs == ((0, 1), (2, 0))


@pytest.mark.parametrize(
    ("costs", "sentence"),
    [
        ({"missed": 2}, r"--cost \(false_alarm\) must be a finite number, got None"),
        ({"missed": 0, "false_alarm": 1}, "must be positive"),
        ({"missed": 2, "false_alarm": 1, "positive": "x"}, "one of 'a', 'b'; got 'x'"),
        ({"a": {"a": 0, "b": 1}}, "lack the class 'b'"),
        ({"a": {"a": 0, "b": 1}, "b": {"a": 1, "b": 0}, "c": {}}, "name 'c', which is no class"),
        ({"a": {"a": 0}, "b": {"a": 1, "b": 0}}, "class 'a' must name the cost of every decision: a, b"),
        (
            {"a": {"a": 0, "b": "much"}, "b": {"a": 1, "b": 0}},
            "cost of 'b' for a row of 'a' must be a finite number",
        ),
        ({"a": {"a": 0, "b": 0}, "b": {"a": 1, "b": 1}}, "cost the same"),
        ({}, "lack the class 'a'"),
        ({"abstain": "much"}, r"--abstain \(abstain\) must be a finite number"),
        (
            {"a": {"a": 0, "b": 1, "abstain": 1}, "b": {"a": 1, "b": 0}},
            "class 'b' must name the cost of every decision: a, b, abstain",
        ),
        (
            {"a": {"a": 0, "b": 1, "abstain": 1}, "b": {"a": 1, "b": 0, "abstain": 1}, "abstain": 1},
            "every true class and every decision",
        ),
        ([1, 2], "lack the class 'a'"),
        (np.array([[0, 1], [2, 0]]), "lack the class 'a'"),
    ],
)
def test_impossible_costs_are_refused(costs, sentence):
    with pytest.raises(InputError, match=sentence):
        DecisionRule.of(costs, ("a", "b"), "a")


@pytest.fixture
def two(make_data, make_structure):
    """Data of two classes, of which the second has 28 of 90 rows."""
    data = make_data(3, samples=90, states=(2, 3, 2, 2), weights=np.random.default_rng(0).uniform(0.5, 2, 90))
    data.codes[:, -1] = (np.arange(90) % 10 < 3) | (data.codes[:, 0] > 0) & (np.arange(90) % 3 == 0)
    return data, Classifier.fit(data, make_structure(data.names, 3))


def test_the_cost_of_decisions_beside_constants_and_the_best_threshold(two):
    """By loops over rows and thresholds, an unseen class included."""
    data, classifier = two
    unseen = replace(data, codes=data.codes.copy())
    unseen.codes[:3, -1] = UNKNOWN
    decided = classifier.deciding({"missed": 3, "false_alarm": 1})
    p = classifier.predict_proba(data)[:, 1]
    for rows in (data, unseen):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the unseen class
            found = evaluate(decided, rows)
        w, y = rows.weights, rows.y

        def cost(alarm, w=w, y=y):
            each = np.where(y < 0, np.where(alarm, 1.0, 3.0), np.where(y == 1, 3.0 * ~alarm, 1.0 * alarm))
            return float(w @ each / w.sum())

        assert found.cost.cost == pytest.approx(cost(p > 0.25))
        assert found.cost.interval[0] < found.cost.cost < found.cost.interval[1]
        assert found.cost.majority == pytest.approx(cost(np.zeros(90, bool)))
        assert found.cost.constant == pytest.approx(min(cost(np.zeros(90, bool)), cost(np.ones(90, bool))))
        thresholds = [-1.0, *np.unique(p)]
        assert found.cost.oracle == pytest.approx(min(cost(p > t) for t in thresholds))
        assert cost(p > found.cost.threshold) == pytest.approx(found.cost.oracle)
        assert found.cost.oracle <= found.cost.cost + 1e-12
    assert found.accuracy == pytest.approx(w @ ((p > 0.25) == y) / w.sum())
    assert evaluate(classifier, data).cost is None


def test_three_classes_have_no_threshold(make_data, make_structure):
    data = make_data(5)
    classifier = Classifier.fit(data, make_structure(data.names, 3))
    rng = np.random.default_rng(1)
    decision = DecisionRule(tuple(map(tuple, (rng.random((3, 3)) * (1 - np.eye(3))).tolist())))
    p = classifier.predict_proba(data)
    found = cost_figures(decision, classifier.classes, p, data.y, data.weights, 0)
    assert (found.threshold, found.oracle, decision.threshold(0)) == (None, None, None)
    chosen = (p @ decision.matrix).argmin(axis=1)
    assert found.cost == pytest.approx(decision.matrix[data.y, chosen].mean())
    assert "least expected cost" in decision.described(classifier.classes)
    with pytest.raises(InputError, match="are for two classes, and there are 3"):
        classifier.deciding({"missed": 2, "false_alarm": 1})


@pytest.mark.parametrize(
    ("costs", "errors", "none"),
    [
        ({"abstain": 0.3}, [[0, 1], [1, 0]], [0.3, 0.3]),
        ({"missed": 3, "false_alarm": 1, "abstain": 0.7}, [[0, 1], [3, 0]], [0.7, 0.7]),
        (
            {"s0": {"s0": 0, "s1": 1, "abstain": 0.5}, "s1": {"s0": 2, "s1": 0, "abstain": 0.4}},
            [[0, 1], [2, 0]],
            [0.5, 0.4],
        ),
    ],
)
def test_no_class_is_answered_where_that_costs_least(two, tmp_path, costs, errors, none):
    """Against a loop over rows and answers."""
    data, classifier = two
    decided = classifier.deciding(costs, positive="s1" if "missed" in costs else None)
    expected, paid = [], []
    for p, y in zip(classifier.predict_proba(data).tolist(), data.y.tolist(), strict=True):
        of_answers = [sum(p[t] * (*errors[t], none[t])[a] for t in range(2)) for a in range(3)]
        answer = min(range(3), key=of_answers.__getitem__)
        expected.append(["s0", "s1", "do not know"][answer])
        paid.append((*errors[y], none[y])[answer])
    assert decided.predict(data).tolist() == expected
    figures, w, expected = evaluate(decided, data).cost, data.weights, np.array(expected)
    answered = expected != "do not know"
    assert 5 < answered.sum() < 85
    assert figures.cost == pytest.approx(w @ paid / w.sum())
    assert figures.abstained[0] == pytest.approx(w[~answered].sum() / w.sum())
    right = expected == np.array(["s0", "s1"])[data.y]
    assert figures.answered_right[0] == pytest.approx(w[right].sum() / w[answered].sum())
    assert figures.always_answered > figures.cost - 0.1
    share, (low, high) = figures.abstained
    assert low < share < high
    save_classifier(decided, tmp_path / "c.json")
    assert load_any_classifier(tmp_path / "c.json").decision == decided.decision


def test_a_class_with_the_name_of_the_key_or_of_the_answer():
    costs = {"abstain": {"abstain": 0, "b": 1}, "b": {"abstain": 2, "b": 0}}
    assert DecisionRule.of(costs, ("abstain", "b"), None).costs == ((0, 1), (2, 0))
    with pytest.raises(InputError, match="'do not know', which is the answer"):
        DecisionRule.of({"abstain": 0.1}, ("do not know", "b"), None)


def test_every_kind_of_classifier_keeps_its_decision(two, tmp_path):
    data, classifier = two
    kinds = (classifier, AveragedClassifier((classifier, Classifier.fit(data, Structure.empty(data.names)))))
    kinds += (PseudoClassifier(classifier.variables, classifier.cpts),)
    for kind in kinds:
        decided = kind.deciding({"missed": 5, "false_alarm": 1}, positive="s1")
        assert decided.deciding(None).decision is None
        assert (
            decided.predict_codes(data).tolist()
            == (np.exp(kind.predict_log_posterior(data))[:, 1] > 1 / 6).tolist()
        )
        save_classifier(decided, tmp_path / "c.json")
        loaded = load_any_classifier(tmp_path / "c.json")
        assert loaded.decision == decided.decision
        assert (loaded.predict(data) == decided.predict(data)).all()
    # The rarer class is missed unless another is named, where the model knows which is rarer.
    assert classifier.deciding({"missed": 5, "false_alarm": 1}).decision.costs[1] == (5, 0)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d.update(version=1), "this milpbn reads version 2"),
        (lambda d: d["decision"].update(costs=[[0, 1], [1]]), "finite number for every true class"),
        (
            lambda d: d["decision"].update(costs=[[0, 1, 2], [1, 0, 2], [1, 1, 0]]),
            "costs of 3 classes, and there",
        ),
        (lambda d: d["decision"].update(costs="all"), "needs a list"),
        (lambda d: d.update(decision=[1]), "needs an object as 'decision', but has a list"),
    ],
)
def test_damaged_decisions_are_refused(two, tmp_path, change, sentence):
    save_classifier(two[1].deciding({"missed": 5, "false_alarm": 1}), tmp_path / "c.json")
    document = json.loads((tmp_path / "c.json").read_text())
    change(document)
    (tmp_path / "c.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=sentence):
        load_any_classifier(tmp_path / "c.json")
