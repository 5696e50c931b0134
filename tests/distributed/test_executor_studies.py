"""Studies on Dask workers find what they find in this process, also if workers are killed at any moment."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments_common import random_text, write_set
from running import random_data

pytest.importorskip("distributed")

from distributed import Client

import milpbn
from milpbn.data import read_table
from milpbn.experiments.base import Budgets
from milpbn.experiments.cells import Kept, KeptCells
from milpbn.experiments.runner import Plan, run_plan
from milpbn.learners.base import Control
from milpbn.learners.comparison import compare, training_and_test_rows
from milpbn.learners.repeated import compare_over_folds
from milpbn.problem.scores.spec import Score
from milpbn.solving.grid import Grid
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.solving.selection import choose, maximise_selected

DATA = random_data(11, n_samples=60)
SCORE = Score(p=0.9)
#: The order in which learners run.
ORDER = ("sm", "tan", "naive-bayes", "svm")
QUIET: dict[str, Any] = {"threads": 1, "verbose": False}


@pytest.mark.parametrize(
    "grid",
    [
        pytest.param(Grid((0.6, 0.9), (1, 2)), id="all splits at once"),
        pytest.param(
            Grid.parse("score=sm,cll p=.9 max-parents=1,2 parameters=hybrid", "log-loss"),
            id="halving",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_selection_is_the_same(client: Client, grid: Grid) -> None:
    question = Question(DATA, Score())
    here = maximise_selected(question, Options(**QUIET), grid)
    there = maximise_selected(question, Options(dask=client, **QUIET), grid)
    assert there.selection == here.selection
    assert there.objective == here.objective
    assert there.bound == pytest.approx(here.bound, abs=1e-6)
    assert there.optimal


def test_a_selection_on_workers_keeps_a_time_limit(client: Client) -> None:
    grid = Grid((0.6, 0.9), (1, 2))
    chosen = choose(Question(DATA, Score()), Options(dask=client, time_limit=30.0, **QUIET), grid)
    assert {trial.splits for trial in chosen.trials} == {5}
    assert not chosen.timed_out


class Killer:
    """Kills a worker, drawn at random, whenever so many cells are finished."""

    def __init__(self, client: Client, after: Collection[int]) -> None:
        self._client, self._after, self._seen = client, after, 0
        self.killed = 0

    def __call__(self, line: str) -> None:
        self._seen += 1
        if self._seen in self._after:
            processes = self._client.run(os.getpid, on_error="ignore")
            os.kill(random.Random(self._seen).choice(sorted(processes.values())), signal.SIGKILL)
            self.killed += 1


def test_a_bootstrap_is_the_same_if_workers_are_killed(client: Client, tmp_path: Path) -> None:
    killer, path = Killer(client, (3,)), tmp_path / "runs.json"
    here = milpbn.stability(DATA, SCORE, samples=8)
    there = milpbn.stability(DATA, SCORE, samples=8, dask=client, report=killer, output=path)
    assert killer.killed == 1
    assert len(there.runs) == 8
    assert {n: (run.structure, run.objective) for n, run in there.runs.items()} == {
        n: (run.structure, run.objective) for n, run in here.runs.items()
    }
    assert str(there) == str(here)
    assert there.shares() == here.shares()
    again = milpbn.stability(DATA, SCORE, samples=8, dask=client, report=pytest.fail, output=path)
    assert again.shares() == there.shares()


def without_seconds(values: Any) -> Any:
    """Return JSON values without times."""
    if isinstance(values, dict):
        return {key: without_seconds(value) for key, value in values.items() if key != "seconds"}
    return [without_seconds(value) for value in values] if isinstance(values, list) else values


def test_a_comparison_is_the_same(client: Client, tmp_path: Path) -> None:
    """On one split and over folds, killed and resumed."""
    names = ("tan", "sm", "naive-bayes", "svm")
    how: dict[str, Any] = {"score": {"p": 0.9}, "against": "tan"}
    table = read_table((np.delete(DATA.codes, -1, axis=1).astype(str), DATA.y.astype(str)))
    train, test = training_and_test_rows(table)
    here = compare(train, test, names, control=Control(random_state=1), **how)
    there = compare(train, test, names, control=Control(random_state=1), dask=client, **how)
    assert without_seconds(there.to_dict()) == without_seconds(here.to_dict())
    assert all(row.gap is not None for row in there.rows[:3])
    killer, path = Killer(client, (2,)), tmp_path / "state.npz"
    folds = compare_over_folds(table, 2, 1, names, control=Control(random_state=1), **how)
    spread = compare_over_folds(
        table,
        2,
        1,
        names,
        control=Control(random_state=1, report=killer),
        dask=client,
        checkpoint=path,
        **how,
    )
    assert killer.killed == 1
    assert without_seconds(spread.to_dict()) == without_seconds(folds.to_dict())
    lines: list[str] = []
    control = Control(random_state=1, report=lines.append)
    again = compare_over_folds(table, 2, 1, names, control=control, dask=client, checkpoint=path, **how)
    assert again.to_dict() == spread.to_dict()
    kept = [f"part {n} of 2: {name} has finished before" for n in (1, 2) for name in ORDER]
    assert [line for line in lines if "part" in line] == kept


def test_an_experiment_is_the_same(client: Client, tmp_path: Path) -> None:
    """Workers need no files, and a method that needs another one is computed after it."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    write_set(folder, "folded", random_text(2, 50, "pqr"), continuous=["size"], train_rows=None)
    plan = Plan(
        data=("folded",),
        methods=("nb", "mdl"),
        parts=("fold-1",),
        budgets=Budgets(selection=5, final=10),
        data_dir=folder,
    )
    here, there = (KeptCells(tmp_path / name) for name in ("here", "there"))
    alone = {done.task.cell.key: done.kept for done in run_plan(plan, here)}
    together = {}
    for done in run_plan(plan, there, dask=client):
        together[done.task.cell.key] = done.kept
        (folder / "folded.csv.gz").unlink(missing_ok=True)  # what the workers are sent is enough
    assert {key: found.failure for key, found in together.items()} == dict.fromkeys(alone)
    assert {key: figures(found) for key, found in together.items()} == {
        key: figures(found) for key, found in alone.items()
    }


def figures(kept: Kept) -> Any:
    return without_seconds(kept.found["figures"]), kept.found.get("search", {}).get("objective")
