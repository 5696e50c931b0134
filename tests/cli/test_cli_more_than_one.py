"""``--n-best`` and ``milpbn stability``: what the verbs print and refuse."""

import pytest
from cli_common import load, refused, run, says, succeed, toy_rows, write_csv

from milpbn.solving import stability as module


@pytest.fixture
def table(tmp_path):
    return write_csv(tmp_path / "toy.csv", toy_rows())


def test_the_best_structures_are_listed_and_verified(table, tmp_path):
    files = ["--output", tmp_path / "r.json", "--certificate", tmp_path / "p.npz"]
    done = succeed("solve", table, "--p", 0.9, "--n-best", 4, "--threads", 1, *files)
    claim = load(tmp_path / "r.json")["alternatives"]
    assert len(claim["structures"]) == 4
    said = f"best 4     proved: no other structure scores more than {claim['bound']:.6f}"
    assert said in done.stdout
    assert said in run("info", tmp_path / "r.json").stdout
    for result in (
        [tmp_path / "r.json", table, "--certificate", tmp_path / "p.npz"],
        [tmp_path / "p.npz", table],
    ):
        shown = succeed("verify", *result)
        assert (
            f"best 4     scores, order and equivalences checked; no other one scores more than {claim['bound']:.6f}"
            in shown.stdout
        )


def test_a_list_of_parts_of_the_problem_is_refused(table):
    assert "--subset" in refused("solve", table, "--n-best", 3, "--subset", 8).stderr


def test_decomposable_scores_have_bounds_starts_and_stability(table, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "compile_all", lambda **_: 0)
    result, score = tmp_path / "r.json", ["--score", "bdeu", "--parent-sets", "all"]
    done = succeed("solve", table, *score, "--within", 6, "--threads", 1, "--output", result)
    claim = load(result)["alternatives"]
    says(
        done.stdout,
        f"best       {len(claim['structures'])} structures within 6 nats of the best one; proved: ",
    )
    assert "are Markov equivalent" in done.stdout
    best, worse = load(result)["objective"], tmp_path / "worse.txt"
    worse.write_text("class -> a\n")
    own = succeed("score", worse, table, "--bound", result).stdout
    says(
        own,
        f"best   {best:.6f} nats",
        f"bound  {load(result)['bound']:.6f} nats  (the result says certified)",
    )
    again = succeed("solve", table, *score, "--start", worse, "--threads", 1, "-q").stdout
    says(again, "status     optimal", f"incumbent  {best:.6f}")
    done = succeed("stability", table, *score, "--samples", 3, "--n-jobs", 1)
    says(done.stdout, "3 of 3 bootstrap samples searched, 3 proved; seed 0")


def test_stability_shows_a_table_and_writes_a_file(table, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "compile_all", lambda **_: 0)
    path = tmp_path / "s.json"
    options = ["--p", 0.9, "--samples", 3, "--n-jobs", 1, "--output", path]
    done = succeed("stability", table, *options)
    says(done.stdout, "3 of 3 bootstrap samples searched, 3 proved; seed 0", "class -> a")
    assert "3 of 3 samples searched, 3 proved" in done.stderr
    assert run("info", path).stdout == done.stdout
    assert load(path)["format"] == "milpbn stability"
    assert "cv is for milpbn solve" in refused("stability", table, "--p", "cv").stderr
    assert "name another file" in refused("stability", table, "--p", 0.8, "--output", path).stderr
