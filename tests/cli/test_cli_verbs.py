"""The other verbs, and what all of them do with help and with errors."""

import csv
import io
import json
import subprocess
import sys

import pytest
from cli_common import QUICK, ended, load, refused, run, says, succeed, toy_rows, write_csv

import milpbn
from milpbn.cli.app import VERBS, app
from milpbn.errors import SolverError


@pytest.mark.parametrize("verb", list(app.commands))
def test_every_help_has_an_example(verb):
    done = succeed(verb, "--help")
    says(done.output, "Example", f"milpbn {verb}")


@pytest.mark.parametrize("verb", ["solve", "bound", "verify", "export", "compare", "stability"])
def test_the_help_states_the_least_memory_limit(verb):
    assert "at least 512MiB" in " ".join(run(verb, "--help").stdout.split())
    arguments = ["x", "corral", "--certificate", "x"] if verb == "verify" else ["corral"]
    assert "512.0 MiB" in refused(verb, *arguments, "--memory-limit", "511MiB").stderr


def test_help_and_version():
    assert run().output == run("--help").output
    assert run("--version").output == f"milpbn {milpbn.__version__}\n"


def test_the_help_lists_every_verb_under_a_task():
    lines = run("--help").output.splitlines()
    first = lines.index("Learn:")
    listed = [line.split()[0] for line in lines[first:] if line[:2] == "  " and line[2:3].strip()]
    assert listed == list(app.commands)
    assert [line for line in lines[first:] if line and line[0] != " "] == [f"{task}:" for task in VERBS]


def test_help_imports_nothing_heavy():
    code = """
        import sys
        from milpbn.cli.app import app
        app.run(["solve", "--help"])
        print([m for m in ("numpy", "pandas", "numba", "scipy", "sklearn") if m in sys.modules])
    """
    assert ended(code)[1].splitlines()[-1] == "[]"


def test_predict_writes_the_class_of_every_row(shop, tmp_path):
    done = run("predict classifier.json toy.csv --proba --joint")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert list(rows[0]) == ["class", "P(bad)", "P(good)", "log_joint(bad)", "log_joint(good)"]
    classifier = milpbn.network.load_classifier(shop / "classifier.json")
    assert [row["class"] for row in rows] == list(classifier.predict(str(shop / "toy.csv")))
    assert [float(row["P(good)"]) for row in rows] == list(
        classifier.predict_proba(str(shop / "toy.csv"))[:, 1]
    )
    output = tmp_path / "predicted.csv"
    assert run("predict classifier.json toy.csv --output", output).stdout == ""
    assert output.read_text().splitlines() == ["class", *(row["class"] for row in rows)]


def test_predict_reports_what_training_never_saw(shop, tmp_path):
    table = write_csv(tmp_path / "new.csv", [["x", "u", "0"], ["w", "?", "1"]], "a,b,c")
    done = succeed("predict classifier.json", table)
    assert len(done.stdout.splitlines()) == 3
    assert "1 in 'a'" in done.stderr
    assert run("predict classifier.json", table, "-q").stderr == ""


def test_evaluate_prints_the_figures(shop):
    done = run("evaluate classifier.json toy.csv --json")
    figures = json.loads(done.stdout)
    classifier = milpbn.network.load_classifier(shop / "classifier.json")
    result = load(shop / "result.json")
    assert figures["rows"] == "all"
    assert figures["accuracy"] == milpbn.evaluate(classifier, str(shop / "toy.csv")).accuracy
    assert figures["soft_margin"] == pytest.approx(result["objective"])
    text = run("evaluate classifier.json toy.csv").stdout
    assert f"accuracy     {100 * figures['accuracy']:.2f} %" in text
    assert all(word in text for word in ("95 % interval", "mean margin", "log-loss", "confusion"))


def test_evaluate_reports_unknown_values(shop, tmp_path):
    table = write_csv(tmp_path / "new.csv", [["w", "u", "0", "good"], ["x", "u", "0", "ugly"]])
    text = run("evaluate classifier.json", table).stdout
    assert "accuracy     0.00 %" in text
    assert "unseen       1 sample of a class that training never saw: errors, with the probability 0;" in text
    assert "1 values without a state: 1 in a" in text


def test_evaluate_takes_the_test_rows_of_a_split(shop, tmp_path):
    import gzip

    content = (shop / "toy.csv").read_bytes()
    (tmp_path / "toy.csv.gz").write_bytes(gzip.compress(content))
    (tmp_path / "catalog.json").write_text(json.dumps({"toy": {"train_rows": 30}}))
    for options, samples in (([], 10), (["--split", "train"], 30), (["--split", "all"], 40)):
        done = run("evaluate classifier.json toy --data-dir", tmp_path, "--json", "-q", *options)
        assert json.loads(done.stdout)["samples"] == samples


def test_info_describes_every_kind_of_file(shop):
    known = {
        "classifier.json": "a: 3 states, nominal; parents:",
        "result.json": "status     optimal",
        "model.json": "parent sets, fingerprint id_",
        "toy.csv": "a: 3 states, nominal: x, y, z",
    }
    for name, expected in known.items():
        assert expected in succeed("info", shop / name).stdout
    assert "2 cuts" in run("info iris").stdout


def test_info_shows_the_table_of_a_comparison(tmp_path):
    path = tmp_path / "compare.json"
    shown = run("compare", "iris", "--learners", "naive-bayes,tan", "-q", "--output", path)
    assert run("info", path).stdout == shown.stdout


def test_the_package_runs_as_a_module(tmp_path):
    # In another folder: in a clone, Python would take the sources there, which have no milpbn.cli.
    command = [sys.executable, "-m", "milpbn", "--version"]
    assert subprocess.check_output(command, cwd=tmp_path, text=True).startswith("milpbn ")


def test_score_prints_the_score_of_an_arc_list(shop, tmp_path):
    arcs = tmp_path / "mine.txt"
    arcs.write_text("class -> a\nclass -> b\n")
    result = load(shop / "result.json")
    done = run("score", arcs, "toy.csv", "--bound", "result.json")
    value = float(done.stdout.splitlines()[1].split()[1])
    assert value < result["objective"]
    assert f"gap    {result['bound'] - value:.6f} nats" in done.stdout
    assert f"score  {value:.6f} nats" in run("score", arcs, "toy.csv").stdout
    own = run("score classifier.json toy.csv --bound result.json")
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
def test_score_states_a_gap_only_within_the_bounds_family(shop, tmp_path, arcs, stated):
    (tmp_path / "mine.txt").write_text(arcs)
    done = succeed("score", tmp_path / "mine.txt", "toy.csv", "--bound", "result.json")
    assert ("gap    not stated" not in done.stdout) == stated


def test_score_respects_the_constraints_of_the_bound(shop, tmp_path):
    bound = tmp_path / "r.json"
    options = ["--max-children", "0", "--forbid", "class,c", "--arc-weight", "class,a=2"]
    succeed("solve toy.csv", *QUICK, "--output", bound, *options)
    arcs = tmp_path / "mine.txt"
    for text, reason in (
        ("class -> c", "the forbidden arc class -> c"),
        ("class -> a\na -> b\nclass -> b", "gives 'a' more children than the 0 allowed"),
    ):
        arcs.write_text(text)
        assert reason in run("score", arcs, "toy.csv", "--bound", bound).stdout
    arcs.write_text("class -> a")
    with_weight = run("score", arcs, shop / "toy.csv", "--bound", bound).stdout.splitlines()[1].split()[1]
    without = run("score", arcs, "toy.csv").stdout.splitlines()[1].split()[1]
    assert float(with_weight) == pytest.approx(float(without) + 2, abs=2e-6)


def test_export_prints_commands_and_import_reads_the_answer(shop, tmp_path):
    done = succeed("export toy.csv --output", tmp_path / "m.mps.gz", "--time-limit", "7")
    assert all(f"# {solver}" in done.stdout for solver in ("cplex", "gurobi", "scip", "highs", "cbc"))
    assert {"m.mps.gz", "m.json"} <= {path.name for path in tmp_path.iterdir()}
    known = load(shop / "result.json")
    files = ["--output", tmp_path / "r.json", "--classifier", tmp_path / "c.json"]
    succeed("import model.sol --bound", known["bound"], *files)
    result = load(tmp_path / "r.json")
    assert result["objective"] == pytest.approx(known["objective"], abs=1e-6)
    assert result["status"]["reason"] == "optimal"
    assert load(tmp_path / "c.json")["structure"] == result["structure"]


def test_instances_are_listed_with_their_optima():
    listed = run("instances").stdout
    assert all(name in listed for name in milpbn.instances.names())
    assert "(default of solve)" in listed
    assert "definition" in run("instances", "corral").stdout


def test_backends_are_listed_with_their_versions():
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
def test_every_exception_is_a_sentence(shop, monkeypatch, error, code, words):
    def fail(path: object) -> None:
        raise error

    monkeypatch.setattr("milpbn.network.load_any_classifier", fail)
    done = run("info classifier.json")
    assert done.exit_code == code
    assert done.stderr.strip().startswith("Error: ")
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    if code == 4:
        assert "Traceback" in run("--debug info classifier.json").stderr


def test_values_of_options_are_parsed_or_refused():
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


def test_unicode_names_survive(tmp_path):
    table = write_csv(tmp_path / "Größe.csv", toy_rows(), "Größe,色,c,класс")
    assert "Größe" in succeed("solve", table, *QUICK, "--require", "色,Größe").stdout
