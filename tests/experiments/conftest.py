"""A catalog of two small data sets: one with a test set, one for cross-validation."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest


def write_set(folder: Path, name: str, text: str, **entry: object) -> None:
    """Add a data set to a catalog."""
    data = gzip.compress(text.encode())
    (folder / f"{name}.csv.gz").write_bytes(data)
    path = folder / "catalog.json"
    catalog = json.loads(path.read_text()) if path.exists() else {}
    catalog[name] = {"sha256": hashlib.sha256(data).hexdigest(), "missing": "drop row", **entry}
    path.write_text(json.dumps(catalog))


def random_text(seed: int, rows: int, classes: str) -> str:
    """Return a table with one continuous and two nominal features that tell something about the class."""
    rng = np.random.default_rng(seed)
    lines = ["size,colour,shape,kind"]
    for _ in range(rows):
        c = rng.integers(len(classes))
        size = round(float(rng.normal(2.0 * c)), 3)
        colour = "rgb"[(c + int(rng.random() < 0.3)) % 3]
        lines.append(f"{size},{colour},{'xy'[int(rng.random() < 0.5)]},{classes[c]}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """``split``: 60 training and 40 test rows of two classes; ``folded``: 50 rows of three classes."""
    folder = tmp_path / "catalog"
    folder.mkdir()
    write_set(folder, "split", random_text(1, 100, "pq"), continuous=["size"], train_rows=60)
    write_set(folder, "folded", random_text(2, 50, "pqr"), continuous=["size"], train_rows=None)
    return folder
