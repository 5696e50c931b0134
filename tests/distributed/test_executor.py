"""Cells on Dask workers are those of this process, also if workers die."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")

from distributed import Client

from milpbn.distributed.executor import DaskWorkers
from milpbn.errors import InputError
from milpbn.trials.executors import Inline


def test_calls_return_what_they_return_here(client: Client) -> None:
    items = [-3, 2, -1]
    found = list(DaskWorkers(client).run(abs, items, lambda: False))
    assert sorted(found) == sorted(Inline().run(abs, items, lambda: False))
    assert list(DaskWorkers(client).run(abs, [], lambda: False)) == []


def test_an_error_of_a_call_is_raised_here(client: Client) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(DaskWorkers(client).run(int, ["1", "x"], lambda: False))


def test_stopping_ends_the_run(client: Client) -> None:
    begun = time.monotonic()
    stop = iter([False, False, True])
    found = list(DaskWorkers(client).run(time.sleep, [5, 5, 5, 5], lambda: next(stop, True)))
    assert found == []
    assert time.monotonic() - begun < 5


def die_once(path: str) -> int:
    """Kill the process of the first call; return 1 in the second."""
    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 1


def test_a_call_whose_worker_dies_is_repeated(client: Client, tmp_path: Path) -> None:
    # The function is sent by its name in a module that workers can import; this test module is none of theirs.
    client.upload_file(__file__)
    found: list[Any] = list(DaskWorkers(client).run(die_once, [str(tmp_path / "died")], lambda: False))
    assert [value for _, value in found] == [1]
    assert InputError is not None
