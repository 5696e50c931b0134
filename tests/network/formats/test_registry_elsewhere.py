"""Formats that predict without milpbn return the probabilities of `predict_proba`, and the decisions of `predict`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pandas as pd
import pytest
from scored_elsewhere import check_cuts, check_decisions, check_fine, check_networks, fitted, new_rows, rows

from milpbn.data import read_table

#: Formats with a function `scored` in the file of their own tests, and those that hold decisions.
DECIDING = ("sql", "python_format", "onnx_format")
FORMATS = (*DECIDING, "pmml")


def scored(name: str) -> Any:
    """Return a function from a classifier and rows to labels and probabilities; skips if a package is missing."""
    return import_module(f"test_{name}").scored


@pytest.mark.parametrize("missing", ["drop", "state"])
@pytest.mark.parametrize("name", FORMATS)
def test_probabilities_are_those_of_the_classifier(name: str, missing: str) -> None:
    for frame in (rows(2, 20), new_rows()):
        check_networks(scored(name), missing, frame)


@pytest.mark.parametrize("name", DECIDING)
def test_decisions_are_those_of_predict(name: str) -> None:
    check_decisions(scored(name))


@pytest.mark.parametrize("name", FORMATS)
def test_cuts_and_two_variables_of_a_column(name: str) -> None:
    check_cuts(scored(name))
    check_fine(lambda model, frame: scored(name)(model, frame)[1])


@pytest.mark.parametrize("name", DECIDING)
def test_numbers_belong_to_intervals_that_are_texts(name: str) -> None:
    frame = pd.DataFrame(
        {"dose": ["(0, 1]", "(1, 2]", "none", "(0, 1]"] * 10, "y": ["p", "q", "p", "p"] * 10}
    )
    classifier = fitted(read_table(frame).dataset(), ((1,), ()))
    asked = pd.DataFrame(
        {"dose": ["0.5", "1", "1.0", "1.25", "2", "0", "3", "-1", "none", "(1, 2]", "1x", None]}
    )
    found = scored(name)(classifier, asked)[1]
    assert found == pytest.approx(classifier.predict_proba(asked), abs=1e-9)
