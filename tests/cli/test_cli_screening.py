"""``--screen``: what the verbs print and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_common import run, write_csv

SCREENED = ["--screen", 7, "--max-parents", 3, "--p", 0.95, "--no-class-parents", "--threads", 1]


def refused(done, words: str) -> None:
    assert done.exit_code == 2, done.output
    assert words in " ".join(done.stderr.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of five features, the result of a screened run on it, and its certificate."""
    folder = tmp_path_factory.mktemp("screened")
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (90, 5))
    codes[:, 1:] = np.where(rng.random((90, 4)) < 0.5, codes[:, :4], codes[:, 1:])
    target = np.where(rng.random(90) < 0.2, 0, (codes[:, 0] + codes[:, 1] * codes[:, 2]) % 2)
    rows = [[f"s{x}" for x in row] for row in np.column_stack([codes, target]).tolist()]
    write_csv(folder / "toy.csv", rows, "a,b,c,d,e,class")
    files = [
        "--output",
        folder / "r.json",
        "--certificate",
        folder / "p.npz",
        "--classifier",
        folder / "c.json",
    ]
    done = run("solve", folder / "toy.csv", *SCREENED, *files)
    assert done.exit_code == 0, done.output
    (folder / "shown.txt").write_text(done.stdout)
    return folder


def test_the_closing_block_says_for_which_sets_the_bound_holds(folder: Path) -> None:
    claim = json.loads((folder / "r.json").read_text())["screened"]
    shown = (folder / "shown.txt").read_text()
    kept = sum(claim["kept"].values())
    assert f"screened   {kept} of {claim['total']} candidate parent sets were kept, by linear gain" in shown
    assert f"bound {claim['bound']:.6f} (certified)" in shown
    assert "\nbound      -\n" in shown
    assert "status     feasible" in shown
    assert "optimal" not in shown
    info = run("info", folder / "r.json").stdout
    assert f"screened   {kept} of {claim['total']}" in info
    assert "the file says certified; milpbn verify checks it with the certificate" in info


@pytest.mark.parametrize("result", ["r.json", "p.npz"])
def test_verify_says_for_which_sets_the_bound_holds(folder: Path, result: str) -> None:
    claim = json.loads((folder / "r.json").read_text())["screened"]
    files = ["--certificate", folder / "p.npz"] if result == "r.json" else []
    done = run("verify", folder / result, folder / "toy.csv", *files, "--exact")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("verified   no structure of the kept parent sets within")
    kept = sum(claim["kept"].values())
    assert (
        f"screened   {kept} of {claim['total']} candidate parent sets were kept; the bound is" in done.stdout
    )
    assert f"bound      {claim['bound']:.6f}\n" in done.stdout
    assert "arcs" not in done.stdout


def test_bound_and_its_refusals(folder: Path) -> None:
    table = folder / "toy.csv"
    done = run("bound", table, *SCREENED, "-q")
    assert done.exit_code == 0, done.output
    assert "candidate parent sets were kept; the bound is over these only" in done.stdout
    assert "arcs" not in done.stdout
    assert "memory" not in done.stdout
    refused(run("bound", table, "--screen", 0, "-q"), "at least 1")
    refused(run("solve", table, "--screen", 7, "--subset", 10, "-q"), "leave out --subset")
    refused(run("export", table, "--screen", 7, "--output", folder / "m.lp", "-q"), "No such option")


def test_its_bound_says_nothing_about_another_structure(folder: Path) -> None:
    done = run("learn", "tan", folder / "toy.csv", "--bound", folder / "r.json", "-q")
    refused(done, "its bound holds for structures of these only; solve without --screen")


def test_nothing_is_said_if_nothing_was_left_out(folder: Path, tmp_path: Path) -> None:
    done = run(
        "solve", folder / "toy.csv", "--screen", 500, "--p", 0.9, "-q", "--output", tmp_path / "r.json"
    )
    assert done.exit_code == 0, done.output
    assert "screened" not in done.stdout
    assert json.loads((tmp_path / "r.json").read_text())["screened"] is None


def test_selection_with_screening(folder: Path) -> None:
    grid = ["--select", "p=.8,.9 max-parents=2,3", "--screen", 7, "--time-limit", 60, "--threads", 1]
    done = run("solve", folder / "toy.csv", *grid, "--no-class-parents", "-q")
    assert done.exit_code == 0, done.output
    assert "selection  " in done.stdout
