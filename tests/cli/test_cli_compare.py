"""``milpbn compare`` and ``milpbn precision``."""

import gzip
import json
from typing import Any

import pytest
from cli_common import load, refused, run, says, succeed, toy_rows, write_csv

from milpbn.errors import InputError
from milpbn.trials import executors


def test_compare_prints_every_learner(tmp_path):
    output = tmp_path / "figures.json"
    done = succeed(
        "compare", "instance:corral", "--learners", "sm,tan,naive-bayes", "--p", "0.9",
        "--test-share", "0.25", "--time-limit", "600", "--output", output,
    )  # fmt: skip
    assert "96 training rows, 32 test rows" in done.output
    figures = load(output)
    assert [row["name"] for row in figures["rows"]] == ["sm", "tan", "naive-bayes"]
    sm, tan, nb = figures["rows"]
    assert sm["relative_gap"] <= 1e-6
    assert sm["score"] >= max(tan["score"], nb["score"])
    assert tan["gap"] > 0
    assert figures["test_samples"] == 32


def test_compare_with_options_of_learners(tmp_path):
    output = tmp_path / "figures.json"
    arguments = ["instance:corral", "--test-share", "0", "--learners", "naive-bayes,tan,svm", "-q"]
    succeed("compare", *arguments, "--output", output)
    plain = [row["training"] for row in load(output)["rows"]]
    succeed(
        "compare --set svm.cost=0.001 --set tan.smoothing=1000 --set svm.sigma=0.5",
        *arguments,
        "--output",
        output,
    )
    rows = load(output)["rows"]
    assert [row["options"] for row in rows] == [{}, {"smoothing": 1000.0}, {"cost": 0.001, "sigma": 0.5}]
    assert rows[0]["training"] == plain[0]
    assert rows[2]["training"] < plain[2]


def test_compare_goes_on_from_its_checkpoint(tmp_path):
    state = tmp_path / "state.npz"
    arguments = ["instance:corral", "--learners", "naive-bayes,tan", "--folds", "3", "--checkpoint", state]
    done = run("compare", *arguments, "--resume")
    assert (done.exit_code, "There is no checkpoint" in done.output) == (2, True)
    succeed("compare", *arguments)
    again = succeed("compare", *arguments, "--resume")
    assert "learning" not in again.output
    assert "part 3 of 3: tan has finished before" in again.output
    done = run("compare", *arguments[:-3], "4", *arguments[-2:])
    assert (done.exit_code, "another value of --folds (3, not 4)" in done.output) == (2, True)


def test_also_adds_learners_to_the_defaults(tmp_path, monkeypatch):
    monkeypatch.setattr("milpbn.learners.contestants.DEFAULT", ("sbm", "naive-bayes"))
    output = tmp_path / "figures.json"
    arguments = ["instance:corral", "-q", "--output", output]
    succeed("compare", *arguments, "--also", "tan,naive-bayes,cll", "--p", "0.9", "--max-parents", "1")
    figures = load(output)
    assert [row["name"] for row in figures["rows"]] == ["sbm", "cll", "naive-bayes", "tan"]
    assert figures["reference"] == "sbm"
    assert [row["note"] for row in figures["rows"][:2]] == ["", ""]
    done = run("compare", *arguments, "--learners", "tan", "--also", "chow-liu")
    figures = load(output)
    assert [row["name"] for row in figures["rows"]] == ["tan", "chow-liu"]
    assert figures["reference"] is None
    assert "no score and no gap" in done.output


def test_the_reference_is_a_search_with_a_bound(tmp_path, monkeypatch):
    from milpbn.learners import learning

    original = learning._solve

    def fail(train: Any, score: Any, *others: Any) -> Any:
        if score.name == "sm":
            raise InputError("not today")
        return original(train, score, *others)

    monkeypatch.setattr(learning, "_solve", fail)
    output = tmp_path / "figures.json"
    done = run("compare", "instance:corral", "--learners", "sm,sbm,tan", "-q", "--output", output)
    assert load(output)["reference"] == "sbm"
    assert "score and gap in nats: sbm" in done.output


def test_a_structure_from_a_file_by_either_name(tmp_path):
    arcs = tmp_path / "arcs.txt"
    arcs.write_text("# none\n")
    for name in ("structure-file", "structure_file"):
        succeed(
            "compare instance:corral --learners parameters -q --set parameters.lambda_=3 --set parameters.epochs=1",
            "--set",
            f"parameters.{name}={arcs}",
        )


def test_a_test_share_of_data_with_a_split_needs_split_all(tmp_path):
    (tmp_path / "toy.csv.gz").write_bytes(
        gzip.compress(write_csv(tmp_path / "toy.csv", toy_rows()).read_bytes())
    )
    (tmp_path / "catalog.json").write_text(json.dumps({"toy": {"train_rows": 30}}))
    arguments = ["compare", "toy", "--data-dir", tmp_path, "--learners", "tan", "-q"]
    assert "30 training rows, 10 test rows" in run(*arguments).output
    for share in ("0.5", "0"):
        assert "10 test rows of their own" in refused(*arguments, "--test-share", share).output
    assert "20 training rows, 20 test rows" in run(*arguments, "--split", "all", "--test-share", "0.5").output


def test_compare_without_test_rows():
    done = succeed("compare", "instance:corral", "--learners", "naive-bayes", "--test-share", "0", "-q")
    assert "128 training rows, no test rows" in done.output


def test_compare_without_any_classifier():
    done = run("compare", "instance:corral", "--learners", "sm", "--time-limit", "1e-7", "-q")
    assert done.exit_code == 3
    says(done.output, "sm: ", "None of the learners")


def test_precision_prints_the_accuracy_of_every_width(tmp_path):
    classifier = tmp_path / "classifier.json"
    succeed("learn", "tan", "instance:corral", "-q", "--classifier", classifier)
    shown = succeed("precision", classifier, "instance:corral", "--integer-bits", "4", "--bits", "20")
    assert len(shown.output.splitlines()) == 23
    figures = json.loads(run("precision", classifier, "instance:corral", "--bits", "20", "--json").output)
    assert figures["widths"][0] == {"bits": 20, "accuracy": figures["double"]}
    assert len(figures["widths"]) == 20


def test_precision_draws_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    classifier, picture = tmp_path / "classifier.json", tmp_path / "bits.svg"
    run("learn", "naive-bayes", "instance:corral", "-q", "--classifier", classifier)
    succeed("precision", classifier, "instance:corral", "--bits", "64", "--plot", picture)
    assert "bits per parameter" in picture.read_text()
    text = refused("precision", classifier, "instance:corral", "--plot", tmp_path / "bits.txt")
    assert "bits.txt" in text.output


def test_precision_refuses_wrong_options(tmp_path):
    assert "none.json" in refused("precision", tmp_path / "none.json", "instance:corral").output
    classifier = tmp_path / "classifier.json"
    run("learn", "naive-bayes", "instance:corral", "-q", "--classifier", classifier)
    assert "64 bits" in refused("precision", classifier, "instance:corral", "--bits", "100").output
    assert "1 bit" in refused("precision", classifier, "instance:corral", "--bits", "0").output


#: Without validation.
ONE_MACHINE = ("--set", "svm.cost=1", "--set", "svm.sigma=1")


def test_a_learner_that_fails_has_a_note(monkeypatch):
    def fail(*_: object) -> None:
        raise ZeroDivisionError("by\n\nnothing")

    monkeypatch.setattr("milpbn.learners.svm.fit_machine", fail)
    done = succeed("compare", "instance:corral", "--learners", "svm,tan", "-q", *ONE_MACHINE)
    says(done.output, "svm: failed unexpectedly (ZeroDivisionError: by nothing)", "tan ")


def test_a_second_signal_keeps_the_rows_that_are_there(monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("milpbn.learners.svm.fit_machine", interrupted)
    done = succeed("compare", "instance:corral", "--learners", "tan,svm", "-q", *ONE_MACHINE)
    assert "tan " in done.output
    assert "svm" not in done.output


def test_compare_on_raw_columns(tmp_path, monkeypatch):
    workers = executors.workers  # a process takes seconds to start
    monkeypatch.setattr(executors, "workers", lambda count, *, killable: workers(count, killable=False))
    rows = [
        f"{x},{'ab'[k % 2]},{'yes' if x > 3 else 'no'}" for k, x in enumerate([*range(12), ""] * 5) if x != ""
    ]
    path, output = tmp_path / "raw.csv", tmp_path / "figures.json"
    path.write_text("\n".join(["x,t,class", *rows, ",a,yes", ",b,no"]) + "\n")
    done = succeed("compare", path, "--raw", "--learners", "logistic,splines", "--output", output)
    figures = load(output)
    assert (figures["raw"], figures["against"]) == (True, "logistic")
    assert figures["data"]["samples"] + figures["test_samples"] == 62  # rows with missing values stay
    assert "arcs" not in done.output
    for words, sentence in (
        ("--raw --learners logistic,sm", "'sm' does not learn from raw columns (--raw, raw)"),
        ("--raw --p 0.9", "Options of the score need an exact search"),
        ("--raw --discretise quantile:3", "--discretise has no effect"),
        ("--raw --parameters cll", "leave out --raw (raw) or --parameters"),
        ("--raw --learners ebm --set ebm.bags=3", "its options are interactions, outer_bags."),
    ):
        done = run("compare", path, *words.split())
        assert (done.exit_code, sentence in done.output) == (2, True), done.output
