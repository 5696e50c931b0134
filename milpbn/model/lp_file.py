"""The CPLEX .lp format, written so that CPLEX, Gurobi, SCIP, HiGHS and CBC read the same model."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from milpbn.model.milp import Milp
from milpbn.model.text_output import (
    OBJECTIVE_NAME,
    OneSidedRows,
    check_writable,
    entry_blocks,
    number_strings,
    one_sided_rows,
    open_text,
)

_LINE = 510  # CPLEX cuts longer lines off
_LONGEST_NUMBER = 24  # -1.2345678901234567e-300
_OPERATOR = {"L": "<=", "G": ">=", "E": "="}
_BLOCK = 100_000


def write_lp(model: Milp, path: str | os.PathLike[str]) -> None:
    """Write a model as .lp, or .lp.gz by the name, atomically and without losing a digit.

    The file says ``Maximize``; its objective is ``c @ x`` **without** ``model.constant``, which older CPLEX
    refuses: a comment gives its value, and whoever reads a solution back adds it. The objective lists every
    column, zeros too, so that solvers which number columns by first appearance number them as the model does.
    A row with two finite bounds becomes the rows ``NAME.lo`` and ``NAME.up``.

    Parameters
    ----------
    model : Milp
        The model, n columns and m rows.
    path : path
        The file to write.

    Raises
    ------
    InputError
        If the file cannot be written or the model has a name or number that solvers would misread.
    """
    rows = one_sided_rows(model)
    check_writable(model, rows)
    per_line = _terms_per_line(model, rows)
    with open_text(path) as out:
        out.write(f"\\ {' '.join(model.name.split())}: {model.n_columns} columns, {model.n_rows} rows\n")
        out.write(
            f"\\ The objective leaves out the constant {float(model.constant)!r}; add it to every value.\n"
        )
        out.write(f"Maximize\n {OBJECTIVE_NAME}:")
        for first in range(0, model.n_columns, _BLOCK):
            block = slice(first, first + _BLOCK)
            out.write(f" {_expression(_terms(model.c[block], model.column_names[block]), per_line)}\n")
        out.write("Subject To\n")
        for text in _row_blocks(rows, model.column_names, per_line):
            out.write(text)
        for heading, lines in _column_sections(model):
            if lines:
                out.write(f"{heading}\n")
                out.writelines(lines)
        out.write("End\n")


def _terms_per_line(model: Milp, rows: OneSidedRows) -> int:
    """Return how many terms of the longest kind fit into a line beside the row's name and right-hand side."""
    term = len("+  ") + 1 + _LONGEST_NUMBER + max(map(len, model.column_names))
    frame = len(" :  >= ") + _LONGEST_NUMBER + max(map(len, rows.names), default=len(OBJECTIVE_NAME))
    return max(1, (_LINE - frame) // term)


def _terms(values: NDArray[np.float64], names: list[str]) -> list[str]:
    """Return ``+ 2 x`` or ``- 2 x`` for every value and its column."""
    unique, inverse = np.unique(values, return_inverse=True)
    signed = [f"- {text[1:]}" if text.startswith("-") else f"+ {text}" for text in number_strings(unique)]
    return [f"{signed[i]} {name}" for i, name in zip(inverse.tolist(), names, strict=True)]


def _expression(terms: list[str], per_line: int) -> str:
    """Join terms, breaking the line after every ``per_line`` of them."""
    if len(terms) <= per_line:
        return " ".join(terms)
    return "\n  ".join(" ".join(terms[i : i + per_line]) for i in range(0, len(terms), per_line))


def _row_blocks(rows: OneSidedRows, columns: list[str], per_line: int) -> Iterator[str]:
    """Yield the text of the constraints, a block of rows at a time."""
    indptr, indices, data = rows.A.indptr, rows.A.indices, rows.A.data
    for first, last in entry_blocks(indptr):
        start, stop = int(indptr[first]), int(indptr[last])
        terms = _terms(data[start:stop], [columns[j] for j in indices[start:stop].tolist()])
        cuts = (indptr[first : last + 1] - start).tolist()
        numbers = number_strings(rows.rhs[first:last])
        lines = []
        for k, (name, sense, rhs) in enumerate(
            zip(rows.names[first:last], rows.sense[first:last].tolist(), numbers, strict=True)
        ):
            # The format has no empty expression.
            row = terms[cuts[k] : cuts[k + 1]] or [f"+ 0 {columns[0]}"]
            lines.append(f" {name}: {_expression(row, per_line)} {_OPERATOR[sense]} {rhs}\n")
        yield "".join(lines)


def _column_sections(model: Milp) -> Iterator[tuple[str, list[str]]]:
    """Yield the headings and lines of the bounds, the binaries and the general integers."""
    binary = model.integer & (model.lower == 0) & (model.upper == 1)
    default = (model.lower == 0) & (model.upper == np.inf)
    names = model.column_names
    written = np.flatnonzero(~binary & ~default)
    lower, upper = number_strings(model.lower[written]), number_strings(model.upper[written])
    yield (
        "Bounds",
        [_bound(names[j], low, up) for j, low, up in zip(written.tolist(), lower, upper, strict=True)],
    )
    yield "Binaries", [f" {names[j]}\n" for j in np.flatnonzero(binary).tolist()]
    yield "Generals", [f" {names[j]}\n" for j in np.flatnonzero(model.integer & ~binary).tolist()]


def _bound(name: str, lower: str, upper: str) -> str:
    """Return a bounds line; the lower bound is always said, since readers' defaults for it differ."""
    if lower == upper:
        return f" {name} = {lower}\n"
    if (lower, upper) == ("-inf", "inf"):
        return f" {name} free\n"
    if upper == "inf":
        return f" {name} >= {lower}\n"
    return f" {lower} <= {name} <= {upper}\n"
