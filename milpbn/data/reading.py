"""Reading files into raw data frames: CSV, TSV, ARFF, GOBNILP's .dat and Parquet, each also compressed with gzip.

Cells of text files stay text here, so that no library guesses types, dates or missing values before
`milpbn.data.kinds` decides on them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from milpbn.data.arff import is_arff, parse_arff
from milpbn.data.dat import parse_dat
from milpbn.data.delimited import parse_delimited
from milpbn.data.frames import frame_of_arrow
from milpbn.data.options import TEXT_OPTIONS, TextFormat
from milpbn.data.raw_table import RawTable, check_frame
from milpbn.errors import InputError
from milpbn.util.extras import import_extra
from milpbn.util.memory import format_bytes
from milpbn.util.raw_files import (
    ending_of,
    marked_encoding,
    most_unpacked,
    read_bytes,
    shown_name,
    unpack_gzip,
)

Reader: TypeAlias = Callable[[bytes, str, TextFormat, Collection[str]], RawTable]

#: Endings of files whose cells are text of any meaning.
UNTYPED = (".csv", ".tsv", ".arff")
#: Endings of files of local scores, which are no tables.
SCORES = (".jkl", ".pss")


def read_file(
    path: str | os.PathLike[str], form: TextFormat | None = None, known: Collection[str] = ()
) -> RawTable:
    """Read a table's file.

    The ending of the name determines the format (`READERS`, each also with ``.gz``). Text is UTF-8, or UTF-16 or UTF-32
    with a byte order mark, with any line ends. How the cells of CSV files are separated is found from all lines
    (`milpbn.data.separators.divide`), and so is whether the first one holds the names of the columns. Blank lines are
    skipped. `known` are names of columns that a classifier knows; then there may be no rows. The index of the frame is
    0 .. M - 1. Columns of CSV and TSV files are text. Nominal attributes of ARFF files are categoricals with the
    declared values, and others are text. Columns of .dat files are categoricals. Parquet keeps its types; ``attrs`` has
    the names of the columns that are the index of the data frame in the file
    (`milpbn.data.row_index.DECLARED_INDEX`). Raises `InputError` if the file does not exist, is a folder, or cannot be
    read, decompressed, decoded or parsed; if an option is not for its format; or if it has an unknown ending, rows of
    different lengths, no rows, or empty or duplicate column names.
    """
    form = form or TextFormat()
    path = Path(path)
    extension = path_extension(path)
    if extension is None:
        known = ", ".join(READERS)
        if str(path).lower().removesuffix(".gz").endswith(SCORES):
            raise InputError(
                f"{str(path)!r} is a file of local scores, which only milpbn solve and milpbn verify take; give a "
                "table."
            )
        raise InputError(
            f"The ending of {str(path)!r} is unknown; save the table as one of {known}, each also with .gz, or rename "
            "its file if it is one."
        )
    data = _read_bytes(path)
    where = repr(str(path))
    form.require_only(OPTIONS[extension], f"{extension} files")
    raw = READERS[extension](data, where, form, known)
    frame = check_frame(raw.frame, where, may_be_empty=bool(known))
    return replace(raw, frame=frame, name=path_stem(path), untyped=extension in UNTYPED)


def path_extension(path: Path) -> str | None:
    """Return the one of `READERS` that a file name has, without ``.gz``; None for another ending."""
    return ending_of(path.name.lower().removesuffix(".gz"), READERS)


def path_stem(path: Path) -> str:
    """Return the file name without its format's ending: ``letter`` for ``letter.csv.gz``.

    Bytes of the name that are not UTF-8 become U+FFFD, so that every file and terminal can hold the name.
    """
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return shown_name(Path(name).stem)


def _read_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder, not a file; name the table's file in it.")
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}; check the name.") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: the name holds a null character
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"The file {str(path)!r} cannot be read: {reason}.") from None
    if data and path.name.lower().endswith(".gz"):
        data = unpack_gzip(data, repr(str(path)))
    if not data:
        raise InputError(f"The file {str(path)!r} is empty; a table needs column names and at least one row.")
    return data


#: How files begin that are no text files of tables, and what they are.
_NO_TABLES = {
    b"\x1f\x8b": "compressed with gzip; call it .csv.gz",
    b"BZh91AY&SY": "compressed with bzip2; unpack it",
    b"\xfd7zXZ": "compressed with xz; unpack it",
    b"PK\x03\x04": "a zip archive or a workbook of Excel; unpack it, or save the sheet as CSV",
    b"PAR1\x15": "Parquet; call it .parquet",
    b"version https://git-lfs.github.com/": "a pointer of Git LFS; fetch the file itself with git lfs pull",
    b"<!DOCTYPE": "a web page; download the table itself",
}


def _decode(data: bytes, where: str, form: TextFormat) -> str:
    """Return the text of a file in the encoding that the user gives, that of its byte order mark, or UTF-8."""
    for mark, what in _NO_TABLES.items():
        if data[: len(mark)].upper() == mark.upper():
            raise InputError(f"The file {where} is no table, but {what}.")
    encoding = form.encoding or marked_encoding(data)
    try:
        text = data.decode(encoding).removeprefix("\ufeff").removesuffix("\x1a")
        text = text.replace("\n\ufeff", "\n")  # where files were put together
    except UnicodeError as error:  # some encodings do not say where
        start = min(getattr(error, "start", 0), len(data) - 1)
        line = data.count(b"\n", 0, start) + 1
        shown = "UTF-8" if encoding == "utf-8-sig" else encoding
        raise InputError(
            f"The file {where} is not {shown} text (byte 0x{data[start]:02x} in line {line}); give its encoding, "
            "such as --encoding cp1252 for Windows in the west of Europe (encoding in Python), or save it in UTF-8."
        ) from None
    if "\0" in text:
        raise InputError(
            f"The file {where} holds null characters; it is not a UTF-8 text file. If it is UTF-16, give --encoding "
            "utf-16-le or utf-16-be."
        )
    return text


def _parse_parquet(data: bytes, where: str) -> pd.DataFrame:
    pyarrow = import_extra("pyarrow", "parquet", f"Reading {where}")
    parquet = import_extra("pyarrow.parquet", "parquet", f"Reading {where}")
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(data))
        rows, columns = file.metadata.num_rows, file.metadata.num_columns
        if rows * columns > most_unpacked(len(data)):  # a repeated value takes almost no room in the file
            raise InputError(
                f"The file {where} of {format_bytes(len(data))} declares {rows} rows of {columns} columns; to read it "
                "all the same, write it as CSV and name that file."
            )
        table = file.read()
        table.validate(full=True)  # finds text that is not UTF-8
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"The file {where} cannot be read as Parquet: {str(error).rstrip('.')}.") from None
    return frame_of_arrow(table, where)


def _reader(parse: Callable[[str, str], pd.DataFrame]) -> Reader:
    """Return the reader of a text format that says itself where its cells and names are."""
    return lambda data, where, form, known: RawTable(parse(_decode(data, where, form), where), where)


def _delimited(separator: str | None) -> Reader:
    return lambda data, where, form, known: parse_delimited(
        _decode(data, where, form), form, where, separator, known
    )


#: By the ending of a file's name: the function that takes the file's bytes, its name in error messages, the options of
#: text files and the names of columns that a classifier knows, and returns the table.
READERS: dict[str, Reader] = {
    ".csv": _delimited(None),
    ".tsv": _delimited("\t"),
    ".arff": _reader(parse_arff),
    ".dat": _reader(lambda text, where: (parse_arff if is_arff(text) else parse_dat)(text, where)),
    ".parquet": lambda data, where, form, known: RawTable(_parse_parquet(data, where), where),
}

#: The options of text files that each format has.
OPTIONS = {
    ".csv": TEXT_OPTIONS,
    ".tsv": TEXT_OPTIONS,
    ".arff": ("encoding", "decimal", "thousands", "na_values"),
    ".dat": ("encoding", "na_values"),
    ".parquet": ("na_values",),
}
