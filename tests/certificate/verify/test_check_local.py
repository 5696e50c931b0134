"""Certificates of results over local scores, by the command line."""

import json

import numpy as np
import pytest
from campaign.driver import command
from campaign.forge import read_certificate, write_certificate

from milpbn.certificate.exact.arithmetic import NotProvedError
from milpbn.certificate.exact.local import check_local
from milpbn.claims.gap import Gap
from milpbn.milp.files.jkl_file import read_jkl

#: Two variables that would have each other as parents, and a third one.
SCORES = """3
a 3
-10.5 0
-7.25 1 b
-7.0 2 b c
b 2
-9.75 0
-5.0 1 a
c 2
-4.0 0
-3.5 1 a
"""
BEST = -10.5 - 5.0 - 3.5


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the files of a run: scores, result and certificate."""
    folder = tmp_path_factory.mktemp("local")
    (folder / "scores.jkl").write_text(SCORES)
    files = folder / "scores.jkl", folder / "result.json", folder / "proof.npz"
    done = command("solve", files[0], "--output", files[1], "--certificate", files[2], "-q")
    assert done.code == 0, done.words
    return files


def test_both_verifiers_accept_the_result_and_the_certificate_alone(run):
    scores, result, certificate = run
    for given in ((result, scores, "--certificate", certificate), (certificate, scores)):
        done = command("verify", *given, "--exact")
        assert done.code == 0, done.words
        assert f"bound      {BEST:.6f}" in done.printed
        assert "exact      the same holds" in done.printed
    assert json.loads(result.read_text())["objective"] == BEST


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"objective": BEST - 0.5, "bound": BEST - 0.5}, "The structure scores -19.0"),
        ({"bound": BEST - 0.5}, "the bound -19.5 is below"),
        ({"structure": {"a": [], "b": [], "c": []}, "objective": -24.25, "bound": -24.25}, "only proves the bound"),
        ({"structure": {"a": ["c"], "b": [], "c": []}}, "the bound does not cover it"),
        ({"tolerance": 2.0}, "takes a gap of 2.0"),
        ({"tolerance": None}, "states no tolerance"),
        ({"bound": -10.0}, "does not prove that its structure is optimal"),
        ({"bound": None}, "does not prove that its structure is optimal"),
        ({"status": {"reason": "feasible", "limit": None, "detail": ""}, "bound": None}, "holds no bound"),
        ({"parents": {}}, "has the unknown key 'parents'"),
        ({"constraints": {"forbidden": [["a", "b"]]}}, "another choice of constraints|forbidden arc a -> b"),
    ],
)  # fmt: skip
def test_false_claims_are_refused(changes, words, run, tmp_path):
    scores, result, certificate = run
    header, arrays = read_certificate(certificate)
    values = json.loads(result.read_text()) | changes
    changes = changes | {"gap": vars(Gap.between(values["objective"], values["bound"]))}
    (tmp_path / "forged.json").write_text(json.dumps(values | changes | {"trace": []}))
    write_certificate(tmp_path / "forged.npz", header | changes, arrays)
    for given in (
        (tmp_path / "forged.json", scores, "--certificate", certificate),
        (tmp_path / "forged.npz", scores),
    ):
        done = command("verify", *given)
        assert done.code == 2
        assert not done.escaped
        assert any(word in done.words for word in words.split("|")), done.words


@pytest.mark.parametrize("options", [("--n-best", 3), ("--n-best", 100), ("--within", 30)])
def test_the_list_of_the_best_structures_is_proved(options, run, tmp_path):
    scores, _, certificate = run
    path, proof = tmp_path / "listed.json", tmp_path / "listed.npz"
    assert command("solve", scores, *options, "--output", path, "--certificate", proof, "-q").code == 0
    done = command("verify", path, scores, "--certificate", proof, "--exact")
    assert done.code == 0, done.words
    assert "order and equivalences checked" in done.printed
    local, values = read_jkl(scores), json.loads(path.read_text())
    listed, words = values["alternatives"], {"reason": "running", "limit": None, "detail": ""}
    last = listed["structures"].pop(1)["objective"]
    listed |= {"asked": 99, "bound": last - 0.01, "exhausted": False, "optimal": False}
    listed |= {"within": None, "markov_equivalent": []}
    (tmp_path / "false.json").write_text(json.dumps({**values, "status": words}))
    done = command("verify", tmp_path / "false.json", scores, "--certificate", proof)
    assert done.code == 2
    assert "only proves" in done.words
    with pytest.raises(NotProvedError, match="not proved"):
        check_local({**values, "status": words}, proof, local)
    done = command("verify", path, scores, "--certificate", certificate)  # of a run without a list
    assert done.code == 2


def test_other_scores_are_refused(run, tmp_path):
    _, result, certificate = run
    (tmp_path / "other.jkl").write_text(SCORES.replace("-3.5", "-3.6"))
    done = command("verify", result, tmp_path / "other.jkl", "--certificate", certificate)
    assert "The result is of other data than these" in done.words


def test_a_damaged_certificate_is_refused(run, tmp_path):
    scores, result, certificate = run
    header, arrays = read_certificate(certificate)
    for name, values in arrays.items():
        write_certificate(tmp_path / "forged.npz", header, {**arrays, name: values.astype(np.float32)})
        done = command("verify", result, scores, "--certificate", tmp_path / "forged.npz")
        assert "damaged" in done.words, name


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("solve", "--backend", "highs", "--certificate", "proof.npz"), "branch-and-cut, not with highs"),
        (("verify", "--target", "a"), "--target"),
    ],
)
def test_options_without_a_meaning_are_refused(arguments, words, run):
    scores, result, certificate = run
    given = (scores,) if arguments[0] == "solve" else (result, scores, "--certificate", certificate)
    done = command(arguments[0], *given, *arguments[1:])
    assert done.code == 2
    assert words in done.words
