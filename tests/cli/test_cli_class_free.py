"""The command line on parent sets without the class: what is found, what is refused, and which structures are named."""

import json
from pathlib import Path

import pytest
from cli_common import load, refused, succeed

from milpbn.certificate.format import load_proof, save_certificate

SCORE = ["--score", "cll", "--hybrid", "0.1", "--leave-one-out"]
#: The words with which every claim about a class of structures names it.
WORDS = "structures in which every feature has the class among its parents, or no parents"


@pytest.fixture
def shop(tmp_path):
    """A table in which the best structure has the arc a -> b, and b does not depend on the class; and this arc."""
    rows = [f"{i % 3},{i % 3},{'pq'[(i // 3) % 2]}" for i in range(12)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    (tmp_path / "arc.txt").write_text("a -> b\n")
    return tmp_path


def run(*arguments: object) -> str:
    return succeed(*arguments).output


def solved(shop: Path, *options: object) -> tuple[str, dict]:
    files = ["--output", shop / "r.json", "--certificate", shop / "c.npz", "--checkpoint", shop / "k"]
    text = run("solve", shop / "t.csv", *SCORE, *options, *files, "--threads", 1, "-q")
    return text, load(shop / "r.json")


def test_no_allowed_structure_beats_a_certified_optimum(shop):
    """The arc scores -12.195980; {} alone was called optimal with -13.212738."""
    text, result = solved(shop)
    assert result["status"]["reason"] == "optimal"
    assert result["objective"] == pytest.approx(-12.195980, abs=1e-6)
    assert result["among"] is None
    assert "among" not in text
    files = (shop / "t.csv", "--bound", shop / "r.json")
    assert "gap    0.000000 nats" in run("score", shop / "arc.txt", *files)
    assert "among" not in run("verify", shop / "r.json", shop / "t.csv", "--certificate", shop / "c.npz")
    assert "-12.195980" in run("solve", shop / "t.csv", *SCORE, "--start", shop / "arc.txt", "-q")


def test_every_claim_about_a_class_names_it(shop, monkeypatch):
    monkeypatch.setattr("milpbn.solving.stability.compile_all", lambda **_: 0)
    paper = ("--parent-sets", "paper")
    text, result = solved(shop, *paper, "--n-best", 2)
    assert result["objective"] == pytest.approx(-13.212738, abs=1e-6)
    assert result["among"] == WORDS
    assert f"optimal, among {WORDS}" in text
    below = text.partition("best 2")[2]
    assert WORDS in below
    for said in (
        run("info", shop / "r.json"),
        run("info", shop / "c.npz"),
        run("info", shop / "k"),
        run("verify", shop / "r.json", shop / "t.csv", "--certificate", shop / "c.npz"),
        run("verify", shop / "c.npz", shop / "t.csv"),
        run("bound", shop / "t.csv", *SCORE, *paper, "-q"),
        run("learn", "naive-bayes", shop / "t.csv", "--bound", shop / "r.json"),
        run("stability", shop / "t.csv", *SCORE, *paper, "--samples", 2, "--n-jobs", 1, "-q"),
    ):
        assert WORDS in said, said
    run("report", shop / "r.json", shop / "t.csv", "--output", shop / "r.html")
    assert (shop / "r.html").read_text().count(WORDS) >= 3


def test_a_structure_outside_the_class_gets_no_gap_and_is_no_start(shop):
    solved(shop, "--parent-sets", "paper")
    told = run("score", shop / "arc.txt", shop / "t.csv", "--bound", shop / "r.json")
    assert f"the search was among {WORDS}, so the bound does not hold for this structure" in told
    start = ("--start", shop / "arc.txt", "--parent-sets", "paper")
    told = refused("solve", shop / "t.csv", *SCORE, *start, "-q").stderr
    assert "allow --parent-sets all" in told
    assert "penalties" not in told


def test_files_of_earlier_versions_are_about_the_class(shop):
    """Without the key, and without the score's parent sets, a file is about the sets that were searched then."""
    _, result = solved(shop, "--parent-sets", "paper")
    older = {key: value for key, value in result.items() if key != "among"}
    older["score"] = {key: value for key, value in result["score"].items() if key != "parent_sets"}
    (shop / "r.json").write_text(json.dumps(older))
    header, arrays = load_proof(shop / "c.npz")
    save_certificate(shop / "c.npz", {**header, "score": older["score"]} | {"among": None}, arrays)
    told = refused("verify", shop / "c.npz", shop / "t.csv").stderr
    assert "'among' says other" in told
    bare = {key: value for key, value in header.items() if key != "among"}
    save_certificate(shop / "c.npz", {**bare, "score": older["score"]}, arrays)
    assert WORDS in run("verify", shop / "r.json", shop / "t.csv", "--certificate", shop / "c.npz")
    assert WORDS in run("info", shop / "r.json")


def test_a_penalty_alone_claims_all_structures_and_lists_all(shop):
    """{} is never worse, but the second best structures may have arcs between features without the class."""
    options = ["--score", "cll", "--penalty", "0.001", "--threads", 1, "-q"]
    assert "among" not in run("solve", shop / "t.csv", *options)
    listed = run("solve", shop / "t.csv", *options, "--n-best", 12)
    assert "among" not in listed
    assert "but b <- a\n" in listed
