"""PMML documents, evaluated by pypmml, which needs Java."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scored_elsewhere import TARGET, networks

from milpbn.data import read_table
from milpbn.data.dataset import Dataset, Variable
from milpbn.errors import InputError
from milpbn.network import Classifier, Structure
from milpbn.network.formats.pmml import classifier_to_pmml

pypmml = pytest.importorskip("pypmml")


def scored(classifier, frame: pd.DataFrame):
    model = pypmml.Model.fromString(classifier_to_pmml(classifier))
    records = frame.drop(columns=TARGET, errors="ignore").astype(object).to_dict("records")
    texts = {
        variable.raw_column for variable in classifier.variables if not (variable.cuts or variable.numeric)
    }
    found = [
        model.predict({k: str(v) if k in texts else v for k, v in row.items() if not pd.isna(v)})
        for row in records
    ]
    shares = np.array([[row[f"P({label})"] for label in classifier.classes] for row in found])
    return np.array(
        [row[f"predicted {classifier.variables[-1].name}"] for row in found], dtype=object
    ), shares


def test_a_classifier_with_costs_predicts_no_class():
    classifier = networks()["chain"]
    assert "predictedValue" in classifier_to_pmml(classifier)
    costs = {
        label: {other: float(label != other) for other in classifier.classes} for label in classifier.classes
    }
    found = classifier_to_pmml(classifier.deciding(costs))
    assert "predictedValue" not in found
    assert 'name="P(low)"' in found


def test_characters_that_xml_cannot_hold_are_refused():
    data = Dataset(
        "x",
        (Variable("a\x01b", ("x", "y")), Variable("c", ("u", "v"))),
        np.eye(2, dtype=np.int32),
        np.ones(2),
    )
    with pytest.raises(InputError, match=r"holds the character '.x01', which XML cannot hold; rename it"):
        classifier_to_pmml(Classifier.fit(data, Structure.naive_bayes(data.names)))


def test_a_label_with_a_carriage_return_stays_as_it_is():
    data = read_table(pd.DataFrame({"x": ["a\rb", "b"] * 9, "y": list("pqpqpp") * 3})).dataset()
    assert "<from>a&#13;b</from>" in classifier_to_pmml(
        Classifier.fit(data, Structure.naive_bayes(data.names))
    )
