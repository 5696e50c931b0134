"""``--parameters`` on the command line: what is written, printed and refused."""

import json

import pytest
from cli_common import QUICK, load, refused, run, succeed, toy_rows, write_csv

SAID = "not of the retrained classifier"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return a table in which a column occurs three times."""
    rows = [[a, b, b, b, label] for a, b, _, label in toy_rows(count=120)]
    return write_csv(tmp_path_factory.mktemp("toy") / "toy.csv", rows, "a,b1,b2,b3,class")


@pytest.mark.parametrize("method", ["cll", "hybrid", "temperature"])
def test_every_output_of_solve_names_retrained_parameters(table, tmp_path, method):
    result, classifier = tmp_path / "r.json", tmp_path / "c.json"
    done = succeed(
        "solve", table, *QUICK, "--parameters", method, "--output", result, "--classifier", classifier
    )
    assert f"parameters {method}: " in done.stdout
    assert SAID in done.stdout
    record = load(result)["parameters"]
    assert record["fitted"]
    assert record["method"] == method
    assert load(classifier)["provenance"]["parameters"] == record
    for verb in (["info", result], ["info", classifier], ["evaluate", classifier, table]):
        shown = succeed(*verb)
        assert f"{method}: " in shown.stdout
        assert SAID in shown.stdout
    figures = json.loads(run("evaluate", classifier, table, "--json", "-q").stdout)
    assert figures["parameters"] == record
    succeed("predict", classifier, table)


def test_relative_frequencies_are_not_mentioned(table, tmp_path):
    classifier = tmp_path / "c.json"
    assert "parameters" not in run("solve", table, *QUICK, "--classifier", classifier).stdout
    assert "parameters" not in run("info", classifier).stdout
    assert "parameters" not in run("evaluate", classifier, table).stdout
    assert json.loads(run("evaluate", classifier, table, "--json", "-q").stdout)["parameters"] is None


def test_learn_writes_the_retrained_parameters(table, tmp_path):
    output, classifier = tmp_path / "l.json", tmp_path / "c.json"
    done = succeed(
        "learn naive-bayes --parameters cll -q", table, "--output", output, "--classifier", classifier
    )
    assert "parameters cll: kappa 0, strength " in done.stdout
    assert SAID in done.stdout
    assert load(output)["parameters"]["fitted"]
    assert SAID in run("info", output).stdout
    assert SAID in run("info", classifier).stdout


def test_compare_notes_the_parameters_of_each(table, tmp_path):
    done = succeed("compare", table, "--learners", "naive-bayes,tan", "--parameters", "temperature", "-q")
    assert "parameters temperature" in done.stdout
    assert SAID in done.stdout


def test_a_structure_that_cannot_hold_the_parameters_is_reported(table, tmp_path):
    fixed = ("--fix", "b1=class", "--fix", "b2=class", "--fix", "b3=b1,b2,class", "--fix", "class=")
    done = succeed("solve", table, *QUICK, "--max-parents", 3, *fixed, "--parameters", "cll")
    assert "parameters cll: not fitted" in done.stdout
    assert "the structure with the arcs that it needs breaks a constraint" in done.stdout
    assert "the generative parameters are kept." in done.stdout
    assert SAID not in done.stdout


def test_unknown_parameters_are_refused(table):
    for verb in (["solve", table], ["learn", "tan", table], ["compare", table]):
        done = refused(*verb, "--parameters", "mle")
        assert "There are no parameters 'mle'; choose one of ml, cll, hybrid, temperature." in done.stderr
    done = refused("learn", "svm", table, "--parameters", "cll")
    assert "leave --parameters (parameters) out" in done.stderr


def test_values_can_be_given(table):
    done = succeed("solve", table, *QUICK, "--parameters", "hybrid:0.5:10")
    assert "parameters hybrid: kappa 0.5, strength 10" in done.stdout


def test_a_recipe_chooses_score_cuts_and_parameters(table, tmp_path):
    result = tmp_path / "r.json"
    done = succeed(
        "solve", table, "--recipe", "readable", "--max-parents", 2, "--time-limit", 60, "--output", result
    )
    chosen = load(result)["selection"]
    assert chosen["by"] == "log-loss"
    assert {trial["max_parents"] for trial in chosen["trials"]} == {2}
    assert chosen["options"]["score"] == "cll"
    assert "held-out accuracy" in done.stdout


def test_recipes_are_refused_beside_a_grid_of_ones_own(table):
    done = refused("solve", table, "--recipe", "readable", "--select", "p=.9")
    assert "--recipe (recipe) has a grid of its own" in done.stderr
    done = refused("solve", table, "--recipe", "exact")
    assert "There is no recipe 'exact'; choose from accurate, readable." in done.stderr
    grid = "parameters=hybrid discretise=mdl,quantile:3"
    for option, value in (("parameters", "ml"), ("discretise", "mdl")):
        done = refused("solve", table, "--select", grid, f"--{option}", value)
        assert f"{option} is among the options to select, and is given as --{option}" in done.stderr


def test_an_option_that_is_typed_wins_over_the_recipe_also_at_its_default(table, tmp_path):
    result = tmp_path / "r.json"
    succeed(
        "solve --recipe readable --max-parents 1 --parameters ml --discretise mdl --time-limit 20 --threads 1",
        table,
        "--output",
        result,
    )
    found = load(result)
    assert found["parameters"]["method"] == "ml"
    (trial,) = found["selection"]["trials"]
    assert trial["options"]["parameters"] == "ml"
    assert "discretise" not in trial["options"]


def test_validation_chooses_what_to_do_with_missing_values(tmp_path):
    rows = [
        f"{'' if k % 3 == 0 else 'ab'[k % 2]},{'uv'[k % 5 > 2]},{'no' if k % 2 else 'yes'}" for k in range(90)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["x,y,class", *rows]))
    grid = ["--select", "missing=drop,state max-parents=1", "--threads", 1, "--time-limit", 20]
    done = succeed(
        "solve",
        tmp_path / "t.csv",
        *grid,
        "--output",
        tmp_path / "r.json",
        "--classifier",
        tmp_path / "c.json",
    )
    assert "Rows with missing values: 30 of 90; validation chooses whether they are dropped" in done.stderr
    assert "state of their own in" not in done.stderr
    found = load(tmp_path / "r.json")
    chosen = found["selection"]["options"]["missing"]
    assert {trial["options"]["missing"] for trial in found["selection"]["trials"]} == {"drop", "state"}
    assert found["data"]["samples"] == {"drop": 60, "state": 90}[chosen]
    assert ("Rows dropped for missing values: 30 of 90." in done.stdout) == (chosen == "drop")
    assert f"missing = {chosen}" in done.stdout
    again = refused("solve", tmp_path / "t.csv", *grid, "--missing", "drop")
    assert "missing is among the options to select, and is given as --missing" in again.stderr


def test_the_recipe_accurate_says_nothing_of_cuts_that_it_does_not_use(tmp_path):
    rows = [[f"{(37 * i) % 101 / 7:.3f}", f"{(53 * i) % 97 / 7:.3f}", "same", str(i % 2)] for i in range(60)]
    table = write_csv(tmp_path / "t.csv", rows, "x,z,word,class")
    for options, unused in (([], "word"), (["--discretise", "mdl"], "x, z, word")):
        done = run("solve", table, "--recipe", "accurate", *options, "--time-limit", "0.1", "--threads", "1")
        assert f"Features with one state only, not used: {unused}.\n" in done.stderr
