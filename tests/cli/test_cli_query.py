"""``milpbn query``: the library's answers as text, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from cli_common import run

from milpbn.network import AveragedClassifier, PseudoClassifier, load_classifier, save_classifier


@pytest.fixture(scope="module")
def classifier(shop: Path) -> Path:
    return shop / "classifier.json"


def test_posteriors_are_those_of_the_library(classifier: Path) -> None:
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


def test_the_most_probable_explanation(classifier: Path, tmp_path: Path) -> None:
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


def test_samples_are_rows_of_a_table(classifier: Path, tmp_path: Path) -> None:
    done = run("query", classifier, "--evidence", 'a=x,b="u,v"', "--sample", "50", "--seed", "3")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 50
    assert {(row["a"], row["b"]) for row in rows} == {("x", "u,v")}
    assert {row["class"] for row in rows} == {"good", "bad"}
    again = run("query", classifier, "--evidence", 'a=x,b="u,v"', "--sample", "50", "--random-state", "3")
    assert again.stdout == done.stdout
    (tmp_path / "drawn.csv").write_text(done.stdout)
    assert run("evaluate", classifier, tmp_path / "drawn.csv").exit_code == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--of", "nope"], "There is no variable 'nope' in the classifier; it has 'a', 'b', 'c', 'class'."),
        (["--evidence", "class=ugly"], "The class 'class' has no state 'ugly'; it has 'bad', 'good'."),
        (["--evidence", "a=x", "--evidence", "a=y"], "--evidence is given twice for 'a'"),
        (["--evidence", "a=x,a=y"], "gives 'a' two values"),
        (["--evidence", "a="], "has no value behind a=; leave out what is not known"),
        (["--evidence", "a"], "has no equals sign; write NAME=VALUE"),
        (["--of", "a", "--mpe"], "--of, --mpe and --sample are different questions"),
        (["--sample", "0"], "--sample must be at least 1, got 0"),
        (["--seed", "1"], "--seed is for --sample"),
        (["--sample", "1", "--json"], "--sample writes CSV"),
        (["--sample", "1", "--seed", "-1"], "random_state is a whole number from 0"),
        (["--of", "a", "--evidence", "a=x"], "already gives 'a' a value"),
    ],
)
def test_unusable_questions_get_a_sentence(classifier: Path, options: list[str], sentence: str) -> None:
    done = run("query", classifier, *options)
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert done.stdout == ""


def test_averages_have_posteriors_and_pseudo_tans_nothing(classifier: Path, tmp_path: Path) -> None:
    known = load_classifier(classifier)
    save_classifier(AveragedClassifier((known, known)), tmp_path / "average.json")
    asked = ("--evidence", "a=x", "--of", "class", "--json")
    assert run("query", tmp_path / "average.json", *asked).stdout == run("query", classifier, *asked).stdout
    refused = run("query", tmp_path / "average.json", "--sample", "2")
    assert refused.exit_code == 2
    assert "(AveragedClassifier) is not one directed acyclic graph" in refused.stderr
    save_classifier(PseudoClassifier(known.variables, known.cpts), tmp_path / "pseudo.json")
    refused = run("query", tmp_path / "pseudo.json", "--of", "class")
    assert refused.exit_code == 2
    assert "(PseudoClassifier) is not one directed acyclic graph" in refused.stderr


def test_retrained_parameters_are_pointed_out(shop: Path, tmp_path: Path) -> None:
    output = tmp_path / "retrained.json"
    learnt = run("learn", "tan", shop / "toy.csv", "--parameters", "cll:1", "--classifier", output, "-q")
    assert learnt.exit_code == 0, learnt.output
    assert "need not be frequencies of the data" in run("query", output, "--of", "a").stderr
    assert run("query", shop / "classifier.json", "--of", "a").stderr == ""
