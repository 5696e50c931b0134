"""The writer of the free .mps format, such that CPLEX, Gurobi, SCIP, HiGHS and CBC read the same model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import numpy as np
import scipy.sparse as sp

from milpbn.milp.files.text_output import (
    OBJECTIVE_NAME,
    OneSidedRows,
    entry_blocks,
    number_strings,
    objective_row,
    write_model,
)
from milpbn.milp.milp import Milp

MPS_OBJECTIVE_SIGN: Final = -1.0
"""``model objective = MPS_OBJECTIVE_SIGN * objective in the file + model.constant``.

The format minimises. Its extension OBJSENSE does not help: CBC 2.10.3 reads it, prints "Coin ignores" and minimises.
The file therefore contains ``-c``, and the objective values and bounds that solvers report have the opposite sign.
"""


def write_mps(model: Milp, path: str | os.PathLike[str]) -> None:
    """Write a model as free .mps, or as .mps.gz if the name ends so, atomically and with all digits of every number.

    The file **minimises** ``-c @ x``, see :data:`MPS_OBJECTIVE_SIGN`, without ``model.constant``, which a comment
    states. A row with two finite bounds becomes the rows ``NAME.lo`` and ``NAME.up``. Both bounds of every integer
    column are written, because readers have different defaults for them. Parameters and errors are those of
    :func:`milpbn.milp.files.text_output.write_model`.
    """
    write_model(model, path, _text)


def _text(model: Milp, rows: OneSidedRows) -> Iterator[str]:
    """Yield the file's text."""
    yield f"* {model.n_columns} columns, {model.n_rows} rows; minimises the negated objective and leaves\n"
    yield f"* out the constant {float(model.constant)!r}: objective = constant - this file's\n"
    yield f"NAME {'_'.join(model.name.split())}\nROWS\n N {OBJECTIVE_NAME}\n"
    yield from (f" {sense} {name}\n" for sense, name in zip(rows.sense.tolist(), rows.names, strict=True))
    yield "COLUMNS\n"
    yield from _column_blocks(model, rows)
    yield "RHS\n"
    nonzero = np.flatnonzero(rows.rhs)
    for i, number in zip(nonzero.tolist(), number_strings(rows.rhs[nonzero]), strict=True):
        yield f"    RHS {rows.names[i]} {number}\n"
    yield "BOUNDS\n"
    yield from _bounds(model)
    yield "ENDATA\n"


def _column_blocks(model: Milp, rows: OneSidedRows) -> Iterator[str]:
    """Yield the COLUMNS section in blocks, in the model's order, with MARKER lines around runs of integer columns."""
    columns = sp.csc_array(sp.vstack([objective_row(model, MPS_OBJECTIVE_SIGN), rows.A], format="csr"))
    indptr, row_names = columns.indptr, [OBJECTIVE_NAME, *rows.names]
    # +1 at the first of a run of integer columns, -1 at the first column after the run.
    change = np.diff(model.integer.astype(np.int8), prepend=0, append=0)
    for first, last in entry_blocks(indptr):
        start, stop = int(indptr[first]), int(indptr[last])
        names = np.repeat(np.arange(first, last), np.diff(indptr[first : last + 1])).tolist()
        lines = [
            f"    {model.column_names[j]} {row_names[i]} {number}\n"
            for j, i, number in zip(
                names,
                columns.indices[start:stop].tolist(),
                number_strings(columns.data[start:stop]),
                strict=True,
            )
        ]
        for j in np.flatnonzero(change[first:last])[::-1].tolist():
            kind = "INTORG" if change[first + j] > 0 else "INTEND"
            lines.insert(int(indptr[first + j]) - start, f"    MARKER{first + j} 'MARKER' '{kind}'\n")
        yield "".join(lines)
    if change[-1]:
        yield f"    MARKER{model.n_columns} 'MARKER' 'INTEND'\n"


def _bounds(model: Milp) -> Iterator[str]:
    """Yield the lines of the BOUNDS section; continuous columns with the default [0, inf) need none."""
    written = np.flatnonzero(model.integer | (model.lower != 0) | (model.upper != np.inf))
    lower, upper = number_strings(model.lower[written]), number_strings(model.upper[written])
    for j, low, up in zip(written.tolist(), lower, upper, strict=True):
        name = model.column_names[j]
        if low == up:
            yield f" FX BND {name} {low}\n"
        elif model.integer[j] and (low, up) == ("0", "1"):
            yield f" BV BND {name}\n"
        elif (low, up) == ("-inf", "inf"):
            yield f" FR BND {name}\n"
        else:
            # The lower bound is always written, and first: without it, some readers would change it when they read an
            # upper bound below zero.
            yield f" MI BND {name}\n" if low == "-inf" else f" LO BND {name} {low}\n"
            yield f" PL BND {name}\n" if up == "inf" else f" UP BND {name} {up}\n"
