"""Small data sets for a catalog."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import numpy as np


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


def write_digits(folder: Path, name: str, *, folds: int = 1, side: int = 2, classes: int = 3) -> None:
    """Write an archive of discretised images, side x side pixels, that tell something about the class."""
    rng = np.random.default_rng(0)
    arrays = {}
    for fold in range(1, folds + 1):
        for part, rows in (("tr", 60), ("te", 30)):
            y = np.arange(rows) % classes
            noise = rng.integers(0, 2, (rows, side * side))
            arrays[f"x_{part}_fold{fold}"] = (1 + (y[:, None] + noise) % 3).astype(np.uint8)
            arrays[f"t_{part}_fold{fold}"] = y
    np.savez(folder / f"{name}.npz", **arrays)
