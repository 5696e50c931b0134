"""The state of a training run as a file, from which it goes on as if it had never stopped."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.atomic import atomic_path
from milpbn.errors import InputError


def fingerprint(description: Any) -> str:
    """Return a hash of JSON values that describe a run: data, families, settings."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def save_checkpoint(
    path: str | os.PathLike[str], run: str, state: Mapping[str, NDArray[Any]], history: list[list[Any]]
) -> None:
    """Write a checkpoint atomically.

    Parameters
    ----------
    path : str or path-like
        An ``.npz`` archive, whatever its name.
    run : str
        `fingerprint` of the run.
    state : mapping of arrays
        All that training changes: parameters, moments, sums over finished runs.
    history : list
        One list of JSON values per finished epoch.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    arrays: dict[str, Any] = {"run": np.array(run), "history": np.array(json.dumps(history)), **state}
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)


def load_checkpoint(
    path: str | os.PathLike[str], run: str, state: Mapping[str, NDArray[Any]]
) -> list[list[Any]]:
    """Read a checkpoint into the arrays of `state` and return the history, empty where there is no file yet.

    Raises
    ------
    InputError
        If the file is no checkpoint, or one of another run.
    """
    if not Path(path).exists():
        return []
    advice = "name another file, or delete it if it is an old checkpoint, to start anew."
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("it is no .npz archive")
        with archive:
            if str(archive["run"]) != run:
                raise InputError(
                    f"The checkpoint {str(path)!r} belongs to a run with other data or options; {advice}"
                )
            for name, array in state.items():
                array[...] = archive[name]
            return json.loads(str(archive["history"]))
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"The checkpoint {str(path)!r} cannot be read ({error}); {advice}") from None
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile):
        # NumPy's own words advise to trust the file.
        raise InputError(f"The file {str(path)!r} is no whole checkpoint; {advice}") from None
