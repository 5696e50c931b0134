"""What the writers of .lp, .mps and start files share: atomic files, exact numbers, one-sided rows, names."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TextIO, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.milp.milp import Milp
from milpbn.util.atomic import atomic_path

OBJECTIVE_NAME: Final = "obj"

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


@contextlib.contextmanager
def open_text(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a UTF-8 text file that appears under its name only when it is complete.

    The file is gzipped if its name ends in ``.gz``, without a time stamp, so that equal content gives equal bytes.

    Raises
    ------
    InputError
        If the file cannot be written, see :func:`milpbn.util.atomic.atomic_path`.
    """
    with atomic_path(path) as temporary, contextlib.ExitStack() as stack:
        raw: BinaryIO = stack.enter_context(open(temporary, "wb"))
        if os.fspath(path).lower().endswith(".gz"):
            packed = gzip.GzipFile(filename="", mode="wb", compresslevel=3, fileobj=raw, mtime=0)
            raw = stack.enter_context(cast(BinaryIO, packed))
        yield stack.enter_context(io.TextIOWrapper(raw, encoding="utf-8", newline="\n"))


def file_stem(path: str | os.PathLike[str]) -> Path:
    """Return a model's path without ``.gz`` and without ``.lp`` or ``.mps``."""
    stem = Path(path)
    for suffixes in ((".gz",), (".lp", ".mps")):
        if stem.suffix.lower() in suffixes:
            stem = stem.with_suffix("")
    return stem


def number_strings(values: NDArray[np.float64]) -> list[str]:
    """Format each float as the shortest decimal that is read back as the same float, of at most 17 digits.

    Parameters
    ----------
    values : float64 array, shape (k,)
        Equal values are formatted once, which makes it fast to write large models.

    Returns
    -------
    list of str, length k
        Integers have no decimal point; negative zero is ``0``; infinities are ``inf`` and ``-inf``.
    """
    # Adding 0.0 turns negative zero into zero.
    unique, inverse = np.unique(np.asarray(values, dtype=np.float64) + 0.0, return_inverse=True)
    texts = [repr(value).removesuffix(".0") for value in unique.tolist()]
    return [texts[i] for i in inverse.tolist()]


@dataclass(frozen=True)
class OneSidedRows:
    """The rows of a :class:`Milp` in the form of the file formats, with one right-hand side each.

    Attributes
    ----------
    A : scipy.sparse.csr_array, shape (r, n)
        Row coefficients.
    sense : array of str, shape (r,)
        ``"L"`` (at most), ``"G"`` (at least) or ``"E"`` (equal).
    rhs : float64 array, shape (r,)
        Right-hand sides.
    names : list of str, length r
        Row names.
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

    Raises
    ------
    InputError
        If the model has no column, a number that is not finite (infinite column bounds are fine), or a name
        that one of the five solvers would misread.
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
    """Write a model in some format piece by piece, atomically and with all digits of every number.

    Parameters
    ----------
    model : Milp
        The model, n columns and m rows.
    path : path
        The file to write; compressed when its name ends in ``.gz``.
    text : callable
        Yields the file's text, given the model and its one-sided rows.

    Raises
    ------
    InputError
        If the file cannot be written or the model has a name or number that solvers would misread.
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
