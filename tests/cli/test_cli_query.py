"""``milpbn query``: the library's answers as text, JSON and CSV."""

import csv
import io
import json

import pytest
from cli_common import refused, run, succeed

from milpbn.network import AveragedClassifier, PseudoClassifier, load_classifier, save_classifier


@pytest.fixture(scope="module")
def classifier(shop_folder):
    return shop_folder / "classifier.json"


def test_posteriors_are_those_of_the_library(classifier):
    known = load_classifier(classifier)
    evidence = ["--evidence", "a=x", "--evidence", "b=u"]
    found = json.loads(run("query", classifier, *evidence, "--of", "class,c", "--json").stdout)
    assert found["evidence"] == {"a": "x", "b": "u"}
    values = {"a": "x", "b": "u"}
    assert found["posteriors"] == {name: known.posterior(name, values) for name in ("class", "c")}
    text = run("query", classifier, "--evidence", "class=good").stdout
    for name, posterior in known.marginals({"class": "good"}).items():
        assert f"{name}\n" in text
        for label, probability in posterior.items():
            assert f"  {label}  {probability:.6f}\n" in text


def test_the_most_probable_explanation(classifier, tmp_path):
    best = load_classifier(classifier).most_probable_explanation({"class": "bad"})
    found = json.loads(run("query", classifier, "--evidence", "class=bad", "--mpe", "--json").stdout)
    assert found == {"evidence": {"class": "bad"}, **best._asdict()}
    assert (
        run("query", classifier, "--evidence", "class=bad", "--mpe", "--output", tmp_path / "best").output
        == ""
    )
    text = (tmp_path / "best").read_text()
    assert "class  bad  (given)\n" in text
    assert f"a      {best.states['a']}\n" in text


def test_samples_are_rows_of_a_table(classifier, tmp_path):
    done = run("query", classifier, "--evidence", 'a=x,b="u,v"', "--sample", "50", "--seed", "3")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 50
    assert {(row["a"], row["b"]) for row in rows} == {("x", "u,v")}
    assert {row["class"] for row in rows} == {"good", "bad"}
    again = run("query", classifier, "--evidence", 'a=x,b="u,v"', "--sample", "50", "--random-state", "3")
    assert again.stdout == done.stdout
    (tmp_path / "drawn.csv").write_text(done.stdout)
    succeed("evaluate", classifier, tmp_path / "drawn.csv")
    assert "draw fewer" in refused("query", classifier, "--sample", str(10**13)).stderr


def test_averages_have_posteriors_and_pseudo_tans_nothing(classifier, tmp_path):
    known = load_classifier(classifier)
    save_classifier(AveragedClassifier((known, known)), tmp_path / "average.json")
    asked = ("--evidence", "a=x", "--of", "class", "--json")
    assert run("query", tmp_path / "average.json", *asked).stdout == run("query", classifier, *asked).stdout
    done = refused("query", tmp_path / "average.json", "--sample", "2")
    assert "(AveragedClassifier) is not one directed acyclic graph" in done.stderr
    save_classifier(PseudoClassifier(known.variables, known.cpts), tmp_path / "pseudo.json")
    done = refused("query", tmp_path / "pseudo.json", "--of", "class")
    assert "(PseudoClassifier) is not one directed acyclic graph" in done.stderr


def test_retrained_parameters_are_pointed_out(shop, tmp_path):
    output = tmp_path / "retrained.json"
    succeed("learn", "tan", shop / "toy.csv", "--parameters", "cll:1", "--classifier", output, "-q")
    assert "need not be frequencies of the data" in run("query", output, "--of", "a").stderr
    assert run("query", shop / "classifier.json", "--of", "a").stderr == ""
