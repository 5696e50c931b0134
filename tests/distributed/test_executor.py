"""Calls on Dask workers are those of this process, also if workers die."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("distributed")

from distributed import Client, LocalCluster, Worker, as_completed

from milpbn.distributed.clusters import local_workers
from milpbn.distributed.executor import CallPlugin, DaskWorkers, workers_of
from milpbn.errors import InputError, MilpbnWarning, SolverError
from milpbn.trials.executors import Inline, alone, spread
from milpbn.util import interrupts
from milpbn.util.threads import thread_count


def test_calls_return_what_they_return_here(client: Client) -> None:
    items = [-3, 2, -1]
    found = list(DaskWorkers(client).run(abs, items, lambda: False))
    assert sorted(found) == sorted(Inline().run(abs, items, lambda: False))
    assert list(DaskWorkers(client).run(abs, [], lambda: False)) == []


def test_items_may_follow_from_results(client: Client) -> None:
    items = deque([1])
    found = []
    for item, result in DaskWorkers(client).run(abs, items, lambda: False):
        found.append(result)
        if item < 4:
            items.append(item + 1)
    assert found == [1, 2, 3, 4]


def test_a_result_counts_if_its_worker_dies_once_it_is_here(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its future is "lost" then, until another worker has computed it once more."""

    def next_batch(self: as_completed, block: bool = True) -> list[Any]:
        batch: list[Any] = both(self, block)
        for future, _ in batch:
            future._state.lose()
            assert future.status == "lost"
        return batch

    both = as_completed.next_batch
    monkeypatch.setattr(as_completed, "next_batch", next_batch)
    items = [-3, 2, -1]
    assert sorted(DaskWorkers(client).run(abs, items, lambda: False)) == [(-3, 3), (-1, 1), (2, 2)]


def test_an_error_of_a_call_is_raised_here(client: Client) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(DaskWorkers(client).run(int, ["1", "x"], lambda: False))
    with pytest.raises(FileNotFoundError):
        list(DaskWorkers(client).run(os.stat, ["/not/there"], lambda: False))


def test_workers_on_this_machine_that_end_for_good_end_the_calls() -> None:
    with local_workers(1) as here:
        here.wait()
        where = DaskWorkers(here.client, None, here.check)
        found = where.run(time.sleep, [0.0, 60.0], lambda: False)
        assert next(found) == (0.0, None)
        os.killpg(here.nanny.pid, signal.SIGKILL)
        with pytest.raises(SolverError, match=r"The workers have ended .* What is finished is kept"):
            list(found)


def until_stopped(seconds: float) -> int:
    """Wait until told to stop."""
    end = time.monotonic() + seconds
    while not interrupts.requested() and time.monotonic() < end:
        time.sleep(0.01)
    return thread_count()


def die_once(path: str) -> int:
    """Kill the process of the first call; return 1 in the second."""
    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 1


@pytest.fixture
def with_this_module(client: Client) -> DaskWorkers:
    """Return workers that can import the functions of this module."""
    client.upload_file(__file__)
    return DaskWorkers(client)


def in_a_process(number: int) -> object:
    """Start a process, as long fits of support vector machines and others do."""
    return alone((abs, number), lambda: False, killable=True)


def test_a_call_may_start_processes(with_this_module: DaskWorkers) -> None:
    assert list(with_this_module.run(in_a_process, [-1], lambda: False)) == [(-1, 1)]


def test_stopping_ends_the_calls_and_frees_the_workers(with_this_module: DaskWorkers) -> None:
    begun, stop = time.monotonic(), iter([False] * 20)
    items = [30.0] * 4
    assert list(with_this_module.run(until_stopped, items, lambda: next(stop, True))) == []
    assert list(with_this_module.run(until_stopped, [0.0], lambda: False)) == [(0.0, 1)]
    assert time.monotonic() - begun < 20


def test_a_call_that_begins_after_a_stop_ends_at_once() -> None:
    plugin = CallPlugin("calls", pickle.dumps((until_stopped, None)))
    plugin.teardown(cast(Worker, SimpleNamespace(state=SimpleNamespace(nthreads=1))))
    assert plugin.call(0.0) is None
    assert CallPlugin("calls", pickle.dumps((until_stopped, None))).call(0.0) == 1


def test_a_call_whose_worker_dies_is_repeated(with_this_module: DaskWorkers, tmp_path: Path) -> None:
    found: list[Any] = list(with_this_module.run(die_once, [str(tmp_path / "died")], lambda: False))
    assert [value for _, value in found] == [1]


def test_a_cluster_without_workers_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("milpbn.distributed.executor.ALONE_SECONDS", 0.0)
    asked = iter([False] * 40)
    with (
        LocalCluster(n_workers=0, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as alone,
        pytest.warns(MilpbnWarning, match="has no workers; waiting for the first"),
    ):
        assert list(DaskWorkers(alone).run(abs, [1], lambda: next(asked, True))) == []


def test_either_processes_or_a_cluster() -> None:
    with pytest.raises(InputError, match=r"--n-jobs .* leave out one of them"), spread(2, "tcp://node:1"):
        pass
    with pytest.raises(InputError, match="dask must be the address or file"), workers_of(3):
        pass
