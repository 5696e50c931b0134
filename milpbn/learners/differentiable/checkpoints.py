"""Files with the state of a training run, from which the run continues with the same result."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.util.archives import read_arrays
from milpbn.util.atomic import atomic_path

#: Largest size of the history of all epochs in a checkpoint, in bytes; a character takes four.
LARGEST_HISTORY = 64 * 2**20


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
        The file, an ``.npz`` archive with any name.
    run : str
        `fingerprint` of the run.
    state : mapping of str to arrays
        Everything that training changes: parameters, moments, sums over finished runs.
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
    """Read a checkpoint into the arrays of `state`, and return the history, which is empty if there is no file.

    Raises
    ------
    InputError
        If the file is not a checkpoint, or belongs to another run.
    """
    if not Path(path).exists():
        return []
    advice = "name another file, or delete it if it is an old checkpoint."
    largest = 2 * sum(array.nbytes for array in state.values()) + LARGEST_HISTORY
    try:
        try:
            arrays = read_arrays(path, largest)
        except InputError as error:  # its sentence begins with "it"
            raise InputError(
                f"The checkpoint {str(path)!r} cannot be used: {str(error).rstrip('.')}; {advice}"
            ) from None
        if str(arrays["run"]) != run:
            raise InputError(
                f"The checkpoint {str(path)!r} belongs to a run with other data or options; {advice}"
            )
        history = _history(str(arrays["history"]))
        for name, array in state.items():
            if arrays[name].dtype != array.dtype or arrays[name].shape != array.shape:
                raise ValueError(f"{name} has another shape or dtype")
            if not np.isfinite(arrays[name]).all():
                raise ValueError(f"{name} is not finite")
    except (InputError, MemoryError):
        raise
    except OSError as error:
        raise InputError(f"The checkpoint {str(path)!r} cannot be read ({error}); {advice}") from None
    except (
        Exception
    ):  # zip, zlib, npy, tokenizer and JSON errors; NumPy's messages would advise to trust the file
        raise InputError(f"The file {str(path)!r} is not a complete checkpoint; {advice}") from None
    for name, array in state.items():
        array[...] = arrays[name]
    return history


def _history(text: str) -> list[list[Any]]:
    """Return for every finished epoch its number, its loss, and the error on held-out samples or None."""
    history: list[list[Any]] = json.loads(text)
    for i, (number, value, error) in enumerate(history):
        if number != i + 1 or not isinstance(value, float) or not isinstance(error, float | None):
            raise ValueError(f"epoch {i + 1} has another number or other types")
    return history
