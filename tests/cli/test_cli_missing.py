"""Missing values: every verb shows how many rows were dropped, and predictions marginalise."""

import csv
import io
import json

import pytest
from cli_common import QUICK, load, refused, run, says, solve_with_highs, succeed, toy_rows, write_csv

from milpbn.network import load_classifier

DROPPED = "Rows dropped for missing values: 4 of 40."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table that has four missing values, its result and classifier, and a model."""
    folder = tmp_path_factory.mktemp("holes")
    rows = toy_rows()
    for m, j in ((3, 0), (10, 1), (20, 2), (33, 0)):
        rows[m][j] = ""
    table = write_csv(folder / "holes.csv", rows)
    output = ["--output", folder / "result.json", "--classifier", folder / "classifier.json"]
    assert DROPPED in run("solve", table, *QUICK, *output, "-q").stdout
    assert DROPPED in run("export", table, "--output", folder / "model.lp", "-q").stdout
    solve_with_highs(folder / "model.lp", folder / "model.sol")
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("import", "model.sol"),
        ("info", "holes.csv"),
        ("info", "result.json"),
        ("info", "classifier.json"),
        ("score", "result.json", "holes.csv"),
        ("bound", "holes.csv", "-q"),
        ("learn", "tan", "holes.csv", "-q"),
        ("compare", "holes.csv", "--learners", "naive-bayes,tan", "-q"),
    ],
    ids=lambda arguments: "-".join(arguments[:2]),
)
def test_every_verb_that_trains_shows_the_dropped_rows(folder, arguments):
    files = {path.name: path for path in folder.iterdir()}
    assert succeed(*(files.get(word, word) for word in arguments)).output.count(DROPPED) == 1


def test_results_keep_the_number(folder, tmp_path):
    assert DROPPED in load(folder / "result.json")["notes"]
    run("learn", "tan", folder / "holes.csv", "--output", tmp_path / "learnt.json", "-q")
    assert DROPPED in load(tmp_path / "learnt.json")["notes"]
    assert DROPPED in run("info", tmp_path / "learnt.json").stdout


def test_predictions_marginalise_missing_values_and_absent_columns(folder, tmp_path):
    classifier = load_classifier(folder / "classifier.json")
    table = write_csv(tmp_path / "new.csv", [["x", ""], ["", "1"], ["", ""]], header="a,c")
    done = run("predict", folder / "classifier.json", table, "--proba")
    assert (
        "1 of 3 columns is absent ('b'), 4 values are missing (2 in 'a', 2 in 'c'): marginalised."
        in done.stderr
    )
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    for row, evidence in zip(rows, ({"a": "x"}, {"c": "1"}, {}), strict=True):
        posterior = classifier.posterior("class", evidence)
        assert float(row["P(good)"]) == pytest.approx(posterior["good"], rel=1e-12)
        assert row["class"] == max(posterior, key=posterior.__getitem__)


def test_evaluation_counts_every_row(folder):
    done = run("evaluate", folder / "classifier.json", folder / "holes.csv")
    says(done.stdout, "40 samples", "missing      4 values, marginalised: 2 in a, 1 in b, 1 in c")
    figures = json.loads(run("evaluate", folder / "classifier.json", folder / "holes.csv", "--json").stdout)
    assert figures["missing_values"] == {"a": 2, "b": 1, "c": 1}
    bits = run("precision", folder / "classifier.json", folder / "holes.csv", "--bits", "3")
    assert "Rows left out because values are missing: 4 of 40." in bits.stderr
    assert "36 samples" in bits.stdout


def test_precision_counts_the_rows_that_evaluate_counts(folder, tmp_path):
    lines = (folder / "holes.csv").read_text().splitlines()
    place = lines[0].split(",").index("class")
    complete = [line.split(",") for line in lines[1:] if "" not in line.split(",")]
    for row in complete[:5]:
        row[place] = ""
    write_csv(tmp_path / "unlabelled.csv", [*complete, lines[4].split(",")], header=lines[0])
    done = run("precision", folder / "classifier.json", tmp_path / "unlabelled.csv", "--bits", "3")
    known = len(complete) - 5
    says(done.stdout, f"unlabelled: {known} samples")
    says(done.stderr, "Rows without a class label: 5.", f"values are missing: 1 of {known + 1}.")


def test_a_state_of_its_own_is_no_missing_value(folder, tmp_path):
    run("learn", "tan", folder / "holes.csv", "--missing", "state", "--classifier", tmp_path / "c.json", "-q")
    assert "missing" not in run("evaluate", tmp_path / "c.json", folder / "holes.csv").stdout
    lacking = write_csv(tmp_path / "new.csv", [["u", "1"]], header="b,c")
    assert (
        "1 of 3 columns is absent ('a'): marginalised." in run("predict", tmp_path / "c.json", lacking).stderr
    )


def test_the_data_of_a_result_are_read_as_in_its_run(folder, tmp_path):
    """Where validation chose what missing values mean, nobody has typed it."""
    result, table = tmp_path / "r.json", folder / "holes.csv"
    run("solve", table, *QUICK, "--missing", "state", "--output", result, "-q")
    succeed("plot", "network", result, table, "--output", tmp_path / "n.svg")
    done = refused("plot", "network", result, table, "--missing", "drop", "--output", tmp_path / "n.svg")
    assert "The result is of other data than these" in done.stderr


def test_a_table_of_other_columns_is_refused(folder, tmp_path):
    other = write_csv(tmp_path / "other.csv", [["1", "2"]], header="p,q")
    done = refused("predict", folder / "classifier.json", other)
    assert "has none of the columns that the classifier knows, such as 'a'" in done.stderr


def test_a_column_that_is_coded_in_another_way_is_refused(folder, tmp_path):
    classifier = folder / "classifier.json"
    rows = toy_rows()
    coded = write_csv(tmp_path / "coded.csv", [[a.upper(), b, c, y] for a, b, c, y in rows])
    said = (
        f"No value of the column 'a' of 'coded' occurs in the training data: it has '{rows[0][0].upper()}', "
    )
    for verb in (("predict",), ("evaluate",), ("explain",), ("precision", "--bits", 3)):
        done = refused(verb[0], classifier, coded, *verb[1:])
        assert said in done.stderr
        says(done.stderr, "the classifier knows 'x', 'y', 'z'", "--ignore-unseen")
        succeed(verb[0], classifier, coded, *verb[1:], "--ignore-unseen")
    assert (
        "Values that training never saw, which contribute nothing"
        in run("predict", classifier, coded, "--ignore-unseen").stderr
    )
    one = write_csv(tmp_path / "one.csv", [["X", "u", "1", "good"]])  # a single row may well have a new value
    succeed("predict", classifier, one)
    succeed("predict", classifier, write_csv(tmp_path / "two.csv", [*rows, ["X", "u", "1", "good"]]))
    assert "--ignore-unseen is about rows of data" in run("explain", classifier, "--ignore-unseen").stderr
