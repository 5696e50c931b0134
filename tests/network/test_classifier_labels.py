"""Predictions have the type of the training labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

from milpbn.data import read_table
from milpbn.data.dataset import Variable
from milpbn.errors import DataWarning, InputError
from milpbn.learners.registry import get_learner
from milpbn.network import (
    AveragedClassifier,
    Classifier,
    PseudoClassifier,
    Structure,
    evaluate,
    load_any_classifier,
    load_classifier,
    save_classifier,
)
from milpbn.network.checks import check_variables
from milpbn.network.fixed_point import FixedPointClassifier

RNG = np.random.default_rng(2)
Y = RNG.integers(0, 2, 80)
X = pd.DataFrame({"a": np.where(RNG.random(80) < 0.85, Y, 1 - Y), "b": RNG.integers(0, 3, 80)})


def learn(y):
    data = read_table(X.assign(y=y)).dataset()
    return Classifier.fit(data, Structure.naive_bayes(data.names))


DAYS = np.array(["2024-02-29", "1999-12-31T23:59:59"], dtype="datetime64[s]")[Y]
LABELS = {
    "integers": (Y, "i"),
    "small integers": (Y.astype(np.int8) * 3 - 1, "i"),
    "large integers": (Y.astype(np.uint64) + 2**63, "u"),
    "single precision": ((Y + 0.1).astype(np.float32), "f"),
    "texts of one number": (np.array(["1", "01"], dtype=object)[Y], "O"),
    "dates": (DAYS, "M"),
    "nullable integers": (pd.array(Y, dtype="Int64"), "i"),
    "reals": (Y + 0.5, "f"),
    "whole reals": (Y.astype(float), "f"),
    "booleans": (Y == 1, "b"),
    "text": (np.array(["no", "yes"])[Y], "O"),
    "numbers as text": (Y.astype(str).astype(object), "O"),
    "categories": (pd.Categorical.from_codes(Y, ["no", "yes"]), "O"),
    "categories of integers": (pd.Categorical.from_codes(Y, [7, 9]), "i"),
    "python integers": (np.array(Y.tolist(), dtype=object), "i"),
}


@pytest.mark.parametrize("name", LABELS)
def test_accuracy_against_the_own_labels_is_right(name):
    y, kind = LABELS[name]
    classifier = learn(y)
    predicted = classifier.predict(X)
    assert predicted.dtype.kind == kind
    expected = evaluate(classifier, X.assign(y=y)).accuracy
    assert expected > 0.7
    assert (predicted == np.asarray(y)).mean() == expected
    if kind != "f":  # which scikit-learn takes for a regression
        plain = np.asarray(y).astype(predicted.dtype if kind != "O" else str)
        assert accuracy_score(plain, predicted.astype(plain.dtype)) == expected
    assert classifier.labels[classifier.predict_proba(X).argmax(axis=1)].tolist() == predicted.tolist()


EXACT = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("dtype", [*EXACT, "float32", "float64", "bool", "M8[us]", "M8[ns]"])
def test_labels_have_the_very_type_that_they_came_with(dtype, tmp_path):
    y = np.array([0, 10**9 if dtype.startswith("M8") else 1])[Y].astype(dtype)
    data = read_table(X, y).dataset()
    classifier = Classifier.fit(data, Structure.naive_bayes(data.names))
    save_classifier(classifier, tmp_path / "c.json")
    for one in (classifier, load_classifier(tmp_path / "c.json")):
        found = one.predict(X)
        assert found.dtype == ("M8[us]" if dtype == "M8[ns]" else dtype)  # no label needs nanoseconds
        assert (found == y).mean() == evaluate(classifier, X.assign(**{"class": y})).accuracy > 0.7


def test_nanoseconds_and_time_zones_of_labels_are_kept():
    fine = np.array(["2024-01-01T00:00:00.000000001", "2024-01-01T00:00:00"], dtype="M8[ns]")[Y]
    assert set(learn(fine).labels.tolist()) == set(fine.tolist())
    zoned = pd.Series(fine).dt.tz_localize("Asia/Tokyo")
    assert set(learn(zoned).labels.tolist()) == {str(time) for time in zoned}


@pytest.mark.parametrize(
    ("labels", "kind"), [("01", "i"), (("0.5", "2"), "f"), (("False", "True"), "b"), ("ab", "O")]
)
def test_labels_of_csv_files_are_those_of_pandas(tmp_path, labels, kind):
    path = tmp_path / "t.csv"
    X.assign(y=np.array(list(labels))[Y]).to_csv(path, index=False)
    data = read_table(path).dataset()
    classifier = Classifier.fit(data, Structure.naive_bayes(data.names))
    assert classifier.predict(path).dtype.kind == kind
    assert (classifier.predict(path) == pd.read_csv(path)["y"]).mean() > 0.7
    save_classifier(classifier, tmp_path / "c.json")
    again = load_classifier(tmp_path / "c.json").predict(path)
    assert again.dtype.kind == kind
    assert (again == classifier.predict(path)).all()


def test_every_predictor_keeps_the_type(tmp_path):
    data = read_table(X.assign(y=Y)).dataset()
    classifier = learn(Y)
    learnt = [get_learner(name)().fit(data).predictor for name in ("multinet", "logistic")]
    pseudo = PseudoClassifier(classifier.variables, classifier.cpts)
    save_classifier(pseudo, tmp_path / "p.json")
    assert load_any_classifier(tmp_path / "p.json").predict(X).dtype.kind == "i"
    averaged = AveragedClassifier((classifier, classifier))
    for predictor in (averaged, FixedPointClassifier(classifier, 8, 8), pseudo, *learnt):
        assert predictor.predict(X).dtype.kind == "i", type(predictor)
        assert (predictor.predict(X) == Y).mean() > 0.7
    save_classifier(averaged, tmp_path / "a.json")
    assert load_any_classifier(tmp_path / "a.json").predict(X).dtype.kind == "i"


@pytest.mark.parametrize("label_type", ["integer", "boolean?", 3, "int8", "float32", "datetime"])
def test_files_with_labels_of_another_type_are_refused(label_type):
    variables = (Variable("a", ("0", "1")), Variable("k", ("p", "q"), label_type=label_type))
    with pytest.raises(InputError, match="The states of 'k' are not labels of the type"):
        check_variables(variables)
    if label_type == "int8":
        with pytest.raises(InputError, match="not labels of the type 'int8'"):
            check_variables((variables[0], Variable("k", ("1", "300"), label_type=label_type)))


def test_a_table_is_a_source_of_predictions():
    table = read_table(X.assign(y=Y))
    classifier = learn(Y)
    assert (classifier.predict(table) == classifier.predict(X)).all()
    assert evaluate(classifier, table).to_dict() == {
        **evaluate(classifier, X.assign(y=Y)).to_dict(),
        "data": table.name,
    }
    # The weights and rows are those of the table.
    weighted = read_table(X.assign(y=Y, w=np.arange(80) % 3), target="y", weights="w")
    assert evaluate(classifier, weighted).weight == sum(np.arange(80) % 3)
    averaged = AveragedClassifier((classifier, classifier))
    assert (averaged.predict(table) == averaged.predict(X)).all()


def test_a_column_that_is_absent_is_warned_about_in_the_line_that_called(recwarn):
    classifier = learn(Y)
    classifier.predict(X.assign(a=np.nan))  # a missing value is no mistake
    assert not recwarn
    found = classifier.predict_proba(X.rename(columns={"a": "A"}))
    (warning,) = recwarn
    assert warning.category is DataWarning
    assert warning.filename == __file__
    assert str(warning.message) == "1 of 2 columns is absent ('a'): marginalised."
    assert np.array_equal(found, classifier.predict_proba(X.assign(a=np.nan)))


@pytest.mark.parametrize("dtype", ["float64", "int8", "bool"])
def test_a_label_of_the_own_type_names_its_class(dtype):
    table = read_table(X, Y.astype(dtype))
    classifier = Classifier.fit(table.dataset(), Structure(("a", "b", "class"), ((2,), (), ())), 1.0)
    first, last = classifier.labels
    explained = classifier.explain_local(X[:1], label=last, against=first)[0]
    assert (explained.against, explained.label) == classifier.classes
    assert evaluate(classifier, table, positive=last).positive == classifier.classes[1]
    costs = {"missed": 20, "false_alarm": 1, "positive": last}
    assert classifier.deciding(costs).decision.costs == ((0, 1), (20, 0))
