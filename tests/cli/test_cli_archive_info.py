"""``milpbn info`` of certificates and checkpoints."""

import zipfile

import pytest
from cli_common import refused, succeed

from milpbn.util.archives import read_sealed, write_sealed


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives")
    search = ["--p", "0.9", "--threads", "1", "-q", "--certificate", folder / "proof.npz"]
    succeed("solve", "instance:corral", *search, "--checkpoint", folder / "search.npz")
    learners = ["--learners", "tan,naive-bayes", "--folds", "3", "-q"]
    succeed("compare", "instance:corral", *learners, "--checkpoint", folder / "rows.npz")
    options = ["--epochs", "3", "-q", "--checkpoint", folder / "training.npz"]
    succeed("learn", "differentiable-tan", "instance:corral", *options)
    return folder


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("proof", ["certificate ", "corral: 128 samples, 6 features", "gamma = 2.19722"]),
        ("proof", ["optimal  (as the file says)"]),
        ("search", ["checkpoint  of a search", " nodes, ", "incumbent 261.134800, bound 261.13"]),
        ("rows", ["checkpoint  of a comparison", "tan on 3 of the splits, naive-bayes on 3 of the splits"]),
        ("training", ["checkpoint  of a training", "epochs      3"]),
    ],
)
def test_info_says_what_an_archive_holds(files, name, parts):
    done = succeed("info", files / f"{name}.npz")
    for part in parts:
        assert part in done.output


def test_other_archives_are_refused_in_a_sentence(files, tmp_path):
    other = tmp_path / "other.npz"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a", "b")
    assert "neither a certificate nor a checkpoint" in refused("info", other).stderr
    for name in ("proof", "search", "rows", "training"):
        sealed = read_sealed(files / f"{name}.npz", 10**8)
        changed = (
            sealed.header.replace('"score"', '"scorn"').replace('"kind"', '"kin"').replace("epoch", "era")
        )
        write_sealed(
            other, {"no": "header"} if changed == sealed.header else {}, sealed.arrays, compressed=False
        )
        assert refused("info", other).output.count("\n") <= 2
        whole = (files / f"{name}.npz").read_bytes()
        other.write_bytes(whole[: len(whole) // 2])
        refused("info", other)
