"""The verb convert, and the local scores and scripts of export."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_common import run

import milpbn
from milpbn.network import load_classifier


@pytest.mark.parametrize("ending", [".bif", ".xmlbif", ".xml"])
def test_a_classifier_predicts_the_same_after_a_round_trip(shop: Path, tmp_path: Path, ending: str) -> None:
    there = run("convert", shop / "classifier.json", tmp_path / f"n{ending}")
    assert (there.exit_code, there.stdout) == (0, f"{tmp_path / f'n{ending}'}\n")
    assert run("convert", tmp_path / f"n{ending}", tmp_path / "back.json").exit_code == 0
    arguments = [shop / "toy.csv", "--proba", "--joint"]
    assert (
        run("predict", tmp_path / "back.json", *arguments).stdout
        == run("predict", shop / "classifier.json", *arguments).stdout
    )


def test_cuts_survive_so_that_raw_numbers_are_predicted(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"x": [0.1 * k + 1 / 3 for k in range(40)]})
    frame["class"] = ["low" if x < 2 else "high" for x in frame["x"]]
    result = milpbn.solve(milpbn.read_table(frame), milpbn.Score(p=0.9), threads=1, time_limit=60)
    assert result.classifier.variables[0].cuts
    milpbn.network.save_classifier(result.classifier, tmp_path / "c.json")
    assert run("convert", tmp_path / "c.json", tmp_path / "c.bif").exit_code == 0
    assert run("convert", tmp_path / "c.bif", tmp_path / "d.json").exit_code == 0
    back = load_classifier(tmp_path / "d.json")
    assert back.variables == result.classifier.variables
    new = frame[["x"]] + 0.05
    assert (back.predict_log_joint(new) == result.classifier.predict_log_joint(new)).all()


def test_info_says_where_a_network_comes_from(shop: Path, tmp_path: Path) -> None:
    for source, output in ((shop / "classifier.json", "n.bif"), (tmp_path / "n.bif", "n.json")):
        assert run("convert", source, tmp_path / output).exit_code == 0
    shown = run("info", tmp_path / "n.json").stdout
    assert "read from   BIF" in shown
    assert "learnt by" not in shown


def test_a_picture_of_the_structure_is_written(shop: Path, tmp_path: Path) -> None:
    assert run("convert", shop / "classifier.json", tmp_path / "n.dot").exit_code == 0
    assert (tmp_path / "n.dot").read_text().startswith("digraph")


def test_tables_are_written(shop: Path, tmp_path: Path) -> None:
    for ending in (".arff", ".dat", ".csv"):
        assert run("convert", shop / "toy.csv", tmp_path / f"t{ending}").exit_code == 0
        assert milpbn.read_table(tmp_path / f"t{ending}").n_rows == 40
    assert "@attribute class {bad, good}" in (tmp_path / "t.arff").read_text()
    assert (tmp_path / "t.dat").read_text().splitlines()[1:3] == ["a b c class", "3 2 2 2"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["toy.csv", "n.bif"], "toy.csv' is not one of a network"),
        (["classifier.json", "n.txt"], "n.txt' is not one of a network; choose one of .json"),
        (["classifier.json", "n.csv"], "both files need endings of the same kind"),
        (["classifier.json", "n.bif", "--target", "height"], "has no variable 'height'"),
        (["no.bif", "n.json"], "Cannot read the network file"),
        (["result.json", "n.bif"], "result.json' is unusable"),
        (["classifier.json", "classifier.json"], "would overwrite"),
    ],
)
def test_what_cannot_be_converted_gets_a_sentence(shop: Path, tmp_path: Path, arguments, said) -> None:
    source, output, *rest = arguments
    place = shop if output == source else tmp_path
    done = run("convert", shop / source, place / output, *rest)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


def test_export_writes_local_scores(shop: Path, tmp_path: Path) -> None:
    done = run("export", shop / "toy.csv", "--score", "bdeu", "--output", tmp_path / "s.jkl", "-q")
    assert done.stdout == f"scores   {tmp_path / 's.jkl'}: 19 parent sets of 4 variables\n"
    assert (tmp_path / "s.jkl").read_text().splitlines()[0] == "4"
    refused = run("export", shop / "toy.csv", "--score", "bdeu", "--output", tmp_path / "t.jkl", "--reduced")
    assert refused.exit_code == 2
    assert "--reduced concerns a model" in refused.stderr
    assert not (tmp_path / "t.jkl").exists()


def test_export_lists_solvers_on_the_path_first(shop: Path, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "highs"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    done = run("export", shop / "toy.csv", "--output", tmp_path / "m.lp", "--script", "gurobipy", "-q")
    first, others = done.stdout.split("Not on the path of this machine:")
    assert "On the path of this machine:\n\n# highs\n" in first
    assert [line for line in others.splitlines() if line[:1] == "#"] == [
        "# cplex",
        "# gurobi",
        "# scip",
        "# cbc",
    ]
    assert f"script   {tmp_path / 'm_gurobipy.py'}" in done.stdout
    assert "certified; milpbn import keeps it" in done.stdout
    refused = run("export", shop / "toy.csv", "--output", tmp_path / "n.lp", "--script", "matlab", "-q")
    assert refused.exit_code == 2
    assert "no script for 'matlab'" in refused.stderr
