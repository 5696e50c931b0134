"""``milpbn report`` with a test file, rows by ID, costs, and a model card."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pytest
from cli_common import load, refused, says, succeed

import milpbn
from milpbn.network import load_classifier


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """Training rows, test rows with patients' names, a result and its classifier."""
    folder = tmp_path_factory.mktemp("ward")
    for name, seed in (("train.csv", 0), ("test.csv", 1)):
        rng = np.random.default_rng(seed)
        sick = rng.random(300) < 0.2
        columns = {
            f"x{i}": np.where(rng.random(300) < np.where(sick, 0.8, 0.3), "high", "low") for i in range(3)
        }
        frame = pd.DataFrame(
            {**columns, "age": rng.normal(50 + 20 * sick, 10), "state": np.where(sick, "sick", "well")}
        )
        if name == "test.csv":
            frame.insert(0, "patient", [f"P{k}" for k in range(300)])
        frame.to_csv(folder / name, index=False)
    options = ("--target", "state", "--score", "cll", "--time-limit", "10", "-q")
    succeed(
        "solve",
        folder / "train.csv",
        *options,
        "--output",
        folder / "r.json",
        "--classifier",
        folder / "c.json",
    )
    return folder


def test_a_report_judges_test_rows_by_costs_and_fills_in_the_checklist(ward, tmp_path):
    page, card = tmp_path / "r.html", tmp_path / "card.json"
    done = succeed(
        *(
            "report",
            ward / "r.json",
            ward / "train.csv",
            "--target",
            "state",
            "--classifier",
            ward / "c.json",
        ),
        *("--test", ward / "test.csv", "--id", "patient", "--rows", "P7,P250"),
        *("--cost", "missed=9", "false-alarm=1", "--output", page, "--card", card),
    )
    assert "report" in done.stdout
    text, document = page.read_text(), load(card)
    classifier = load_classifier(ward / "c.json").deciding({"missed": 9, "false_alarm": 1})
    figures = milpbn.evaluate(classifier, str(ward / "test.csv"))
    says(
        text,
        "patient P7",
        "patient P250",
        "cost per row",
        "Checklist for a publication",
        "to be written by the author",
    )
    assert "lowest margins" not in text
    assert document["evaluation"]["test"]["accuracy"] == figures.accuracy
    assert document["evaluation"]["test"]["cost"]["cost"] == figures.cost.cost
    reporting = document["reporting"]
    assert [*reporting] == [
        *("Purpose", "Data", "Discretisation", "Structure", "Parameters", "Validation", "Availability"),
    ]
    assert "mdl, of 1 column" in reporting["Discretisation"]["method"]
    assert reporting["Parameters"]["estimated by"] == "frequencies, smoothed by 1"
    assert reporting["Data"]["class frequencies"] == ", ".join(
        f"{label} {n}"
        for label, n in pd.read_csv(ward / "train.csv")["state"].value_counts().sort_index().items()
    )
    assert reporting["Purpose"]["question and intended use"] is None
    assert "sick if its probability is above 0.1" in reporting["Purpose"]["decisions"]
    assert "Evaluation on 'test': 300 samples, accuracy 0." in reporting["Validation"]["on test rows"]
    assert "milpbn solve" in reporting["Availability"]["commands"]
    assert [v["name"] for v in document["variables"]] == ["x0", "x1", "x2", "age", "state"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--id patient --rows P1", "--id and --rows name rows of --test"),
        ("--test {0}/test.csv --rows P1", "give all of --test, --id and --rows"),
        ("--test {0}/test.csv --id nobody --rows P1", "--id is 'nobody', which is no column"),
        ("--test {0}/test.csv --id patient --rows Q1", "--rows names 'Q1', which 0 rows"),
        ("--test {0}/test.csv --id x0 --rows high", "rows of"),
    ],
)
def test_rows_that_cannot_be_found_get_a_sentence(ward, tmp_path, options, sentence):
    words = options.format(ward).split()
    page = tmp_path / "r.html"
    done = refused(
        "report", ward / "r.json", ward / "train.csv", "--target", "state", *words, "--output", page
    )
    assert sentence in done.stderr
    assert not page.exists()


def test_without_data_the_checklist_says_what_the_result_knows(ward, tmp_path):
    succeed("report", ward / "r.json", "--output", tmp_path / "r.html", "--card", tmp_path / "c.json")
    document = load(tmp_path / "c.json")
    assert document["evaluation"] == {}
    assert document["reporting"]["Data"]["class frequencies"] is None
    assert "SHA-256" in document["reporting"]["Data"]["name and hash"]
    assert "--test is beside" in refused("report", ward / "r.json", "--test", ward / "test.csv").stderr


def test_commands_and_checklist_of_a_report_with_data_have_what_was_chosen(ward, tmp_path):
    frame = pd.read_csv(ward / "train.csv")
    frame.loc[::9, "age"] = np.nan
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    source, files = (
        tmp_path / "gaps.csv",
        ("--output", tmp_path / "r.json", "--certificate", tmp_path / "p.npz"),
    )
    succeed("solve", source, "--select", "missing=state discretise=quantile:3 p=.9", *files, "-q")
    succeed(
        "report", tmp_path / "r.json", source, "--output", tmp_path / "r.html", "--card", tmp_path / "c.json"
    )
    reporting = load(tmp_path / "c.json")["reporting"]
    assert reporting["Data"]["missing values"].startswith("in training: state")
    assert reporting["Discretisation"]["method"].startswith("quantile:3, of 1 column")
    assert "Compiling" not in reporting["Data"]["training rows"]
    _, verify = reporting["Availability"]["commands"].split("; ")
    words = {"result.json": tmp_path / "r.json", "proof.npz": tmp_path / "p.npz"}
    succeed(*(words.get(word, word) for word in shlex.split(verify)[1:]))
