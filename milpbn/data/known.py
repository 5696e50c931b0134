"""The data sets of the papers' experiments: their sizes, where they can be had, and whether a folder has them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from milpbn.data.catalog import CATALOG, catalog_names, find_folder
from milpbn.errors import InputError

#: The file, beside this module; its rows are without those that the protocol leaves out because values are missing.
FILE = Path(__file__).with_name("known_sets.json")


@dataclass(frozen=True, kw_only=True)
class KnownSet:
    """What is known of a data set."""

    name: str
    #: Its size, without rows that are left out because values are missing.
    rows: int
    features: int
    classes: int
    #: Number of training rows, which come first; None for cross-validation, and where the split is not known.
    train_rows: int | None
    #: Address at which it can be had.
    source: str
    #: Of the contents with which `results/` was computed; None if the set is not among them.
    sha256: str | None
    note: str
    #: Whether there is a test set whose rows are not known.
    split_unknown: bool = False
    #: Its files; empty for a set of the catalog.
    files: tuple[str, ...] = ()

    def folder(self, data_dir: Path | None) -> Path | None:
        """Return the folder that has the set: `data_dir` or one inside it; None if there is none."""
        if self.files:
            return find_folder(data_dir, self.files)
        folder = find_folder(data_dir, [CATALOG, f"{self.name}.csv.gz"])
        return folder if folder is not None and self.name in catalog_names(folder) else None

    @property
    def protocol(self) -> str:
        """How accuracy is measured, in words."""
        if self.train_rows is not None:
            return f"test set: {self.train_rows:,} rows train, {self.rows - self.train_rows:,} test"
        return "test set" if self.split_unknown else "5-fold cross-validation"


@cache
def known_sets() -> Mapping[str, KnownSet]:
    """Return all known sets by name."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: KnownSet(name=name, **{**entry, "files": tuple(entry.get("files", ()))})
        for name, entry in found.items()
    }


def known_set(name: str) -> KnownSet:
    """Return a known set; InputError if there is none of this name."""
    if name not in known_sets():
        raise InputError(f"There is no known data set {name!r}; choose from {', '.join(known_sets())}.")
    return known_sets()[name]


def differences(
    known: KnownSet, rows: int, features: int, classes: int, train_rows: int | None
) -> Iterator[str]:
    """Yield in what a data set differs from the known one, in words."""
    found = {"rows": rows, "features": features, "classes": classes}
    for what, number in found.items():
        if number != getattr(known, what):
            yield f"{number:,} {what} instead of {getattr(known, what):,}"
    if train_rows != known.train_rows and not known.split_unknown:
        yield f"{_split(train_rows)} instead of {_split(known.train_rows)}"


def _split(train_rows: int | None) -> str:
    return "no split" if train_rows is None else f"{train_rows:,} training rows"
