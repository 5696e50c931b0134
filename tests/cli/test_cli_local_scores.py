"""``milpbn solve`` with a file of local scores instead of a table."""

import itertools
import json
import math

import pytest
from cli_common import load, refused, run, says, succeed

from milpbn.claims.gap import Gap
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
        *(["--no-root-bound"] if backend == "highs" else []),
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
    says(
        done.stdout,
        "data       s: 8 parent sets of 3 variables",
        "score      sum of local scores",
        "status     optimal",
    )
    points = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert points[-1]["incumbent"] == best
    shown = succeed("info", tmp_path / "r.json")
    says(shown.stdout, f"bound      -5.500000  (the file says {source}", "  b <- a, c")
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
        (["--backend", "native"], "native maximises sm, sbm, cll, not local scores"),
        (["--n-best", "3", "--backend", "highs"], "comes with the backends native and branch-and-cut"),
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
        ({"bound": -9.0}, "the bound -9.0 is below the score -5.5"),
        ({"bound": 9.0}, "its bound does not prove that its structure is optimal"),
        ({"structure": None}, "a score without a structure"),
        ({"structure": {"a": []}}, "another number of features"),
        ({"parents": {}}, "unknown key 'parents'"),
    ):
        bad = {**good, **change, "trace": []}
        bad["gap"] = vars(Gap.between(bad["objective"], bad["bound"]))
        (tmp_path / "r.json").write_text(json.dumps(bad))
        assert said in refused("info", tmp_path / "r.json").stderr


def test_constraints_and_a_memory_limit_hold_and_results_are_drawn(scores, tmp_path):
    result, proof = tmp_path / "r.json", tmp_path / "p.npz"
    limits = ("--forbid", "c,a", "--tiers", "b;a,c", "--max-children", "*=1", "--arc-weight", "b,c=8")
    files = ("--output", result, "--certificate", proof)
    done = succeed("solve -q --memory-limit 8GiB", scores, *limits, *files)
    says(done.stdout, "sum of local scores and of the weights of 1 arc", "incumbent  -7.000000", "optimal")
    assert load(result)["structure"] == {"a": [], "b": [], "c": ["b"]}
    says(succeed("verify --exact", result, scores, "--certificate", proof).stdout, "bound      -7.000000")
    succeed("verify", proof.rename(tmp_path / "proof"), scores)
    for kind in (("result",), ("network",), ("trace",), ()):
        succeed("plot", *kind, result, "--output", tmp_path / "r.svg")
        assert ("s: proved optimal" in (tmp_path / "r.svg").read_text()) == (kind != ("network",))
    done = refused("plot", result, scores, "--output", tmp_path / "r.svg")
    assert "is of local scores, which have no data; leave out" in done.stderr
    done = refused("solve", scores, "--memory-limit", "1MiB", "-q")
    assert "The memory limit of 1.0 MiB is less than" in done.stderr
    done = refused("solve", scores, "--fix", "c=a", "-q")
    assert "leave the variable 'c' none of its listed parent sets" in done.stderr
    done = refused("solve", scores, "--ancestor", "a,b", "--ancestor", "b,a", "-q")
    assert "these constraints exclude each other" in done.stderr


def test_a_result_of_an_earlier_version_is_read(scores, tmp_path):
    succeed("solve", scores, "--n-best", 2, "--output", tmp_path / "r.json", "-q")
    new = load(tmp_path / "r.json")
    old = {key: value for key, value in new.items() if key not in ("constraints", "run", "notes")}
    old["bound_source"], old["seconds"] = "solver", {"total": new["seconds"]["total"]}
    old["backend"].pop("workers")
    (tmp_path / "old.json").write_text(json.dumps(old))
    new, old = (succeed("info", tmp_path / name).stdout.splitlines() for name in ("r.json", "old.json"))
    assert [line for line in new if "seconds" not in line] == [line for line in old if "seconds" not in line]
