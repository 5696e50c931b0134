"""Explanations of predictions: sums that equal the differences of log-posteriors, and their words."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from milpbn.data.dataset import UNKNOWN, Dataset, Variable
from milpbn.errors import InputError
from milpbn.network import AveragedClassifier, Classifier, Structure
from milpbn.network.explanation.local import NEW_VALUE, NOT_OBSERVED
from milpbn.network.parameters.refit import refit_classifier
from milpbn.network.pseudo import PseudoClassifier

BASE = "base rate of good, before any feature"


@pytest.fixture(scope="module")
def small() -> tuple[Classifier, Dataset]:
    """Return a classifier of two features, the second given the first, and its rows."""
    variables = (Variable("a", ("x", "y")), Variable("b", ("u", "v")), Variable("good", ("no", "yes")))
    codes = np.array([[0, 0, 1], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=np.int32)
    data = Dataset("toy", variables, codes, np.ones(6))
    return Classifier.fit(data, Structure(data.names, ((2,), (0, 2), ()))), data


@pytest.mark.parametrize("seed", range(5))
def test_contributions_add_up_to_the_difference_of_log_posteriors(make_data, make_structure, seed):
    data = make_data(seed)
    classifier = Classifier.fit(data, make_structure(data.names, seed))
    logs = classifier.predict_log_posterior(data)
    for found in classifier.explain_local(data):
        own, other = (data.variables[-1].states.index(name) for name in (found.label, found.against))
        row = logs[found.sample]
        assert found.log_odds == pytest.approx(row[own] - row[other], abs=1e-12)
        assert sum(c.log_odds for c in found.contributions) == pytest.approx(row[own] - row[other], abs=1e-12)
        assert row[own] == row.max()
        assert row[other] == np.delete(row, own).max()
        joint = np.sum([c.log_probabilities for c in found.contributions], axis=0)
        np.testing.assert_allclose(
            joint, classifier.predict_log_joint(data)[found.sample], rtol=0, atol=1e-12
        )


def test_retrained_parameters_and_cyclic_tables_are_explained_as_well(make_data):
    data = make_data(1)
    structure = Structure.naive_bayes(data.names)
    generative = Classifier.fit(data, structure)
    retrained, _ = refit_classifier(generative, data, "cll:1")
    assert (retrained.cpts[0].table != generative.cpts[0].table).any()
    last = len(data.names) - 1
    circle = Classifier.fit(data, Structure(data.names, ((1, last), *[(last,)] * (last - 1), ()))).cpts
    back = Classifier.fit(data, Structure(data.names, ((last,), (0, last), *[(last,)] * (last - 2), ()))).cpts
    pseudo = PseudoClassifier(data.variables, (circle[0], back[1], *circle[2:]))
    for classifier in (retrained, pseudo):
        joint = classifier.predict_log_joint(data)
        for found in classifier.explain_local(data, label="s2", against="s0"):
            difference = joint[found.sample, 2] - joint[found.sample, 0]
            assert sum(c.log_odds for c in found.contributions) == pytest.approx(difference, abs=1e-12)


def test_an_explanation_names_states_and_parents(small):
    classifier, data = small
    found = classifier.explain_local(data)[0]
    assert (found.predicted, found.actual, found.label, found.against) == ("yes", "yes", "yes", "no")
    assert [c.condition for c in found.contributions] == ["a = x", "b = u, given a = x", BASE]
    # (2 + 1)/(3 + 2) : (1 + 1)/(3 + 2), then (2 + 1)/(2 + 2) : (0 + 1)/(1 + 2), and equal priors
    assert [c.log_odds for c in found.contributions] == pytest.approx([np.log(1.5), np.log(2.25), 0.0])
    assert [c.condition for c in found.ranked] == ["b = u, given a = x", "a = x"]
    lines = str(found).splitlines()
    assert lines[0] == "sample 1: good = yes, as it is"
    assert lines[1] == "log-odds of yes against no: +1.216 nats, odds 3.38 to 1; P(yes) = 0.7714"
    assert lines[2].split() == ["+0.811", "+" * 20, *["b", "=", "u,", "given", "a", "=", "x"]]
    assert lines[-1].split() == ["+1.216", "sum"]
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["predicted"] == "yes"


def test_the_rest_of_a_long_sum_is_one_line(small):
    classifier, data = small
    lines = classifier.explain_local(data)[0].to_text(shown=1).splitlines()
    assert lines[3].split()[:1] == ["+0.405"]
    assert lines[3].endswith("1 smaller contribution")


def test_a_new_value_says_so_and_contributes_nothing_of_its_own(small):
    classifier, _ = small
    found = classifier.explain_local(pd.DataFrame({"a": ["z"], "b": ["u"]}))[0]
    assert found.actual is None
    assert found.contributions[0].values == (NEW_VALUE,)
    assert found.contributions[0].log_odds == 0
    assert found.contributions[1].given == (("a", NEW_VALUE),)


def test_a_missing_value_joins_the_families_that_it_is_in(small):
    classifier, _ = small
    found = classifier.explain_local(pd.DataFrame({"a": [None, "x"], "b": ["u", None]}))
    joined, leaf = found
    assert [c.condition for c in joined.contributions] == ["b = u, summed over a", BASE]
    assert [c.condition for c in leaf.contributions] == ["a = x", f"b {NOT_OBSERVED}", BASE]
    assert leaf.contributions[1].log_odds == 0
    joint = classifier.predict_log_joint(pd.DataFrame({"a": [None, "x"], "b": ["u", None]}))
    for m, each in enumerate(found):
        total = sum(c.log_odds for c in each.contributions)
        assert abs(total) == pytest.approx(abs(joint[m, 1] - joint[m, 0]), abs=1e-12)


def test_named_classes_are_compared(small):
    classifier, data = small
    found = classifier.explain_local(data, label="no")[0]
    assert (found.label, found.against, found.predicted) == ("no", "yes", "yes")
    assert classifier.explain_local(data, against="yes")[0].log_odds == found.log_odds
    with pytest.raises(
        InputError, match="'maybe' is not a class of the classifier; its classes are 'no', 'yes'"
    ):
        classifier.explain_local(data, label="maybe")
    with pytest.raises(InputError, match="cannot be compared with itself"):
        classifier.explain_local(data, label="no", against="no")


def test_impossible_classes_have_infinite_log_odds_and_ties_have_0(small):
    _, data = small
    classifier = Classifier.fit(data, Structure(data.names, ((2,), (0, 2), ())), smoothing=0.0)
    first = classifier.explain_local(data)[0]
    assert first.log_odds == np.inf
    assert "odds infinite to 1" in str(first)
    json.dumps(first.to_dict(), allow_nan=False)
    codes = np.array([[UNKNOWN, UNKNOWN, UNKNOWN]], dtype=np.int32)
    unknown = Dataset("none", data.variables, codes, np.ones(1))
    assert classifier.explain_local(unknown)[0].log_odds == 0


@pytest.fixture(scope="module")
def caused() -> tuple[Classifier, Dataset]:
    """Return a classifier whose rare class has two parents, and a feature with one interval and missing values."""
    rng = np.random.default_rng(0)
    a, e = rng.integers(0, 2, (2, 400))
    sick = (rng.random(400) < np.where(a, 0.3, 0.02)).astype(int)
    b = np.where(rng.random(400) < 0.7, sick, 1 - sick)
    variables = (
        Variable("a", ("x", "y")),
        Variable("b", ("(-inf, inf)", "?"), cuts=(), missing_state=True),
        Variable("e", ("u", "v")),
        Variable("sick", ("no", "yes")),
    )
    data = Dataset("toy", variables, np.column_stack([a, b, e, sick]).astype(np.int32), np.ones(400))
    return Classifier.fit(data, Structure(data.names, ((), (3,), (), (0, 2)))), data


def test_parents_of_the_class_are_apart_from_its_base_rate(caused):
    """P(sick) is summed here over the states of the parents."""
    classifier, data = caused
    of_a, of_e, of_class = (classifier.cpts[i].table for i in (0, 2, 3))
    base = np.log(np.einsum("a,e,aec->c", of_a, of_e, of_class))
    for found, codes in zip(classifier.explain_local(data), data.codes, strict=True):
        rate, parents = found.contributions[-1], found.contributions[-2]
        assert rate.condition == "base rate of sick, before any feature"
        assert rate.log_probabilities == pytest.approx(base, abs=1e-12)
        assert parents.condition == f"a = {'xy'[codes[0]]} and e = {'uv'[codes[2]]}"
        expected = np.log(of_class[codes[0], codes[2]]) - base
        assert parents.log_probabilities == pytest.approx(expected, abs=1e-12)
        assert found.ranked[-1] == rate
        assert found.to_text(shown=1).splitlines()[-2].endswith(rate.condition)
        assert sum(c.log_odds for c in found.contributions) == pytest.approx(found.log_odds, abs=1e-12)


def test_missing_parents_of_the_class_leave_the_others(caused):
    classifier, _ = caused
    rows = pd.DataFrame({"a": [None, None], "b": [3, None], "e": ["u", None]})
    one, none = classifier.explain_local(rows)
    assert "e = u, summed over a" in [c.condition for c in one.contributions]
    [left] = [c for c in none.contributions if "a" in c.variables]
    assert left.condition == f"a and e {NOT_OBSERVED}"
    assert left.log_odds == pytest.approx(0, abs=1e-12)


def test_one_interval_and_missing_values_are_in_words(caused):
    classifier, _ = caused
    found = classifier.explain_local(pd.DataFrame({"a": ["x", "x"], "b": [3.5, None], "e": ["u", "v"]}))
    assert [each.contributions[1].condition for each in found] == ["b = (any number)", "b = (missing)"]
    assert "b: (any number) (" in str(classifier)
    assert "inf" not in str(classifier)


def test_importances_begin_with_features_and_end_with_the_base_rate(caused):
    classifier, data = caused
    explained = classifier.explain_global(data)
    assert [(i.name, i.part) for i in explained.importances] == [
        ("a and e", "class parents"),
        ("b", "feature"),
        ("base rate of sick, before any feature", "base rate"),
    ]
    base = explained.importances[-1]
    assert base.mean_absolute > max(i.mean_absolute for i in explained.importances[:-1])
    assert explained.to_dict()["importances"][-1]["part"] == "base rate"
    lines = explained.to_text(shown=1).splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("importance"))
    assert lines[at + 1].endswith("  a and e")
    assert lines[at + 2] == "  ... 1 more feature"
    assert lines[at + 3].endswith("  base rate of sick, before any feature")
    rules = str(classifier).splitlines()
    assert rules[2].startswith("base rate of sick, before any feature: -")
    assert rules[3] == "a and e (parents of sick):"


def test_impossible_classes_keep_the_whole_term_of_their_parents(caused):
    """Without smoothing a class that no row has is impossible, and there is no base rate to be apart from."""
    _, data = caused
    codes = data.codes.copy()
    codes[:, 3] = 0
    data = Dataset("toy", data.variables, codes, data.weights)
    classifier = Classifier.fit(data, Structure(data.names, ((), (), (), (0, 2))), smoothing=0.0)
    found = classifier.explain_local(data)[0]
    assert (found.log_odds, found.contributions[-1].log_odds) == (np.inf, 0.0)


@pytest.fixture(scope="module")
def average(make_data, make_structure):
    data = make_data(0)
    members = (
        Structure.naive_bayes(data.names),
        make_structure(data.names, 1),
        make_structure(data.names, 2),
    )
    return AveragedClassifier(tuple(Classifier.fit(data, structure) for structure in members)), data


def test_every_network_is_explained_for_the_classes_of_the_average(average):
    classifier, data = average
    mean = classifier.predict_proba(data)
    for found in classifier.explain_local(data.take(range(10))):
        assert found.probabilities == pytest.approx(mean[found.sample], abs=1e-12)
        order = np.argsort(-mean[found.sample], kind="stable")
        assert (found.label, found.against) == tuple(classifier.classes[c] for c in order[:2])
        for member, network in zip(found.members, classifier.members, strict=True):
            assert (member.label, member.against, member.sample) == (found.label, found.against, found.sample)
            logs = network.predict_log_posterior(data)[found.sample]
            assert member.log_odds == pytest.approx(logs[order[0]] - logs[order[1]], abs=1e-12)


def test_the_text_of_an_average_says_that_there_is_no_sum(average):
    classifier, data = average
    data = data.take(range(5))
    assert "no sum over families" in str(classifier.explain_local(data)[0])
    assert "network 3" in str(classifier.explain_global(data))
    json.dumps(classifier.explain_global(data, gamma=1.0).to_dict(), allow_nan=False)
    json.dumps(classifier.explain_local(data)[0].to_dict(), allow_nan=False)
    assert str(classifier) == str(classifier.explain_global())
