"""Workers that end, leave and join during a search, as real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from running import random_data

pytest.importorskip("distributed")

import cloudpickle
from distributed import Client, WorkerPlugin, get_worker

import milpbn
from milpbn.certificate.verify.check import verify
from milpbn.claims.result import FailedSearchError
from milpbn.distributed.clusters import local_workers
from milpbn.errors import MilpbnWarning
from milpbn.solving.api import solve


def hard(n_features: int = 16, n_samples: int = 400) -> Any:
    """A problem that takes a thread some seconds and a thousand nodes; with 12 features a second."""
    return random_data([61, 0], n_features=n_features, n_samples=n_samples, n_classes=2)


class Changed(WorkerPlugin):
    """Replaces the search below nodes on workers; `change` is called with the original and its arguments."""

    def __init__(self, change: Callable[..., Any]) -> None:
        self.change = change

    def setup(self, worker: Any) -> None:
        from milpbn.distributed import worker as module

        search, change = module.search_subtree, self.change
        self.search, module.search_subtree = search, lambda *words: change(search, *words)

    def teardown(self, worker: Any) -> None:
        from milpbn.distributed import worker as module

        module.search_subtree = self.search


@pytest.fixture(scope="module", autouse=True)
def pickled_by_value() -> Iterator[None]:
    """Workers cannot import this module."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.mark.slow
def test_a_part_that_was_lost_three_times_is_in_a_file(client: Client, tmp_path: Path) -> None:
    """Each worker ends as soon as it searches below a node with a large number."""
    files = {"checkpoint": tmp_path / "search.ckpt", "certificate": tmp_path / "proof.npz"}

    def deadly(search: Callable[..., Any], one: Any, task: Any, ends: Any) -> Any:
        return os._exit(1) if task.nodes[0].number > 20 else search(one, task, ends)

    client.register_plugin(Changed(deadly), name="deadly")
    try:
        with pytest.raises(FailedSearchError, match="3 workers ended while they searched") as failed:
            solve(hard(), "sm", dask=client, verbose=False, **files)
    finally:
        client.unregister_worker_plugin("deadly")
    call = str(failed.value).split("python -c '")[1].split("'")[0]
    alone = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True)
    assert " new nodes in " in alone.stdout
    first = failed.value.result
    found = solve(hard(), "sm", threads=1, verbose=False, **files)
    assert found.optimal
    assert first.bound is not None
    assert found.bound <= first.bound
    assert verify(found, files["certificate"], hard()).bound >= found.objective - 1e-9


def test_the_search_goes_on_here_if_all_workers_on_this_machine_end_for_good() -> None:
    before = set(psutil.Process().children())

    def end_them(result: milpbn.Result) -> None:
        for nanny in set(psutil.Process().children()) - before:
            if "dask_worker" in " ".join(nanny.cmdline()) and result.nodes:
                os.killpg(nanny.pid, signal.SIGKILL)  # with the worker, which could end the search otherwise

    with pytest.warns(MilpbnWarning, match=r"The workers have ended \(exit code -9.*goes on in this process"):
        found = solve(hard(12, 150), "sm", workers=1, threads=1, on_change=end_them, verbose=False)
    assert found.optimal


@pytest.mark.slow
def test_workers_leave_and_join_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "proof.npz"
    with local_workers(1) as here:
        client = here.client
        client.wait_for_workers(1, timeout=120)
        (first,) = client.scheduler_info()["workers"]
        address = client.scheduler_info()["address"]
        command = [sys.executable, "-m", "dask", "worker", address, "--nthreads", "1", "--no-dashboard"]
        command += ["--memory-limit", "0", "--local-directory", str(tmp_path)]
        joining = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def slow(search: Callable[..., Any], *words: Any) -> Any:
            if get_worker().address == first:
                time.sleep(0.5)  # the other one joins meanwhile
            return search(*words)

        def searched() -> set[str]:
            """Return the workers that have begun a part."""
            events = client.get_events().items()
            return {one[1][1] for topic, of in events if topic.startswith("milpbn-") for one in of}

        def retire(result: milpbn.Result) -> None:
            if len(searched()) == 2 and first in client.scheduler_info()["workers"]:
                client.retire_workers([first])

        client.register_plugin(Changed(slow), name="slow")
        try:
            found = solve(hard(), "sm", dask=client, certificate=path, on_change=retire, verbose=False)
            assert len(searched()) == 2
            assert first not in client.scheduler_info()["workers"]
        finally:
            for one in [*joining.children(recursive=True), joining]:
                one.kill()
            joining.wait()
    assert found.optimal
    assert found.objective == pytest.approx(solve(hard(), "sm", verbose=False).objective, rel=1e-12)
    assert verify(found, path, hard()).bound >= found.objective - 1e-9
