"""The writers of the CPLEX .lp and free .mps formats: CPLEX, Gurobi, SCIP, HiGHS and CBC read the same model.

Files are compressed if their name ends in ``.gz``, appear atomically, and have all digits of every number. They leave
out the objective's constant, because older versions of CPLEX reject one; a comment states it, and it has to be added to
every objective value of a solution. The objective lists every column, even with the coefficient 0: some solvers number
columns in the order of first appearance, and this order is then the model's. A row with two finite bounds becomes the
rows ``NAME.lo`` and ``NAME.up``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.milp.files.text_output import number_strings, open_text
from milpbn.milp.milp import Milp

OBJECTIVE_NAME: Final = "obj"
MPS_OBJECTIVE_SIGN: Final = -1.0
"""``model objective = MPS_OBJECTIVE_SIGN * objective in the file + model.constant``.

The format minimises. Its extension OBJSENSE does not help: CBC 2.10.3 reads it, prints "Coin ignores" and minimises.
The file therefore contains ``-c``, and the objective values and bounds that solvers report have the opposite sign.
"""

_LONGEST_LINE = 510  # CPLEX truncates longer lines
_LONGEST_NUMBER = 24  # -1.2345678901234567e-300
_OPERATOR = {"L": "<=", "G": ">=", "E": "="}
_BLOCK = 100_000
# Names that satisfy the rules of all five solvers. CBC allows 100 characters; CPLEX and Gurobi allow no operators,
# brackets or spaces; CPLEX may read a leading e or E as an exponent if a digit, a full stop or another e follows.
_NAME = re.compile(r"(?![eE](?:[0-9eE.]|$))[A-Za-z_][A-Za-z0-9_.(),]{0,99}")
# fmt: off
_RESERVED = frozenset({
    "bin", "binaries", "binary", "bound", "bounds", "end", "free", "gen", "general", "generals", "inf",
    "infinity", "int", "integer", "integers", "max", "maximise", "maximize", "maximum", "min", "minimise",
    "minimize", "minimum", "nan", "sec", "semi", "semis", "sos", "sos1", "sos2", "st", "s.t.", "st.",
    "subject", "such",
})
# fmt: on


def write_lp(model: Milp, path: str | os.PathLike[str]) -> None:
    """Write a model as .lp, which maximises ``c @ x``; see the module's docstring, and `write_model` for errors."""
    write_model(model, path, _lp_text)


def _lp_text(model: Milp, rows: OneSidedRows) -> Iterator[str]:
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
        [_lp_bound(names[j], low, up) for j, low, up in zip(written.tolist(), lower, upper, strict=True)],
    )
    yield "Binaries", [f" {names[j]}\n" for j in np.flatnonzero(binary).tolist()]
    yield "Generals", [f" {names[j]}\n" for j in np.flatnonzero(model.integer & ~binary).tolist()]


def _lp_bound(name: str, lower: str, upper: str) -> str:
    """Return a line of the bounds section, with the lower bound, because readers have different defaults for it."""
    if lower == upper:
        return f" {name} = {lower}\n"
    if (lower, upper) == ("-inf", "inf"):
        return f" {name} free\n"
    if upper == "inf":
        return f" {name} >= {lower}\n"
    return f" {lower} <= {name} <= {upper}\n"


def write_mps(model: Milp, path: str | os.PathLike[str]) -> None:
    """Write a model as free .mps, which **minimises** ``-c @ x``, see `MPS_OBJECTIVE_SIGN`; errors as for `write_lp`.

    Both bounds of every integer column are written, because readers have different defaults for them.
    """
    write_model(model, path, _mps_text)


def _mps_text(model: Milp, rows: OneSidedRows) -> Iterator[str]:
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
    yield from _mps_bounds(model)
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


def _mps_bounds(model: Milp) -> Iterator[str]:
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


@dataclass(frozen=True)
class OneSidedRows:
    """The rows of a :class:`Milp` in the form of the file formats, with one right-hand side each.

    A, shape (r, n), has the coefficients. Each `sense` is ``"L"`` (at most), ``"G"`` (at least) or ``"E"`` (equal).
    """

    A: sp.csr_array
    sense: NDArray[np.str_]
    rhs: NDArray[np.float64]
    names: list[str]


def one_sided_rows(model: Milp) -> OneSidedRows:
    """Split rows with two bounds into ``NAME.lo`` and ``NAME.up``, and drop rows without a bound.

    The .lp readers have different syntaxes for ranges, and the RANGES section of .mps states ``upper - lower``, which
    is rounded. Every solver reads two separate rows in the same way and with the exact numbers.
    """
    has_lower, has_upper = model.row_lower != -np.inf, model.row_upper != np.inf
    equal = has_lower & (model.row_lower == model.row_upper)
    ranged = has_lower & has_upper & ~equal
    at_most = np.flatnonzero(has_upper & ~equal)
    others = np.flatnonzero(has_lower)
    # The sort is stable: NAME.lo precedes NAME.up.
    order = np.argsort(np.concatenate([others, at_most]), kind="stable")
    source = np.concatenate([others, at_most])[order]
    sense = np.concatenate([np.where(equal[others], "E", "G"), np.full(len(at_most), "L")])[order]
    rhs = np.concatenate([model.row_lower[others], model.row_upper[at_most]])[order]
    suffix = np.where(ranged[source], np.where(sense == "L", ".up", ".lo"), "")
    names = [model.row_names[i] + s for i, s in zip(source.tolist(), suffix.tolist(), strict=True)]
    unchanged = np.array_equal(source, np.arange(model.n_rows))
    return OneSidedRows(model.A if unchanged else sp.csr_array(model.A[source]), sense, rhs, names)


def check_model(model: Milp, rows: OneSidedRows) -> None:
    """Refuse a model that some solver would misread.

    InputError if the model has no column, a number that is not finite (infinite column bounds are fine), or a name that
    one of the five solvers would misread.
    """
    if model.n_columns == 0:
        raise InputError(f"The model {model.name!r} has no column, so there is nothing to write.")
    numbers = {"objective": model.c, "row": model.A.data, "right-hand side": rows.rhs}
    for what, array in numbers.items():
        if not np.isfinite(array).all():
            raise InputError(
                f"The model {model.name!r} has a number in its {what} that is not finite; correct it."
            )
    if np.isnan(model.lower).any() or np.isnan(model.upper).any():
        raise InputError(f"The model {model.name!r} has a column bound that is not a number; correct it.")
    for what, names in (("column", model.column_names), ("row", [*rows.names, OBJECTIVE_NAME])):
        if len(set(names)) < len(names):
            raise InputError(f"The model {model.name!r} has two {what}s of the same name; rename one.")
        for name in names:
            if not _NAME.fullmatch(name) or name.lower() in _RESERVED:
                raise InputError(
                    f"The {what} name {name!r} cannot be written for every solver; use at most 100 letters, "
                    "digits and _ . ( ) , and a beginning that cannot be read as a number or a keyword."
                )


def write_model(
    model: Milp, path: str | os.PathLike[str], text: Callable[[Milp, OneSidedRows], Iterator[str]]
) -> None:
    """Write the text that `text` yields piece by piece, given the model and its one-sided rows.

    InputError if the file cannot be written or the model has a name or number that solvers would misread.
    """
    rows = one_sided_rows(model)
    check_model(model, rows)
    with open_text(path) as out:
        for piece in text(model, rows):
            out.write(piece)


def objective_row(model: Milp, sign: float = 1.0) -> sp.csr_array:
    """Return ``sign * c`` as a row, shape (1, n), with an explicit coefficient for every column, even if it is 0.

    A file states a column by using it, and solvers number columns in the order of their first appearance.
    """
    n = model.n_columns
    return sp.csr_array((sign * model.c, np.arange(n), [0, n]), shape=(1, n))


def entry_blocks(indptr: NDArray[np.integer], size: int = 200_000) -> Iterator[tuple[int, int]]:
    """Yield ranges [first, last) of compressed rows with at most about ``size`` coefficients each.

    The strings of one block exist at a time, which bounds the memory. A row with more coefficients is a block itself.
    """
    n_rows = len(indptr) - 1
    first = 0
    while first < n_rows:
        last = int(np.searchsorted(indptr, int(indptr[first]) + size, side="right")) - 1
        last = min(max(last, first + 1), first + size)
        yield first, last
        first = last
