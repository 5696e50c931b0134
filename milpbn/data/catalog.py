"""The catalog: a folder of known data sets ``<name>.csv.gz``, which its ``catalog.json`` describes.

An entry has the keys ``continuous`` (names of the continuous columns; all others are nominal), ``missing``
("drop row", or "value" for a state of its own), ``train_rows`` (number of training rows, which come first;
null without a split) and ``sha256`` (of the compressed file). The class is the last column.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milpbn.data.options import Missing
from milpbn.errors import InputError
from milpbn.util.raw_files import read_bytes

#: Name of the file that describes a catalog.
CATALOG = "catalog.json"
#: Environment variable that names the catalog's folder.
DATA_DIR_VARIABLE = "MILPBN_DATA"

_MISSING: dict[str, Missing] = {"drop row": "drop", "value": "state"}


@dataclass(frozen=True)
class CatalogEntry:
    """One known data set: its file, whose hash has been checked, and what the catalog says of it (see above)."""

    name: str
    path: Path
    continuous: tuple[str, ...]
    missing: Missing
    train_rows: int | None


def find_data_dir(data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the catalog's folder: the argument, else the environment variable `DATA_DIR_VARIABLE`, else None."""
    chosen = data_dir or os.environ.get(DATA_DIR_VARIABLE)
    return Path(chosen) if chosen else None


def find_folder(data_dir: Path | None, files: Iterable[str]) -> Path | None:
    """Return the folder that has all these files: the catalog's folder or one inside it; None if there is none."""
    if data_dir is None:
        return None
    inside = sorted(path for path in data_dir.iterdir() if path.is_dir()) if data_dir.is_dir() else []
    wanted = list(files)
    return next((one for one in (data_dir, *inside) if all((one / f).is_file() for f in wanted)), None)


def catalog_names(data_dir: Path) -> list[str]:
    """Return the names of a catalog, sorted.

    Raises `InputError` if the folder has no readable ``catalog.json``.
    """
    return sorted(_read_catalog(data_dir))


def find_entry(name: str, data_dir: Path) -> CatalogEntry | None:
    """Return the catalog entry of a name and check its file; return None if the catalog lacks the name.

    Raises `InputError` if the catalog cannot be read or is malformed, or if the file is absent or has another hash.
    """
    entry = _read_catalog(data_dir).get(name)
    if entry is None:
        return None
    path = data_dir / f"{name}.csv.gz"
    result = _parse_entry(name, path, entry, data_dir)
    try:
        digest = hashlib.sha256(read_bytes(path)).hexdigest()
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: the name holds a null character
        raise InputError(
            f"The catalog knows {name!r}, but its file {str(path)!r} cannot be read: "
            f"{getattr(error, 'strerror', None) or error}."
        ) from None
    if digest != entry.get("sha256", digest):
        raise InputError(
            f"The file {str(path)!r} is not the one that the catalog describes (its SHA-256 differs); restore "
            "it, or read a copy of it by its path."
        )
    return result


def _read_catalog(data_dir: Path) -> dict[str, Any]:
    path = data_dir / CATALOG
    try:
        catalog = json.loads(read_bytes(path).decode("utf-8"))
    except InputError:
        raise
    except OSError as error:
        raise InputError(
            f"The catalog {str(path)!r} cannot be read ({error.strerror}); check --data-dir and the "
            f"environment variable {DATA_DIR_VARIABLE}."
        ) from None
    except RecursionError:
        raise InputError(f"The catalog {str(path)!r} is too deeply nested; correct it.") from None
    except ValueError as error:
        raise InputError(f"The catalog {str(path)!r} is not valid JSON: {error}.") from None
    if not isinstance(catalog, dict):
        raise InputError(f"The catalog {str(path)!r} must be a JSON object from names to entries.")
    return catalog


def _parse_entry(name: str, path: Path, entry: Any, data_dir: Path) -> CatalogEntry:
    """Check the form of an entry."""

    def refuse(key: str, expected: str) -> InputError:
        return InputError(f"In {str(data_dir / 'catalog.json')!r}, {key!r} of {name!r} must be {expected}.")

    if not isinstance(entry, dict):
        raise InputError(f"In {str(data_dir / 'catalog.json')!r}, the entry {name!r} must be a JSON object.")
    continuous = entry.get("continuous", [])
    if not isinstance(continuous, list) or not all(isinstance(c, str) for c in continuous):
        raise refuse("continuous", "a list of column names")
    missing = entry.get("missing", "drop row")
    if not isinstance(missing, str) or missing not in _MISSING:
        raise refuse("missing", " or ".join(repr(m) for m in _MISSING))
    train_rows = entry.get("train_rows")
    if train_rows is not None and (type(train_rows) is not int or train_rows < 1):
        raise refuse("train_rows", "null or a positive integer")
    return CatalogEntry(name, path, tuple(continuous), _MISSING[missing], train_rows)
