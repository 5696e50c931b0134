"""Start files: a feasible solution in the form that each of the five solvers reads as a warm start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from milpbn.milp.files.text_output import file_stem, number_strings, open_text
from milpbn.milp.milp import Milp

#: The text of a start file, of a model and the value of every column as it is written.
StartText = Callable[[Milp, NDArray[np.float64], Iterable[tuple[str, str]]], Iterator[str]]


def _cplex(model: Milp, x: NDArray[np.float64], values: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a MIP start in the XML of CPLEX's solution files.

    It leaves out the continuous columns, as CPLEX's own starts do. CPLEX then computes their values by an LP.
    """
    yield '<?xml version = "1.0" encoding="UTF-8" standalone="yes"?>\n'
    yield '<CPLEXSolutions version="1.2">\n <CPLEXSolution version="1.2">\n  <header\n'
    yield f"    problemName={quoteattr(model.name)}\n"
    yield '    solutionName="m1"\n    solutionIndex="0"\n    MIPStartEffortLevel="0"\n'
    yield '    writeLevel="2"/>\n  <variables>\n'
    for j, (name, value) in enumerate(values):
        if model.integer[j]:
            yield f'   <variable name="{name}" index="{j}" value="{value}"/>\n'
    yield "  </variables>\n </CPLEXSolution>\n</CPLEXSolutions>\n"


def _gurobi(model: Milp, x: NDArray[np.float64], values: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a comment, then ``name value`` for every column; CPLEX's starts have the same suffix."""
    yield "# MIP start\n"
    yield from (f"{name} {value}\n" for name, value in values)


def _scip(model: Milp, x: NDArray[np.float64], values: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a solution of SCIP, whose command ``read`` accepts it as a start."""
    yield f"objective value: {float(model.c @ x)!r}\n"
    for (name, value), cost in zip(values, number_strings(model.c), strict=True):
        yield f"{name} {value} \t(obj:{cost})\n"


def _highs(model: Milp, x: NDArray[np.float64], values: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a raw solution, for ``highs --read_solution_file``.

    It lists every column, because with a partial start HiGHS reports bounds of a sub-MIP as bounds of the model. It
    lists no row, because HiGHS computes the activities of the rows.
    """
    yield "Model status\nUnknown\n\n# Primal solution values\nFeasible\n"
    yield f"Objective {float(model.c @ x)!r}\n# Columns {model.n_columns}\n"
    yield from (f"{name} {value}\n" for name, value in values)


def _cbc(model: Milp, x: NDArray[np.float64], values: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a solution for ``cbc MODEL.mps -mips FILE``.

    It is for the .mps file, which minimises. For the .lp file, which maximises, CBC 2.10.3 confuses the signs and
    calls a start with a negative objective optimal.
    """
    yield f"Stopped on iterations - objective value {-float(model.c @ x)!r}\n"
    yield from (f"{j} {name} {value} 0\n" for j, (name, value) in enumerate(values))


#: Suffix and text of each solver's start file.
STARTS: Final[dict[str, tuple[str, StartText]]] = {
    "cplex": (".mst", _cplex),
    "gurobi": (".mst", _gurobi),
    "scip": (".sol", _scip),
    "highs": (".sol", _highs),
    "cbc": (".sol", _cbc),
}


def write_start(solver: str, model: Milp, x: NDArray[np.float64], path: str | os.PathLike[str]) -> None:
    """Write a start file.

    Parameters
    ----------
    solver : str
        One of `STARTS`.
    model : Milp
        The model, n columns.
    x : float64 array, shape (n,)
        A feasible solution; integer columns are rounded.
    path : path
        The file to write.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    if x.shape != (model.n_columns,) or not np.isfinite(x).all():
        raise ValueError(f"A start needs one finite value for each of the {model.n_columns} columns.")
    exact = number_strings(np.where(model.integer, np.round(x), x))
    with open_text(path) as out:
        out.writelines(STARTS[solver][1](model, x, zip(model.column_names, exact, strict=True)))


def write_starts(model: Milp, x: NDArray[np.float64], model_path: str | os.PathLike[str]) -> dict[str, Path]:
    """Write the start file of every solver into the folder of a model file.

    Parameters
    ----------
    model, x
        See `write_start`.
    model_path : path
        The .lp or .mps file, which may be gzipped; ``dir/m.lp`` gives ``dir/m.start.cplex.mst`` and so on.

    Returns
    -------
    dict of str to Path
        The files by solver, as :func:`milpbn.milp.files.commands.solver_commands` takes them.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    stem = file_stem(model_path)
    paths = {}
    for solver, (suffix, _) in STARTS.items():
        paths[solver] = stem.with_name(f"{stem.name}.start.{solver}{suffix}")
        write_start(solver, model, x, paths[solver])
    return paths
