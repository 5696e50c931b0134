"""A catalog of two small data sets: one with a test set, one for cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from experiments_common import random_text, write_set
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Keep scikit-learn from waiting actively for cores that other tests use; `run` does the same."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """``split``: 60 training and 40 test rows of two classes; ``folded``: 50 rows of three classes."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    write_set(folder, "split", random_text(1, 100, "pq"), continuous=["size"], train_rows=60)
    write_set(folder, "folded", random_text(2, 50, "pqr"), continuous=["size"], train_rows=None)
    return folder
