"""The names of a table's columns from the beginning of its file, without pandas: the shell completes them."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable
from pathlib import Path

from milpbn.data.separators import first_cells
from milpbn.errors import InputError
from milpbn.util.text_lines import content_lines

#: Number of bytes that are read at most, unpacked. The names of a table with a longer header are not found.
BEGINNING = 1 << 16
_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S[^\s{]*))""", re.IGNORECASE
)


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of the columns; none if the beginning of the file does not have them.

    The file is in one of the formats `HEADERS`, also with ``.gz``. Pipes and devices are not read.

    Raises
    ------
    OSError, EOFError, zlib.error
        If the file cannot be read or unpacked.
    """
    path = Path(path)
    packed = path.name.lower().endswith(".gz")
    read = HEADERS.get(Path(path.name[:-3] if packed else path.name).suffix.lower())
    if read is None or not path.is_file():
        return []
    with gzip.open(path) if packed else path.open("rb") as file:
        data = file.read(BEGINNING)
    text = data.decode("utf-8-sig", errors="replace").lstrip("\r\n")
    lines = re.split(r"\r\n|\r|\n", text)
    if len(data) == BEGINNING:
        lines.pop()  # it is cut off
    return [name for name in map(str.strip, read(lines)) if name]


def _delimited(lines: list[str], separator: str | None = None) -> list[str]:
    try:
        return first_cells("\n".join(lines), separator)
    except InputError:  # a quoted cell is cut off
        return first_cells(lines[0], separator)


def _arff(lines: list[str]) -> list[str]:
    found = []
    for _, line in content_lines("\n".join(lines), "%"):
        match = _ATTRIBUTE.match(line)
        if match is not None:
            found.append(re.sub(r"\\(.)", r"\1", match[1] or match[2] or match[3]))
        elif line.lower().startswith("@data"):
            break
    return found


def _dat(lines: list[str]) -> list[str]:
    if lines and lines[0].lstrip().startswith(("@", "%")):
        return _arff(lines)  # KEEL calls its files .dat
    rows = [line.split() for _, line in content_lines("\n".join(lines))]
    if len(rows) > 1 and rows[0] == [str(len(rows[1]))]:
        del rows[0]  # the number of columns
    return rows[0] if rows else []


#: By the ending of a file's name: the function from its first lines to the names.
HEADERS: dict[str, Callable[[list[str]], list[str]]] = {
    ".csv": _delimited,
    ".tsv": lambda lines: _delimited(lines, "\t"),
    ".arff": _arff,
    ".dat": _dat,
}
