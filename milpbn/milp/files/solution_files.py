"""Read solution files of CPLEX, Gurobi, SCIP, HiGHS, CBC and GLPK (what they prove: `milpbn.milp.files.solution`)."""

from __future__ import annotations

import os
from pathlib import Path

from milpbn.errors import InputError
from milpbn.milp.files.solution import Solution
from milpbn.milp.files.solution_readers import Lines, read_cplex, reader_of
from milpbn.util.raw_files import read_bytes, unpack_gzip


def read_solution(path: str | os.PathLike[str]) -> Solution:
    """Read a solution file of any of the six solvers, which is recognised by its content.

    The formats are CPLEX's XML (of several solutions the incumbent, else the first), Gurobi's .sol, SCIP's .sol,
    HiGHS's raw (0), pretty (1), GLPK's (3) and sparse (4) styles, CBC's solution text, and GLPK's report (`glpsol -o`).
    Each may be gzipped.

    Parameters
    ----------
    path : path
        The file.

    Raises
    ------
    InputError
        If the file cannot be read, is truncated, damaged or of another format, or contains no solution. The sentence
        names the file and, if possible, the line.
    """
    file = Path(path)
    text = _text(file)
    lines = Lines(file, text.splitlines())
    first = next((line.strip() for line in lines.lines if line.strip()), "")
    if first.startswith("<"):
        return read_cplex(file, text)
    return reader_of(first, lines)(lines)


def _text(file: Path) -> str:
    """Return the file's text, decompressed if the file begins with the bytes of gzip."""
    try:
        content = read_bytes(file)
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: the name holds a null character
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"The solution file {file} cannot be read ({reason}); check its path.") from error
    if content.startswith(b"\x1f\x8b"):
        content = unpack_gzip(content, str(file))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"The solution file {file} is not text; give the .sol file that the solver wrote."
        ) from error
    if "\0" in text:
        raise InputError(f"The solution file {file} is not text; give the .sol file that the solver wrote.")
    if not text.strip():
        raise InputError(f"The solution file {file} is empty; the solver wrote no solution.")
    return text
