"""What the writers of model and start files share: suffixes, atomic files, exact numbers."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.util.atomic import atomic_path

#: Suffixes of model files.
SUFFIXES: Final = (".lp", ".lp.gz", ".mps", ".mps.gz")


@contextlib.contextmanager
def open_text(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a UTF-8 text file that appears under its name only when it is complete.

    The file is gzipped if its name ends in ``.gz``, without a time stamp, so that equal content gives equal bytes.
    InputError if the file cannot be written, see :func:`milpbn.util.atomic.atomic_path`.
    """
    with atomic_path(path) as temporary, contextlib.ExitStack() as stack:
        raw: BinaryIO = stack.enter_context(open(temporary, "wb"))
        if os.fspath(path).lower().endswith(".gz"):
            packed = gzip.GzipFile(filename="", mode="wb", compresslevel=3, fileobj=raw, mtime=0)
            raw = stack.enter_context(cast(BinaryIO, packed))
        yield stack.enter_context(io.TextIOWrapper(raw, encoding="utf-8", newline="\n"))


def model_stem(path: str | os.PathLike[str]) -> Path:
    """Return the path of a model file without its suffix, one of `SUFFIXES`; InputError if it has another suffix."""
    path = Path(path)
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if path.name.lower().endswith(suffix) and len(path.name) > len(suffix):
            return path.with_name(path.name[: -len(suffix)])
    raise InputError(f"A model file ends in {', '.join(SUFFIXES)}; {str(path)!r} does not.")


def number_strings(values: NDArray[np.float64]) -> list[str]:
    """Format each float as the shortest decimal that is read back as the same float, of at most 17 digits.

    Integers have no decimal point; negative zero is ``0``; infinities are ``inf`` and ``-inf``. Equal values are
    formatted once, which makes it fast to write large models.
    """
    # Adding 0.0 turns negative zero into zero.
    unique, inverse = np.unique(np.asarray(values, dtype=np.float64) + 0.0, return_inverse=True)
    texts = [repr(value).removesuffix(".0") for value in unique.tolist()]
    return [texts[i] for i in inverse.tolist()]
