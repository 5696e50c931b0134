"""Reading files: CSV, TSV, ARFF and Parquet, each also gzip-compressed, into raw data frames.

Nothing is interpreted here: cells of text files stay text, so that no reader's guess at types, dates or
missing values stands between the file and the decisions of `milpbn.data.kinds`.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from milpbn.data.arff import parse_arff
from milpbn.errors import InputError

#: File name endings that can be read, each also with ".gz" behind it.
EXTENSIONS = (".csv", ".tsv", ".arff", ".parquet")


def read_frame(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table's file.

    The format follows from the name's ending (`EXTENSIONS`, each also with ``.gz``). Text is UTF-8, with
    or without a byte order mark, with any line ends. The first line of CSV and TSV holds the column
    names; ``.csv`` files may separate by commas, semicolons or tabs, whichever the first line holds most
    of; blank lines are skipped.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    DataFrame
        Raw cells with the index 0 .. M - 1: text for CSV and TSV; text and, for nominal attributes,
        categoricals with the declared values for ARFF; the stored types for Parquet.

    Raises
    ------
    InputError
        If the file does not exist, is a folder, cannot be read, decompressed, decoded or parsed, has an
        unknown ending, a row of another length, no rows, or empty or duplicate column names.
    """
    path = Path(path)
    extension = path_extension(path)
    if extension is None:
        known = ", ".join(EXTENSIONS)
        raise InputError(
            f"The ending of {str(path)!r} is unknown; rename the file to one of {known}, each also with .gz."
        )
    data = _read_bytes(path)
    where = repr(str(path))
    if extension == ".parquet":
        frame = _parse_parquet(data, where)
    elif extension == ".arff":
        frame = parse_arff(_decode(data, where), where)
    else:
        frame = _parse_delimited(_decode(data, where), "\t" if extension == ".tsv" else None, where)
    return check_frame(frame, where)


def path_extension(path: Path) -> str | None:
    """Return which of `EXTENSIONS` a file name has, ``.gz`` set aside, or None."""
    name = path.name.lower().removesuffix(".gz")
    return next((e for e in EXTENSIONS if name.endswith(e)), None)


def path_stem(path: Path) -> str:
    """Return the file name without its format's ending: ``letter`` for ``letter.csv.gz``."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return Path(name).stem


def check_frame(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return the frame with text column names and the index 0 .. M - 1, or refuse it.

    Raises
    ------
    InputError
        For empty or duplicate column names and for a table without rows.
    """
    names = ["" if c is None or c is pd.NA or c != c else str(c).strip() for c in frame.columns]
    seen: set[str] = set()
    for position, name in enumerate(names):
        if not name:
            raise InputError(f"Column {position + 1} of {where} has no name; give every column a name.")
        if name in seen:
            raise InputError(
                f"The column name {name!r} occurs more than once in {where}; names must differ, and the "
                "first line of a text file must hold them."
            )
        seen.add(name)
    if frame.empty:
        raise InputError(f"There are no rows in {where}; a table needs column names and at least one row.")
    return frame.set_axis(names, axis=1).reset_index(drop=True)


def _read_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder, not a file; name the table's file in it.")
    try:
        data = path.read_bytes()
        if path.name.lower().endswith(".gz"):
            data = gzip.decompress(data)
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}; check the name.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"The file {str(path)!r} is no intact gzip file ({error}); compress the table anew."
        ) from None
    except (OSError, ValueError) as error:  # ValueError: the name holds a null character
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"The file {str(path)!r} cannot be read: {reason}.") from None
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
        raise InputError(f"The file {where} holds null characters; it is no text file in the encoding UTF-8.")
    return text


def _parse_delimited(text: str, delimiter: str | None, where: str) -> pd.DataFrame:
    """Parse delimited text whose first line holds the names; without a delimiter, find it there."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter or _find_delimiter(text), strict=True
    )
    header: list[str] = []
    rows: list[Sequence[str]] = []
    try:
        for row in reader:
            if not row:
                continue
            if not header:
                header = row
            elif len(row) == len(header):
                rows.append(row)
            else:
                raise InputError(
                    f"Line {reader.line_num} of {where} has {len(row)} cells, but there are {len(header)} "
                    "column names; correct the line."
                )
    except csv.Error as error:
        raise InputError(f"Line {reader.line_num} of {where} cannot be parsed: {error}.") from None
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    return frame_of(header, [np.array(column, dtype=object) for column in columns])


def frame_of(names: Sequence[str], columns: Sequence[np.ndarray | pd.Categorical]) -> pd.DataFrame:
    """Return a frame of columns as they are, names possibly not unique yet, types not inferred."""
    series = [
        pd.Series(column, dtype=None if isinstance(column, pd.Categorical) else object) for column in columns
    ]
    return pd.concat(series, axis=1).set_axis(list(names), axis=1) if series else pd.DataFrame()


def _find_delimiter(text: str) -> str:
    """Return which of comma, semicolon and tab the first line holds most of outside quotes."""
    line = re.search(r"[^\r\n]+", text)
    bare = "".join(line[0].split('"')[::2]) if line else ""
    return max(",;\t", key=bare.count)


def _parse_parquet(data: bytes, where: str) -> pd.DataFrame:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            f"Reading {where} needs the package pyarrow; install it with: pip install 'milpbn[parquet]'."
        ) from None
    try:
        return pyarrow.parquet.read_table(pyarrow.BufferReader(data)).to_pandas(ignore_metadata=True)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"The file {where} cannot be read as Parquet: {str(error).rstrip('.')}.") from None
