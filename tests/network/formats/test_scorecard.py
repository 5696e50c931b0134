"""Points scorecards, read from their pages: no row is further from its probability than the card says."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from fine import fine_classifier
from scored_elsewhere import fitted, networks, rows

from milpbn.data import read_table
from milpbn.data.dataset import Variable
from milpbn.errors import InputError
from milpbn.network import AveragedClassifier, Classifier, Structure
from milpbn.network.cpt import Cpt
from milpbn.network.formats import scorecard
from milpbn.network.formats.scorecard import classifier_to_scorecard


def cards_of(page: str) -> tuple[list[list[list[str]]], float]:
    """Return the cells of all tables, and the worst error that the page states."""
    tables = [
        [
            [unescape(cell) for cell in re.findall(r"<t[hd]>(.*?)</t[hd]>", row)]
            for row in table.split("</tr>")[:-1]
        ]
        for table in re.findall(r"<table>(.*?)</table>", page)
    ]
    return tables, float(re.search(r"by ([\d.]+) percentage points", page)[1]) / 100


def holds(label: str, value: object) -> bool:
    """Whether a value belongs to a label of a card."""
    if label == "any":
        return True
    for pattern, low, high in ((r"up to (.*)", None, 1), (r"above (.*)", 1, None), (r"(.*) to (.*)", 1, 2)):
        if isinstance(value, float) and (found := re.fullmatch(pattern, label)):
            return (low is None or value > float(found[low])) and (
                high is None or value <= float(found[high])
            )
    return str(value) in label.split(", ")


def by_points(tables: list[list[list[str]]], row: dict) -> float:
    """Return the probability that a person reads from the card."""
    points = 0
    for (head, *beside), *lines in [table for table in tables if table[0][0] != "Total"]:
        names = head.split(" and ")
        values = [row[name] for name in names]
        places = (
            [0] if beside == ["points"] else [k for k, label in enumerate(beside) if holds(label, values[-1])]
        )
        given = values if beside == ["points"] else values[:-1]
        (found,) = [line[1 + places[0]] for line in lines if all(map(holds, line[0].split("; "), given))]
        points += int(found)
    for total, share in (line for table in tables if table[0][0] == "Total" for line in table[1:]):
        first, _, last = total.partition(" to ")
        if int(first) <= points <= int(last or first):
            return float(share.removesuffix(" %")) / 100
    raise AssertionError(f"no line for {points} points")


def every_row(classifier) -> pd.DataFrame:
    """Return a row for each combination of states, and of values that training never saw."""
    choices: dict[str, list] = {}
    for variable in classifier.variables[:-1]:
        if variable.cuts is None:
            choices[variable.raw_column] = [*variable.states, "other"]
        elif len(variable.cuts) >= len(choices.get(variable.raw_column, [None])) - 1:
            choices[variable.raw_column] = [(a + b) / 2 for a, b in pairwise([-9.0, *variable.cuts, 9.0])]
    return pd.DataFrame(list(product(*choices.values())), columns=list(choices))


def two_classes() -> list[Classifier]:
    frame = rows(count=400)
    frame.iloc[:, -1] = np.where(frame.iloc[:, -1] == "low", "low", "high")
    data = read_table(frame, target=frame.columns[-1], continuous=["x y"], discretise="quantile:4").dataset(
        "train"
    )
    structures = (((4,),) * 4 + ((),), ((4,), (0, 4), (1, 4), (2, 4), ()), ((4,), (0, 4), (0, 1, 4), (0, 4), ()),
                  ((4,), (0, 2, 4), (), (), (2, 3)))  # fmt: skip
    return [fitted(data, parents) for parents in structures] + [
        fine_classifier(k, n_columns=3, n_classes=2) for k in range(3)
    ]


@pytest.mark.parametrize("number", range(7))
def test_the_worst_error_is_that_of_all_rows(number):
    classifier = two_classes()[number]
    frame = every_row(classifier)
    tables, stated = cards_of(classifier_to_scorecard(classifier, 0.1))
    shares = np.array([by_points(tables, row) for row in frame.to_dict("records")])
    worst = np.abs(shares - classifier.predict_proba(frame)[:, 1]).max()
    assert stated - 0.001 - 1e-9 <= worst <= stated + 1e-9
    assert stated <= 0.1


def test_long_names_are_divided_at_underscores():
    frame = pd.DataFrame({"level_of_serum": ["low", "high"] * 20, "y": ["p", "q", "q", "q"] * 10})
    classifier = fitted(read_table(frame).dataset(), ((1,), ()))
    assert "level_<wbr>of_<wbr>serum" in classifier_to_scorecard(classifier, 0.1)


def test_a_card_tells_missing_values_and_unseen_ones_from_states():
    frame = pd.DataFrame({"ward": ["Other", "B", None, "B"] * 10, "y": ["p", "q", "q", "q"] * 10})
    page = classifier_to_scorecard(fitted(read_table(frame, missing="state").dataset(), ((1,), ())), 0.1)
    assert "A missing value has the line ?; where a table has none, no value may be missing." in page
    (table, *_), _ = cards_of(page)
    assert sorted(", ".join(line[0] for line in table[1:]).split(", ")) == ["?", "B", "Other", "any other"]
    frame["ward"] = ["A", "B", "A", "A"] * 10
    assert " No value may be missing. " in classifier_to_scorecard(
        fitted(read_table(frame).dataset(), ((1,), ())), 0.1
    )


def test_a_smaller_error_needs_more_points():
    classifier = two_classes()[1]
    most, errors = [], []
    for worst in (0.1, 0.03, 0.01):
        tables, stated = cards_of(classifier_to_scorecard(classifier, worst))
        most.append(max(int(re.findall(r"\d+", line[0])[-1]) for line in tables[-1][1:]))
        errors.append(stated)
    assert most == sorted(set(most))
    assert all(error <= worst for error, worst in zip(errors, (0.1, 0.03, 0.01), strict=True))


def test_what_no_card_can_hold_is_refused_in_a_sentence(monkeypatch):
    classifier = two_classes()[1]
    with pytest.raises(InputError, match="one network with two classes"):
        classifier_to_scorecard(networks()["chain"])
    with pytest.raises(InputError, match="one network with two classes"):
        classifier_to_scorecard(AveragedClassifier((classifier, classifier)))
    with pytest.raises(InputError, match=r"between 0 and 0\.5, got 0\.7"):
        classifier_to_scorecard(classifier, 0.7)
    with pytest.raises(InputError, match="No scorecard is that exact: with 100 points"):
        classifier_to_scorecard(classifier, 1e-4)
    monkeypatch.setattr(scorecard, "MOST_LINES", 10)
    with pytest.raises(InputError, match=r"lines, more than the 10 of a page"):
        classifier_to_scorecard(classifier)
    monkeypatch.setattr(scorecard, "MOST_NUMBERS", 10)
    with pytest.raises(InputError, match="too many numbers"):
        classifier_to_scorecard(classifier)
    variables = (Variable("x", ("0", "1")), Variable("c", ("u", "v")))
    cpts = (Cpt(0, (1,), np.array([[1.0, 0.0], [0.5, 0.5]])), Cpt(1, (), np.array([0.5, 0.5])))
    with pytest.raises(InputError, match="A probability is 0"):
        classifier_to_scorecard(Classifier(variables, Structure(("x", "c"), ((1,), ())), cpts))
