"""``milpbn query``: the library's answers as text, JSON and CSV."""

import csv
import io
import json

import pytest
from cli_common import refused, run, succeed
from fine import fine_classifier

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


def test_evidence_that_is_missing_is_pointed_out_once(classifier, shop, tmp_path):
    known = load_classifier(classifier)
    save_classifier(AveragedClassifier((known, known)), tmp_path / "average.json")
    for path in (classifier, tmp_path / "average.json"):
        done = succeed("query", path, "--evidence", "a=nan", "--of", "class,c")
        assert done.stderr == (
            "Warning: The value 'nan' of 'a' stands for a missing value: 'a' is taken as unknown.\n"
        )
        assert done.stdout == run("query", path, "--of", "class,c").stdout
    done = succeed("query", classifier, "--evidence", "a=?", "--mpe")
    assert "(given)" not in done.stdout
    assert "'a' is taken as unknown" in done.stderr


def test_evidence_may_be_the_state_of_missing_values(tmp_path):
    path = tmp_path / "gaps.json"
    save_classifier(fine_classifier(3, n_columns=3, missing=True), path)
    done = succeed("query", path, "--evidence", "x0=NA", "--of", "kind")
    assert done.stderr == (
        "Warning: The value 'NA' of 'x0' stands for a missing value: 'x0' has the state '?' of missing values.\n"
    )
    plain = succeed("query", path, "--evidence", "x0=?", "--of", "kind")
    assert plain.stderr == ""
    assert done.stdout == plain.stdout != run("query", path, "--of", "kind").stdout


def test_finer_intervals_are_said_to_be_of_a_column(tmp_path):
    path = tmp_path / "fine.json"
    save_classifier(fine_classifier(1, n_columns=3), path)
    assert "\nx0 (fine), finer intervals of x0\n" in succeed("query", path, "--evidence", "kind=k1").stdout
    lines = succeed("query", path, "--evidence", "x0=0.3", "--mpe").stdout.splitlines()
    given = [line.split("  ")[0] for line in lines if line.endswith("  (given)")]
    assert given == ["x0", "x0 (fine), finer intervals of x0"]
