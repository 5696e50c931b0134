"""Names with the metacharacters of LP, MPS, XML, HTML, DOT, shells, CSV and Unicode, through every writer and back."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from importlib.metadata import version
from itertools import cycle
from pathlib import Path

import highspy
import pytest

import milpbn
from milpbn.claims.result import Result
from milpbn.network import load_classifier, read_structure
from milpbn.network.formats.structure_files import to_dot, write_arcs

from .shop import run

NAMES = (
    "$x^$",
    *(
        "a,b",
        'say "hi"',
        "<x&y>'",
        "$(touch pwned); `id`",
        "é 名 😀",
        "a -> b",
        "# c",
        "e1",
        "x:y|{z}",
        "a\nb",
    ),
    *(
        "\u202etrik", "A  B\tC", "_", "[1] <= 2", "*", "obj", "[]", "a=b;c", "\\n\\", "$\\alpha$", "_foo_", "End",
    ),
    *(
        "{0}%s",
        "it's",
        "e\u0301",
        "é",
        "A" * 300,
        "</script><script>",
        "-inf",
        "--target",
        "class",
        "]]>",
        "&lol;",
    ),
    *("\x1b[31mred", "x\u2028y", "x\ufeff", "../x", "a\\\nb", "''", '"', "%d", "subject to", "1e5", "nan "),
)  # fmt: skip
QUICK = ("--backend", "highs", "--threads", "1", "--time-limit", "60", "-q")
GROUPS = [range(start, start + 4) for start in range(0, len(NAMES), 4)]


def write_table(path: Path, group: Sequence[int]) -> list[str]:
    """Write a table whose features, states and classes have hostile names; return the columns."""
    names = [*(NAMES[i % len(NAMES)] for i in group), "the class of " + NAMES[(group[0] + 7) % len(NAMES)]]
    states = [*(NAMES[(i + 1) % len(NAMES)] for i in group[:3]), "plain"]
    labels = [*(NAMES[(i + 9) % len(NAMES)] for i in group[:2]), "no"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for i in range(30):
            cells = [states[(i * (j + 3) + i // (j + 2)) % 4] for j in range(4)]
            writer.writerow([*cells, labels[(i * i + i // 3) % 3]])
    return names


def good(*arguments: object) -> str:
    code, out, err = run(*arguments)
    assert code == 0, err
    return out


@pytest.mark.parametrize(
    "group", GROUPS, ids=lambda group: repr(NAMES[group[0]])[:20].encode("ascii", "replace").decode()
)
def test_names_survive_every_file_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: range
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [name.strip() for name in write_table(Path("t.csv"), group)]
    dataset = milpbn.read_table("t.csv").dataset()
    assert list(dataset.names) == names

    good("solve", "t.csv", *QUICK, "--output", "r.json", "--classifier", "c.json")
    result, classifier = Result.load("r.json"), load_classifier("c.json")
    assert result.structure is not None
    assert list(result.structure.names) == names
    assert classifier.structure == result.structure
    assert list(json.loads(Path("r.json").read_text(encoding="utf-8"))["structure"]) == names

    rows = list(csv.reader(io.StringIO(good("predict", "c.json", "t.csv", "--proba", "-q"), newline="")))
    assert rows[0] == [names[-1], *(f"P({label})" for label in classifier.classes)]
    assert [row[0] for row in rows[1:]] == list(classifier.predict("t.csv"))

    for command in (
        "info r.json",
        "info c.json",
        "info t.csv",
        "evaluate c.json t.csv",
        "score r.json t.csv",
    ):
        good(*command.split())
    good("learn", "tan", "t.csv", "-q", "--output", "tan.json")
    assert read_structure("tan.json", names).names == tuple(names)
    good("plot", "r.json", "--output", "p.svg")
    ElementTree.parse("p.svg")

    write_arcs(result.structure, "arcs.txt")
    assert read_structure("arcs.txt", names) == result.structure
    assert list(dot_names(to_dot(result.structure))) == [names[-1], *names[:-1]]
    assert not Path("pwned").exists()


@pytest.mark.parametrize(
    ("group", "suffix"),
    list(zip(GROUPS[::2], cycle([".lp", ".mps", ".lp.gz"]), strict=False)),
    ids=lambda value: value if isinstance(value, str) else str(value[0]),
)
def test_names_survive_models_and_solutions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: range, suffix: str
) -> None:
    if suffix == ".lp.gz" and int(version("highspy").split(".")[1]) < 15:
        pytest.skip("this HiGHS does not read compressed models")
    monkeypatch.chdir(tmp_path)
    names = [name.strip() for name in write_table(Path("t.csv"), group)]
    good("export", "t.csv", "--output", f"m{suffix}")
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    assert solver.readModel(f"m{suffix}") != highspy.HighsStatus.kError  # it warns of coefficients below 1e-9
    solver.run()
    for style in (0, 1, 4):
        solver.writeSolution("m.sol", style)
        good("import", "m.sol", "--output", "i.json", "--classifier", "c.json")
        assert list(Result.load("i.json").structure.names) == names
    ElementTree.parse("m.start.cplex.mst")
    start = {"lp": "highs.sol", "gz": "highs.sol", "mps": "cbc.sol"}[suffix.rpartition(".")[2]]
    good("import", f"m.start.{start}", "--model", f"m{suffix}")
    good("import", "m.start.gurobi.mst", "--model", f"m{suffix}")


FILES = (
    "a b",
    "it's",
    "$(touch pwned)",
    "`id`;x",
    "é名",
    "-v",
    "a&b",
    "*?",
    "{1..3}",
    "#x",
    "~",
    "a\\b",
    "%PATH%",
    "<x>",
)


@pytest.mark.parametrize("name", FILES)
def test_command_lines_hold_any_file_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(Path("t.csv"), GROUPS[0])
    out = good("export", "t.csv", "--output", f"./{name}.lp")
    commands = dict(re.findall(r"^# (\w+)\n(.*)$", out, re.M))
    assert set(commands) == {"cplex", "gurobi", "scip", "highs", "cbc"}
    # A shell sees the words that were meant, and nothing of a name is run.
    show = 'show() { printf \'%s\\0\' "$@" >> words; }; cplex() { show "$@"; }; gurobi_cl() { show "$@"; }; '
    show += 'scip() { show "$@"; }; highs() { show "$@"; }; cbc() { show "$@"; }; '
    for solver, command in commands.items():
        Path("words").unlink(missing_ok=True)
        subprocess.run(["sh", "-c", show + command], check=True, capture_output=True)
        words = Path("words").read_text().split("\0")
        assert any(f"{name}.lp" in word for word in words), command
        assert any(f"{name}.{solver}.sol" in word for word in words), command
        assert shlex.split(command)
    assert not Path("pwned").exists()
    import_from = f"./{name}.start.highs.sol"
    good("import", import_from, "--model", f"./{name}.lp", "--output", f"./{name}.json2")


@pytest.mark.parametrize("name", ['a"b', "a\nb", "a\x1bb", "a\udce9b"])
def test_names_that_no_command_line_can_hold_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(Path("t.csv"), GROUPS[0])
    code, _, err = run("export", "t.csv", "--output", f"{name}.lp")
    assert code == 2
    assert "choose another" in err
    assert err.splitlines()[-1].isprintable()
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]  # refused before anything was written


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux")
def test_file_names_that_are_no_utf8_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(Path("t.csv"), GROUPS[0])
    Path("t.csv").rename("caf\udce9.csv")
    good("solve", "caf\udce9.csv", *QUICK, "--output", "r\udce9.json", "--classifier", "c\udce9.json")
    assert Result.load("r\udce9.json").data.name == "caf\ufffd"
    good("export", "caf\udce9.csv", "--output", "m.lp")
    Path("m.start.highs.sol").rename("m\udce9.sol")
    good("import", "m\udce9.sol", "--model", "m.lp", "--output", "i.json")
    assert "m\ufffd.sol" in Result.load("i.json").backend.version


@pytest.mark.parametrize("stem", ["$x^$", "a_b$", "\x1b[31m<&"])
def test_pictures_show_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stem: str) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(Path(f"{stem}.csv"), GROUPS[0])
    good("solve", f"{stem}.csv", *QUICK, "--output", "r.json")
    good("plot", "r.json", "--output", "p.svg")
    ElementTree.parse("p.svg")


def dot_names(text: str) -> list[str]:
    """Return the names of a digraph's nodes, by Graphviz's rule: only a quote is escaped, other escapes are labels'."""
    nodes = re.findall(r'^  ("(?:[^"\\]|\\.)*")(?: \[shape=box\])?;$', text, re.M | re.S)
    simple = {"\\\\": "\\", '\\"': '"', "\\n": "\n", "\\r": "\r"}
    return [re.sub(r'\\[\\"nr]', lambda match: simple[match[0]], node[1:-1]) for node in nodes]
