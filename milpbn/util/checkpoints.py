"""Checkpoints: files from which long work goes on after a stop, with the same result.

A search, a training and a comparison write the same kind of file, an archive with a header and a checksum
(`milpbn.util.archives.write_sealed`). It holds plain numbers only, so that reading one of unknown origin runs no code.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.util.archives import Source, read_sealed, write_sealed
from milpbn.util.jsonable import parse_object
from milpbn.version import __version__

#: Version of the file format.
VERSION = 1
#: Largest number of bytes of a checkpoint's arrays. A larger state is not saved.
LARGEST = 2 * 2**30
#: What to do about a checkpoint that cannot be used; it ends the sentence.
ADVICE = "name another file, or delete it if it is an old checkpoint."


class Checkpoint(NamedTuple):
    """The contents of a checkpoint: its file, JSON values, and arrays, which are read-only."""

    path: str
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def save_checkpoint(
    path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, Source]
) -> None:
    """Write a checkpoint atomically.

    It is an ``.npz`` archive with any name. The `kind` is the work that goes on from it, ``search``, ``training`` or
    ``comparison``; header and arrays are as for `milpbn.util.archives.write_sealed`. Of a search and of a training, the
    header's ``seconds`` are those that it has taken (`seconds_of`). `InputError` if the file cannot be written.
    """
    known = {"kind": kind, "version": VERSION, "milpbn": __version__}
    write_sealed(path, {**known, **header}, arrays, compressed=False)


def load_checkpoint(path: str | os.PathLike[str], kind: str | None, largest: int) -> Checkpoint | None:
    """Read a checkpoint; return None if there is no such file.

    The `kind` is the work that will go on from it, None for any, and `largest` the largest number of bytes of its
    arrays. `InputError` if the file is not a checkpoint, was changed after it was written, or is one of another kind or
    version.
    """
    if not Path(path).exists():
        return None
    name = f"The checkpoint {str(path)!r}"
    try:
        found = read_sealed(path, largest)
    except InputError as error:  # its sentence begins with "it"
        raise InputError(f"{name} cannot be used: {str(error).rstrip('.')}; {ADVICE}") from None
    except MemoryError:
        raise
    except OSError as error:
        raise InputError(f"{name} cannot be read ({error}); {ADVICE}") from None
    except Exception:  # zip, zlib, npy and tokenizer errors; NumPy's messages would advise to trust the file
        raise incomplete(path) from None
    if not found.unchanged:
        raise InputError(
            f"The file {str(path)!r} is not a complete checkpoint: it was changed after it was written; {ADVICE}"
        )
    try:
        header = parse_object(found.header)
    except InputError:
        raise incomplete(path) from None
    if not isinstance(header.get("kind"), str):  # such as a certificate
        raise incomplete(path)
    if kind is not None and header.get("kind") != kind:
        raise InputError(
            f"{name} is that of another kind of work ({header.get('kind')}, not {kind}); {ADVICE}"
        )
    if (header.get("version"), header.get("milpbn")) != (VERSION, __version__):
        raise InputError(
            f"{name} was written by milpbn {header.get('milpbn')}, and this is milpbn {__version__}; go on with that "
            "version, or name another file."
        )
    return Checkpoint(str(path), header, found.arrays)


def seconds_of(path: str | os.PathLike[str]) -> float:
    """Return how many seconds the work has taken that a checkpoint keeps; 0 if there is no such file.

    `InputError` as `load_checkpoint`.
    """
    found = load_checkpoint(path, None, LARGEST)
    seconds = 0.0 if found is None else found.header.get("seconds")
    if not isinstance(seconds, float) or not 0.0 <= seconds < math.inf:
        raise incomplete(path)
    return seconds


def difference(theirs: Any, ours: Mapping[str, Any]) -> str | None:
    """Return in words what differs between two descriptions of long work; None if nothing does.

    `theirs` is the description in a checkpoint, of unknown origin, `ours` that of the work that would go on from it:
    ``data``, a hash; ``score`` and ``options``, values by name; and what else must be the same, which is called
    constraints.
    """
    if not isinstance(theirs, dict) or theirs.get("data") != ours["data"]:
        return "on other data"
    for key, prefix in (("score", "the score's "), ("options", "")):
        own, other = ours[key], theirs.get(key)
        other = other if isinstance(other, dict) else {}
        for name in {**own, **other}:
            if other.get(name) != own.get(name):
                return f"with another value of {prefix}{name} ({_show(other.get(name))}, not {_show(own.get(name))})"
    return None if theirs == ours else "with other constraints"


def _show(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "none" if value is None else str(value)


def absent(path: str | os.PathLike[str]) -> InputError:
    """Return the error about a checkpoint that ``resume`` needs and that is not there."""
    return InputError(
        f"There is no checkpoint {str(path)!r} to go on from; name the file that --checkpoint wrote, or leave out "
        "--resume (resume)."
    )


def incomplete(path: str | os.PathLike[str]) -> InputError:
    """Return the error about a file that is not a checkpoint, or whose contents do not fit together."""
    return InputError(f"The file {str(path)!r} is not a complete checkpoint; {ADVICE}")
