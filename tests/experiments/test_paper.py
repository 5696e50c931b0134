"""What is chosen of a paper, what its state is, and which tasks are being computed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from experiments_common import random_text, write_digits, write_set

from milpbn.errors import InputError
from milpbn.experiments import paper as module
from milpbn.experiments.cells import KeptCells
from milpbn.experiments.paper import Running, Wanted, compute, running, state, unmark
from milpbn.experiments.papers import PAPERS
from milpbn.experiments.published import published
from milpbn.util.locks import can_lock


@pytest.fixture
def folder(tmp_path):
    """Return a folder whose subfolders have iris and heart, and usps."""
    for name in ("uci", "images"):
        (tmp_path / name).mkdir()
    write_set(tmp_path / "uci", "iris", random_text(2, 50, "pqr"), continuous=["size"], train_rows=None)
    write_set(tmp_path / "uci", "heart", random_text(3, 60, "pq"), continuous=["size"], train_rows=40)
    write_digits(tmp_path / "images", "usps-discretised", side=2)
    return tmp_path


def test_what_only_names_is_chosen_and_absent_data_are_skipped(folder):
    p12 = PAPERS["p12"]
    every = p12.choose(Wanted(data_dir=folder))
    assert (every.data, len(every.skipped)) == (("heart", "iris"), 29)
    assert "recipe-average" not in every.methods
    some = p12.choose(Wanted(data_dir=folder, only=("nb", "iris", "fold-2", "recipe-average")))
    assert (some.data, some.methods, some.parts) == (("iris",), ("nb", "recipe-average"), ("fold-2",))
    assert (some.skipped, every.parts) == ((), ())


@pytest.mark.parametrize(
    ("only", "words"),
    [
        (("iriss",), "--only: p12 has no 'iriss'; choose from abalone, "),
        (("iris", "german"), r"german \(https://archive.ics.uci.edu/dataset/144\); put the data into"),
    ],
)
def test_what_cannot_be_chosen_is_named(folder, only, words):
    with pytest.raises(InputError, match=words):
        PAPERS["p12"].choose(Wanted(data_dir=folder, only=only))


def test_without_any_data_nothing_is_reproduced(tmp_path):
    for data_dir in (None, tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match="Not in the folder of the data"):
            PAPERS["r20"].choose(Wanted(data_dir=data_dir))


def test_the_state_counts_and_estimates(folder):
    wanted = Wanted(data_dir=folder, only=("nb", "sm", "iris", "heart"), budget=7.0)
    p12, store, out = PAPERS["p12"], KeptCells(folder / "out"), folder / "out"
    (plan,) = p12.studies(p12.choose(wanted), wanted)
    before = state(plan, store)
    # Nothing is known: five folds and one test set of SM, with 7 s for a choice's trial and 7 s for the search.
    assert (before.done, len(before.missing), before.guessed) == (0, 12, 12)
    assert before.left == 6 * 14.0
    some = replace(wanted, only=("nb", "fold-1", "test"))
    lines = list(compute(*p12.studies(p12.choose(some), some), store, out))
    assert len(lines) == 2
    assert "1 of 2" in lines[0]
    assert "accuracy" in lines[0]
    after = state(plan, store)
    assert (after.done, len(after.missing), after.guessed) == (2, 10, 6)
    assert 84.0 < after.left < 84.0 + 4 * 60
    assert list(compute(*p12.studies(p12.choose(some), some), store, out)) == []
    assert not list((out / module.RUNNING).glob("*"))


@pytest.mark.skipif(not can_lock(), reason="needs locks on files")
def test_a_task_is_running_while_its_process_lives(folder):
    wanted = Wanted(data_dir=folder, only=("nb", "iris"))
    p12, store = PAPERS["p12"], KeptCells(folder)
    (plan,) = p12.studies(p12.choose(wanted), wanted)
    first, second = plan.tasks()[:2]
    mark = Running(folder)
    mark(first)
    mark(second)
    assert running(folder) == {second.cell.key}
    now = state(plan, store, running(folder))
    assert ([task.part for task in now.running], len(now.missing)) == (["fold-2"], 4)
    unmark()
    assert running(folder) == set()

    code = f"""if True:
        from pathlib import Path
        from types import SimpleNamespace as N
        from milpbn.experiments.paper import Running
        Running(Path({str(folder)!r}))(N(cell=N(key="a")))
        print("marked", flush=True)
        input()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=os.sep
    )
    assert process.stdout.readline() == "marked\n"
    assert running(folder) == {"a"}
    process.kill()
    process.wait()
    assert (folder / module.RUNNING / "a").exists()
    assert running(folder) == set()
    assert not (folder / module.RUNNING / "a").exists()
    process.stdin.close()
    process.stdout.close()


def test_the_digits_of_p11(folder):
    wanted = Wanted(data_dir=folder, budget=60.0, only=("digits-nb", "tan-cmi", "tan-omi-mm", "tan-mm"))
    p11, store = PAPERS["p11"], KeptCells(folder / "out")
    studies = p11.studies(p11.choose(wanted), wanted)
    assert len(list(compute(*studies, store, folder / "out"))) == 4
    steps = {task.cell.method: [cell.method for cell, _ in task.steps] for task in studies[0].tasks()}
    assert steps["tan-mm"] == ["tan-omi-mm", "tan-mm"]
    found = {task.cell.method: store.read(task.cell).found for task in studies[0].tasks()}
    assert found["tan-mm"]["gamma"] == found["tan-omi-mm"]["gamma"] > 0
    widths = dict(found["digits-nb"]["widths"])
    assert list(widths) == list(range(64, 0, -1))
    assert widths[64] == found["digits-nb"]["figures"]["accuracy"]
    text = p11.page(studies, store, folder / "out")
    row = next(row for row in text.splitlines() if row.startswith("| TAN-MM"))
    assert "<br>95.40 ± 0.37" in row
    assert "-<br>93.15 ± 0.25" in row  # mnist is not there
    assert "usps, TAN-OMI-MM: 12 integer bits" in (folder / "out" / "figure-2.svg").read_text()


def test_the_forests_of_the_slides(folder):
    wanted = Wanted(data_dir=folder)
    slides, store = PAPERS["slides"], KeptCells(folder / "out")
    studies = slides.studies(slides.choose(wanted), wanted)
    assert len(list(compute(*studies, store, folder / "out"))) == 2 * 5 * (5 + 1)
    found = {
        task.cell.method: store.read(task.cell).found for task in studies[0].tasks() if task.data == "heart"
    }
    assert found["chow-liu-none"]["arcs"] == 3  # a tree of four variables
    assert found["tan-none"]["arcs"] == 2
    assert all(found[f"tan-{penalty}"]["arcs"] <= 2 for penalty in ("bic", "aic", "aicc", "holdout"))
    assert all(one["log_likelihood"] < 0 for one in found.values())
    text = slides.page(studies, store, folder)
    assert len([row for row in text.splitlines() if row.startswith("| heart | ")]) == 2
    assert set(slides.data) == set(published().accuracies)
