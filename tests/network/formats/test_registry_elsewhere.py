"""Formats that predict without milpbn return the probabilities of `predict_proba`, and the decisions of `predict`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
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


@pytest.mark.parametrize("states", [("False", "True"), ("f", "t"), ("0", "1"), ("01", "1", "x"),
                                    ("(0, 1]", "(1, inf)", "5", "x"), ("(0, 1]", "01", "-0", "x")])  # fmt: skip
@pytest.mark.parametrize("name", DECIDING)
def test_odd_texts_have_the_state_that_predict_gives_them(name: str, states: tuple[str, ...]) -> None:
    """Numbers in other forms, truth values in other cases, white space, and what looks like these."""
    count = 60 * len(states)
    frame = pd.DataFrame({"v": pd.Series(states * 60, dtype="str"), "y": "p"})
    frame.loc[[k for k in range(count) if k // len(states) < 10 + 15 * (k % len(states))], "y"] = "q"
    classifier = fitted(read_table(frame, nominal=["v"]).dataset(), ((1,), ()))
    texts = [
        "1",
        "01",
        "001",
        "+1",
        "1.00",
        "1.0e+00",
        "1E0",
        "-0",
        "-0.0",
        "5.0",
        "0.50",
        ".5",
        "1.",
        "1e20",
        "2",
    ]
    texts += [
        "tRue",
        "TRUE",
        "true",
        "fALSE",
        "F",
        "t",
        "x\r",
        "\u20031",
        "x\u3000",
        "X",
        "1_0",
        "\uff10",
        "0x1",
    ]
    asked = pd.DataFrame({"v": [*texts, "1" * 400, "1e-400", "\xa05", "inf", "nan", "", "1,5"]})
    if (
        name == "onnx_format"
    ):  # the runtime takes the white space of ASCII only off numbers, and an input has one type
        if classifier.variables[0].numeric:
            return
        asked = asked[~asked["v"].isin(["1e-400", "\u20031", "\xa05", "1" * 400])]
    wanted = [classifier.predict_proba(asked.iloc[[k]])[0] for k in range(len(asked))]
    assert scored(name)(classifier, asked)[1] == pytest.approx(np.array(wanted), abs=1e-9)
