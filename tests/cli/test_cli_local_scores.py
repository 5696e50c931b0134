"""``milpbn solve`` with a file of local scores instead of a table."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
from cli_common import run

from milpbn.milp.files.jkl_file import read_jkl
from milpbn.network.structure import topological_order

SCORES = """3
a 3
-5.5 0
-1.0 1 b
-0.5 1 c
b 3
-6.0 0
-2.0 1 a
-1.0 2 a c
c 2
-4.0 0
-3.5 1 b
"""


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    (tmp_path / "s.jkl").write_text(SCORES)
    return tmp_path / "s.jkl"


def test_the_best_structure_is_proved_and_written(scores: Path, tmp_path: Path) -> None:
    done = run(
        "solve",
        scores,
        "--threads",
        "1",
        "--output",
        tmp_path / "r.json",
        "--trace",
        tmp_path / "t.jsonl",
        "-q",
    )
    assert done.exit_code == 0, done.stderr
    local = read_jkl(scores)
    listed = [
        (math.fsum(local.scores[local.candidates.offsets[i] + k] for i, k in enumerate(choice)), choice)
        for choice in itertools.product(*(range(len(s)) for s in local.candidates.sets))
        if topological_order([s[k] for s, k in zip(local.candidates.sets, choice, strict=True)]) is not None
    ]
    best = max(listed)[0]
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["objective"] == best == -5.5
    assert result["bound"] == pytest.approx(best, abs=1e-5)
    assert result["status"]["reason"] == "optimal"
    assert result["structure"] == {"a": ["c"], "b": ["a", "c"], "c": []}
    assert result["data"] == {"name": "s", "sha256": local.sha256, "variables": 3, "parent_sets": 8}
    assert done.stdout.splitlines()[2] == "status     optimal"
    points = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert points[-1]["incumbent"] == best
    shown = run("info", tmp_path / "r.json")
    assert shown.exit_code == 0
    assert "bound      -5.500000  (the file says solver)" in shown.stdout
    assert "  b <- a, c" in shown.stdout
    again = run("solve", scores, "--start", tmp_path / "r.json", "--acyclicity", "order", "-q")
    assert "status     optimal" in again.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--target", "a"], "--target has no meaning for the local scores"),
        (["--score", "sm", "--classifier", "c.json"], "--score, --classifier have no meaning"),
        (["--split", "train"], "--split has no meaning"),
        (["--backend", "native"], "no MILP solver 'native'"),
        (["--n-best", "3"], "--n-best has no meaning"),
    ],
)
def test_options_of_data_are_refused(scores: Path, tmp_path: Path, options: list[str], said: str) -> None:
    done = run(
        "solve", scores, *options, "--output", tmp_path / "r.json", "--trace", tmp_path / "t.jsonl", "-q"
    )
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["s.jkl"]


def test_other_verbs_say_what_the_file_is(scores: Path, tmp_path: Path) -> None:
    assert run("solve", scores, "--output", tmp_path / "r.json", "-q").exit_code == 0
    done = run("report", tmp_path / "r.json", "--output", tmp_path / "r.html")
    assert done.exit_code == 2
    assert "it is of local scores (.jkl), which have no data and no classifier" in done.stderr


def test_a_result_that_contradicts_itself_is_refused(scores: Path, tmp_path: Path) -> None:
    assert run("solve", scores, "--output", tmp_path / "r.json", "-q").exit_code == 0
    good = json.loads((tmp_path / "r.json").read_text())
    for change, said in (
        ({"bound": -9.0, "trace": []}, "its bound is below its score"),
        ({"bound": 9.0, "trace": []}, "do not prove it"),
        ({"structure": None}, "do not go together"),
        ({"structure": {"a": []}}, "another number of variables"),
    ):
        (tmp_path / "r.json").write_text(json.dumps({**good, **change}))
        done = run("info", tmp_path / "r.json")
        assert done.exit_code == 2
        assert said in done.stderr
