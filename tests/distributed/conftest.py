"""A cluster of two worker processes for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

pytest.importorskip("distributed")

from distributed import Client

from milpbn.distributed.clusters import local_workers

#: What ends the cluster, and its client.
cluster, clients = ExitStack(), list[Client]()


@pytest.fixture
def client() -> Client:
    if not clients:
        here = cluster.enter_context(local_workers(2))
        here.client.wait_for_workers(2, timeout=120)
        clients.append(here.client)
    return clients[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """End the cluster with the last test of this folder: without work it takes a tenth of a core."""
    yield
    if nextitem is None or nextitem.path.parent != item.path.parent:
        clients.clear()
        cluster.close()
