"""Start files: a feasible solution in the form that each of the five solvers reads as a warm start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from milpbn.milp.files.text_output import file_stem, number_strings, open_text
from milpbn.milp.milp import Milp

StartWriter = Callable[[Milp, NDArray[np.float64], str | os.PathLike[str]], None]


def write_cplex_start(
    model: Milp, x: NDArray[np.float64], path: str | os.PathLike[str], *, integers_only: bool = True
) -> None:
    """Write a CPLEX MIP start (.mst, in the XML of CPLEX's solution files).

    Parameters
    ----------
    model : Milp
        The model, n columns.
    x : float64 array, shape (n,)
        The solution; integer columns are rounded.
    path : path
        The file to write.
    integers_only : bool
        Leave out the continuous columns, as CPLEX's own starts do. CPLEX then computes their values by an LP.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    level = 2 if integers_only else 1
    with open_text(path) as out:
        out.write('<?xml version = "1.0" encoding="UTF-8" standalone="yes"?>\n')
        out.write('<CPLEXSolutions version="1.2">\n <CPLEXSolution version="1.2">\n  <header\n')
        out.write(f"    problemName={quoteattr(model.name)}\n")
        out.write('    solutionName="m1"\n    solutionIndex="0"\n    MIPStartEffortLevel="0"\n')
        out.write(f'    writeLevel="{level}"/>\n  <variables>\n')
        for j, (name, value) in enumerate(_pairs(model, x)):
            if model.integer[j] or not integers_only:
                out.write(f'   <variable name="{name}" index="{j}" value="{value}"/>\n')
        out.write("  </variables>\n </CPLEXSolution>\n</CPLEXSolutions>\n")


def write_gurobi_start(model: Milp, x: NDArray[np.float64], path: str | os.PathLike[str]) -> None:
    """Write a Gurobi MIP start (.mst): a comment, then ``name value`` for every column.

    CPLEX's starts have the same suffix and another format. Parameters and errors are those of
    :func:`write_cplex_start`.
    """
    with open_text(path) as out:
        out.write("# MIP start\n")
        out.writelines(f"{name} {value}\n" for name, value in _pairs(model, x))


def write_scip_start(model: Milp, x: NDArray[np.float64], path: str | os.PathLike[str]) -> None:
    """Write a SCIP solution (.sol), which SCIP's command ``read`` accepts as a start.

    Parameters and errors are those of :func:`write_cplex_start`.
    """
    with open_text(path) as out:
        out.write(f"objective value: {float(model.c @ x)!r}\n")
        costs = number_strings(model.c)
        out.writelines(
            f"{name} {value} \t(obj:{cost})\n"
            for (name, value), cost in zip(_pairs(model, x), costs, strict=True)
        )


def write_highs_start(model: Milp, x: NDArray[np.float64], path: str | os.PathLike[str]) -> None:
    """Write a raw HiGHS solution, for ``highs --read_solution_file``.

    The file lists every column, because with a partial start HiGHS reports bounds of a sub-MIP as bounds of the model.
    It lists no row, because HiGHS computes the activities of the rows. Parameters and errors are those of
    :func:`write_cplex_start`.
    """
    with open_text(path) as out:
        out.write("Model status\nUnknown\n\n# Primal solution values\nFeasible\n")
        out.write(f"Objective {float(model.c @ x)!r}\n# Columns {model.n_columns}\n")
        out.writelines(f"{name} {value}\n" for name, value in _pairs(model, x))


def write_cbc_start(model: Milp, x: NDArray[np.float64], path: str | os.PathLike[str]) -> None:
    """Write a CBC solution, for ``cbc MODEL.mps -mips FILE``.

    It is for the .mps file, which minimises. For the .lp file, which maximises, CBC 2.10.3 confuses the signs and
    calls a start with a negative objective optimal. Parameters and errors are those of :func:`write_cplex_start`.
    """
    with open_text(path) as out:
        out.write(f"Stopped on iterations - objective value {-float(model.c @ x)!r}\n")
        out.writelines(f"{j} {name} {value} 0\n" for j, (name, value) in enumerate(_pairs(model, x)))


START_WRITERS: Final[dict[str, tuple[str, StartWriter]]] = {
    "cplex": (".mst", write_cplex_start),
    "gurobi": (".mst", write_gurobi_start),
    "scip": (".sol", write_scip_start),
    "highs": (".sol", write_highs_start),
    "cbc": (".sol", write_cbc_start),
}
"""Suffix and writer of each solver's start file."""


def write_starts(model: Milp, x: NDArray[np.float64], model_path: str | os.PathLike[str]) -> dict[str, Path]:
    """Write the start file of every solver into the folder of a model file.

    Parameters
    ----------
    model : Milp
        The model, n columns.
    x : float64 array, shape (n,)
        A feasible solution; integer columns are rounded.
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
    for solver, (suffix, write) in START_WRITERS.items():
        paths[solver] = stem.with_name(f"{stem.name}.start.{solver}{suffix}")
        write(model, x, paths[solver])
    return paths


def _pairs(model: Milp, x: NDArray[np.float64]) -> Iterator[tuple[str, str]]:
    """Return pairs of the name and the exact value of every column; values of integer columns are rounded."""
    if x.shape != (model.n_columns,) or not np.isfinite(x).all():
        raise ValueError(f"A start needs one finite value for each of the {model.n_columns} columns.")
    return zip(model.column_names, number_strings(np.where(model.integer, np.round(x), x)), strict=True)
