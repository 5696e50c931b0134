"""The other verbs, and what all of them do with help and with errors."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_common import QUICK, run, toy_rows, write_csv

import milpbn
from milpbn.cli.app import app
from milpbn.errors import SolverError


@pytest.mark.parametrize("verb", list(app.commands))
def test_every_help_has_an_example(verb: str) -> None:
    done = run(verb, "--help")
    assert done.exit_code == 0
    assert "Example" in done.output
    assert f"milpbn {verb}" in done.output


@pytest.mark.parametrize("verb", ["solve", "bound", "verify", "export", "compare", "stability"])
def test_the_help_states_the_least_memory_limit(verb: str) -> None:
    assert "at least 512MiB" in " ".join(run(verb, "--help").stdout.split())
    arguments = ["x", "corral", "--certificate", "x"] if verb == "verify" else ["corral"]
    done = run(verb, *arguments, "--memory-limit", "511MiB")
    assert done.exit_code == 2
    assert "512.0 MiB" in done.stderr


def test_help_and_version() -> None:
    assert run().output == run("--help").output
    assert run("--version").output == f"milpbn {milpbn.__version__}\n"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom milpbn.cli.app import app\n"
        "app.run(['solve', '--help'])\n"
        "print([m for m in ('numpy', 'pandas', 'numba', 'scipy', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_predict_writes_the_class_of_every_row(shop: Path, tmp_path: Path) -> None:
    done = run("predict", shop / "classifier.json", shop / "toy.csv", "--proba", "--joint")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert list(rows[0]) == ["class", "P(bad)", "P(good)", "log_joint(bad)", "log_joint(good)"]
    classifier = milpbn.network.load_classifier(shop / "classifier.json")
    assert [row["class"] for row in rows] == list(classifier.predict(str(shop / "toy.csv")))
    assert [float(row["P(good)"]) for row in rows] == list(
        classifier.predict_proba(str(shop / "toy.csv"))[:, 1]
    )
    output = tmp_path / "predicted.csv"
    assert run("predict", shop / "classifier.json", shop / "toy.csv", "--output", output).stdout == ""
    assert output.read_text().splitlines() == ["class", *(row["class"] for row in rows)]


def test_predict_reports_what_training_never_saw(shop: Path, tmp_path: Path) -> None:
    table = write_csv(tmp_path / "new.csv", [["x", "u", "0"], ["w", "?", "1"]], "a,b,c")
    done = run("predict", shop / "classifier.json", table)
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 3
    assert "1 in 'a'" in done.stderr
    assert run("predict", shop / "classifier.json", table, "-q").stderr == ""


def test_evaluate_prints_the_figures(shop: Path) -> None:
    done = run("evaluate", shop / "classifier.json", shop / "toy.csv", "--json")
    figures = json.loads(done.stdout)
    classifier = milpbn.network.load_classifier(shop / "classifier.json")
    result = json.loads((shop / "result.json").read_text())
    assert figures["rows"] == "all"
    assert figures["accuracy"] == milpbn.evaluate(classifier, str(shop / "toy.csv")).accuracy
    assert figures["soft_margin"] == pytest.approx(result["objective"])
    text = run("evaluate", shop / "classifier.json", shop / "toy.csv").stdout
    assert f"accuracy     {100 * figures['accuracy']:.2f} %" in text
    assert all(word in text for word in ("95 % interval", "mean margin", "log-loss", "confusion"))


def test_evaluate_reports_unknown_values(shop: Path, tmp_path: Path) -> None:
    table = write_csv(tmp_path / "new.csv", [["w", "u", "0", "good"], ["x", "u", "0", "ugly"]])
    text = run("evaluate", shop / "classifier.json", table).stdout
    assert "accuracy     0.00 %" in text
    assert "unseen       1 sample of a class that training never saw: errors, with the probability 0;" in text
    assert "1 values without a state: 1 in a" in text


def test_evaluate_takes_the_test_rows_of_a_split(shop: Path, tmp_path: Path) -> None:
    import gzip

    content = (shop / "toy.csv").read_bytes()
    (tmp_path / "toy.csv.gz").write_bytes(gzip.compress(content))
    (tmp_path / "catalog.json").write_text(json.dumps({"toy": {"train_rows": 30}}))
    for options, samples in (([], 10), (["--split", "train"], 30), (["--split", "all"], 40)):
        done = run(
            "evaluate", shop / "classifier.json", "toy", "--data-dir", tmp_path, "--json", "-q", *options
        )
        assert json.loads(done.stdout)["samples"] == samples


def test_info_describes_every_kind_of_file(shop: Path) -> None:
    known = {
        "classifier.json": "a: 3 states, nominal; parents:",
        "result.json": "status     optimal",
        "model.json": "parent sets, fingerprint id_",
        "toy.csv": "a: 3 states, nominal: x, y, z",
    }
    for name, expected in known.items():
        done = run("info", shop / name)
        assert done.exit_code == 0, done.output
        assert expected in done.stdout
    assert "2 cuts" in run("info", "iris").stdout


def test_info_shows_the_table_of_a_comparison(tmp_path: Path) -> None:
    path = tmp_path / "compare.json"
    shown = run("compare", "iris", "--learners", "naive-bayes,tan", "-q", "--output", path)
    assert run("info", path).stdout == shown.stdout


def test_the_package_runs_as_a_module(tmp_path: Path) -> None:
    # In another folder: in a clone, Python would take the sources there, which have no milpbn.cli.
    done = subprocess.run(
        [sys.executable, "-m", "milpbn", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("milpbn ")


def test_score_prints_the_score_of_an_arc_list(shop: Path, tmp_path: Path) -> None:
    arcs = tmp_path / "mine.txt"
    arcs.write_text("class -> a\nclass -> b\n")
    result = json.loads((shop / "result.json").read_text())
    done = run("score", arcs, shop / "toy.csv", "--bound", shop / "result.json")
    value = float(done.stdout.splitlines()[1].split()[1])
    assert value < result["objective"]
    assert f"gap    {result['bound'] - value:.6f} nats" in done.stdout
    assert f"score  {value:.6f} nats" in run("score", arcs, shop / "toy.csv").stdout
    own = run("score", shop / "classifier.json", shop / "toy.csv", "--bound", shop / "result.json")
    assert f"score  {result['objective']:.6f} nats" in own.stdout


@pytest.mark.parametrize(
    ("arcs", "stated"),
    [
        ("class -> a\na -> b\nc -> b\nclass -> b", False),  # more parents than the bound's structures have
        ("a -> b", True),  # a class-free set: the same as none, under a margin score
        ("a -> class\nb -> class", True),
        ("a -> class\nb -> class\nc -> class", False),
    ],
)
def test_score_states_a_gap_only_within_the_bounds_family(
    shop: Path, tmp_path: Path, arcs: str, stated: bool
) -> None:
    (tmp_path / "mine.txt").write_text(arcs)
    done = run("score", tmp_path / "mine.txt", shop / "toy.csv", "--bound", shop / "result.json")
    assert done.exit_code == 0
    assert ("gap    not stated" not in done.stdout) == stated


def test_score_respects_the_constraints_of_the_bound(shop: Path, tmp_path: Path) -> None:
    bound = tmp_path / "r.json"
    options = ["--max-children", "0", "--forbid", "class,c", "--arc-weight", "class,a=2"]
    assert run("solve", shop / "toy.csv", *QUICK, "--output", bound, *options).exit_code == 0
    arcs = tmp_path / "mine.txt"
    for text, reason in (
        ("class -> c", "the forbidden arc class -> c"),
        ("class -> a\na -> b\nclass -> b", "gives 'a' more children than the 0 allowed"),
    ):
        arcs.write_text(text)
        assert reason in run("score", arcs, shop / "toy.csv", "--bound", bound).stdout
    arcs.write_text("class -> a")
    with_weight = run("score", arcs, shop / "toy.csv", "--bound", bound).stdout.splitlines()[1].split()[1]
    without = run("score", arcs, shop / "toy.csv").stdout.splitlines()[1].split()[1]
    assert float(with_weight) == pytest.approx(float(without) + 2, abs=2e-6)


def test_export_prints_commands_and_import_reads_the_answer(shop: Path, tmp_path: Path) -> None:
    done = run("export", shop / "toy.csv", "--output", tmp_path / "m.mps.gz", "--time-limit", "7")
    assert done.exit_code == 0
    assert all(f"# {solver}" in done.stdout for solver in ("cplex", "gurobi", "scip", "highs", "cbc"))
    assert {"m.mps.gz", "m.json"} <= {path.name for path in tmp_path.iterdir()}
    known = json.loads((shop / "result.json").read_text())
    files = ["--output", tmp_path / "r.json", "--classifier", tmp_path / "c.json"]
    done = run("import", shop / "model.sol", "--bound", known["bound"], *files)
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["objective"] == pytest.approx(known["objective"], abs=1e-6)
    assert result["status"]["reason"] == "optimal"
    assert json.loads((tmp_path / "c.json").read_text())["structure"] == result["structure"]


def test_instances_are_listed_with_their_optima() -> None:
    listed = run("instances").stdout
    assert all(name in listed for name in milpbn.instances.names())
    assert "(default of solve)" in listed
    assert "definition" in run("instances", "corral").stdout


def test_backends_are_listed_with_their_versions() -> None:
    listed = run("backends").stdout
    assert "HiGHS 1." in listed
    assert "CBC" in listed


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "Interrupted"),
        (MemoryError(), 2, "--max-parents"),
        (SolverError("HiGHS broke."), 4, "HiGHS broke."),
        (PermissionError(13, "Permission denied", "x.json"), 2, "'x.json'"),
        (KeyError("lost"), 4, "KeyError: 'lost'"),
    ],
)
def test_every_exception_is_a_sentence(
    shop: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, words: str
) -> None:
    def fail(path: object) -> None:
        raise error

    monkeypatch.setattr("milpbn.network.load_any_classifier", fail)
    done = run("info", shop / "classifier.json")
    assert done.exit_code == code
    assert done.stderr.strip().startswith("Error: ")
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    if code == 4:
        assert "Traceback" in run("--debug", "info", shop / "classifier.json").stderr


def test_values_of_options_are_parsed_or_refused() -> None:
    from milpbn.cli.types import parse_arc_weight, parse_class_weights, parse_family, parse_limit, parse_tiers

    assert parse_tiers('a, "b;c" ;d') == (("a", "b;c"), ("d",))
    assert parse_family('"a=b"=" c",d') == ("a=b", (" c", "d"))
    assert parse_family("a=") == ("a", ())
    assert parse_limit("3") == ("*", 3)
    assert parse_limit('"*"=3') == ("*", 3)
    assert parse_limit("x=y=3") == ("x=y", 3)
    assert parse_arc_weight("a,b=-1.5") == (("a", "b"), -1.5)
    assert parse_class_weights("yes=2, no =0.5") == {"yes": 2.0, "no": 0.5}
    assert parse_class_weights("balanced") == parse_class_weights("BALANCED") == "balanced"


def test_an_interrupted_reader_is_no_error(shop: Path) -> None:
    code = (
        "import sys\nfrom milpbn.cli import main\n"
        f"sys.argv = ['milpbn', 'predict', {str(shop / 'classifier.json')!r}, {str(shop / 'toy.csv')!r}, '-q']\n"
        "main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait() == 0


def test_unicode_names_survive(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "Größe.csv", toy_rows(), "Größe,色,c,класс")
    done = run("solve", table, *QUICK, "--require", "色,Größe")
    assert done.exit_code == 0
    assert "Größe" in done.stdout
