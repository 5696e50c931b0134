"""The writer of the CPLEX .lp format, such that CPLEX, Gurobi, SCIP, HiGHS and CBC read the same model."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from milpbn.milp.files.text_output import (
    OBJECTIVE_NAME,
    OneSidedRows,
    entry_blocks,
    number_strings,
    objective_row,
    write_model,
)
from milpbn.milp.milp import Milp

_LONGEST_LINE = 510  # CPLEX truncates longer lines
_LONGEST_NUMBER = 24  # -1.2345678901234567e-300
_OPERATOR = {"L": "<=", "G": ">=", "E": "="}
_BLOCK = 100_000


def write_lp(model: Milp, path: str | os.PathLike[str]) -> None:
    """Write a model as .lp, or as .lp.gz if the name ends so, atomically and with all digits of every number.

    The file maximises ``c @ x`` **without** ``model.constant``, because older versions of CPLEX reject an objective
    constant. A comment states its value, which has to be added to every objective value of a solution. The objective
    lists every column, even with the coefficient 0: some solvers number columns in the order of first appearance, and
    this order is then the model's. A row with two finite bounds becomes the rows ``NAME.lo`` and ``NAME.up``.
    Parameters and errors are those of :func:`milpbn.milp.files.text_output.write_model`.
    """
    write_model(model, path, _text)


def _text(model: Milp, rows: OneSidedRows) -> Iterator[str]:
    """Yield the file's text."""
    per_line = _terms_per_line(model, rows)
    yield f"\\ {' '.join(model.name.split())}: {model.n_columns} columns, {model.n_rows} rows\n"
    yield f"\\ The objective leaves out the constant {float(model.constant)!r}; add it to every value.\n"
    yield f"Maximize\n {OBJECTIVE_NAME}:"
    objective = objective_row(model)
    for first in range(0, model.n_columns, _BLOCK):
        block = slice(first, first + _BLOCK)
        names = [model.column_names[j] for j in objective.indices[block].tolist()]
        yield f" {_expression(_terms(objective.data[block], names), per_line)}\n"
    yield "Subject To\n"
    yield from _row_blocks(rows, model.column_names, per_line)
    for heading, lines in _column_sections(model):
        if lines:
            yield f"{heading}\n"
            yield from lines
    yield "End\n"


def _terms_per_line(model: Milp, rows: OneSidedRows) -> int:
    """Return how many terms of maximal length fit into a line together with the row's name and right-hand side."""
    term = len("+  ") + 1 + _LONGEST_NUMBER + max(map(len, model.column_names))
    frame = len(" :  >= ") + _LONGEST_NUMBER + max(map(len, rows.names), default=len(OBJECTIVE_NAME))
    return max(1, (_LONGEST_LINE - frame) // term)


def _terms(values: NDArray[np.float64], names: list[str]) -> list[str]:
    """Return ``+ 2 x`` or ``- 2 x`` for every value and its column."""
    unique, inverse = np.unique(values, return_inverse=True)
    signed = [f"- {text[1:]}" if text.startswith("-") else f"+ {text}" for text in number_strings(unique)]
    return [f"{signed[i]} {name}" for i, name in zip(inverse.tolist(), names, strict=True)]


def _expression(terms: list[str], per_line: int) -> str:
    """Join terms, with a line break after every ``per_line`` terms."""
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
            # The format does not allow an empty expression.
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
    """Return a line of the bounds section, with the lower bound, because readers have different defaults for it."""
    if lower == upper:
        return f" {name} = {lower}\n"
    if (lower, upper) == ("-inf", "inf"):
        return f" {name} free\n"
    if upper == "inf":
        return f" {name} >= {lower}\n"
    return f" {lower} <= {name} <= {upper}\n"
