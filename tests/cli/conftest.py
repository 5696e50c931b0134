"""Runs of the command line in this process, and small files to run it on."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from milpbn.cli.app import app

Run = Callable[..., Result]

#: Solves that end in a moment and leave no threads behind.
QUICK = ("--backend", "highs", "--threads", "1", "--time-limit", "60")


def run_app(*arguments: object) -> Result:
    """Run the command line in this process; an exception that escapes it fails the test."""
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture
def run() -> Run:
    return run_app


def toy_rows(seed: int = 3, count: int = 40) -> list[list[str]]:
    """Return rows of three features and a class that depends on two of them."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        a, b, c = (draw.choice("xyz"), draw.choice("uv"), draw.choice("01"))
        label = "good" if (a == "x") == (b == "u") or draw.random() < 0.1 else "bad"
        rows.append([a, b, c, label])
    return rows


def write_csv(path: Path, rows: list[list[str]], header: str = "a,b,c,class") -> Path:
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table, its result and classifier, an exported model and a solution of it.

    Tests only read there.
    """
    folder = tmp_path_factory.mktemp("shop")
    table = write_csv(folder / "toy.csv", toy_rows())
    solved = run_app(
        "solve", table, *QUICK, "--output", folder / "result.json", "--classifier", folder / "classifier.json"
    )
    assert solved.exit_code == 0, solved.output
    exported = run_app("export", table, "--output", folder / "model.lp")
    assert exported.exit_code == 0, exported.output
    _solve_with_highs(folder / "model.lp", folder / "model.sol")
    return folder


def _solve_with_highs(model: Path, solution: Path) -> None:
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("log_to_console", False)
    highs.readModel(str(model))
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.run()
    highs.writeSolution(str(solution), 0)
