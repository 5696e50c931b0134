"""PMML documents, evaluated by pypmml, which needs Java."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scored_elsewhere import TARGET, check_cuts, check_decisions, check_fine, check_networks, networks, new_rows, rows

from milpbn.network.formats.pmml import classifier_to_pmml

pypmml = pytest.importorskip("pypmml")


def scored(classifier, frame: pd.DataFrame):
    model = pypmml.Model.fromString(classifier_to_pmml(classifier))
    records = frame.drop(columns=TARGET, errors="ignore").astype(object).to_dict("records")
    texts = {variable.raw_column for variable in classifier.variables if not (variable.cuts or variable.numeric)}
    found = [
        model.predict({k: str(v) if k in texts else v for k, v in row.items() if not pd.isna(v)}) for row in records
    ]
    shares = np.array([[row[f"P({label})"] for label in classifier.classes] for row in found])
    return np.array([row[f"predicted {classifier.variables[-1].name}"] for row in found], dtype=object), shares


@pytest.mark.parametrize("missing", ["drop", "state"])
def test_a_document_returns_the_classifiers_probabilities(missing):
    check_networks(scored, missing, pd.concat([rows(2, 20).drop(columns=TARGET).astype(object), new_rows()], ignore_index=True))


def test_cuts_and_two_variables_of_a_column():
    check_cuts(scored)
    check_fine(lambda model, frame: scored(model, frame)[1])


def test_decisions_are_those_of_predict():
    check_decisions(scored)
