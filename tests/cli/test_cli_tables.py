"""Tables as they come: an identifier, a date and free text among the columns; and evaluation beside a baseline."""

import csv
import importlib.util
import json

import numpy as np
import pandas as pd
import pytest
from cli_common import load, refused, run, says, succeed

ROWS = 120


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """Return a folder with a table, and the classifier and result of a search."""
    folder = tmp_path_factory.mktemp("ward")
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, ROWS)
    frame = pd.DataFrame(
        {
            "case": [f"C{i:05d}" for i in range(ROWS)],
            "admitted": pd.date_range("2024-01-01", periods=ROWS).astype(str),
            "remark": [f"came at {i} minutes past noon" for i in range(ROWS)],
            "fever": np.where(rng.random(ROWS) < 0.8, y, 1 - y),
            "sex": rng.choice(["m", "f"], ROWS),
            "outcome": y,
        }
    )
    frame.to_csv(folder / "t.csv", index=False)
    done = run(
        "solve", folder / "t.csv", "--backend", "highs", "--threads", "1",
        "--classifier", folder / "c.json", "--output", folder / "r.json",
    )  # fmt: skip
    (folder / "solve.txt").write_text(done.output)
    assert done.exit_code == 0, done.output
    return folder


LEFT_OUT = "case (identifier), admitted (date), remark (free text)"


def test_useless_columns_are_left_out_and_named_everywhere(ward):
    assert (
        "Left out: 'case' looks like an identifier (120 different values in 120 rows)"
        in (ward / "solve.txt").read_text()
    )
    assert f"left out   {LEFT_OUT}" in (ward / "solve.txt").read_text()
    assert set(load(ward / "r.json")["structure"]) == {"fever", "sex", "outcome"}
    assert (ward / "c.json").stat().st_size < 10_000
    assert f"left out    {LEFT_OUT}" in run("info", ward / "c.json").output
    assert f"left out   {LEFT_OUT}" in run("info", ward / "r.json").output
    assert "'remark' looks like free text" in run("info", ward / "t.csv").output
    assert f"left out   {LEFT_OUT}" in run("learn", "tan", ward / "t.csv").output
    assert LEFT_OUT in run("bound", ward / "t.csv", "--max-parents", "1").output


def test_options_choose_the_features(ward):
    assert "case: 120 states" in run("info", ward / "t.csv", "--nominal", "case").output
    dropped = run("info", ward / "t.csv", "--drop", "case,admitted,remark,sex")
    says(dropped.output, "Left out, as asked: case, admitted, remark, sex.", "1 features")
    assert "2 features" in run("info", ward / "t.csv", "--features", "sex,fever").output
    wrong = refused("info", ward / "t.csv", "--drop", "age")
    assert "'drop' names 'age', which is not a column of" in wrong.output


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_a_table_without_rows_gets_predictions_without_rows(ward, tmp_path):
    (tmp_path / "none.csv").write_text("case,fever,sex,outcome\n", encoding="utf-8")
    done = run("predict", ward / "c.json", tmp_path / "none.csv", "--proba", "--output", tmp_path / "p.csv")
    assert "There are no rows." in done.output
    assert (tmp_path / "p.csv").read_text(encoding="utf-8") == "case,outcome,P(0),P(1)\n"
    for words in (("evaluate", ward / "c.json"), ("solve",)):
        refused(*words, tmp_path / "none.csv")


def test_predictions_keep_identifiers(ward, tmp_path):
    rows = table(run("predict", ward / "c.json", ward / "t.csv", "-q").output)
    assert list(rows[0]) == ["case", "outcome"]
    assert [row["case"] for row in rows[:2]] == ["C00000", "C00001"]
    rows = table(
        run("predict", ward / "c.json", ward / "t.csv", "-q", "--keep", "outcome,admitted", "--proba").output
    )
    assert list(rows[0]) == ["outcome", "admitted", "predicted outcome", "P(0)", "P(1)"]
    right = np.mean([row["outcome"] == row["predicted outcome"] for row in rows])
    figures = json.loads(run("evaluate", ward / "c.json", ward / "t.csv", "-q", "--json").output)
    assert right == pytest.approx(figures["accuracy"])
    frame = pd.read_csv(ward / "t.csv").drop(columns=["case", "admitted", "remark", "outcome"])
    frame.to_csv(tmp_path / "new.csv", index=False)
    rows = table(run("predict", ward / "c.json", tmp_path / "new.csv", "-q").output)
    assert list(rows[0]) == ["outcome"]
    wrong = refused("predict", ward / "c.json", ward / "t.csv", "--keep", "age")
    assert "--keep names 'age', which is not a column of" in wrong.output


def test_evaluate_shows_baseline_and_calibration(ward, tmp_path):
    done = run("evaluate", ward / "c.json", ward / "t.csv", "--output", tmp_path / "f.json")
    figures = load(tmp_path / "f.json")
    assert f"majority     {100 * figures['majority_share']:.2f} %  (95 % interval" in done.output
    assert f"Brier score  {figures['brier']:.6f}" in done.output
    assert f"expected error {100 * figures['calibration_error']:.2f} %" in done.output
    assert sum(part["weight"] for part in figures["reliability"]) == ROWS
    lines = done.output.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("calibration"))
    assert lines[start + 1].split() == ["probability", "samples", "mean", "right"]
    counts = [
        int(line.split("%")[1].split()[0])
        for line in lines[start + 2 : start + 2 + len(figures["reliability"])]
    ]
    assert sum(counts) == ROWS
    done = refused("evaluate", ward / "c.json", ward / "t.csv", "--output", ward / "c.json")
    assert "would overwrite" in done.output


def test_compare_over_folds(ward, tmp_path):
    done = succeed(
        "compare", ward / "t.csv", "--learners", "tan,naive-bayes,random-forest", "--folds", "2", "--repeats", "2",
        "--against", "naive-bayes", "--set", "random-forest.n-estimators=3", "--output", tmp_path / "f.json",
    )  # fmt: skip
    says(done.output, "120 rows, 2 stratified folds, repeated 2 times", f"left out   {LEFT_OUT}")
    says(done.output, "difference to naive-bayes in test accuracy", "part 4 of 4: learning tan")
    figures = load(tmp_path / "f.json")
    assert [len(row["parts"]) for row in figures["rows"]] == [4, 4, 4]
    for options, sentence in (
        (["--repeats", "2"], "add --folds"),
        (["--folds", "2", "--repeats", "0"], "repetitions must be at least 1"),
        (["--folds", "2", "--test-share", "0.3"], "leave out --test-share"),
        (["--folds", "1"], "number of folds must lie between 2"),
        (["--against", "sm"], "'sm', which is not compared"),
    ):
        assert sentence in refused("compare", ward / "t.csv", "--learners", "tan", *options).output


def test_row_numbers_are_no_features_on_the_command_line(tmp_path):
    """Rows sorted by class: their numbers tell it, in training and in the test part of the same table."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 60)
    frame = pd.DataFrame(
        {"h": np.where(rng.random(120) < 0.7, y, "a"), "k": rng.choice(["u", "v"], 120), "y": y}
    )
    order = rng.permutation(120)
    train, test = frame.iloc[order[:80]], frame.iloc[order[80:]]
    train.to_csv(tmp_path / "train.csv")
    train.to_csv(tmp_path / "plain.csv", index=False)
    test.to_csv(tmp_path / "test.csv")
    test.to_csv(tmp_path / "new.csv", index=False)
    options = ("--score", "cll", "--backend", "highs", "--threads", "1", "--classifier", tmp_path / "c.json")
    plain = run("solve", tmp_path / "plain.csv", *options)
    objective = next(line for line in plain.output.splitlines() if line.startswith("incumbent"))
    expected = run("predict", tmp_path / "c.json", tmp_path / "new.csv", "--proba").output
    forms = ["csv"]
    if importlib.util.find_spec("pyarrow") is not None:
        forms.append("parquet")
        train.to_parquet(tmp_path / "train.parquet")
        test.to_parquet(tmp_path / "test.parquet")
    for form in forms:
        done = run("solve", tmp_path / f"train.{form}", *options, "--output", tmp_path / "r.json")
        name = {"csv": "Unnamed: 0", "parquet": "__index_level_0__"}[form]
        assert f"Left out: '{name}' looks like a row index (80 different values in 80 rows)" in done.output
        assert f"left out   {name} (row index)" in done.output
        assert objective in done.output
        assert set(load(tmp_path / "r.json")["structure"]) == {"h", "k", "y"}
        for rows in (f"test.{form}", "new.csv"):
            assert run("predict", tmp_path / "c.json", tmp_path / rows, "--proba").output == expected
            assert "100.00 %  (95" not in run("evaluate", tmp_path / "c.json", tmp_path / rows).output
        kept = run("predict", tmp_path / "c.json", tmp_path / f"test.{form}", "--keep", name).output
        assert [row[name] for row in table(kept)] == [str(k) for k in order[80:]]
        assert name not in succeed("explain", tmp_path / "c.json", tmp_path / f"test.{form}").output
