"""``milpbn reproduce`` and ``milpbn data``."""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest
from cli_common import refused, run, says, start, succeed

from milpbn.data.known import known_set

#: Rows of a set that is named iris here, with its sizes.
ROWS = [f"{k % 7},{k % 5},{k % 3},{k % 2},c{(k // 2) % 3}" for k in range(150)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MILPBN_DATA", raising=False)
    write(tmp_path, ROWS)
    return tmp_path


def write(folder, rows):
    packed = gzip.compress("\n".join(["a,b,c,d,class", *rows, ""]).encode())
    (folder / "uci").mkdir(exist_ok=True)
    (folder / "uci" / "iris.csv.gz").write_bytes(packed)
    entry = {"sha256": hashlib.sha256(packed).hexdigest(), "missing": "drop row", "train_rows": None}
    (folder / "uci" / "catalog.json").write_text(json.dumps({"iris": {**entry, "continuous": []}}))


def test_a_paper_is_reproduced_cell_by_cell(folder):
    command = ("reproduce p12 --data-dir", folder, "--only", "iris,nb,tan", "--output", "out")
    done = succeed(*command, "-q", "--status")
    says(done.output, "all: 0 done, 0 running, 0 failed, 10 missing", "missing  iris nb: fold-1, fold-2")
    done = succeed(*command)
    says(done.stderr, "10 of 10  iris fold-5 tan  accuracy", "The page is 'out/README.md'.")
    assert "skipped" not in done.stderr
    page = (folder / "out" / "README.md").read_text()
    says(page, "# Tables 1 to 3 of Peharz & Pernkopf (2012)", "| iris | 5 folds | ")
    says(succeed(*command, "--status").output, "all: 10 done, 0 running, 0 failed, 0 missing")
    assert " of " not in succeed(*command).stderr  # nothing is computed again
    assert not list((folder / "out" / "running").glob("*"))


def test_absent_data_are_skipped_unless_named(folder, monkeypatch):
    monkeypatch.setenv("MILPBN_DATA", str(folder))
    done = succeed("reproduce p12 --only nb,fold-1")
    says(done.stderr, "vote (https://archive.ics.uci.edu/dataset/105)", "; skipped.")
    says(refused("reproduce p12 --only vote").stderr, "Not in the folder of the data: vote (https://")
    assert (folder / "p12" / "README.md").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("p13", "'p13' is not a paper; choose from p12, p11, r20, slides"),
        ("p12 --only x", "--only: p12 has no 'x'"),
        ("p12 --budget 0", "--budget must be positive, got 0."),
        ("slides --budget 5", "--budget changes nothing with slides; leave it out."),
        ("p12 --epochs 5", "--epochs changes nothing with p12; leave it out."),
        ("r20 --epochs -1", "--epochs must be positive, got -1."),
        ("r20", "Not in the folder of the data: letter (https://github.com/wroth8/bnc)"),
    ],
)
def test_what_cannot_be_reproduced_is_one_sentence(folder, words, sentence):
    says(refused(f"reproduce {words} --data-dir {folder}").stderr, sentence)
    assert {path.name for path in folder.iterdir()} == {"uci"}


def test_without_data_the_sentence_says_what_to_give(tmp_path, monkeypatch):
    monkeypatch.delenv("MILPBN_DATA", raising=False)
    says(
        refused("data check").stderr,
        "No folder is given (--data-dir, or the variable MILPBN_DATA)",
        "milpbn data list",
    )
    says(
        refused("reproduce p12 --data-dir", tmp_path).stderr,
        "australian (",
        "), and ",
        " more; put the data into",
    )


def test_an_interrupt_keeps_what_is_finished(folder):
    code = """
        import os, signal
        from milpbn.experiments.networks import ClosedFormMethod
        run = ClosedFormMethod.run
        def stopped(self, given):
            if given.part.name == "fold-3":
                os.kill(os.getpid(), signal.SIGINT)
            return run(self, given)
        ClosedFormMethod.run = stopped
    """
    command = ("reproduce", "p12", "--data-dir", folder, "--only", "iris,nb", "--output", "out")
    process = start(code, *command, cwd=folder)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 0
    says(stderr, "2 of 5", "Interrupted; the finished cells are kept, and the same command goes on.")
    says(succeed(*command, "--status").output, "all: 2 done, 0 running, 0 failed, 3 missing")
    assert succeed(*command).stderr.count("accuracy") == 3


def test_data_are_listed(folder):
    done = succeed("data list --data-dir", folder).output.splitlines()
    assert len([line for line in done if not line.startswith(" ")]) == 31 + 4
    assert [line.split()[0] for line in done if " found " in line] == ["iris"]
    shown = succeed("data list letter").output
    says(shown, "test set: 15,000 rows train, 5,000 test", known_set("letter").sha256, "found     no")
    says(refused("data list x").stderr, "There is no known data set 'x'")


def test_data_are_checked(folder):
    done = succeed("data check --data-dir", folder)
    says(done.output, "iris: size as expected; another checksum (")
    says(refused("data check heart --data-dir", folder).stderr, "does not have 'heart'")
    write(folder, ROWS[1:])
    done = refused("data check iris --data-dir", folder)
    says(done.output, "expected set: 149 rows instead of 150.", "Not the expected data: iris.")
    (folder / "iris.csv").write_text("\n".join(["a,b,c,d,class", *ROWS, ""]))
    says(succeed("data check iris.csv").output, "iris: size as expected")
    (folder / "corral.csv").write_text("\n".join(["a,b,c,d,class", *ROWS, ""]))
    says(
        refused("data check corral.csv").stderr,
        "not the expected set: 150 rows instead of 128, 4 features ",
    )


@pytest.mark.parametrize("words", ["list", "check"])
def test_the_data_of_the_project_are_the_known_ones(words, uci):
    done = run(f"data {words}", "--data-dir", uci)
    assert done.exit_code == 0
    assert done.stdout.count("found " if words == "list" else "checksum as expected") >= 19
