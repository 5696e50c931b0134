"""Start files: a known solution in the form each of the five solvers reads as a warm start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from milpbn.model.milp import Milp
from milpbn.model.text_output import file_stem, number_strings, open_text

StartWriter = Callable[[Milp, NDArray[np.float64], str | os.PathLike[str]], None]


def write_cplex_start(
    model: Milp, x: NDArray[np.float64], path: str | os.PathLike[str], *, integers_only: bool = True
) -> None:
    """Write a CPLEX MIP start (.mst, the XML of its solution files).

    Parameters
    ----------
    model : Milp
        The model, n columns.
    x : float64 array, shape (n,)
        The solution; integer columns are rounded.
    path : path
        The file to write.
    integers_only : bool
        Leave out the continuous columns, as CPLEX's own starts do; it then finds their values by an LP.

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

    The suffix is CPLEX's too, the format is not. Parameters and errors as :func:`write_cplex_start`.
    """
    with open_text(path) as out:
        out.write("# MIP start\n")
        out.writelines(f"{name} {value}\n" for name, value in _pairs(model, x))


def write_scip_start(model: Milp, x: NDArray[np.float64], path: str | os.PathLike[str]) -> None:
    """Write a SCIP solution (.sol), which its ``read`` takes as a start.

    Parameters and errors as :func:`write_cplex_start`.
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

    Holds every column: a partial start makes HiGHS report bounds of a sub-problem as its own. Rows are left
    out; HiGHS computes their activities. Parameters and errors as :func:`write_cplex_start`.
    """
    with open_text(path) as out:
        out.write("Model status\nUnknown\n\n# Primal solution values\nFeasible\n")
        out.write(f"Objective {float(model.c @ x)!r}\n# Columns {model.n_columns}\n")
        out.writelines(f"{name} {value}\n" for name, value in _pairs(model, x))


def write_cbc_start(model: Milp, x: NDArray[np.float64], path: str | os.PathLike[str]) -> None:
    """Write a CBC solution, for ``cbc MODEL.mps -mips FILE``.

    For the minimising .mps only: with a start, CBC 2.10.3 mixes up the signs of a maximising .lp and calls
    the start itself optimal when its objective is negative. Parameters and errors as
    :func:`write_cplex_start`.
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
    """Write the start file of every solver beside a model file.

    Parameters
    ----------
    model : Milp
        The model, n columns.
    x : float64 array, shape (n,)
        A feasible solution; integer columns are rounded.
    model_path : path
        The .lp or .mps file (gz too); ``dir/m.lp`` gives ``dir/m.start.cplex.mst`` and so on.

    Returns
    -------
    dict of str to Path
        The files by solver, as :func:`milpbn.model.commands.solver_commands` takes them.

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
    """Yield name and exact value of every column, integer columns rounded."""
    if x.shape != (model.n_columns,) or not np.isfinite(x).all():
        raise ValueError(f"A start needs one finite value for each of the {model.n_columns} columns.")
    return zip(model.column_names, number_strings(np.where(model.integer, np.round(x), x)), strict=True)
