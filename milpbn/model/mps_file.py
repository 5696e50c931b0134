"""The free .mps format, written so that CPLEX, Gurobi, SCIP, HiGHS and CBC read the same model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import numpy as np
import scipy.sparse as sp

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

MPS_OBJECTIVE_SIGN: Final = -1.0
"""``model objective = MPS_OBJECTIVE_SIGN * objective in the file + model.constant``.

The format minimises. Its extension OBJSENSE is no way out: CBC 2.10.3 reads it, says "Coin ignores" and
minimises. So the file holds ``-c``, and the objective values and bounds that solvers report change sign.
"""


def write_mps(model: Milp, path: str | os.PathLike[str]) -> None:
    """Write a model as free .mps, or .mps.gz by the name, atomically and without losing a digit.

    The file **minimises** ``-c @ x``, see :data:`MPS_OBJECTIVE_SIGN`, and leaves out ``model.constant``, as a
    comment says. A row with two finite bounds becomes the rows ``NAME.lo`` and ``NAME.up``. Integer columns
    always carry both bounds, since readers' defaults for them differ.

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
    with open_text(path) as out:
        out.write(
            f"* {model.n_columns} columns, {model.n_rows} rows; minimises the negated objective and leaves\n"
        )
        out.write(f"* out the constant {float(model.constant)!r}: objective = constant - this file's\n")
        out.write(f"NAME {'_'.join(model.name.split())}\nROWS\n N {OBJECTIVE_NAME}\n")
        out.writelines(
            f" {sense} {name}\n" for sense, name in zip(rows.sense.tolist(), rows.names, strict=True)
        )
        out.write("COLUMNS\n")
        for text in _column_blocks(model, rows):
            out.write(text)
        out.write("RHS\n")
        nonzero = np.flatnonzero(rows.rhs)
        out.writelines(
            f"    RHS {rows.names[i]} {number}\n"
            for i, number in zip(nonzero.tolist(), number_strings(rows.rhs[nonzero]), strict=True)
        )
        out.write("BOUNDS\n")
        for text in _bounds(model):
            out.write(text)
        out.write("ENDATA\n")


def _column_blocks(model: Milp, rows: OneSidedRows) -> Iterator[str]:
    """Yield the COLUMNS section in blocks; columns keep the model's order, integers stand between MARKERs."""
    columns = _columns_with_objective(model, rows)
    indptr, row_names = columns.indptr, [OBJECTIVE_NAME, *rows.names]
    # +1 where a run of integer columns begins, -1 where it has just ended.
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


def _columns_with_objective(model: Milp, rows: OneSidedRows) -> sp.csc_array:
    """Return the rows below the negated objective, shape (1 + r, n), by columns.

    The objective's zeros are kept as entries: a column exists by being mentioned.
    """
    n = model.n_columns
    objective = sp.csr_array((MPS_OBJECTIVE_SIGN * model.c, np.arange(n), [0, n]), shape=(1, n))
    return sp.csc_array(sp.vstack([objective, rows.A], format="csr"))


def _bounds(model: Milp) -> Iterator[str]:
    """Yield the lines of the BOUNDS section; columns with the default [0, inf) need none."""
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
            # The lower bound first and always: an upper bound below zero would else move it in some readers.
            yield f" MI BND {name}\n" if low == "-inf" else f" LO BND {name} {low}\n"
            yield f" PL BND {name}\n" if up == "inf" else f" UP BND {name} {up}\n"
