"""Predictions have the type of the training labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

from milpbn.data import read_table
from milpbn.data.dataset import Variable
from milpbn.errors import InputError
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


LABELS = {
    "integers": (Y, "i"),
    "small integers": (Y.astype(np.int8) * 3 - 1, "i"),
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


@pytest.mark.parametrize("label_type", ["integer", "boolean?", 3])
def test_files_with_labels_of_another_type_are_refused(label_type):
    variables = (Variable("a", ("0", "1")), Variable("k", ("p", "q"), label_type=label_type))
    with pytest.raises(InputError, match="The states of 'k' are not labels of the type"):
        check_variables(variables)
