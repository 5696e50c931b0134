"""``--n-best`` and ``milpbn stability``: what the verbs print and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_common import run, toy_rows, write_csv

from milpbn.solving import stability as module


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "toy.csv", toy_rows())


def test_the_best_structures_are_listed_and_verified(table: Path, tmp_path: Path) -> None:
    files = ["--output", tmp_path / "r.json", "--certificate", tmp_path / "p.npz"]
    done = run("solve", table, "--p", 0.9, "--n-best", 4, "--threads", 1, *files)
    assert done.exit_code == 0, done.output
    claim = json.loads((tmp_path / "r.json").read_text())["alternatives"]
    assert len(claim["structures"]) == 4
    said = f"best 4     proved: no other structure scores more than {claim['bound']:.6f}"
    assert said in done.stdout
    assert said in run("info", tmp_path / "r.json").stdout
    for result in (
        [tmp_path / "r.json", table, "--certificate", tmp_path / "p.npz"],
        [tmp_path / "p.npz", table],
    ):
        shown = run("verify", *result)
        assert shown.exit_code == 0, shown.output
        assert (
            f"best 4     scores, order and equivalences checked; no other one scores more than {claim['bound']:.6f}"
            in shown.stdout
        )


def test_a_list_of_parts_of_the_problem_is_refused(table: Path) -> None:
    done = run("solve", table, "--n-best", 3, "--subset", 8)
    assert done.exit_code == 2
    assert "--subset" in done.stderr


def test_stability_shows_a_table_and_writes_a_file(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "compile_all", lambda **_: 0)
    path = tmp_path / "s.json"
    options = ["--p", 0.9, "--samples", 3, "--n-jobs", 1, "--output", path]
    done = run("stability", table, *options)
    assert done.exit_code == 0, done.output
    assert "3 of 3 bootstrap samples searched, 3 proved; seed 0" in done.stdout
    assert "class -> a" in done.stdout
    assert "3 of 3 samples searched, 3 proved" in done.stderr
    assert run("info", path).stdout == done.stdout
    assert json.loads(path.read_text())["format"] == "milpbn stability"
    other = run("stability", table, "--p", "cv")
    assert other.exit_code == 2
    assert "cv is for milpbn solve" in other.stderr
    other = run("stability", table, "--p", 0.8, "--output", path)
    assert other.exit_code == 2
    assert "name another file" in other.stderr
