"""Text files of many kinds on the command line and in Python: what is said, and how the options override it."""

import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from cli_common import QUICK, load, refused, run, says, succeed

import milpbn
from milpbn.data import read_samples
from milpbn.network import load_classifier


def temperatures(count: int = 120) -> list[tuple[float, str, str]]:
    """Rows of a temperature, a label and a class that the temperature decides."""
    draw = random.Random(1)
    rows = []
    for _ in range(count):
        value = round(draw.uniform(35.5, 41), 1)
        rows.append((value, draw.choice("uv"), "sick" if value > 37.3 else "ok"))
    return rows


def write(path: Path, decimal: str, separator: str, header: str | None = "temp{}side{}y") -> Path:
    """Write the rows in a dialect."""
    lines = [] if header is None else [header.format(separator, separator)]
    lines += [
        f"{value}".replace(".", decimal) + f"{separator}{b}{separator}{y}" for value, b, y in temperatures()
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def solve(table: Path, classifier: Path, *options: object) -> str:
    """Solve, and return what is said about the table."""
    done = succeed("solve", table, *QUICK, "--score", "cll", "--classifier", classifier, *options)
    return done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the table in three dialects and without names, and a classifier of each."""
    folder = tmp_path_factory.mktemp("dialects")
    write(folder / "comma.csv", ",", ";")
    write(folder / "point.csv", ".", ",")
    write(folder / "tabs.csv", ",", "\t")
    write(folder / "bare.csv", ".", ",", None)
    return folder


def test_every_dialect_gives_the_same_classifier_and_predictions(folder, tmp_path):
    said = solve(folder / "comma.csv", tmp_path / "c.json")
    assert "Read as numbers: 'temp' ('" in said
    classifier = load_classifier(tmp_path / "c.json")
    variable = classifier.variables[0]
    assert variable.cuts is not None
    assert 37.2 < variable.cuts[0] < 37.5
    expected = classifier.predict(folder / "point.csv")
    assert expected.tolist() == [y for _, _, y in temperatures()]
    for name in ("comma.csv", "tabs.csv"):
        assert (classifier.predict(folder / name) == expected).all()
        assert "accuracy     100.00 %" in run("evaluate", tmp_path / "c.json", folder / name).output


def test_the_command_line_and_python_read_the_same(folder):
    for name in ("comma.csv", "point.csv", "tabs.csv", "bare.csv"):
        with pytest.warns(milpbn.DataWarning) if name != "point.csv" else _nothing():
            table = milpbn.read_table(folder / name)
        output = run("info", folder / name).output
        assert all(note in output for note in table.notes)
        assert table.frame.iloc[:, 0].astype(float).tolist() == [value for value, _, _ in temperatures()]


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


def test_a_table_without_names_keeps_all_rows(folder, tmp_path):
    said = solve(folder / "bare.csv", tmp_path / "c.json")
    assert "looks like a row" in said
    assert "120 samples" in said
    assert "accuracy     100.00 %" in run("evaluate", tmp_path / "c.json", folder / "bare.csv").output
    done = run("info", folder / "bare.csv", "--header")
    assert "looks like a row" not in done.output
    assert f"  {temperatures()[0][0]}: " in done.output  # the name of the first column


def test_values_that_mean_a_missing_one_hold_for_predictions(folder, tmp_path):
    lines = (folder / "point.csv").read_text(encoding="utf-8").splitlines()
    lines[1:21] = ["999," + line.partition(",")[2] for line in lines[1:21]]
    table = tmp_path / "codes.csv"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ("--na-values", "temp=999,side=none", "--missing", "state")
    said = solve(table, tmp_path / "c.json", *options, "--output", tmp_path / "r.json")
    assert "Missing values have a state of their own in: temp." in said
    assert "No cell of" in said
    request = load(tmp_path / "r.json")["request"]
    assert request["options"]["na_values"] == {"temp": ["999"], "side": ["none"]}
    classifier = load_classifier(tmp_path / "c.json")
    samples = classifier.encode(table)
    missing = classifier.variables[0].n_states - 1
    assert (samples.codes[:20, 0] == missing).all()
    assert (samples.codes[20:, 0] < missing).all()
    one = tmp_path / "one.csv"
    one.write_text("temp\n999\n\n", encoding="utf-8")
    assert classifier.encode(one).codes[0, 0] == missing
    succeed("score", tmp_path / "r.json", table, *options)
    succeed("report", tmp_path / "r.json", table, *options, "--output", tmp_path / "r.html")
    assert "--na-values temp=999,side=none" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_number_that_may_be_two_is_read_as_in_the_training_table(tmp_path):
    table = tmp_path / "t.csv"
    lines = [f"{value / 10:.3f}".replace(".", ",") + f"\t{y}" for value, _, y in temperatures()]
    table.write_text("\n".join(["temp\ty", *lines]) + "\n", encoding="utf-8")
    assert "In column 'temp'" in run("info", table).output
    said = solve(table, tmp_path / "c.json", "--decimal", "comma")
    assert "In column 'temp'" not in said
    done = run("evaluate", tmp_path / "c.json", table)
    says(done.output, "as in the training table", "accuracy     100.00 %")
    other = run("evaluate", tmp_path / "c.json", table, "--decimal", "point")
    assert "accuracy     100.00 %" not in other.output
    variables = load_classifier(tmp_path / "c.json").variables
    codes = read_samples(table, variables, form={"decimal": ","}).codes
    assert (codes == load_classifier(tmp_path / "c.json").encode(table).codes).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--separator", ",,"], "The option 'separator' must be one character"),
        (["--decimal", "."], "stays text, though its values look like numbers"),
        (["--encoding", "utf-99"], "The encoding 'utf-99' is not known"),
        (["--encoding", "ascii"], "120 training samples"),
        (["--na-values", "nowhere=9"], "names 'nowhere', which is not a column"),
        (["--na-values", "=9"], "has an empty name"),
        (["--separator", "comma"], "Line"),
        (["--nominal", "temp"], "temp: "),
    ],
)
def test_options_are_obeyed_or_refused_with_a_sentence(folder, options, said):
    done = run("info", folder / "comma.csv", *options)
    assert said in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    "words",
    [
        ["predict", "c.json"],
        ["evaluate", "c.json"],
        ["explain", "c.json"],
        ["precision", "c.json"],
        ["convert"],
        ["info"],
    ],
)
def test_every_verb_that_reads_a_table_has_the_options(folder, tmp_path, words):
    solve(folder / "comma.csv", tmp_path / "c.json")
    odd = tmp_path / "odd.csv"
    text = (folder / "comma.csv").read_text(encoding="utf-8").replace(";", "^").replace("sick", "größe")
    odd.write_bytes(text.encode("cp1252"))
    arguments = [tmp_path / word if word.endswith(".json") else word for word in words]
    after = [tmp_path / "out.arff"] if words == ["convert"] else []
    done = succeed(
        *arguments, odd, *after, "--separator", "^", "--encoding", "cp1252", "--decimal", ",", "--header"
    )
    assert "'temp'" in done.output
    assert "--encoding" in refused(*arguments, odd, *after, "--separator", "^").output


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_info_reads_a_pipe_once(tmp_path):
    table = write(tmp_path / "table.csv", ".", ",")
    os.mkfifo(tmp_path / "pipe.csv")
    threading.Thread(
        target=(tmp_path / "pipe.csv").write_bytes, args=(table.read_bytes(),), daemon=True
    ).start()
    shown = succeed("info", tmp_path / "pipe.csv").stdout
    assert shown.replace("pipe", "table") == succeed("info", table).stdout
