"""Tables without a class on the command line: a network of all variables."""

import json

import numpy as np
import pandas as pd
import pytest
from cli_common import run

import milpbn
from milpbn import Result
from milpbn.network.formats.registry import read_network, write_network


@pytest.fixture
def table(tmp_path):
    """A file whose variable c follows from a and b."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.integers(0, 2, 80), "b": rng.integers(0, 2, 80)})
    frame["c"] = np.where(frame["a"] ^ frame["b"], "yes", "no")
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


def test_a_run_from_a_file_says_that_there_is_no_class(table, tmp_path):
    out, network = tmp_path / "result.json", tmp_path / "network.json"
    files = ["--output", out, "--classifier", network, "--certificate", tmp_path / "proof.npz"]
    done = run("solve", table, "--no-target", "--score", "bdeu", *files)
    assert done.exit_code == 0
    assert "3 variables, no class" in done.stdout
    result = Result.load(out, classifier=network)
    assert json.loads(out.read_text())["class"] is None
    assert result.structure.names == ("a", "b", "c")
    assert "3 variables" in repr(result.structure)
    found = milpbn.read_table(table, target=None)
    assert "no class" in repr(found)
    assert found.features == ("a", "b", "c")
    assert milpbn.solve(found, "bdeu").objective == result.objective

    assert "no class" in result.classifier._repr_html_()
    assert "no class" in result._repr_html_()
    bif = tmp_path / "network.bif"
    write_network(result.classifier, bif)
    back = read_network(bif)
    assert not back.has_class
    assert back.structure == result.structure
    assert read_network(bif, "a").classes == ("0", "1")
    assert back.posterior("c", {"a": 1, "b": 0})["yes"] > 0.9
    assert back.log_likelihood(found.dataset("all")) == pytest.approx(
        result.classifier.log_likelihood(found.dataset("all"))
    )
    proved = run("verify", out, table, "--no-target", "--certificate", tmp_path / "proof.npz", "--exact")
    assert proved.exit_code == 0
    proved = run("verify", out, table, "--certificate", tmp_path / "proof.npz")
    assert "The result has no class; give --no-target" in proved.stderr
    page = tmp_path / "page.html"
    assert run("report", out, table, "--no-target", "--output", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "3 variables, no class" in text
    assert "--no-target" in text
    assert "Accuracy" not in text
    for kind, file in (("result", out), ("network", network)):
        assert run("plot", kind, file, "--output", tmp_path / "drawn.svg").exit_code == 0
        assert "the class" not in (tmp_path / "drawn.svg").read_text()
    assert "the class" not in run("info", network).stdout


def test_without_any_structure_there_is_no_gap(table):
    done = run(
        "solve", table, "--no-target", "--score", "bdeu", "--ancestor", "a,c", "--independence", "a,c", "-q"
    )
    assert done.exit_code == 2
    assert "status     infeasible\n" in done.stdout
    assert "gap        -\nintegral" in done.stdout


def test_what_needs_a_class_is_refused_in_a_sentence(table, tmp_path):
    network = str(tmp_path / "network.json")
    data = [str(table), "--no-target"]
    assert run("solve", *data, "--score", "aic", "--classifier", network).exit_code == 0
    for command, said in (
        (["solve", *data], "The score sm needs a class"),
        (["solve", *data, "--score", "bdeu", "--parent-sets", "paper"], "leave out --parent-sets paper"),
        (["solve", *data, "--score", "bdeu", "--parameters", "cll"], "by cll (--parameters) needs a class"),
        (["solve", *data, "--score", "bdeu", "--target", "a"], "leave out one of them"),
        (["solve", *data, "--recipe", "readable"], "Validation needs a class"),
        (
            ["solve", *data, "--class-weights", "balanced"],
            "A weight per class (--class-weights, class_weights) needs",
        ),
        (["stability", *data, "--score", "bdeu"], "Bootstrap stability needs a class"),
        (["learn", "tan", *data], "The learner tan needs a class"),
        (["compare", *data], "A comparison needs a class"),
        (["evaluate", network, str(table)], "has no class to predict"),
        (["predict", network, str(table)], "has no class to predict"),
        (["explain", network], "has no class to predict or to explain"),
        (["convert", network, str(tmp_path / "network.sql")], "has no class to predict"),
    ):
        done = run(*command)
        assert (done.exit_code, said in done.stderr) == (2, True), command
