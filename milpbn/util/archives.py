"""Reading NumPy archives of unknown origin: memory is allocated only after a size is known to be acceptable."""

from __future__ import annotations

import math
import os
import zipfile
from typing import IO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.util.memory import format_bytes, require_memory

#: Accepted compression methods; decompression takes little memory with them.
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: Accepted kinds of dtypes: booleans, integers, floating-point numbers, text.
KINDS = "biufU"


def read_arrays(path: str | os.PathLike[str], largest: int) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of an ``.npz`` file of unknown origin.

    No more bytes of a member are read than the archive's directory states, and the array that the member's header
    describes must have exactly that size. A small file therefore cannot make the reader allocate a large array.

    Parameters
    ----------
    path : path
        Path of the file.
    largest : int
        Largest number of bytes of all arrays together.

    Returns
    -------
    dict
        Read-only arrays of booleans, numbers and text, by name.

    Raises
    ------
    InputError
        If the arrays are larger than `largest` or than the available memory. The text about `largest` begins with
        "it", so that the caller can put the name of the file in front.
    Exception
        Of many types, if the file is not such an archive.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if total > largest:
            raise InputError(
                f"it claims to hold {format_bytes(total)}, but such files have at most {format_bytes(largest)}"
            )
        # Three times: the compressed bytes, the array, and a copy of another dtype.
        require_memory(3 * total, "reading the file", "take a machine with more memory")
        arrays: dict[str, NDArray[np.generic]] = {}
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in arrays or member.compress_type not in COMPRESSIONS:
                raise ValueError(f"{name} occurs twice, or its compression method is not accepted")
            with archive.open(member) as file:
                arrays[name] = _read(file, member.file_size)
    return arrays


def _read(file: IO[bytes], size: int) -> NDArray[np.generic]:
    """Return the array in a member of `size` bytes; raise ValueError if the array has another size."""
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[npy.read_magic(file)]
    shape, by_columns, dtype = read_header(file)
    if dtype.kind not in KINDS or min(shape, default=0) < 0:
        raise ValueError("it is not an array of numbers or text")
    content = math.prod(shape) * dtype.itemsize
    if file.tell() + content != size:
        raise ValueError("its size is not the stated one")
    values = np.frombuffer(file.read(content), dtype=dtype)
    return values.reshape(shape, order="F" if by_columns else "C")
