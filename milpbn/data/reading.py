"""Reading files into raw data frames: CSV, TSV, ARFF, GOBNILP's .dat and Parquet, each also compressed with gzip.

Cells of text files stay text here, so that no library guesses types, dates or missing values before
`milpbn.data.kinds` decides on them.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from milpbn.data.arff import parse_arff
from milpbn.data.column import Column
from milpbn.data.dat import parse_dat
from milpbn.data.frames import frame_of_arrow
from milpbn.data.header import find_delimiter
from milpbn.data.row_index import fit_header, name_unnamed
from milpbn.errors import InputError
from milpbn.util.extras import import_extra
from milpbn.util.memory import format_bytes
from milpbn.util.raw_files import most_unpacked, read_bytes, shown_name, unpack_gzip


def read_frame(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table's file.

    The ending of the name determines the format (`READERS`, each also with ``.gz``). Text is UTF-8, with
    or without a byte order mark, with any line ends. The first line of CSV and TSV files holds the column
    names. The separator of ``.csv`` files is the comma, the semicolon or the tab, whichever is most frequent
    in the first line. Blank lines are skipped.

    Parameters
    ----------
    path : path-like
        Path of the file.

    Returns
    -------
    DataFrame
        Raw cells with the index 0 .. M - 1. Columns of CSV and TSV files are text. Nominal attributes of ARFF
        files are categoricals with the declared values, and others are text. Columns of .dat files are categoricals.
        Parquet keeps its types; ``attrs`` has the names of the columns that are the index of the data frame in the file
        (`milpbn.data.row_index.DECLARED_INDEX`).

    Raises
    ------
    InputError
        If the file does not exist, is a folder, or cannot be read, decompressed, decoded or parsed; or if it
        has an unknown ending, rows of different lengths, no rows, or empty or duplicate column names.
    """
    path = Path(path)
    extension = path_extension(path)
    if extension is None:
        known = ", ".join(READERS)
        raise InputError(
            f"The ending of {str(path)!r} is unknown; rename the file to one of {known}, each also with .gz."
        )
    data = _read_bytes(path)
    where = repr(str(path))
    return check_frame(READERS[extension](data, where), where)


def path_extension(path: Path) -> str | None:
    """Return the one of `READERS` that a file name has, without ``.gz``; None for another ending."""
    name = path.name.lower().removesuffix(".gz")
    return next((e for e in READERS if name.endswith(e)), None)


def path_stem(path: Path) -> str:
    """Return the file name without its format's ending: ``letter`` for ``letter.csv.gz``.

    Bytes of the name that are not UTF-8 become U+FFFD, so that every file and terminal can hold the name.
    """
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return shown_name(Path(name).stem)


def check_frame(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return the frame with column names as text and the index 0 .. M - 1.

    First columns without a name, and empty ones, are called ``Unnamed: 0`` and so on (`name_unnamed`).

    Raises
    ------
    InputError
        If the name of another column is empty, a name occurs twice, or there are no rows.
    """
    frame = frame.reset_index(drop=True)
    names = ["" if c is None or c is pd.NA or c != c else str(c).strip() for c in frame.columns]
    empty = [not name and bool(Column.of(frame.iloc[:, k]).missing.all()) for k, name in enumerate(names)]
    names = name_unnamed(names, empty, where)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(
                f"The column name {name!r} occurs more than once in {where}; names must differ, and the "
                "first line of a text file must hold them."
            )
        seen.add(name)
    if frame.empty:
        raise InputError(f"There are no rows in {where}; a table needs column names and at least one row.")
    return frame.set_axis(names, axis=1)


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


def _decode(data: bytes, where: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"The file {where} is not UTF-8 text (byte 0x{data[error.start]:02x} in line {line}); save it in "
            "the encoding UTF-8."
        ) from None
    if "\0" in text:
        raise InputError(f"The file {where} holds null characters; it is not a UTF-8 text file.")
    return text


def _parse_delimited(text: str, delimiter: str | None, where: str) -> pd.DataFrame:
    """Parse delimited text whose first line holds the column names; None finds the delimiter in that line."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter or find_delimiter(text), strict=True
    )
    header: list[str] = []
    rows: list[Sequence[str]] = []
    ends: list[int] = []  # the line in which each row ends
    began = 1  # line in which the row that is read begins
    try:
        for row in reader:
            began = reader.line_num + 1
            if not row:
                continue
            if not header:
                header = row
            else:
                rows.append(row)
                ends.append(reader.line_num)
    except csv.Error as error:
        last = reader.line_num
        lines = f"Line {last}" if last == began else f"The row in lines {began} to {last}"
        raise InputError(
            f"{lines} of {where} cannot be parsed: {error}; check the quotation marks."
        ) from None
    header = fit_header(header, rows)
    for line, cells in zip(ends, rows, strict=True):
        if len(cells) != len(header):
            raise InputError(
                f"Line {line} of {where} has {len(cells)} cells, but there are {len(header)} column names; correct the "
                "line."
            )
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    return frame_of(header, [np.array(column, dtype=object) for column in columns])


def frame_of(names: Sequence[str], columns: Sequence[np.ndarray | pd.Categorical]) -> pd.DataFrame:
    """Return a frame of the given columns without inferring types; names need not be unique yet."""
    series = [
        pd.Series(column, dtype=None if isinstance(column, pd.Categorical) else object) for column in columns
    ]
    return pd.concat(series, axis=1).set_axis(list(names), axis=1) if series else pd.DataFrame()


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


#: By the ending of a file's name: the function that takes the file's bytes, and its name in error messages, and returns
#: a data frame.
READERS: dict[str, Callable[[bytes, str], pd.DataFrame]] = {
    ".csv": lambda data, where: _parse_delimited(_decode(data, where), None, where),
    ".tsv": lambda data, where: _parse_delimited(_decode(data, where), "\t", where),
    ".arff": lambda data, where: parse_arff(_decode(data, where), where),
    ".dat": lambda data, where: parse_dat(_decode(data, where), where),
    ".parquet": _parse_parquet,
}
