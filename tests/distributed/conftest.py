"""A cluster of two worker processes for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("distributed")

from distributed import Client

from milpbn.distributed.clusters import local_workers


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    with local_workers(2) as here:
        here.client.wait_for_workers(2, timeout=120)
        yield here.client
