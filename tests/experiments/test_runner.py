"""Runs: order, resuming, failures, processes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from milpbn.errors import InputError
from milpbn.experiments import runner
from milpbn.experiments.base import Budgets, Method
from milpbn.experiments.cells import KeptCells
from milpbn.experiments.runner import Plan, missing, run_plan
from milpbn.trials.store import ARCHIVE, Store

BUDGETS = Budgets(selection=5, final=10)


@pytest.fixture
def plan(catalog):
    return Plan(data=("split", "folded"), methods=("nb", "tan"), budgets=BUDGETS, data_dir=catalog)


@pytest.fixture
def store(tmp_path):
    return KeptCells(tmp_path / "cells")


def test_tasks_are_all_methods_on_all_parts(plan, catalog):
    found = plan.tasks()
    assert len(found) == 2 * (5 + 1)
    # The set with 50 rows and three classes is smaller than that with 100 rows and two.
    assert [task.data for task in found] == ["folded"] * 10 + ["split"] * 2
    assert {(t.part, t.cell.method) for t in found if t.data == "split"} == {("test", "nb"), ("test", "tan")}
    only = Plan(data=plan.data, methods=("nb",), parts=("fold-2",), budgets=BUDGETS, data_dir=catalog)
    assert [(t.data, t.part) for t in only.tasks()] == [("folded", "fold-2")]


def test_a_search_has_a_step_before_and_two_classes_share_it(plan, catalog):
    both = Plan(data=plan.data, methods=("sm", "sbm"), budgets=BUDGETS, data_dir=catalog)
    found = both.tasks()
    assert [t.cell.method for t in found if t.data == "split"] == ["sm"]
    assert len(found) == 5 * 2 + 1
    assert [cell.method for cell, _ in found[0].steps] == ["sm-choice", "sm"]
    longer = Plan(data=plan.data, methods=("sm",), budgets=Budgets(selection=5, final=99), data_dir=catalog)
    task = longer.tasks()[0]
    assert task.steps[0][0].key == found[0].steps[0][0].key  # the choice is not made again
    assert task.cell.key != found[0].cell.key


def test_nothing_is_computed_twice(plan, store, tmp_path):
    begun = []
    finished = list(run_plan(plan, store, started=begun.append))
    assert len(finished) == len(begun) == 12
    assert missing(plan, store) == ([], [])
    assert list(run_plan(plan, store, started=begun.append)) == []
    assert len(begun) == 12
    document = Store(tmp_path / "cells" / ARCHIVE)[finished[0].task.cell.key]
    assert set(document["versions"]) >= {"milpbn", "python", "numpy", "scikit-learn"}
    assert document["seconds"]["wall"] > 0
    assert document["seconds"]["processor"] > 0
    assert document["cell"]["budget"] is None


def test_a_killed_run_goes_on(plan, store):
    class Killed(BaseException):
        pass

    begun = []

    def kill(task):
        begun.append(task.cell.key)
        if len(begun) == 4:
            raise Killed

    with pytest.raises(Killed):
        list(run_plan(plan, store, started=kill))
    waiting, _ = missing(plan, store)
    assert len(waiting) == 12 - 3
    assert len(list(run_plan(plan, store))) == 9


def test_a_failure_is_kept_with_its_reason(plan, store, monkeypatch):
    class Failing(Method):
        name = "nb"
        error: Exception = InputError("The data are unusable.")

        def run(self, work):
            raise self.error

    original = runner.method
    monkeypatch.setattr(
        runner, "method", lambda name, *more: Failing() if name == "nb" else original(name, *more)
    )
    finished = list(run_plan(plan, store))
    assert sum(done.kept.failure is not None for done in finished) == 6
    waiting, failed = missing(plan, store)
    assert waiting == []
    assert {reason for _, reason in failed} == {"The data are unusable."}
    assert list(run_plan(plan, store)) == []

    Failing.error = ZeroDivisionError("one by nought")
    assert len(list(run_plan(plan, store, retry_failed=True))) == 6
    assert missing(plan, store)[1][0][1] == "ZeroDivisionError: one by nought"


def test_a_failed_step_stops_the_task(plan, store, catalog, monkeypatch):
    class Failing(Method):
        name = "sm-choice"

        def run(self, work):
            raise InputError("There is nothing to choose.")

    class Final(Method):
        name = "sm"
        needs = Failing()

        def run(self, work):
            raise AssertionError("its step failed")

    monkeypatch.setattr(runner, "method", lambda *arguments: Final())
    one = Plan(data=("split",), methods=("sm",), budgets=BUDGETS, data_dir=catalog)
    (done,) = run_plan(one, store)
    assert done.kept.failure == "There is nothing to choose."
    assert store.read(done.task.cell) is None
    waiting, ((_, reason),) = missing(one, store)
    assert (waiting, reason) == ([], "There is nothing to choose.")


def test_two_processes_find_the_same(plan, store, tmp_path):
    few = replace(plan, methods=("nb",), parts=("fold-1", "test"))
    other = KeptCells(tmp_path / "other")
    alone = {done.task.cell.key: done.kept for done in run_plan(few, store)}
    together = {done.task.cell.key: done.kept for done in run_plan(few, other, n_jobs=2)}
    assert together == alone
    assert len(alone) == 2
    assert missing(few, other) == ([], [])
