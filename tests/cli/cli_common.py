"""Runs of the command line in this process, and small tables to run it on."""

from __future__ import annotations

import random
from pathlib import Path

from click.testing import CliRunner, Result

from milpbn.cli.app import app

#: Solves that end in a moment.
QUICK = ("--backend", "highs", "--threads", "1", "--time-limit", "300")


def run(*arguments: object) -> Result:
    """Run the command line in this process; an exception that escapes it fails the test."""
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


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
    for arguments in (
        ["solve", table, *QUICK, *output],
        ["export", table, "--output", folder / "model.lp"],
    ):
        done = run(*arguments)
        assert done.exit_code == 0, done.output
    solve_with_highs(folder / "model.lp", folder / "model.sol")
    return folder
