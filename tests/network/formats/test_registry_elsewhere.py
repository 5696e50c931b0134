"""Formats that predict without milpbn return the probabilities of `predict_proba`, and the decisions of `predict`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from scored_elsewhere import check_cuts, check_decisions, check_fine, check_networks, new_rows, rows

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
