"""``milpbn decide``, and costs in ``predict``, ``evaluate``, ``solve`` and ``convert``."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from cli_common import refused, run, succeed

from milpbn.network import load_any_classifier

COSTS = ("--cost", "missed=20", "false-alarm=1")


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """Training and test rows, 5 % of which are sick, and a classifier of them."""
    folder = tmp_path_factory.mktemp("ward")
    for name, seed in (("train.csv", 0), ("test.csv", 1)):
        rng = np.random.default_rng(seed)
        sick = rng.random(700) < 0.05
        columns = {
            f"x{i}": np.where(rng.random(700) < np.where(sick, 0.8, 0.3), "high", "low") for i in range(3)
        }
        pd.DataFrame({**columns, "state": np.where(sick, "sick", "well")}).to_csv(folder / name, index=False)
    succeed("learn", "naive-bayes", folder / "train.csv", "--classifier", folder / "c.json", "-q")
    return folder


def test_costs_of_a_file_and_of_the_command_line_decide_alike(ward, tmp_path):
    done = succeed("decide", ward / "c.json", *COSTS, "--output", tmp_path / "d.json")
    assert (
        "decision     sick if its probability is above 0.047619 (costs: missed 20, false alarm 1)"
        in done.stdout
    )
    given = run("predict", ward / "c.json", ward / "test.csv", *COSTS, "-q").stdout
    assert run("predict", tmp_path / "d.json", ward / "test.csv", "-q").stdout == given
    (tmp_path / "costs.csv").write_text("true,well,sick\nwell,0,1\nsick,20,0\n")
    by_file = run(
        "predict", ward / "c.json", ward / "test.csv", "--costs", tmp_path / "costs.csv", "-q"
    ).stdout
    assert by_file == given != run("predict", ward / "c.json", ward / "test.csv", "-q").stdout
    assert "sick" in given
    # The other class is missed: hardly a row is predicted sick.
    other = run("predict", ward / "c.json", ward / "test.csv", *COSTS, "--positive", "well", "-q").stdout
    assert other.count("sick") == 0
    succeed("convert", tmp_path / "d.json", tmp_path / "d.sql")
    assert "* -20.0E0" in (tmp_path / "d.sql").read_text()
    assert "sick if its probability" in succeed("info", tmp_path / "d.json").stdout


def test_costs_of_classes_that_have_a_reserved_name(ward, tmp_path):
    """A file of costs is a table by label, also where a label is ``missed``."""
    frame = pd.read_csv(ward / "train.csv").replace({"state": {"sick": "missed"}})
    frame.to_csv(tmp_path / "train.csv", index=False)
    succeed("learn", "naive-bayes", tmp_path / "train.csv", "--classifier", tmp_path / "c.json", "-q")
    (tmp_path / "costs.csv").write_text("true,well,missed\nwell,0,1\nmissed,20,0\n")
    done = succeed(
        *("evaluate", tmp_path / "c.json", tmp_path / "train.csv", "--costs", tmp_path / "costs.csv"),
        *("--positive", "missed"),
    )
    assert "decision     missed if its probability is above 0.047619 (costs)" in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--cost missed=3 --output", "'--output' is neither missed=X nor false-alarm=Y"),
        ("--cost missed=3 fals=1", "'fals=1' is neither"),
        ("--cost missed=3 missed=1", "--cost says missed twice"),
    ],
)
def test_costs_that_cannot_be_read_are_refused(ward, tmp_path, words, sentence):
    done = refused(
        "decide", ward / "c.json", *words.split(), tmp_path / "d.json", "--output", tmp_path / "d.json"
    )
    assert sentence in done.stderr
    assert not (tmp_path / "d.json").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("true,well,sick\n\nwell,0,1\nsick,20\n", "2 cells in line 4, and 3 in the first"),
        ("true,well,sick\nwell,0,1\nsick,20,0\nsick,2,0\n", "has the label 'sick' twice"),
        ("true,well,sick,well\nwell,0,1,2\nsick,20,0,3\n", "has the label 'well' twice"),
    ],
)
def test_files_of_costs_that_contradict_themselves_are_refused(ward, tmp_path, text, sentence):
    (tmp_path / "costs.csv").write_text(text)
    done = refused(
        "decide", ward / "c.json", "--costs", tmp_path / "costs.csv", "--output", tmp_path / "d.json"
    )
    assert sentence in done.stderr


def test_precision_leaves_out_the_decision_and_says_so(ward, tmp_path):
    succeed("decide", ward / "c.json", *COSTS, "--output", tmp_path / "d.json")
    plain, decided = (
        run("precision", path, ward / "test.csv", "--bits", "20", "--json")
        for path in (ward / "c.json", tmp_path / "d.json")
    )
    assert decided.stdout == plain.stdout
    assert "d.json' has no effect" in decided.stderr
    assert "no effect" not in plain.stderr


def test_evaluate_states_the_cost_beside_the_majority_and_the_best_threshold(ward):
    done = run("evaluate", ward / "c.json", ward / "test.csv", *COSTS)
    document = json.loads(run("evaluate", ward / "c.json", ward / "test.csv", *COSTS, "--json", "-q").stdout)
    predicted = pd.read_csv(_io(run("predict", ward / "c.json", ward / "test.csv", *COSTS, "-q").stdout))[
        "state"
    ]
    truth = pd.read_csv(ward / "test.csv")["state"]
    missed = ((truth == "sick") & (predicted == "well")).sum()
    alarms = ((truth == "well") & (predicted == "sick")).sum()
    cost = (20 * missed + alarms) / 700
    assert document["cost"]["cost"] == pytest.approx(cost)
    assert f"cost         {cost:.6g} per row  (95 % interval" in done.stdout
    assert f"{20 * (truth == 'sick').mean():.6g} by always answering well" in done.stdout
    assert "by the best threshold on these rows" in done.stdout
    # What a rare class is told by comes before the accuracy, with thresholds.
    assert done.stdout.index("ROC-AUC") < done.stdout.index("accuracy   ") < done.stdout.index("majority")
    assert "alarms per 1,000" in done.stdout
    assert document["by_class"][0]["roc_auc"] == pytest.approx(document["by_class"][1]["roc_auc"])


def _io(text):
    from io import StringIO

    return StringIO(text)


@pytest.mark.parametrize(("option", "share"), [("--sensitivity", 0.9), ("--alarm-rate", 0.2)])
def test_thresholds_are_learnt_from_training_rows(ward, tmp_path, option, share):
    done = succeed(
        "decide", ward / "c.json", ward / "train.csv", option, share, "--output", tmp_path / "d.json"
    )
    assert f"{option[2:].replace('-', ' ')} {share}, learnt by 5 folds" in done.stdout
    assert "alarms per 1,000 rows" in done.stdout
    decided = load_any_classifier(tmp_path / "d.json")
    assert decided.decision.is_threshold
    shown = run("evaluate", tmp_path / "d.json", ward / "test.csv").stdout
    assert "decision     sick if its probability is above" in shown
    assert "cost   " not in shown


def test_a_selection_compares_costs(ward, tmp_path):
    done = succeed(
        "solve", ward / "train.csv", "--score", "cll", "--select", "max-parents=1,2", "--select-by", "cost", *COSTS,
        "--classifier", tmp_path / "s.json", "--output", tmp_path / "r.json", "--time-limit", 60,
    )  # fmt: skip
    assert "by cost among 2 settings" in done.stdout
    assert ", cost 0." in done.stdout
    trials = json.loads((tmp_path / "r.json").read_text())["selection"]["trials"]
    assert all(trial["cost"] is not None and trial["roc_auc"] is None for trial in trials)
    assert load_any_classifier(tmp_path / "s.json").decision.costs == ((0, 20), (1, 0))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("decide c.json --output d.json", "Give one of --cost, --costs, --sensitivity and --alarm-rate"),
        ("decide c.json --cost missed=1 false-alarm=1 --sensitivity .9 --output d.json", "Give one of"),
        ("decide c.json --sensitivity .9 --output d.json", "name them as DATA"),
        ("decide c.json train.csv --cost missed=1 false-alarm=1 --output d.json", "leave out 'train.csv'"),
        (
            "decide c.json test.csv --sensitivity .9 --output d.json",
            "not those that are fitted to the rows of 'test'",
        ),
        ("predict c.json test.csv --cost missed=1 alarm=2", "write --cost missed=20 false-alarm=1"),
        ("predict c.json test.csv --cost missed=1 false-alarm=x", "must be a finite number, got 'x'"),
        (
            "predict c.json test.csv --cost missed=1 false-alarm=1 --positive ill",
            "one of 'sick', 'well'; got 'ill'",
        ),
        ("predict c.json test.csv --costs train.csv", "(--costs, costs) name"),
        ("predict c.json test.csv --costs none.csv", "'none.csv'"),
        ("predict c.json test.csv --costs bad.csv", "'bad.csv' has 2 cells in line 3, and 3 in the first"),
        ("predict c.json test.csv --costs short.csv", "needs a line with the predicted labels"),
        ("evaluate c.json test.csv --costs bad.csv --cost missed=1 false-alarm=1", "leave out one of them"),
        ("evaluate c.json test.csv --positive ill", "is 'ill', and the classes are 'sick', 'well'"),
        ("solve train.csv --select max-parents=1,2 --select-by cost", "needs costs: --cost missed=20"),
        ("solve train.csv --costs bad2.csv --time-limit 5", "lack the class 'well'"),
        (
            "solve train.csv --no-target --score bdeu --cost missed=1 false-alarm=1 --time-limit 5",
            "needs a class",
        ),
    ],
)
def test_what_cannot_be_decided_is_told(ward, monkeypatch, words, told):
    monkeypatch.chdir(ward)
    (ward / "bad.csv").write_text("true,well,sick\nwell,0,1\nsick,20\n")
    (ward / "bad2.csv").write_text("true,well,sick\nsick,20,0\n")
    (ward / "short.csv").write_text("true,well,sick\n")
    assert told in refused(*words.split()).output
    assert not (ward / "d.json").exists()
