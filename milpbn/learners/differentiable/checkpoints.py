"""Files with the state of a training run, from which the run continues with the same result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.util.checkpoints import ADVICE, incomplete
from milpbn.util.checkpoints import load_checkpoint as read
from milpbn.util.checkpoints import save_checkpoint as write
from milpbn.util.saved_arrays import SavedArrays

KIND = "training"
#: Largest size of the history of all epochs in a checkpoint, in bytes.
LARGEST_HISTORY = 64 * 2**20


def save_checkpoint(
    path: str | os.PathLike[str],
    run: str,
    state: Mapping[str, NDArray[Any]],
    history: list[list[Any]],
    seconds: float = 0.0,
) -> None:
    """Write a checkpoint atomically.

    Parameters
    ----------
    run : str
        A hash of what describes the run.
    state : mapping of str to arrays
        Everything that training changes: parameters, moments, sums over finished runs.
    history : list
        One list of JSON values per finished epoch.
    seconds : float
        The seconds that the training has taken, those before its interruptions included.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    write(path, KIND, {"run": run, "history": history, "seconds": seconds}, state)


def load_checkpoint(
    path: str | os.PathLike[str], run: str, state: Mapping[str, NDArray[Any]]
) -> list[list[Any]]:
    """Read a checkpoint into the arrays of `state`, and return the history, which is empty if there is no file.

    Raises
    ------
    InputError
        If the file is not a checkpoint, or belongs to another run.
    """
    largest = 2 * sum(array.nbytes for array in state.values()) + LARGEST_HISTORY
    found = read(path, KIND, largest)
    if found is None:
        return []
    if found.header.get("run") != run:
        raise InputError(
            f"The checkpoint {found.path!r} belongs to a run with other data or options; {ADVICE}"
        )
    saved = SavedArrays(found.arrays)
    try:
        history = _history(found.header["history"])
        arrays = {name: saved.array(name, array.dtype, *array.shape) for name, array in state.items()}
    except (KeyError, TypeError, ValueError):
        raise incomplete(path) from None
    for name, array in state.items():
        array[...] = arrays[name]
    return history


def _history(history: list[list[Any]]) -> list[list[Any]]:
    """Return for every finished epoch its number, its loss, and the error on held-out samples or None."""
    for i, (number, value, error) in enumerate(history):
        if number != i + 1 or not isinstance(value, float) or not isinstance(error, float | None):
            raise ValueError(f"epoch {i + 1} has another number or other types")
    return history
