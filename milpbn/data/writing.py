"""Writing tables: CSV, Weka's ARFF, and GOBNILP's .dat."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import numpy as np

from milpbn.data.dat import format_dat
from milpbn.data.labels import number_label
from milpbn.data.table import Table
from milpbn.data.variables import encode_column, learn_nominal
from milpbn.errors import InputError
from milpbn.util.atomic import atomic_write_text
from milpbn.util.raw_files import ending_of

_PLAIN = re.compile(r"[A-Za-z0-9_.+-]+", re.ASCII)
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def format_arff(table: Table) -> str:
    """Return a table as the text of an ARFF file, the class last.

    Continuous columns are ``numeric``, others nominal with all their values; a missing value is ``?``. Weights of rows
    are left out unless they are a column. Raises `InputError` if the rows have weights, which ARFF files keep in a form
    that few programs read.
    """
    _refuse_weights(table)
    rows = np.arange(table.n_rows)
    header, columns = [f"@relation {_quote(table.name)}", ""], []
    for name, column in table.columns.items():
        if table.kinds[name] == "continuous":
            kind = "numeric"
            labels = [number_label(x) for x in column.numbers]
            codes = column.codes
        else:
            variable = learn_nominal(column, rows, states="declared")
            kind = f"{{{', '.join(_quote(state) for state in variable.states)}}}"
            labels = [_quote(state) for state in variable.states]
            codes = encode_column(variable, column).astype(np.int64)
        header.append(f"@attribute {_quote(name)} {kind}")
        columns.append(np.array([*labels, "?"], dtype=object)[np.where(codes < 0, len(labels), codes)])
    lines = [",".join(row) for row in zip(*columns, strict=True)]
    return "\n".join([*header, "", "@data", *lines]) + "\n"


def format_csv(table: Table) -> str:
    """Return the raw cells of a table as CSV, the class last; missing values are empty.

    Raises `InputError` if the rows have weights.
    """
    _refuse_weights(table)
    return table.frame.to_csv(index=False, lineterminator="\n")


#: By the ending of a file's name: the function from a table to the text of the file.
WRITERS: dict[str, Callable[[Table], str]] = {
    ".arff": format_arff,
    ".csv": format_csv,
    ".dat": lambda table: format_dat(table.dataset("all")),
}


def write_table(table: Table, path: str | os.PathLike[str]) -> None:
    """Write all rows of a table atomically; the ending of the file's name determines the format (`WRITERS`).

    A .dat file gets the states that `Table.dataset` learns from all rows: its continuous columns are discretised.

    Raises
    ------
    InputError
        If the ending is unknown, the format cannot hold the table, or the file cannot be written.
    """
    ending = ending_of(path, WRITERS)
    if ending is None:
        raise InputError(
            f"The ending of {str(path)!r} is not one of a table that is written; choose one of {', '.join(WRITERS)}."
        )
    atomic_write_text(path, WRITERS[ending](table))


def _refuse_weights(table: Table) -> None:
    if (table.weights != 1).any():
        raise InputError("Weights of rows cannot be written; read the table without weights.")


def _quote(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else "'" + "".join(_ESCAPES.get(c, c) for c in text) + "'"
