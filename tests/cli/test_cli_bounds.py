"""The verbs ``bound`` and ``verify``."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cli_common import load, refused, run, succeed, toy_rows, write_csv

from milpbn.certificate.format import save_certificate
from milpbn.claims.gap import Gap, is_optimal


@pytest.fixture(scope="module")
def proof(tmp_path_factory):
    """A folder with a table, the result of a native run on it, and its certificate."""
    folder = tmp_path_factory.mktemp("proof")
    table = write_csv(folder / "toy.csv", toy_rows(count=80))
    files = ["--output", folder / "result.json", "--certificate", folder / "proof.npz"]
    succeed("solve --backend native --threads 1 --p 0.9", table, *files)
    return folder


def verified(folder, *more, result=None, certificate=None, by=succeed):
    files = ["--certificate", certificate or folder / "proof.npz"]
    return by("verify", result or folder / "result.json", folder / "toy.csv", *files, *more)


def changed(folder: Path, target: Path, **values: object) -> Path:
    """Write the result with some other values."""
    content = load(folder / "result.json")
    target.write_text(json.dumps({**content, **values}))
    return target


def claiming(folder: Path, target: Path, objective: float, bound: float | None) -> Path:
    """Write the result with another score and bound, and with all values that follow from them."""
    proved = bound is not None and is_optimal(objective, bound)
    status = {"reason": "optimal" if proved else "feasible", "limit": None, "detail": ""}
    trace, gap = [[0.0, objective, bound]], vars(Gap.between(objective, bound))
    return changed(folder, target, objective=objective, bound=bound, status=status, trace=trace, gap=gap)


def test_a_proved_result_is_verified(proof):
    done = verified(proof)
    result = load(proof / "result.json")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("verified")
    assert f"incumbent  {result['objective']:.6f}\n" in done.stdout
    words = [line.split()[0] for line in done.stdout.splitlines()]
    assert words == ["verified", "incumbent", "bound", "gap", "nodes", "fixed", "arcs", "seconds", "not"]


@pytest.mark.parametrize("name", ["proof.npz", "proof.cert"])
def test_a_certificate_of_any_name_is_verified_without_its_result(proof, tmp_path, name):
    alone = shutil.copy(proof / "proof.npz", tmp_path / name)
    done = succeed("verify", alone, proof / "toy.csv")
    assert done.stdout.splitlines()[:4] == verified(proof).stdout.splitlines()[:4]
    not_verified("leave out --certificate", proof, result=alone)


def test_the_bound_of_a_subset_is_verified_as_one_of_the_subset(proof, tmp_path):
    files = ["--output", tmp_path / "r.json", "--certificate", tmp_path / "c.npz"]
    succeed("solve", proof / "toy.csv", "--subset", 20, "--threads", 1, *files)
    subset = load(tmp_path / "r.json")["subset"]
    done = verified(proof, result=tmp_path / "r.json", certificate=tmp_path / "c.npz")
    assert done.exit_code == 0, done.output
    assert f"subset     {subset['samples']} representative samples" in done.stdout
    assert f"incumbent  {subset['objective']:.6f}\n" in done.stdout
    assert "arcs" not in done.stdout
    alone = run("verify", tmp_path / "c.npz", proof / "toy.csv")
    assert alone.stdout.splitlines()[:5] == done.stdout.splitlines()[:5]
    not_verified("other", proof, certificate=tmp_path / "c.npz")


def not_verified(words, folder, *more, **files):
    done = verified(folder, *more, **files, by=refused)
    assert done.stdout == ""
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_is_not_proved_is_refused(proof, tmp_path):
    known = load(proof / "result.json")
    z = known["objective"]
    for score, bound, words in (
        (z + 1, z + 2, "scores"),
        (z, z - 1, "below the score"),
        (z, None, "no bound"),
    ):
        not_verified(words, proof, result=claiming(proof, tmp_path / "r.json", score, bound))
    not_verified("absent.json", proof, result=tmp_path / "absent.json")
    not_verified("no certificate", proof, certificate=tmp_path / "absent.npz")
    not_verified("no readable certificate", proof, certificate=proof / "result.json")
    not_verified("other data", proof, "--class-weights", "good=2")
    assert "--certificate" in refused("verify", proof / "result.json", proof / "toy.csv").stderr
    with np.load(proof / "proof.npz") as file:
        arrays = dict(file)
    arrays["eta"] = 0 * arrays["eta"]
    arrays["temperature"] = arrays["temperature"] + 50
    np.savez(tmp_path / "weak.npz", **arrays)
    not_verified("was changed after it was written", proof, certificate=tmp_path / "weak.npz")
    header = json.loads(arrays.pop("header").tobytes())
    arrays.pop("digest")
    save_certificate(tmp_path / "weak.npz", header, arrays)
    not_verified("not prove", proof, certificate=tmp_path / "weak.npz")


def test_bound_prints_incumbent_and_bound(proof, tmp_path):
    known = load(proof / "result.json")
    files = ["--output", tmp_path / "r.json", "--certificate", tmp_path / "c.npz"]
    done = succeed("bound", proof / "toy.csv", "--p", 0.9, "--threads", 1, *files)
    root = load(tmp_path / "r.json")
    assert root["bound"] >= known["objective"] - 1e-9
    assert root["objective"] <= known["bound"]
    assert f"bound      {root['bound']:.6f}\n" in done.stdout
    inside, outside = (len(root["proved"][key]) for key in ("in", "out"))
    assert f"arcs       {inside} in every optimum, {outside} in none\n" in done.stdout
    assert "with the backend native" in done.stdout
    assert verified(proof, result=tmp_path / "r.json", certificate=tmp_path / "c.npz").exit_code == 0


def test_a_root_that_leaves_a_gap_says_that_it_stopped(tmp_path):
    done = succeed("bound", "instance:tic-tac-toe", "-q", "--threads", 1, "--output", tmp_path / "r.json")
    root = load(tmp_path / "r.json")
    assert root["gap"]["absolute"] > 0.01
    assert root["status"]["reason"] == "feasible"
    assert root["status"]["limit"] == "node"
    assert root["nodes"] is None
    assert done.stderr == ""


@pytest.mark.parametrize("score", ["mdl", "bdeu", "aicc", "hard-margin", "cll", "sbm"])
def test_bound_of_every_score(proof, score):
    done = succeed("bound", proof / "toy.csv", "--score", score, "-q")
    assert "bound      -\n" not in done.stdout
    assert ("memory" in done.stdout) == (score in ("hard-margin", "cll", "sbm"))
    assert ("native" in done.stdout) == (score in ("cll", "sbm"))


def test_bound_of_a_subset(proof, tmp_path):
    files = ["--output", tmp_path / "r.json", "--certificate", tmp_path / "c.npz"]
    done = succeed("bound", proof / "toy.csv", "--subset", 20, "-q", "--threads", 1, *files)
    subset = load(tmp_path / "r.json")["subset"]
    assert f"subset     {subset['samples']} representative samples" in done.stdout
    assert f"bound      {subset['bound']:.6f}\n" in done.stdout
    done = verified(proof, result=tmp_path / "r.json", certificate=tmp_path / "c.npz")
    assert f"bound      {subset['bound']:.6f}\n" in done.stdout
    assert "at least 1" in refused("bound", proof / "toy.csv", "-q", "--subset", 0).stderr
    assert (
        "not under mdl" in refused("bound", proof / "toy.csv", "-q", "--subset", 20, "--score", "mdl").stderr
    )
    assert (
        "at least 1"
        in refused("export", proof / "toy.csv", "-q", "--subset", 0, "--output", tmp_path / "m.lp").stderr
    )
    succeed("export", proof / "toy.csv", "-q", "--subset", 20, "--output", tmp_path / "m.lp")
    assert len(load(tmp_path / "m.json")["subset"]) == subset["samples"]


def test_bound_obeys_constraints_and_refuses_what_solve_refuses(proof, tmp_path):
    free = run("bound", proof / "toy.csv", "--p", 0.9, "-q").stdout
    bare = run(
        "bound", proof / "toy.csv", "--p", 0.9, "-q", "--forbid", "class,a", "--forbid", "a,class"
    ).stdout

    def bound(text: str) -> float:
        return float(text.split("bound")[1].split()[0])

    assert bound(bare) < bound(free) - 1
    for arguments, words in (
        (["--p", "cv"], "cv is for milpbn solve"),
        (["--p", "2"], "p must lie"),
        (["--time-limit", "0"], "time limit"),
        (["--threads", "0"], "threads"),
        (["--score", "aicc", "--certificate", tmp_path / "c.npz"], "not with aicc"),
        (["--output", proof / "toy.csv"], "overwrite"),
    ):
        assert words in refused("bound", proof / "toy.csv", "-q", *arguments).stderr


def test_the_bound_of_a_decomposable_score_is_proved(proof, tmp_path):
    files = tmp_path / "result.json", tmp_path / "proof.npz"
    told = ("--output", files[0], "--certificate", files[1])
    succeed("bound", proof / "toy.csv", "--score", "bdeu", *told, "-q")
    known = load(files[0])
    succeed("verify", files[0], proof / "toy.csv", "--certificate", files[1], "--exact")
    files[0].write_text(json.dumps({**known, "bound": known["objective"] - 1}))
    assert refused("verify", files[0], proof / "toy.csv", "--certificate", files[1]).exit_code == 2


def test_verify_checks_the_values_as_the_file_has_them(proof, tmp_path):
    known = load(proof / "result.json")
    false = {**known["gap"], "relative_to_bound": 0.5}
    not_verified(
        "the gap (relative_to_bound: 0.5)", proof, result=changed(proof, tmp_path / "r.json", gap=false)
    )
    not_verified("another run", proof, result=changed(proof, tmp_path / "r.json", run="other"))
    assert "in every optimum" in verified(proof).stdout
    alone = succeed("verify", proof / "proof.npz", proof / "toy.csv")
    assert "verified" in alone.stdout
    assert "in every optimum" not in alone.stdout
