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
    (tmp_path / "costs.csv").write_text(";well;sick\nwell;0;1\nsick;20;0\n")  # as Excel writes it in Europe
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
    frame.replace({"state": {"missed": "positive"}}).to_csv(tmp_path / "train.csv", index=False)
    succeed("learn", "naive-bayes", tmp_path / "train.csv", "--classifier", tmp_path / "c.json", "-q")
    done = succeed(
        "decide", tmp_path / "c.json", *COSTS, "--positive", "positive", "--output", tmp_path / "d.json"
    )
    assert "positive if its probability is above 0.047619" in done.stdout


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


def test_sets_are_calibrated_predicted_and_evaluated(ward, tmp_path):
    done = succeed(
        *("decide", ward / "c.json", ward / "train.csv", "--conformal", "folds"),
        *("--output", tmp_path / "s.json"),
    )
    assert "calibrated on 700 rows of training, by 5 folds" in done.stdout
    assert "calibrated on 700 rows of training" in succeed("info", tmp_path / "s.json").stdout
    words = ("--conformal", "0.1", "--per-class")
    predicted = pd.read_csv(_io(run("predict", tmp_path / "s.json", ward / "test.csv", *words, "-q").stdout))
    inside = load_any_classifier(tmp_path / "s.json").predict_set(ward / "test.csv", 0.1, by_class=True)
    names = np.array(["sick", "well"], dtype=object)
    assert predicted["set"].tolist() == [" | ".join(names[row]) for row in inside]
    assert set(predicted["set"]) >= {"sick | well", "well"}
    shown = run("evaluate", tmp_path / "s.json", ward / "test.csv", *words).stdout
    assert "sets         meant to hold the class of 90 % of the rows of each class" in shown
    document = json.loads(
        run("evaluate", tmp_path / "s.json", ward / "test.csv", *words, "--json", "-q").stdout
    )
    truth = pd.read_csv(ward / "test.csv")["state"]
    covered = [own in found.split(" | ") for own, found in zip(truth, predicted["set"], strict=True)]
    assert document["sets"][0]["coverage"] == pytest.approx(np.mean(covered))
    assert f"{100 * np.mean(covered):.2f} %" in shown
    assert "left out: only" in succeed("convert", tmp_path / "s.json", tmp_path / "s.sql").stderr
    rows = pd.read_csv(ward / "test.csv")
    rows[rows["state"] == "well"].to_csv(tmp_path / "well.csv", index=False)
    succeed(
        *("decide", ward / "c.json", tmp_path / "well.csv", "--conformal", "new"),
        *("--output", tmp_path / "w.json"),
    )
    for verb in ("predict", "evaluate"):
        told = succeed(verb, tmp_path / "w.json", ward / "test.csv", *words).stderr
        assert "too few calibration rows of sick, which is in every set" in told


def test_probabilities_are_shown_with_intervals(ward, tmp_path):
    predicted = pd.read_csv(
        _io(run("predict", ward / "c.json", ward / "test.csv", "--interval", "-q").stdout)
    )
    assert (predicted["low(sick)"] < predicted["P(sick)"]).all()
    assert (predicted["P(sick)"] < predicted["high(sick)"]).all()
    assert predicted["low(well)"].to_numpy() == pytest.approx(1 - predicted["high(sick)"].to_numpy())
    explained = succeed(
        "explain", ward / "c.json", ward / "test.csv", "--row", 1, "--label", "sick", "--against", "well",
        "--output", tmp_path / "e.json",
    )  # fmt: skip
    low, high = predicted.loc[0, ["low(sick)", "high(sick)"]]
    assert f"P(sick) is between {low:.4g} and {high:.4g} (95 % interval of the tables)." in explained.stdout
    [row] = json.loads((tmp_path / "e.json").read_text())["predictions"]
    assert row["intervals"][0] == pytest.approx([low, high])
    succeed(
        "learn", "naive-bayes", ward / "train.csv", "--parameters", "cll",
        "--classifier", tmp_path / "cll.json", "-q",
    )  # fmt: skip
    told = refused("predict", tmp_path / "cll.json", ward / "test.csv", "--interval").stderr
    assert "(--interval): the tables were fitted to the classes (cll)" in told
    explained = succeed("explain", tmp_path / "cll.json", ward / "test.csv", "--row", 1).stdout
    assert "The probability has no interval: the tables were fitted" in explained


def test_abstention_is_an_answer_of_its_own(ward, tmp_path):
    words = ("--abstain", "0.1")
    answers = pd.read_csv(_io(run("predict", ward / "c.json", ward / "test.csv", *words, "-q").stdout))[
        "state"
    ]
    unsure = load_any_classifier(ward / "c.json").predict_proba(ward / "test.csv").max(axis=1) < 0.9
    assert ((answers == "do not know") == unsure).all()
    assert 0 < unsure.sum() < 700
    shown = run("evaluate", ward / "c.json", ward / "test.csv", *words).stdout
    assert f"abstained    {100 * unsure.mean():.2f} %  (95 % interval" in shown
    assert shown.index("by the best threshold on these rows") < shown.index("abstained ")  # below the cost
    right = answers == pd.read_csv(ward / "test.csv")["state"]
    assert f"answered     {100 * right[~unsure].mean():.2f} % of the others are right" in shown
    (tmp_path / "costs.csv").write_text("true,well,sick,abstain\nwell,0,1,0.1\nsick,1,0,0.1\n")
    by_file = run(
        "predict", ward / "c.json", ward / "test.csv", "--costs", tmp_path / "costs.csv", "-q"
    ).stdout
    assert pd.read_csv(_io(by_file))["state"].tolist() == answers.tolist()


def test_explanations_say_what_costs_decide(ward, tmp_path):
    succeed("decide", ward / "c.json", *COSTS, "--abstain", "0.7", "--output", tmp_path / "d.json")
    told = pd.read_csv(_io(run("predict", tmp_path / "d.json", ward / "test.csv", "-q").stdout))["state"]
    probable = pd.read_csv(_io(run("predict", ward / "c.json", ward / "test.csv", "-q").stdout))["state"]
    for answer in ("sick", "do not know"):
        row = int(np.flatnonzero((told == answer) & (probable == "well"))[0]) + 1
        own = pd.read_csv(ward / "test.csv")["state"][row - 1]
        rest = "as it is" if own == answer else f"it is {own}"
        shown = succeed("explain", tmp_path / "d.json", ward / "test.csv", "--row", row).stdout
        head = shown.splitlines()[0].replace(";", ",")
        assert head == f"sample {row}: state = {answer} by costs or threshold, most probable well, {rest}"
    row = int(np.flatnonzero(told == "well")[0]) + 1
    shown = succeed("explain", tmp_path / "d.json", ward / "test.csv", "--row", row).stdout
    assert "costs or threshold" not in shown


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
    progress = [line for line in done.stderr.splitlines() if "trials to go" in line]
    assert progress
    assert all(", cost 0." in line for line in progress)
    trials = json.loads((tmp_path / "r.json").read_text())["selection"]["trials"]
    assert all(trial["cost"] is not None and trial["roc_auc"] is None for trial in trials)
    assert load_any_classifier(tmp_path / "s.json").decision.costs == ((0, 20), (1, 0))


def test_formats_without_costs_say_so(ward, tmp_path):
    decided = tmp_path / "d.json"
    succeed("decide", ward / "c.json", *COSTS, "--output", decided)
    for ending, told in ((".bif", True), (".r", True), (".sql", False)):
        said = succeed("convert", decided, tmp_path / f"d{ending}").stderr
        assert ("Costs and thresholds are left out" in said) == told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "decide c.json --output d.json",
            "Give one of --cost, --costs, --sensitivity, --alarm-rate and --conformal",
        ),
        ("decide c.json --conformal new --output d.json", "name them as DATA"),
        ("decide c.json test.csv --conformal folds --output d.json", "not those that are fitted to the rows"),
        ("decide c.json train.csv --conformal new --output d.json", "are those of training"),
        ("predict c.json test.csv --conformal .1", "milpbn decide CLASSIFIER DATA --conformal folds"),
        ("predict c.json test.csv --per-class", "add --conformal SHARE"),
        ("evaluate c.json test.csv --per-class", "add --conformal SHARE"),
        ("predict c.json test.csv --abstain much", "'much' is not a finite number"),
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
        ("predict c.json test.csv --costs unsure.csv --abstain .1", "leave out --abstain"),
        ("predict c.json test.csv --costs called.csv --abstain .1", "if a class is called so, rename it"),
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
    (ward / "unsure.csv").write_text("true,well,sick,abstain\nwell,0,1,.1\nsick,20,0,.1\n")
    (ward / "called.csv").write_text("true,well,abstain\nwell,0,1\nabstain,20,0\n")
    assert told in refused(*words.split()).output
    assert not (ward / "d.json").exists()
