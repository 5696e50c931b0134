"""``milpbn info`` of certificates and checkpoints."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from cli_common import run

from milpbn.util.archives import read_sealed, write_sealed


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archives")
    search = ["--p", "0.9", "--threads", "1", "-q", "--certificate", folder / "proof.npz"]
    assert run("solve", "instance:corral", *search, "--checkpoint", folder / "search.npz").exit_code == 0
    learners = ["--learners", "tan,naive-bayes", "--folds", "3", "-q"]
    assert run("compare", "instance:corral", *learners, "--checkpoint", folder / "rows.npz").exit_code == 0
    options = ["--epochs", "3", "-q", "--checkpoint", folder / "training.npz"]
    assert run("learn", "differentiable-tan", "instance:corral", *options).exit_code == 0
    return folder


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (
            "proof",
            [
                "certificate ",
                "corral: 128 samples, 6 features",
                "gamma = 2.19722",
                "optimal  (as the file says)",
            ],
        ),
        (
            "search",
            ["checkpoint  of a search", " nodes, ", "incumbent 261.134800, bound 261.13"],
        ),
        ("rows", ["checkpoint  of a comparison", "tan on 3 of the splits, naive-bayes on 3 of the splits"]),
        ("training", ["checkpoint  of a training", "epochs      3"]),
    ],
)
def test_info_says_what_an_archive_holds(files: Path, name: str, parts: list[str]) -> None:
    done = run("info", files / f"{name}.npz")
    assert done.exit_code == 0, done.output
    for part in parts:
        assert part in done.output


def test_other_archives_are_refused_in_a_sentence(files: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.npz"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a", "b")
    done = run("info", other)
    assert (done.exit_code, "neither a certificate nor a checkpoint" in done.output) == (2, True)
    for name in ("proof", "search", "rows", "training"):
        sealed = read_sealed(files / f"{name}.npz", 10**8)
        changed = (
            sealed.header.replace('"score"', '"scorn"').replace('"kind"', '"kin"').replace("epoch", "era")
        )
        write_sealed(
            other, {"no": "header"} if changed == sealed.header else {}, sealed.arrays, compressed=False
        )
        done = run("info", other)
        assert done.exit_code == 2, done.output
        assert done.output.count("\n") <= 2
        whole = (files / f"{name}.npz").read_bytes()
        other.write_bytes(whole[: len(whole) // 2])
        assert run("info", other).exit_code == 2
