"""Options that name workers or a cluster are checked before anything else, and so are the versions of the workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from running import random_data

pytest.importorskip("distributed")

from distributed import Client

from milpbn.distributed.clusters import check_versions, scheduler
from milpbn.errors import InputError
from milpbn.solving.api import solve


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"workers": 2, "dask": "tcp://127.0.0.1:1"}, "leave out one of them"),
        ({"workers": 0}, "number of workers must lie between 1 and 4096, got 0"),
        ({"dask": "tcp://127.0.0.1:1"}, "no Dask scheduler answers"),
        ({"dask": 3}, "dask must be the address or file of a scheduler"),
        ({"workers": 2, "backend": "highs"}, "Several workers share the tree search of the backend native"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(
    options: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("milpbn.distributed.clusters.CONNECT_SECONDS", 1)
    with pytest.raises(InputError, match=sentence):
        solve(random_data([62, 0], n_features=3, n_samples=20), "sm", verbose=False, **options)


def test_a_scheduler_file_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text("[]")
    with pytest.raises(InputError, match="which is no scheduler file"), scheduler(str(file)):
        pass


def test_workers_with_another_version_are_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("milpbn.distributed.clusters.__version__", "0.0.0")
    with pytest.raises(InputError, match=r"has milpbn .*; install milpbn 0\.0\.0 there"):
        check_versions(client)
