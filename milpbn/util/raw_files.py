"""Reading bytes of files of unknown origin, with limits on endless streams and on the size of unpacked archives."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Iterable
from pathlib import Path

from milpbn.errors import InputError
from milpbn.util.memory import format_bytes

#: Largest number of bytes that are read from a pipe or device, which may have no end.
LARGEST_STREAM = 1 << 28
#: Largest ratio of unpacked to packed size; tables have 5 to 50. Archives may always unpack to `SMALL` bytes.
LARGEST_RATIO = 100
SMALL = 1 << 24

#: Byte order marks and their encodings; that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: How an XML file names its encoding.
_DECLARED = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][\w.-]*)""")


def marked_encoding(data: bytes) -> str:
    """Return the encoding that a byte order mark names; that of UTF-8, with or without its mark, if none does."""
    return next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8-sig")


def decode(data: bytes, otherwise: str = "utf-8") -> str:
    """Return the text of a file by its byte order mark, as UTF-8, by its XML declaration, or in another encoding.

    The first that fits decides, since files of XML may have been saved in UTF-8 whatever they declare. Raises
    `UnicodeError` if none does.
    """
    declared = _DECLARED.match(data)
    encodings = [marked_encoding(data), *([declared[1].decode()] if declared else [])]
    for encoding in encodings:
        try:
            return data.decode(encoding)
        except (UnicodeError, LookupError):
            continue
    return data.decode(otherwise)


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file, pipe or device.

    `InputError` if a pipe or device gives more than `LARGEST_STREAM` bytes. `OSError` if the file cannot be read.
    `ValueError` if the path contains a null character.
    """
    with Path(path).open("rb") as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file.read()
        data = file.read(LARGEST_STREAM + 1)
    if len(data) > LARGEST_STREAM:
        raise InputError(
            f"{str(path)!r} is not a regular file and gives more than {format_bytes(LARGEST_STREAM)}; write its "
            "content to a file and name that file."
        )
    return data


def ending_of(path: str | os.PathLike[str], endings: Iterable[str]) -> str | None:
    """Return the one of the given endings that a file's name has, in any case of letters; None for another ending."""
    name = Path(path).name.lower()
    return next((ending for ending in endings if name.endswith(ending)), None)


def shown_name(name: str) -> str:
    """Return a file's name as text that can be encoded; its bytes that are not UTF-8 become U+FFFD."""
    return os.fsencode(name).decode(errors="replace")


def most_unpacked(packed: int) -> int:
    """Return the largest number of bytes, or cells of a table, to which a number of packed bytes may unpack."""
    return max(SMALL, LARGEST_RATIO * packed)


def unpack_gzip(data: bytes, where: str) -> bytes:
    """Return the unpacked content of a gzip file; `where` is its name in error messages.

    `InputError` if the archive is damaged, cut off, or unpacks to more than `most_unpacked` bytes.
    """
    most = most_unpacked(len(data))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            unpacked = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"The file {where} is not an intact gzip file ({error}); compress it again."
        ) from None
    if len(unpacked) > most:
        raise InputError(
            f"The file {where} unpacks to more than {format_bytes(most)}, {most // len(data)} times its size, which is "
            "unusual for a table; to read it all the same, unpack it with gunzip and name the plain file."
        )
    return unpacked
