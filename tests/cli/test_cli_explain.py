"""The verb explain: texts and files of classifiers, predictions and structures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_common import run, write_csv

import milpbn
from milpbn.network import AveragedClassifier, load_classifier, save_classifier


def test_a_classifier_alone_is_shown_as_rules(shop: Path) -> None:
    done = run("explain", shop / "classifier.json")
    assert done.exit_code == 0
    assert done.stdout.strip() == str(load_classifier(shop / "classifier.json"))
    assert "log-odds of good against bad" in done.stdout


def test_data_add_importances_and_the_rows_below_gamma(shop: Path, tmp_path: Path) -> None:
    output = tmp_path / "explained.json"
    done = run("explain", shop / "classifier.json", shop / "toy.csv", "--output", output)
    assert done.exit_code == 0
    explained = json.loads(output.read_text())["classifier"]
    result = json.loads((shop / "result.json").read_text())
    assert explained["margins"]["soft_margin"] == pytest.approx(result["objective"])
    assert explained["margins"]["gamma"] == pytest.approx(result["score"]["gamma"])
    count = len(explained["margins"]["below_gamma"])
    assert f"samples below gamma = {result['score']['gamma']:.6g}: {count} of 40" in done.stdout
    one = run("explain", shop / "classifier.json", shop / "toy.csv", "--gamma", "0.1", "--shown", "1")
    assert "samples below gamma = 0.1" in one.stdout
    assert "... " in one.stdout


def test_a_row_is_explained_by_a_sum(shop: Path, tmp_path: Path) -> None:
    output = tmp_path / "row.json"
    done = run(
        "explain", shop / "classifier.json", shop / "toy.csv", "--row", 2, "--row", 7, "--output", output
    )
    assert done.exit_code == 0
    assert "sample 2: class = " in done.stdout
    assert "sample 7: class = " in done.stdout
    joint = load_classifier(shop / "classifier.json").predict_log_joint(str(shop / "toy.csv"))
    for found, m in zip(json.loads(output.read_text())["predictions"], (1, 6), strict=True):
        places = [found["classes"].index(found[key]) for key in ("label", "against")]
        total = sum(c["log_odds"] for c in found["contributions"])
        assert total == pytest.approx(joint[m, places[0]] - joint[m, places[1]], abs=1e-12)
    named = run(
        "explain",
        shop / "classifier.json",
        shop / "toy.csv",
        "--row",
        2,
        "--label",
        "bad",
        "--against",
        "good",
    )
    assert "log-odds of bad against good" in named.stdout
    assert [found["row"] for found in json.loads(output.read_text())["predictions"]] == [2, 7]


def test_only_what_the_explained_rows_lack_is_noted(shop: Path, tmp_path: Path) -> None:
    table = write_csv(
        tmp_path / "new.csv", [["x", "?", "0", "good"], ["x", "u", "0", "bad"], ["w", "?", "1", "bad"]]
    )
    done = run("explain", shop / "classifier.json", table, "--row", 2, "--row", 3)
    assert done.stderr == (
        "Row 3: without 'b', marginalised; with values of 'a' that training never saw, which contribute nothing.\n"
    )
    refused = run("explain", shop / "classifier.json", table, "--row", 4)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "have the rows 1 to 3" in refused.stderr


def test_a_result_adds_its_structure(shop: Path, tmp_path: Path) -> None:
    output = tmp_path / "structure.json"
    done = run(
        "explain",
        shop / "classifier.json",
        shop / "toy.csv",
        "--result",
        shop / "result.json",
        "--output",
        output,
    )
    assert done.exit_code == 0
    found = json.loads(output.read_text())["structure"]
    result = json.loads((shop / "result.json").read_text())
    assert found["objective"] == pytest.approx(result["objective"])
    assert "alternatives: structures that differ by one change" in done.stdout
    assert all(other["loss"] > -1e-6 for other in found["alternatives"])


def test_rows_that_the_search_dropped_are_dropped_again(tmp_path: Path) -> None:
    rows = [["x", "u", "0", "good"], ["y", "v", "1", "bad"]] * 8 + [
        ["x", "?", "1", "bad"],
        ["y", "u", "1", "good"],
    ]
    table = write_csv(tmp_path / "t.csv", rows)
    result = milpbn.solve(str(table), milpbn.Score(p=0.9), backend="highs", verbose=False)
    result.save(tmp_path / "r.json")
    save_classifier(result.classifier, tmp_path / "c.json")
    done = run("explain", tmp_path / "c.json", table, "--result", tmp_path / "r.json", "-q")
    assert done.exit_code == 0, done.output
    assert "alternatives" in done.stdout


def test_an_average_is_explained_network_by_network(shop: Path, tmp_path: Path) -> None:
    member = load_classifier(shop / "classifier.json")
    save_classifier(AveragedClassifier((member, member)), tmp_path / "average.json")
    done = run("explain", tmp_path / "average.json", shop / "toy.csv", "--row", 1)
    assert done.exit_code == 0
    assert "no sum over families" in done.stdout
    assert "network 2" in done.stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--row", "0"], "rows 1 to 40"),
        (["--row", "41"], "rows 1 to 40"),
        (["--row", "1", "--label", "ugly"], "'ugly' is not a class"),
        (["--label", "good"], "add --row K"),
        (["--row", "1", "--gamma", "1"], "leave out --result and --gamma"),
        (["--row", "1", "--weights", "a"], "--weights changes no explanation of a single prediction"),
        (["--seconds", "3"], "add --result"),
        (["--gamma", "-1"], "gamma must be a positive number"),
        (["--shown", "0"], "--shown must be at least 1"),
        (["--result", "none.json"], "'none.json'"),
        (["--output", "no/such/folder.json"], "--output"),
    ],
)
def test_unusable_options_get_a_sentence(shop: Path, options: list[str], sentence: str) -> None:
    done = run("explain", shop / "classifier.json", shop / "toy.csv", *options)
    assert done.exit_code == 2
    assert sentence in done.stderr


@pytest.mark.parametrize(
    "option", [("--row", "1"), ("--split", "test"), ("--weights", "a"), ("--gamma", "1")]
)
def test_options_about_rows_need_data(shop: Path, option: tuple[str, str]) -> None:
    done = run("explain", shop / "classifier.json", *option)
    assert done.exit_code == 2
    assert f"{option[0]} is about rows of data; add DATA" in done.stderr


def test_a_result_of_other_rows_is_refused(shop: Path, tmp_path: Path) -> None:
    other = write_csv(tmp_path / "other.csv", [["x", "u", "0", "good"], ["y", "v", "1", "bad"]])
    done = run("explain", shop / "classifier.json", other, "--result", shop / "result.json")
    assert done.exit_code == 2
    assert "of other data" in done.stderr
