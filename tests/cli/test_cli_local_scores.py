"""``milpbn solve`` with a file of local scores instead of a table."""

import itertools
import json
import math

import pytest
from cli_common import load, refused, run, says, succeed

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
def scores(tmp_path):
    (tmp_path / "s.jkl").write_text(SCORES)
    return tmp_path / "s.jkl"


@pytest.mark.parametrize(("backend", "source"), [("highs", "solver"), ("auto", "certified")])
def test_the_best_structure_is_proved_and_written(scores, tmp_path, backend, source):
    done = succeed(
        f"solve --threads 1 -q --backend {backend}",
        scores,
        "--output",
        tmp_path / "r.json",
        "--trace",
        tmp_path / "t.jsonl",
    )
    local = read_jkl(scores)
    listed = [
        (math.fsum(local.scores[local.candidates.offsets[i] + k] for i, k in enumerate(choice)), choice)
        for choice in itertools.product(*(range(len(s)) for s in local.candidates.sets))
        if topological_order([s[k] for s, k in zip(local.candidates.sets, choice, strict=True)]) is not None
    ]
    best = max(listed)[0]
    result = load(tmp_path / "r.json")
    assert result["objective"] == best == -5.5
    assert result["bound"] == pytest.approx(best, abs=1e-5)
    assert result["status"]["reason"] == "optimal"
    assert result["structure"] == {"a": ["c"], "b": ["a", "c"], "c": []}
    assert result["data"] == {"name": "s", "sha256": local.sha256, "variables": 3, "parent_sets": 8}
    assert done.stdout.splitlines()[2] == "status     optimal"
    points = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert points[-1]["incumbent"] == best
    shown = succeed("info", tmp_path / "r.json")
    says(shown.stdout, f"bound      -5.500000  (the file says {source})", "  b <- a, c")
    again = run("solve", scores, "--start", tmp_path / "r.json", "--acyclicity", "order", "-q")
    assert "status     optimal" in again.stdout


def test_the_best_structures_are_listed(scores, tmp_path):
    done = succeed("solve", scores, "--n-best", 3, "--output", tmp_path / "r.json", "-q")
    claim = load(tmp_path / "r.json")["alternatives"]
    assert [one["objective"] for one in claim["structures"]] == [-5.5, -6.5, -10.0]
    says(done.stdout, "best 3     proved: no other structure scores more than -10.000000")
    assert claim["optimal"]
    full = succeed("solve", scores, "--n-best", 2, "--within", 3, "-q").stdout
    assert "2 structures within 3 nats of the best one, as many as --n-best allows; proved" in full
    assert run("info", tmp_path / "r.json").stdout.count("but ") == 2
    whole = succeed("solve", scores, "--n-best", 100, "-q").stdout
    assert "best 100   proved: there are " in whole


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--target", "a"], "--target is not available for local scores ("),
        (["--score", "sm", "--classifier", "c.json"], "--score, --classifier are not available"),
        (["--split", "train"], "--split is not available"),
        (["--backend", "native"], "no MILP solver 'native'"),
        (["--n-best", "3", "--backend", "highs"], "comes with the backend branch-and-cut"),
    ],
)
def test_options_of_data_are_refused(scores, tmp_path, options, said):
    done = run(
        "solve", scores, *options, "--output", tmp_path / "r.json", "--trace", tmp_path / "t.jsonl", "-q"
    )
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["s.jkl"]


def test_other_verbs_say_what_the_file_is(scores, tmp_path):
    succeed("solve", scores, "--output", tmp_path / "r.json", "-q")
    done = refused("bound", scores)
    assert "a file of local scores, which only milpbn solve and milpbn verify take" in done.stderr
    done = refused("verify", tmp_path / "r.json", scores, "--certificate", "p.npz", "--target", "a")
    assert "--target is not available for local scores (" in done.stderr
    done = refused("report", tmp_path / "r.json", "--output", tmp_path / "r.html")
    assert "it is of local scores (.jkl), which have no data and no classifier" in done.stderr


def test_a_result_that_contradicts_itself_is_refused(scores, tmp_path):
    succeed("solve", scores, "--output", tmp_path / "r.json", "-q")
    good = load(tmp_path / "r.json")
    for change, said in (
        ({"bound": -9.0, "trace": []}, "its bound is below its score"),
        ({"bound": 9.0, "trace": []}, "do not prove it"),
        ({"structure": None}, "do not go together"),
        ({"structure": {"a": []}}, "another number of variables"),
    ):
        (tmp_path / "r.json").write_text(json.dumps({**good, **change}))
        assert said in refused("info", tmp_path / "r.json").stderr
