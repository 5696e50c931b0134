"""Studies on Dask workers find what they find in this process, also if workers are killed at any moment."""

from __future__ import annotations

from typing import Any

import pytest
from running import random_data

pytest.importorskip("distributed")

from distributed import Client

import milpbn
from milpbn.problem.scores.spec import Score
from milpbn.solving.grid import Grid
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.solving.selection import choose, maximise_selected

DATA = random_data(11, n_samples=60)
SCORE = Score(p=0.9)
QUIET: dict[str, Any] = {"threads": 1, "verbose": False}


@pytest.mark.parametrize(
    "grid",
    [
        Grid((0.6, 0.9), (1, 2)),
        Grid.parse("score=sm,cll p=.6,.9 max-parents=1,2 parameters=hybrid", "log-loss"),
    ],
    ids=["all splits at once", "halving"],
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


def test_a_bootstrap_is_the_same(client: Client) -> None:
    here, there = (milpbn.stability(DATA, SCORE, samples=4, dask=dask) for dask in (None, client))
    assert [run.structure for run in there.runs.values()] != []
    assert {n: (run.structure, run.objective) for n, run in there.runs.items()} == {
        n: (run.structure, run.objective) for n, run in here.runs.items()
    }
    assert there.shares() == here.shares()
