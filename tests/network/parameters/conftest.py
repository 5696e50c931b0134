"""Fits in one thread, as `refit` runs them: more threads slow down products of short vectors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from milpbn.util.threads import library_threads


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    with library_threads(1):
        yield
