"""NumPy archives with a header and a checksum, and the reading of archives of unknown origin.

Certificates and checkpoints are such archives. Reading allocates memory only after a size is known to be acceptable.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.util.atomic import atomic_path
from milpbn.util.memory import format_bytes, require_memory

#: Accepted compression methods; decompression takes little memory with them.
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: Accepted kinds of dtypes: booleans, integers, floating-point numbers, text.
KINDS = "biufU"
#: Bytes that are hashed and written at once. Between two pieces the interpreter can react to a signal.
PIECE = 1 << 24

#: An array of an archive, or a function that returns it.
Source = NDArray[Any] | Callable[[], NDArray[Any]]


class Sealed(NamedTuple):
    """The contents of an archive that `write_sealed` wrote: JSON text, arrays, and whether the checksum is theirs."""

    header: str
    arrays: dict[str, NDArray[Any]]
    unchanged: bool


def write_sealed(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, Source],
    *,
    compressed: bool,
) -> None:
    """Write arrays, a header and a checksum of both as an ``.npz`` file, atomically.

    The checksum is the SHA-256 of all names, types, shapes and numbers. It is the array ``digest``, and the header's
    JSON text is the array ``header``. Equal contents make equal files.

    Parameters
    ----------
    header : mapping
        JSON values.
    arrays : mapping from str to array or function
        Arrays of the kinds `KINDS`. A function is called when its array is written, so that not all need be in
        memory at the same time.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    sources: dict[str, Source] = {**arrays, "header": text}
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    digest = hashlib.sha256()
    with atomic_path(path) as temporary, temporary.open("wb") as file, zipfile.ZipFile(file, "w") as archive:
        for name in sorted(sources):
            source = sources[name]
            values = np.asarray(source() if callable(source) else source, order="C")
            _write(archive, name, values, method, digest)
        seal = np.frombuffer(digest.digest(), dtype=np.uint8)
        _write(archive, "digest", seal, method, hashlib.sha256())


def _write(archive: zipfile.ZipFile, name: str, values: NDArray[Any], method: int, digest: Any) -> None:
    """Write one array to an archive, and add it to a hash."""
    member = zipfile.ZipInfo(f"{name}.npy")  # with a fixed date, so that equal contents make equal files
    member.compress_type = method
    with archive.open(member, "w", force_zip64=True) as file:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(values))
        for piece in _pieces(name, values, digest):
            file.write(piece)


def _pieces(name: str, values: NDArray[Any], digest: Any) -> Iterator[bytes]:
    """Yield the bytes of an array in pieces, and add them to a hash after the array's name, type and shape."""
    digest.update(f"{name} {values.dtype.str} {values.shape};".encode())
    flat = np.asarray(values, order="C").reshape(-1)
    step = max(1, PIECE // max(1, flat.dtype.itemsize))
    for begin in range(0, len(flat), step):
        piece = flat[begin : begin + step].tobytes()
        digest.update(piece)
        yield piece


def read_sealed(path: str | os.PathLike[str], largest: int) -> Sealed:
    """Return the contents of a file of unknown origin that should be one of `write_sealed`.

    No more bytes of a member are read than the archive's directory states, and the array that the member's header
    describes must have exactly that size. A small file therefore cannot make the reader allocate a large array. The
    arrays are read-only; `largest` is the largest number of bytes of all together. `InputError` if the arrays are
    larger than `largest` or than the available memory; its text begins with "it", so that the caller can put the name
    of the file in front. Exceptions of many types if the file is not such an archive.
    """
    arrays = _read_arrays(path, largest)
    seal = arrays.pop("digest", None)
    digest = hashlib.sha256()
    for name in sorted(arrays):
        for _ in _pieces(name, arrays[name], digest):
            pass
    unchanged = seal is not None and seal.tobytes() == digest.digest()
    return Sealed(arrays.pop("header").tobytes().decode(), arrays, unchanged)


def _read_arrays(path: str | os.PathLike[str], largest: int) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of an ``.npz`` file, read-only, of the kinds `KINDS`."""
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
