"""A search on Dask workers ends where one in this process ends, whatever happens to the workers."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from running import optimum, random_data
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

pytest.importorskip("distributed")

from distributed import Client, LocalCluster

import milpbn
from milpbn.certificate.verify.check import verify
from milpbn.distributed import dispatcher
from milpbn.errors import MilpbnWarning
from milpbn.problem.scores.spec import Score
from milpbn.sklearn import MaxMarginBNClassifier
from milpbn.solving.api import solve
from milpbn.solving.progress import closing_block


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are short, so that small problems have several."""
    monkeypatch.setattr(dispatcher, "FIRST_SECONDS", 0.02)


def hard(seed: int = 0) -> Any:
    """A problem that takes a thread a second and 300 nodes."""
    return random_data([61, seed], n_features=12, n_samples=150, n_classes=2)


@pytest.fixture(scope="module")
def here() -> milpbn.Result:
    """The result of the search in this process."""
    found = solve(hard(), "sm", threads=1, verbose=False)
    assert found.optimal
    return found


@pytest.mark.parametrize(
    "score",
    [Score(p=0.95), Score(name="cll"), Score(p=0.9, max_parents=3)],
    ids=["sm", "cll", "three parents"],
)
@pytest.mark.parametrize("n_best", [1, 3])
def test_the_optimum_is_found_and_its_certificate_holds(
    client: Client, score: Score, n_best: int, tmp_path: Path
) -> None:
    path = tmp_path / "proof.npz"
    data = random_data([62, n_best], n_features=4 if score.max_parents == 2 else 3, n_samples=60)
    found = solve(data, score, dask=client, certificate=path, n_best=n_best, verbose=False)
    best = optimum(data, score).objective
    assert found.optimal
    assert found.objective == pytest.approx(best, rel=1e-9)
    assert verify(found, path, data).bound >= best - 1e-12 * abs(best)


def test_workers_and_threads_prove_the_same_optimum(
    client: Client, here: milpbn.Result, tmp_path: Path
) -> None:
    data, path = hard(), tmp_path / "proof.npz"
    there = solve(data, "sm", dask=client, threads=1, certificate=path, verbose=False)
    assert there.optimal
    assert (there.backend.workers, here.backend.workers) == (2, None)
    assert f"{there.backend.version}, 1 thread, 2 workers\n" in closing_block(there)
    assert milpbn.Result.from_dict(there.to_dict()).backend.workers == 2
    assert there.nodes is not None
    assert there.nodes > 1
    assert there.objective == pytest.approx(here.objective, rel=1e-12)
    assert verify(there, path, data).bound >= here.objective - 1e-9


def test_a_killed_worker_loses_nothing_but_time(client: Client, here: milpbn.Result, tmp_path: Path) -> None:
    data, path = hard(), tmp_path / "proof.npz"
    killed: list[int] = []

    def kill(result: milpbn.Result) -> None:
        """Kill a worker as soon as there are nodes."""
        if result.nodes and not killed:
            pids = [pid for pid in client.run(os.getpid, on_error="ignore").values() if isinstance(pid, int)]
            if pids:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

    found = solve(data, "sm", dask=client, certificate=path, on_change=kill, verbose=False)
    assert killed
    assert found.optimal
    assert found.objective == pytest.approx(here.objective, rel=1e-12)
    assert verify(found, path, data).bound >= here.objective - 1e-9


def test_a_stopped_search_goes_on_without_the_workers(client: Client, tmp_path: Path) -> None:
    data, checkpoint, path = hard(), tmp_path / "search.ckpt", tmp_path / "proof.npz"

    def enough(result: milpbn.Result) -> bool:
        return (result.nodes or 0) > 50

    files = {"checkpoint": checkpoint, "certificate": path}
    first = solve(data, "sm", dask=client, on_change=enough, verbose=False, **files)
    second = solve(data, "sm", threads=1, verbose=False, **files)
    assert first.limit == "user"
    assert first.nodes is not None
    assert second.nodes is not None
    assert 50 < first.nodes < second.nodes
    assert second.optimal
    assert second.objective >= first.objective
    assert first.bound is not None
    assert second.bound <= first.bound
    assert verify(second, path, data).bound >= second.objective - 1e-9


@pytest.mark.parametrize("when", ["at any moment", "while a part is sent"])
def test_a_lost_scheduler_is_said_and_the_search_goes_on_here(
    here: milpbn.Result, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, path = hard(), tmp_path / "proof.npz"
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    ) as cluster:
        client = Client(cluster, set_as_default=False)
        closing = threading.Thread(target=client.close)
        submit, nodes = client.submit, [0]

        def look(result: milpbn.Result) -> None:
            nodes[0] = result.nodes or 0
            if when == "at any moment" and nodes[0] and closing.ident is None:
                closing.start()

        def send(*arguments: Any, **options: Any) -> Any:
            if when == "while a part is sent" and nodes[0] and closing.ident is None:
                closing.start()
                closing.join()
            return submit(*arguments, **options)

        monkeypatch.setattr(client, "submit", send)
        with pytest.warns(MilpbnWarning, match="scheduler is lost"):
            found = solve(data, "sm", dask=client, certificate=path, on_change=look, verbose=False)
        closing.join()
    assert found.optimal
    assert found.objective == pytest.approx(here.objective, rel=1e-12)
    assert verify(found, path, data).bound >= here.objective - 1e-9


def test_copies_of_an_estimator_share_its_client(client: Client) -> None:
    data = random_data([61, 2], n_features=6, n_samples=100)
    X, y = data.codes[:, :-1], data.codes[:, -1]
    names = {"nominal": list(range(X.shape[1]))}
    alone = MaxMarginBNClassifier(p=0.95, **names).fit(X, y)
    grid = GridSearchCV(MaxMarginBNClassifier(dask=client, **names), {"p": [0.95]}, cv=2).fit(X, y)
    there = clone(grid.best_estimator_).fit(X, y)
    for one in (there, grid.best_estimator_):
        assert one.dask is client
        assert one.optimal_
        assert one.objective_ == pytest.approx(alone.objective_, rel=1e-12)
    read = pickle.loads(pickle.dumps(there))
    assert read.dask == client.scheduler_info()["address"]
    assert (read.predict(X) == there.predict(X)).all()
