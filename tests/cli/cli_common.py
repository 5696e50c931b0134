"""Runs of the command line in this process, and small tables to run it on."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

from click.testing import CliRunner, Result

from milpbn.cli.app import app

#: Solves that end in a moment.
QUICK = ("--backend", "highs", "--threads", "1", "--time-limit", "300")


def run(*arguments: object) -> Result:
    """Run the command line in this process; an exception that escapes it fails the test.

    The first argument may be a verb with options, between blanks.
    """
    words = [word for verb in arguments[:1] for word in str(verb).split()]
    return CliRunner().invoke(app, [*words, *map(str, arguments[1:])], catch_exceptions=False)


def succeed(*arguments: object) -> Result:
    """Run a command that ends with the exit code 0."""
    done = run(*arguments)
    assert done.exit_code == 0, (arguments, done.output)
    return done


def refused(*arguments: object) -> Result:
    """Run a command that ends with the exit code 2 and one sentence, after notes at most."""
    done = run(*arguments)
    assert done.exit_code == 2, (arguments, done.output)
    *notes, sentence = done.stderr.splitlines()
    assert sentence.startswith("Error: ")
    assert "unexpectedly" not in sentence
    assert not any("Error" in note or "Traceback" in note for note in notes)
    return done


def says(text: str, *parts: str) -> None:
    """Check that all parts are in a text."""
    assert not [part for part in parts if part not in text], text


def load(path: Path) -> Any:
    """Return the contents of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def start(code: str, *arguments: object, **how: Any) -> subprocess.Popen[str]:
    """Start a process that runs some code of Python, and then the command line if it gets arguments."""
    words = ["milpbn", *map(str, arguments)]
    main = f"\nimport sys\nsys.argv = {words!r}\nfrom milpbn.cli import main\nmain()\n" if arguments else ""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-P", "-c", dedent(code) + main], text=True, **pipes, **how)


def ended(code: str, *arguments: object) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr of such a process."""
    process = start(code, *arguments)
    stdout, stderr = process.communicate(timeout=60)
    return process.returncode, stdout, stderr


def outputs(folder: Path, **names: str) -> list[object]:
    """Return options that name output files in a folder."""
    return [word for option, name in names.items() for word in (f"--{option}", folder / name)]


def toy_rows(seed: int = 3, count: int = 40) -> list[list[str]]:
    """Return rows of three features and a class that two of them nearly decide."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        a, b, c = draw.choice("xyz"), draw.choice("uv"), draw.choice("01")
        good = ((a == "x") == (b == "u")) != (draw.random() < 0.1)
        rows.append([a, b, c, "good" if good else "bad"])
    return rows


def write_csv(path: Path, rows: list[list[str]], header: str = "a,b,c,class") -> Path:
    """Write rows under a header and return the path."""
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def solve_with_highs(model: Path, solution: Path) -> None:
    """Solve a model file as a user of another solver would."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("log_to_console", False)
    highs.readModel(str(model))
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.run()
    highs.writeSolution(str(solution), 0)


def make_shop(folder: Path) -> Path:
    """Fill a folder with a table, its result and classifier, an exported model and a solution of it."""
    table = write_csv(folder / "toy.csv", toy_rows())
    output = ["--output", folder / "result.json", "--classifier", folder / "classifier.json"]
    succeed("solve", table, *QUICK, *output)
    succeed("export", table, "--output", folder / "model.lp")
    solve_with_highs(folder / "model.lp", folder / "model.sol")
    return folder
