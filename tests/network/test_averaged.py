"""The average of classifiers: the mean of their posteriors, whatever cuts each has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from milpbn.data import read_table
from milpbn.data.dataset import Variable
from milpbn.errors import InputError, MilpbnWarning
from milpbn.network import AveragedClassifier, Classifier, Cpt, Structure, evaluate
from milpbn.network.evaluation import accuracy


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    kind = rng.integers(0, 3, 150)
    size = 2.0 * kind + rng.normal(size=150)
    colour = np.array(list("rgb"))[(kind + (rng.random(150) < 0.3)) % 3]
    return pd.DataFrame({"size": size, "colour": colour, "kind": np.array(list("uvw"))[kind]})


def learnt(frame, discretise, structure=Structure.naive_bayes):
    data = read_table(frame, discretise=discretise).dataset()
    return Classifier.fit(data, structure(data.names))


@pytest.fixture(scope="module")
def average(frame):
    return AveragedClassifier(
        (
            learnt(frame, "mdl"),
            learnt(frame, "quantile:5"),
            learnt(frame, "quantile:5", Structure.empty),
        )
    )


def test_the_posterior_is_the_mean(average, frame):
    expected = np.mean([member.predict_proba(frame) for member in average.members], axis=0)
    np.testing.assert_allclose(average.predict_proba(frame), expected, rtol=1e-12)
    np.testing.assert_allclose(np.exp(average.predict_log_posterior(frame)), expected, rtol=1e-12)
    labels = np.array(average.classes, dtype=object)
    assert (average.predict(frame) == labels[expected.argmax(axis=1)]).all()
    assert average.classes == ("u", "v", "w")


def test_rows_are_encoded_once_for_each_set_of_variables(average, frame, monkeypatch):
    from milpbn.data import api

    assert len(average.variable_sets) == 2
    calls, real = [], api.encode_columns
    monkeypatch.setattr(api, "encode_columns", lambda *a, **k: calls.append(a[1]) or real(*a, **k))
    average.predict(frame)
    assert calls == list(average.variable_sets)


def test_encoded_rows_give_the_same(average, frame):
    data = average.encode(frame)
    assert (average.predict_log_posterior(data) == average.predict_log_posterior(frame)).all()
    some = average.predict_log_posterior(data.take([4, 7]))
    assert (some == average.predict_log_posterior(frame)[[4, 7]]).all()
    with pytest.raises(InputError, match="other columns or states than the classifier"):
        average.predict(average.members[0].encode(frame))


def test_networks_with_the_same_states_take_a_dataset(frame):
    one = learnt(frame, "mdl")
    data = one.encode(frame)
    both = AveragedClassifier((one, Classifier.fit(data, Structure.empty(data.names))))
    np.testing.assert_allclose(both.predict_proba(data), both.predict_proba(frame))
    np.testing.assert_allclose(AveragedClassifier((one,)).predict_proba(data), one.predict_proba(data))


def binary(probabilities):
    """Return a classifier of one feature with P(class = 1 | state) as given, from a table of the class."""
    variables = (Variable("x", ("a", "b")), Variable("c", ("0", "1")))
    # With equal weights of the feature's states, P(c | x) is the table of the class given the feature.
    table = np.array([[1 - p, p] for p in probabilities])
    cpts = (Cpt(0, (), np.array([0.5, 0.5])), Cpt(1, (0,), table))
    return Classifier(variables, Structure(("x", "c"), ((), (0,))), cpts)


def test_extreme_posteriors_are_accurate():
    """Of probabilities near 1, 1 - P is kept; a network that rules out a class does not rule it out of the mean."""
    average = AveragedClassifier((binary([1e-300, 1.0]), binary([3e-300, 0.5])))
    frame = pd.DataFrame({"x": ["a", "b"]})
    logs = average.predict_log_posterior(frame)
    assert logs[0, 1] == pytest.approx(np.log(2e-300))
    assert logs[1] == pytest.approx(np.log([0.25, 0.75]))
    small = AveragedClassifier((binary([1e-12, 0.5]), binary([3e-12, 0.5]))).predict_log_posterior(frame)
    assert small[0, 0] == pytest.approx(-2e-12, rel=1e-3)
    never = AveragedClassifier((binary([0.0, 1.0]), binary([0.0, 1.0])))
    assert never.predict_log_posterior(frame)[0, 1] == -np.inf
    assert list(never.predict(frame)) == ["0", "1"]


def test_a_tie_goes_to_the_first_class():
    average = AveragedClassifier((binary([0.25, 0.5]), binary([0.75, 0.5])))
    assert list(average.predict(pd.DataFrame({"x": ["a", "b"]}))) == ["0", "0"]


def test_evaluate_takes_an_average(average, frame):
    figures = evaluate(average, frame)
    probabilities = average.predict_proba(frame)
    own = probabilities[np.arange(len(frame)), average.encode(frame).y]
    assert figures.log_loss == pytest.approx(-np.log(own).mean())
    assert figures.accuracy == pytest.approx(np.mean(average.predict(frame) == frame["kind"]))
    assert accuracy(average, average.encode(frame)) == figures.accuracy
    assert figures.samples == 150
    assert evaluate(average, frame, gamma=1.0).soft_margin is not None


def test_evaluate_where_a_value_is_unknown_to_one_network(average, frame):
    """A state that one network lacks contributes nothing to its scores, and is counted."""
    first = average.members[0]
    variables = list(first.variables)
    k = [v.name for v in variables].index("colour")
    fewer = replace(variables[k], states=("r", "g", "other"))
    member = replace(first, variables=(*variables[:k], fewer, *variables[k + 1 :]))
    mixed = AveragedClassifier((average.members[1], member))
    figures = evaluate(mixed, frame)
    assert figures.unknown_values == {"colour": int((frame["colour"] == "b").sum())}
    expected = (average.members[1].predict_proba(frame) + member.predict_proba(frame)) / 2
    np.testing.assert_allclose(mixed.predict_proba(frame), expected)
    new = frame.assign(kind=["z", *frame["kind"][1:]])
    assert evaluate(mixed, new).unknown_class == 1


def test_a_column_in_another_code_is_warned_of(average, frame):
    with pytest.warns(MilpbnWarning, match="No value of the column 'colour'"):
        average.predict(frame.assign(colour="red"))


def test_networks_that_do_not_belong_together(average, frame):
    with pytest.raises(InputError, match="at least one network"):
        AveragedClassifier(())
    other = learnt(frame.rename(columns={"size": "length"}), "mdl")
    with pytest.raises(InputError, match=r"Network 2 .* other columns than the first"):
        AveragedClassifier((average.members[0], other))
    fewer = learnt(frame[frame["kind"] != "w"], "mdl")
    with pytest.raises(InputError, match=r"Network 2 .* other classes than the first"):
        AveragedClassifier((average.members[0], fewer))
